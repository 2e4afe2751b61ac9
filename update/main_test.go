package update

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/cage"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// TestMain lets the test binary play a run that is killed.
func TestMain(m *testing.M) {
	if code, inside := cage.Main(); inside {
		os.Exit(code)
	}
	if stage := os.Getenv("UPDATE_TEST_DIE"); stage != "" {
		err := dyingRun(os.Getenv("UPDATE_TEST_ROOT"), os.Getenv("UPDATE_TEST_INDEX"), stage)
		fmt.Fprintln(os.Stderr, "it lives:", err)
		os.Exit(1)
	}
	code := m.Run()
	if err := made.remove(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// dyingRun is a run that gets SIGKILL when it says that it has come to a stage.
func dyingRun(root, index, stage string) error {
	st, err := store.Open(root)
	if err != nil {
		return err
	}
	o := Options{
		Store: st, Channels: map[string]Channel{"nightly": {Indexes: fetch.Sources(index)}},
		Installs: []Install{{Target: "gfx1151", Channel: "nightly", Keep: 3}}, Policy: Policy{Prefer: "version"},
		Client: func(event func(fetch.Event)) (*fetch.Client, error) {
			return fetch.New(fetch.Options{Retries: -1, Event: event})
		},
		Event: func(e Event) {
			if e.Message == stage || strings.HasPrefix(e.Message, stage+" ") {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		},
	}
	if command := os.Getenv("UPDATE_TEST_HEALTH"); command != "" {
		o.Health = Health{Command: []string{"/bin/sh", "-c", command}, Sandbox: SandboxOff}
	}
	_, err = Run(context.Background(), o)
	return err
}

// die runs in another process, which is killed at a stage.
func (w *world) die(stage, health string) {
	w.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "UPDATE_TEST_DIE="+stage, "UPDATE_TEST_ROOT="+w.root, "UPDATE_TEST_HEALTH="+health,
		"UPDATE_TEST_INDEX="+w.o.Channels["nightly"].Indexes[0].URL)
	out, err := cmd.CombinedOutput()
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGKILL {
		w.t.Fatalf("%v, %s", err, out)
	}
}

// lose removes the state of the slot.
func (w *world) lose() {
	w.t.Helper()
	if err := os.Remove(filepath.Join(w.root, "slots/nightly-gfx1151/state.json")); err != nil {
		w.t.Fatal(err)
	}
}

// generations are the names of what is installed.
func (w *world) generations() (names []string) {
	w.t.Helper()
	gens, err := w.slot().Generations()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, g := range gens {
		names = append(names, g.Name)
	}
	return names
}

func (w *world) slot() *store.Slot { return w.o.Store.Slot("nightly", "gfx1151") }
