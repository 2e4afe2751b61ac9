package store

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
	"testing"
)

// TestMain lets the test binary play the other process.
func TestMain(m *testing.M) {
	root := os.Getenv("STORE_TEST_ROOT")
	switch os.Getenv("STORE_TEST_ROLE") {
	case "":
		fewerChecks()
		os.Exit(m.Run())
	case "install":
		fmt.Fprintln(os.Stderr, installForever(root))
	case "reuse":
		fmt.Fprintln(os.Stderr, reuseForever(root))
	case "tarballs":
		fmt.Fprintln(os.Stderr, keepForever(root))
	case "link":
		fmt.Fprintln(os.Stderr, linkForever(root))
	case "uninstall":
		fmt.Fprintln(os.Stderr, uninstallForever(root))
	case "wipe":
		fmt.Println("ready")
		fmt.Fprintln(os.Stderr, wipeForever(root))
	case "uses":
		fmt.Fprintln(os.Stderr, printUses(root))
	case "map":
		fmt.Fprintln(os.Stderr, holdMapping(root))
	case "thread":
		fmt.Fprintln(os.Stderr, holdByThread(root))
	case "orphan":
		holdAfterFirst()
	case "verify":
		if err := verifyAll(root); err == nil {
			os.Exit(0)
		} else {
			fmt.Fprintln(os.Stderr, err)
		}
	case "mend":
		fmt.Fprintln(os.Stderr, mendForever(root))
	case "lock":
		fmt.Fprintln(os.Stderr, holdRunLock(root))
	}
	os.Exit(1)
}

// installForever installs one night after the other, as fast as it can, and
// does what users do in between. It only ends by an error.
func installForever(root string) error {
	s, err := Open(root)
	if err != nil {
		return err
	}
	ctx := context.Background()
	sl := s.Slot("nightly", "gfx1151")
	fmt.Println("ready")
	for n := 0; ; n++ {
		gens, err := sl.Generations()
		if err != nil {
			return err
		}
		next := 1
		for _, g := range gens {
			var have int
			if _, err := fmt.Sscanf(g.Version, "10.2.0a%d", &have); err != nil {
				return err
			}
			next = max(next, have-20260100+1)
		}
		if err := installOne(ctx, sl, night(next)); err != nil {
			return err
		}
		if n%3 == 2 {
			if _, _, err := sl.Rollback(ctx); err != nil {
				return err
			}
		}
		if _, err := sl.Prune(ctx, Keep{Last: 3}); err != nil {
			return err
		}
		if err := s.AppendPin(pinOf(night(next), next)); err != nil {
			return err
		}
	}
}

func installOne(ctx context.Context, sl *Slot, version string) error {
	st, err := sl.Stage(ctx)
	if err != nil {
		return err
	}
	if err := fill(st.Dir(), version, "recipe of "+version); err != nil {
		return err
	}
	g, err := st.Commit(version)
	if err != nil {
		return err
	}
	if err := sl.Activate(ctx, g.Name, "update"); err != nil {
		return err
	}
	return sl.WriteRun(version, map[string]string{"version": version})
}

// holdRunLock takes run.lock, says so, and holds it until it is killed or its
// standard input ends; then it ends without releasing it.
func holdRunLock(root string) error {
	s, err := Open(root)
	if err != nil {
		return err
	}
	if _, err := s.LockRun(context.Background(), "update"); err != nil {
		return err
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// withUmask runs do, on this goroutine, with another umask for the process.
func withUmask(mask int, do func()) {
	defer syscall.Umask(syscall.Umask(mask))
	do()
}

// asNobody runs do without root's right to override permissions, on a thread
// of its own.
func asNobody(t *testing.T, do func()) {
	t.Helper()
	if os.Getuid() != 0 {
		do()
		return
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := syscall.Setfsgid(65534)
		if err == nil {
			err = syscall.Setfsuid(65534) // drops CAP_DAC_OVERRIDE and CAP_FOWNER of this thread
		}
		if err == nil {
			do()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// fewerChecks has the models, of which each check is a store, try less than
// rapid would, unless that was asked for: scripts/test-heavy.sh does.
func fewerChecks() {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if !asked {
		_ = flag.Set("rapid.checks", "12")
	}
}
