package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestLeaseKeepsAGeneration(t *testing.T) {
	sl := reachable(t)
	s := sl.store
	install(t, sl, night(1), night(2), night(3))
	pid, stop := start(t, "sh", "-c", "echo ready; read x")
	l, g, err := sl.Lease(t.Context(), night(1), pid)
	if err != nil || g.Name != night(1) || l.PID != pid || l.Program != "sh" {
		t.Fatalf("%+v, %+v, %v", l, g, err)
	}
	if _, g, err := sl.Lease(t.Context(), "", pid); err != nil || g.Name != night(3) {
		t.Errorf("of what is active: %+v, %v", g, err)
	}
	if _, _, err := sl.Lease(t.Context(), "", pid); err != nil {
		t.Error(err)
	}
	all, err := s.Leases()
	if err != nil || len(all) != 2 || all[0].State != LeaseLive {
		t.Errorf("%+v, %v", all, err)
	}
	if u := usesOf(t, sl)[night(1)]; len(u.By) != 1 || u.By[0] != (Use{pid, "sh", UseLease}) {
		t.Errorf("%+v", u)
	}
	if p, err := sl.Prune(t.Context(), Keep{}); err != nil || len(p.Removed) != 0 {
		t.Errorf("pruned %+v, %v", p, err)
	}
	if n, err := s.Release(pid, "rc-gfx1151"); n != 0 || err != nil {
		t.Errorf("released %d of another slot, %v", n, err)
	}
	stop()
	if all, err = s.Leases(); err != nil || len(all) != 2 || all[0].State != LeaseDead {
		t.Errorf("after its end: %+v, %v", all, err)
	}
	if p, err := sl.Prune(t.Context(), Keep{}); err != nil || len(p.Removed) != 1 || p.Debris != 2 {
		t.Errorf("pruned %+v, %v", p, err)
	}
	equal(t, "records", entries(t, filepath.Join(s.Root(), leasesName)), nil)

	for name, err := range map[string]error{
		"no process": third(sl.Lease(t.Context(), "", 1<<22)),
		"no version": third(sl.Lease(t.Context(), night(9), os.Getpid())),
		"no slot":    third(s.Slot("rc", "gfx1151").Lease(t.Context(), "", os.Getpid())),
		"negative":   third(sl.Lease(t.Context(), "", -1)),
	} {
		if err == nil {
			t.Errorf("%s: leased", name)
		}
	}
}

func third(_ *Lease, _ *Generation, err error) error { return err }

func TestRelease(t *testing.T) {
	sl := open(t).Slot("nightly", "gfx1151")
	install(t, sl, night(1), night(2), night(3))
	if _, _, err := sl.Lease(t.Context(), night(1), os.Getpid()); err != nil {
		t.Fatal(err)
	}
	if n, err := sl.store.Release(os.Getpid(), sl.Name()); n != 1 || err != nil {
		t.Errorf("released %d, %v", n, err)
	}
	if p, err := sl.Prune(t.Context(), Keep{}); err != nil || len(p.Removed) != 1 {
		t.Errorf("pruned %+v, %v", p, err)
	}
}

// TestLeasesOfOthers: what /proc does not confirm is no lease, and nothing that
// somebody puts there does more than that.
func TestLeasesOfOthers(t *testing.T) {
	sl := reachable(t)
	s := sl.store
	install(t, sl, night(1), night(2), night(3))
	now := time.Now()
	s.Now = func() time.Time { return now }
	good, _, err := sl.Lease(t.Context(), night(1), os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Release(os.Getpid(), ""); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(s.Root(), leasesName)
	if fi, err := os.Stat(dir); err != nil || os.Geteuid() == 0 && fi.Mode() != fs.ModeDir|fs.ModeSticky|0o777 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
	name := filepath.Join(dir, "1-ABCDEFGHIJKL.json")
	record := func(change func(*Lease)) func() error {
		return func() error {
			l := *good
			change(&l)
			text, err := json.Marshal(l)
			if err != nil {
				return err
			}
			return os.WriteFile(name, text, 0o644)
		}
	}
	text := func(s string) func() error { return func() error { return os.WriteFile(name, []byte(s), 0o644) } }
	later := func(do func() error) func() error {
		return func() error {
			s.Now = func() time.Time { return now.Add(LeaseForeign + time.Hour) }
			return do()
		}
	}
	away := func(l *Lease) { l.BootID, l.Host = "another", "another" }
	for what, c := range map[string]struct {
		do     func() error
		used   bool
		unseen bool
		gone   bool // the record, after a prune
	}{
		"live":                {record(func(*Lease) {}), true, false, false},
		"another process":     {record(func(l *Lease) { l.Start++ }), false, false, true},
		"ended":               {record(func(l *Lease) { l.PID = 1 << 22 }), false, false, true},
		"before a boot":       {record(func(l *Lease) { l.BootID = "another" }), false, false, true},
		"another host":        {record(away), true, false, false},
		"another host, old":   {later(record(away)), false, false, true},
		"a container":         {record(func(l *Lease) { l.PIDs = "pid:[1]" }), true, false, false},
		"a container, old":    {later(record(func(l *Lease) { l.PIDs = "pid:[1]" })), false, false, true},
		"another generation":  {record(func(l *Lease) { l.Generation = night(2) }), false, false, false},
		"another slot":        {record(func(l *Lease) { l.Slot = "rc-gfx1151" }), false, false, false},
		"a path":              {record(func(l *Lease) { l.Generation = "../" + night(1) }), false, false, false},
		"another user's word": {record(func(l *Lease) { l.UID++ }), false, false, false},
		"newer":               {record(func(l *Lease) { l.Schema = 2 }), false, true, false},
		"no schema":           {record(func(l *Lease) { l.Schema = 0 }), false, false, false},
		"garbage":             {text("{{{"), false, false, false},
		"empty":               {text(""), false, false, false},
		"long":                {text(strings.Repeat(" ", maxLease+1)), false, false, false},
		"a link": {func() error {
			if err := record(func(*Lease) {})(); err != nil {
				return err
			}
			return errors.Join(os.Rename(name, s.Root()+"/there"), os.Symlink(s.Root()+"/there", name))
		}, false, false, false},
		"two names":       {func() error { return errors.Join(record(func(*Lease) {})(), os.Link(name, name+"2")) }, false, false, false},
		"a pipe":          {func() error { return syscall.Mkfifo(name, 0o644) }, false, false, false},
		"a directory":     {func() error { return os.Mkdir(name, 0o755) }, false, false, false},
		"begun":           {func() error { return os.WriteFile(dir+"/.new-x", nil, 0o644) }, false, false, false},
		"begun long ago":  {later(func() error { return os.WriteFile(dir+"/.new-x", nil, 0o644) }), false, false, true},
		"directory gone":  {func() error { return os.Remove(dir) }, false, false, false},
		"directory links": {func() error { return errors.Join(os.Remove(dir), os.Symlink("/etc", dir)) }, false, true, false},
	} {
		t.Run(what, func(t *testing.T) {
			defer func() {
				s.Now = func() time.Time { return now }
				if err := errors.Join(os.RemoveAll(dir), s.makeLeases()); err != nil {
					t.Error(err)
				}
				os.Remove(s.Root() + "/there")
			}()
			if err := c.do(); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadDir(dir)
			u := s.leaseUses(sl.named([]string{night(1)}))[sl.path(generationsName, night(1))]
			if used, unseen := len(u.By) > 0, u.Unseen > 0; used != c.used || unseen != c.unseen {
				t.Errorf("%+v", u)
			}
			s.sweepLeases()
			after, _ := os.ReadDir(dir)
			if gone := len(after) < len(before); gone != c.gone {
				t.Errorf("%d records became %d", len(before), len(after))
			}
			if _, err := s.Leases(); (err != nil) != (what == "directory links") {
				t.Error(err)
			}
		})
	}
}

// TestLeasesAreBounded: one user's records do not hide another's, and more than
// can be read means that nobody knows.
func TestLeasesAreBounded(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be two users: run as root")
	}
	sl := reachable(t)
	s := sl.store
	install(t, sl, night(1), night(2), night(3))
	dir := filepath.Join(s.Root(), leasesName)
	flood := func(n, uid int) {
		t.Helper()
		for i := range n {
			name := filepath.Join(dir, fmt.Sprintf("%d-ABCDEFGHIJKL.json", uid*1000+i))
			if err := errors.Join(os.WriteFile(name, []byte("{"), 0o600), os.Chown(name, uid, uid)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.makeLeases(); err != nil {
		t.Fatal(err)
	}
	flood(maxLeasesOf+50, 4321)
	if _, _, err := sl.Lease(t.Context(), night(1), os.Getpid()); err != nil {
		t.Fatal(err)
	}
	look := func() Uses { return s.leaseUses(sl.named([]string{night(1)}))[sl.path(generationsName, night(1))] }
	if u := look(); len(u.By) != 1 || u.Unseen != 0 {
		t.Errorf("%+v", u)
	}
	for uid := range maxLeases/maxLeasesOf + 1 {
		flood(maxLeasesOf, 5000+uid)
	}
	if u := look(); u.Unseen == 0 {
		t.Errorf("beyond all bounds: %+v", u)
	}
	// What an ordinary user may not read may be a lease.
	asNobody(t, func() {
		if err := unix.Access(dir, unix.R_OK); err != nil {
			t.Fatal(err)
		}
		if u := look(); u.Unseen == 0 {
			t.Errorf("as nobody: %+v", u)
		}
	})
}

func TestOpenFollowsWhatIsActive(t *testing.T) {
	sl := open(t).Slot("nightly", "gfx1151")
	install(t, sl, night(1), night(2))
	g, f, err := sl.Open("")
	if err != nil || g.Name != night(2) || f.Name() != g.Dir {
		t.Fatalf("%+v, %v", g, err)
	}
	defer f.Close()
	if _, _, err := sl.Open(night(9)); err == nil {
		t.Error("opened what is not there")
	}
}
