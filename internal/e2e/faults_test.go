//go:build faults

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/fault"
)

// buildTags are those of the program under test.
const buildTags = "faults"

// faultVariable arms one point of the program.
const faultVariable = "ROCM_NIGHTLY_FAULT="

// mostPassages bounds how many passages of one point are killed at.
const mostPassages = 4

// faulty is a store with two nights, one newer that is published, and the
// debris of a run that died long ago.
type faulty struct {
	*axe
	pristine string
	passed   map[string]int // how often an undisturbed run passes each point
	end      end            // what it ends in
	size     int64          // bytes of the newest tarball
}

func newFaulty(t *testing.T) *faulty {
	t.Helper()
	f := &faulty{axe: newAxe(t, 2), passed: map[string]int{}}
	f.health = `{smoke: "off", command: ["true"], sandbox: "off"}`
	f.configure(t, "keep_tarballs: 1\n")
	f.install(t, 0)
	f.install(t, 1)
	if err := os.Remove(filepath.Join(f.disk, "opt/rocm")); err != nil { // the next run sets it
		t.Fatal(err)
	}
	f.plant(t)
	f.pristine = f.keep(t, "pristine")
	f.publish(t, 2)
	r := f.do(t, []string{faultVariable + "trace"}, "update", "--no-bump").want(t, 0, "installed "+axeNight(2), "")
	for _, m := range regexp.MustCompile(`(?m)^fault point (\S+): passed$`).FindAllStringSubmatch(r.stderr, -1) {
		f.passed[m[1]]++
	}
	f.end = f.axe.end(t)
	if left := f.debris(t); len(left) > 0 || f.end.active != axeNight(2) || len(f.end.generations) != 2 {
		t.Fatalf("an undisturbed run leaves %v, and %+v", left, f.end)
	}
	fi, err := os.Stat(filepath.Join(f.amd, "therock-dist-linux-gfx1151-"+axeNight(2)+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	f.size = fi.Size()
	return f
}

// plant leaves what runs leave that were killed.
func (a *axe) plant(t *testing.T) {
	t.Helper()
	unrecorded := "../../tarballs/nightly/therock-dist-linux-gfx1151-" + axeNight(2) + ".tar.gz"
	download := "../../spool/nightly/therock-dist-linux-gfx1151-" + axeNight(0) + ".tar.gz"
	for _, dir := range []string{".staging-DEAD/opt/rocm", ".dying-DEAD/opt/rocm", unrecorded, download} {
		if err := os.MkdirAll(a.slot(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(a.slot(dir, "half"), []byte("half of it"), 0o444); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{".staging-DEAD.lock", ".state.json123", ".checks.json123", "runs/." + axeNight(2) + ".json123",
		"seals/." + axeNight(1) + ".seal123", "../../.store.json123", "../../.links.json123"} {
		if err := os.WriteFile(a.slot(name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("generations/"+axeNight(0), a.slot(".current-DEAD")); err != nil {
		t.Fatal(err)
	}
}

// TestPromiseAFaultAtAnyPointIsMendedByTheNextRun: a real update fails at every
// point of the program in every way. What was installed works on, and the next
// run ends as if nothing had happened, and fetches little of it twice.
func TestPromiseAFaultAtAnyPointIsMendedByTheNextRun(t *testing.T) {
	const stores = 2 // at once
	for nth := range stores {
		t.Run(fmt.Sprint(nth), func(t *testing.T) {
			t.Parallel()
			f := newFaulty(t)
			all := f.strikes(t)
			for i := nth; i < len(all); i += stores {
				f.strike(t, all[i].armed, all[i].kind)
			}
			t.Logf("%d faults at %d points, half of them here", len(all), len(fault.Points()))
		})
	}
}

// rare are the kinds that nothing tells from ENOSPC; ROCM_NIGHTLY_AXE_FAULTS=all
// has them too.
var rare = map[string]bool{"EDQUOT": true, "EROFS": true}

type strike struct{ armed, kind string }

// strikes lists every way in which every point can fail, or with
// ROCM_NIGHTLY_AXE_POINT those whose names begin so.
func (f *faulty) strikes(t *testing.T) (all []strike) {
	t.Helper()
	for _, p := range fault.Points() {
		if strings.HasPrefix(p.Name, "bump.") {
			continue // an update here proposes nothing: the package bump kills a process at each of those
		}
		if f.passed[p.Name] == 0 {
			t.Errorf("an update does not pass %s: change the update of this test so that it does", p.Name)
			continue
		}
		if only := os.Getenv("ROCM_NIGHTLY_AXE_POINT"); !strings.HasPrefix(p.Name, only) {
			continue
		}
		for _, kind := range p.Form.Kinds() {
			if rare[kind] && os.Getenv("ROCM_NIGHTLY_AXE_FAULTS") != "all" {
				continue
			}
			passages := 1
			if kind == "exit" {
				passages = min(f.passed[p.Name], mostPassages)
			}
			for n := range passages {
				all = append(all, strike{fmt.Sprintf("%s#%d:%s", p.Name, n+1, kind), kind})
			}
		}
	}
	return all
}

// strike runs an update with a fault, and one without.
func (f *faulty) strike(t *testing.T, armed, kind string) {
	t.Helper()
	f.restore(t, f.pristine)
	f.sent.Store(0)
	cmd := f.command(t.Context(), []string{faultVariable + armed}, "update", "--no-bump")
	out, err := cmd.CombinedOutput()
	name, _, _ := strings.Cut(armed, "#")
	if !strings.Contains(string(out), "fault point "+name+": "+kind) {
		t.Errorf("%s: it was not passed: %v\n%s", armed, err, out)
	}
	switch code := cmd.ProcessState.ExitCode(); {
	case kind == "exit" && !killedBySignal(cmd):
		t.Errorf("%s: %v, not killed", armed, cmd.ProcessState)
	case (kind == "EINTR" || kind == "short") && (code != 0 || !f.axe.end(t).equal(f.end) || len(f.debris(t)) > 0):
		t.Errorf("%s: exit %d, %+v, left %v\n%s", armed, code, f.axe.end(t), f.debris(t), out)
	case kind != "exit" && code != 0 && code != 1:
		t.Errorf("%s: exit %d\n%s", armed, code, out)
	}
	if a := f.active(); a != axeNight(1) && a != axeNight(2) {
		t.Errorf("%s: %q is active", armed, a)
	}
	f.look(t, armed)
	r := f.do(t, nil, "update", "--no-bump")
	if got := f.axe.end(t); r.code != 0 || !got.equal(f.end) {
		t.Errorf("%s: the next run: exit %d, %+v, want %+v\n%s%s", armed, r.code, got, f.end, r.stdout, r.stderr)
	}
	if name == "update.spool.drop" { // an older download goes before the next one, or with a prune
		f.do(t, nil, "prune").want(t, 0, "", "")
	}
	if left := f.debris(t); len(left) > 0 {
		t.Errorf("%s: the next run leaves %v", armed, left)
	}
	if sent := f.sent.Load(); sent > f.size+axeConns*axeSegment {
		t.Errorf("%s: %d bytes were sent of %d: more than one segment for each connection twice", armed, sent, f.size)
	}
}
