package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/smallfs"
)

// TestPromiseAPowerCutAtAnyInstant takes the power of a real file system away,
// at random instants of updates and switches, and mounts it again: everything
// under a final name is whole, read from the disk, and the next run needs
// nobody's help. What a run has said to be done is done after the cut.
// ROCM_NIGHTLY_AXE_SEED repeats a run, ROCM_NIGHTLY_AXE_CUTS makes it longer.
func TestPromiseAPowerCutAtAnyInstant(t *testing.T) {
	if !smallfs.Inside(t) {
		return
	}
	for kind, debian := range map[string]string{"ext4": "e2fsprogs", "xfs": "xfsprogs"} {
		t.Run(kind, func(t *testing.T) {
			seed, cuts := number("ROCM_NIGHTLY_AXE_SEED", time.Now().UnixNano()), number("ROCM_NIGHTLY_AXE_CUTS", 16)
			t.Logf("ROCM_NIGHTLY_AXE_SEED=%d ROCM_NIGHTLY_AXE_CUTS=%d", seed, cuts)
			d := newLoopDisk(t, kind, debian, "")
			p := &powerless{axe: newAxeOn(t, crashNights, memory(t), d.dir), disk: d, rng: rand.New(rand.NewPCG(uint64(seed), 1))}
			p.install(t, 0)
			began := time.Now()
			p.install(t, 1)
			p.cycle = time.Since(began)
			for n := int64(0); n < cuts && !t.Failed(); n++ {
				if n%4 == 3 {
					p.cutAfter(t)
				} else {
					p.cutDuring(t)
				}
			}
			t.Logf("%d cuts came before the end of a run", p.early)
			if p.early == 0 {
				t.Error("no run was disturbed: nothing was tested")
			}
		})
	}
}

// powerless is a store whose disk loses its power.
type powerless struct {
	*axe
	disk  *loopDisk
	rng   *rand.Rand
	cycle time.Duration
	early int
}

// cutDuring takes the power in the middle of something.
func (p *powerless) cutDuring(t *testing.T) {
	t.Helper()
	s := crashSteps[p.rng.IntN(len(crashSteps))]
	night := axeNight(p.rng.IntN(crashNights))
	after := time.Duration(p.rng.Int64N(int64(p.cycle) * 11 / 10))
	if s.name != "update" && s.name != "newest" {
		after /= 4
	}
	at := s.name + " " + night + " cut after " + after.String()
	cmd := p.command(t.Context(), nil, p.line(s.words, night)...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	cut := time.NewTimer(after)
	defer cut.Stop()
	<-cut.C
	p.disk.cut(t)
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	select {
	case err := <-ended:
		if err != nil {
			p.early++
		}
	case <-deadline.C:
		_ = cmd.Process.Kill()
		t.Fatalf("%s: it hangs: %v", at, <-ended)
	}
	p.disk.again(t)
	p.look(t, at)
	if p.active() == "" {
		t.Errorf("%s: nothing is active", at)
	}
	p.mend(t, at)
}

// mend lets the next run do its work.
func (p *powerless) mend(t *testing.T, at string) {
	t.Helper()
	night := axeNight(p.rng.IntN(crashNights))
	p.do(t, nil, "unhold").want(t, 0, "", "")
	r := p.do(t, nil, "update", "--no-bump", "--version", night)
	p.look(t, at+", mended")
	if r.code != 0 || p.active() != night {
		t.Errorf("%s: the next run: exit %d, %s is active, not %s\n%s%s", at, r.code, p.active(), night, r.stdout, r.stderr)
	}
	for _, name := range p.debris(t) {
		if !strings.HasPrefix(name, "spool") {
			t.Errorf("%s: the next run leaves %s", at, name)
		}
	}
}

// cutAfter takes the power right after something has said that it is done.
func (p *powerless) cutAfter(t *testing.T) {
	t.Helper()
	for _, args := range [][]string{{"update", "--no-bump", "--version", axeNight(p.rng.IntN(crashNights))}, {"rollback"}} {
		r := p.do(t, nil, args...)
		want := p.end(t)
		p.disk.cut(t)
		p.disk.again(t)
		p.look(t, "after a cut")
		if got := p.end(t); r.code == 0 && !got.equal(want) {
			t.Errorf("%v was done, and is not after the cut: %+v, want %+v", args, got, want)
		}
	}
}

// A disk that turns read-only under a run, as ext4 does when it finds damage,
// costs that run alone.
func TestPromiseADiskThatTurnsReadOnlyIsSurvived(t *testing.T) {
	if !smallfs.Inside(t) {
		return
	}
	d := newLoopDisk(t, "ext4", "e2fsprogs", "")
	a := newAxeOn(t, 2, memory(t), d.dir)
	a.install(t, 0)
	began := time.Now()
	a.do(t, nil, "update", "--no-bump", "--no-install").want(t, 0, "", "")
	cycle := time.Since(began)
	said := 0
	for part := range 8 {
		cmd := a.command(t.Context(), nil, "update", "--no-bump")
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		turn := time.NewTimer(cycle * time.Duration(part) / 7)
		<-turn.C
		d.abort(t)
		_ = cmd.Wait() // the exit code tells
		if code := cmd.ProcessState.ExitCode(); code != 0 && code != 1 {
			t.Errorf("exit %d\n%s", code, out.String())
		} else if code == 1 && (strings.Contains(out.String(), "read-only") || strings.Contains(out.String(), "input/output error")) {
			said++
		}
		d.again(t)
		a.look(t, "read-only")
		a.do(t, nil, "update", "--no-bump").want(t, 0, "", "")
		if left := a.debris(t); a.active() != axeNight(1) || len(left) > 0 {
			t.Errorf("%s is active, left %v", a.active(), left)
		}
		a.do(t, nil, "update", "--no-bump", "--version", axeNight(0)).want(t, 0, "", "")
		if err := os.RemoveAll(a.slot("generations", axeNight(1))); err != nil { // so that it is made anew
			t.Fatal(err)
		}
		a.do(t, nil, "update", "--no-bump", "--version", axeNight(0)).want(t, 0, "", "")
	}
	if said == 0 {
		t.Error("no run was told: nothing was tested")
	}
}

// A quota is a full disk with another error: the same holds.
func TestPromiseAQuotaIsAFullDisk(t *testing.T) {
	if !smallfs.Inside(t) {
		return
	}
	d := newLoopDisk(t, "btrfs", "btrfs-progs", "")
	quota := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("btrfs", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("btrfs %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	quota("quota", "enable", d.dir)
	// The limit is of a subvolume and is set from outside of it: from inside, to
	// raise one takes room that there may be none of.
	inside := filepath.Join(d.dir, "limited")
	quota("subvolume", "create", inside)
	group := "0/" + quota("inspect-internal", "rootid", inside)
	a := newAxeOn(t, 2, memory(t), inside)
	a.install(t, 0)
	quota("filesystem", "sync", d.dir)
	told := 0
	for mib := range 12 {
		quota("qgroup", "limit", fmt.Sprint(5+mib)+"M", group, d.dir)
		r := a.do(t, nil, "update", "--no-bump")
		a.look(t, "quota")
		switch {
		case r.code == 0:
		case r.code != 1 || a.active() != axeNight(0):
			t.Errorf("%d: exit %d, %s is active\n%s", mib, r.code, a.active(), r.stderr)
		case strings.Contains(r.stderr, "quota exceeded"):
			told++
		default:
			t.Errorf("%d: %s", mib, r.stderr)
		}
	}
	if told == 0 {
		t.Error("the quota was never met: nothing was tested")
	}
	quota("qgroup", "limit", "none", group, d.dir)
	a.do(t, nil, "update", "--no-bump").want(t, 0, "", "")
	if left := a.debris(t); a.active() != axeNight(1) || len(left) > 0 {
		t.Errorf("%s is active, left %v", a.active(), left)
	}
	t.Logf("met %d times", told)
}

// A small disk that fills up at every step of an update: TestPromiseAFullDiskIsClean
// of package update has a tmpfs, this is a journal, on which deleting and renaming
// take room too.
func TestPromiseAFullJournalIsClean(t *testing.T) {
	if !smallfs.Inside(t) {
		return
	}
	d := newLoopDisk(t, "ext4", "e2fsprogs", "")
	a := newAxeOn(t, 2, memory(t), d.dir)
	a.install(t, 0)
	failed := 0
	for left := int64(0); left < 16<<20; left += 1200 << 10 {
		empty := d.fill(t, left)
		r := a.do(t, nil, "update", "--no-bump")
		a.look(t, "full")
		if r.code != 0 {
			failed++
			if r.code != 1 || a.active() != axeNight(0) || !strings.Contains(r.stderr, "room") && !strings.Contains(r.stderr, "no space left") {
				t.Errorf("%d bytes left: exit %d, %s is active\n%s", left, r.code, a.active(), r.stderr)
			}
		}
		empty()
		a.do(t, nil, "update", "--no-bump").want(t, 0, "", "")
		if left := a.debris(t); a.active() != axeNight(1) || len(left) > 0 {
			t.Errorf("%s is active, left %v", a.active(), left)
		}
		a.do(t, nil, "use", axeNight(0)).want(t, 0, "", "")
		if err := os.RemoveAll(a.slot("generations", axeNight(1))); err != nil {
			t.Fatal(err)
		}
		a.do(t, nil, "update", "--no-bump", "--version", axeNight(0)).want(t, 0, "", "")
		if err := os.Remove(a.slot("state.json")); err != nil { // or what was left is not taken again
			t.Fatal(err)
		}
	}
	if failed == 0 {
		t.Error("it was never full: nothing was tested")
	}
}
