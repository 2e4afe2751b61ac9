package store

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// service is the user that owns a store in these tests.
const service = 65534

// asRoot skips where root's part cannot be played.
func asRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: what root does in the store of another user")
	}
}

// servicesStore is a store with two nights that a service has installed.
func servicesStore(t *testing.T) (*Store, *Slot) {
	t.Helper()
	asRoot(t)
	s := open(t)
	if err := errors.Join(os.Chmod(filepath.Dir(s.Root()), 0o755), os.Mkdir(s.Root(), 0o755), os.Chown(s.Root(), service, service)); err != nil {
		t.Fatal(err)
	}
	sl := s.Slot("nightly", "gfx1151")
	asNobody(t, func() { install(t, sl, night(1), night(2)) })
	return s, sl
}

// roots lists what of the store is root's.
func roots(t *testing.T, s *Store) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(s.Root(), func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err == nil && fi.Sys().(*syscall.Stat_t).Uid == 0 {
			found = append(found, strings.TrimPrefix(p, s.Root()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// everything does all that writes.
func everything(t *testing.T, s *Store, sl *Slot, version string) {
	t.Helper()
	lock, err := s.LockRun(t.Context(), "update")
	if err != nil {
		t.Fatal(err)
	}
	install(t, sl, version)
	_, _, err = sl.Rollback(t.Context())
	spool := filepath.Join(s.Root(), "spool/nightly/a.tar.gz")
	err = errors.Join(err, os.MkdirAll(spool, 0o755), os.WriteFile(filepath.Join(spool, "0000"), nil, 0o644))
	if err := errors.Join(err, sl.WriteRun(version, map[string]int{"schema": 1}), sl.WriteProvenance(version, nil), s.AppendPin(pinOf(version, 1)), sl.Refuse(t.Context(), "x", "y"), lock.Release()); err != nil {
		t.Fatal(err)
	}
}

// What root does in the store of a service leaves nothing that the service could
// not replace: it goes on afterwards as if root had not been there.
func TestRootLeavesNothingOfItsOwnInTheStoreOfAnother(t *testing.T) {
	s, sl := servicesStore(t)
	everything(t, s, sl, night(3))
	if found := roots(t, s); len(found) > 0 {
		t.Errorf("root's: %v", found)
	}
	if uid, err := unix.SetfsuidRetUid(-1); err != nil || uid != 0 {
		t.Errorf("the thread has stayed user %d, %v", uid, err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(s.Root()), "roots"), nil, 0o600); err != nil {
		t.Errorf("root is not root any more: %v", err)
	}
	asNobody(t, func() {
		everything(t, s, sl, night(4))
		if _, err := sl.Prune(t.Context(), Keep{Last: 1}); err != nil {
			t.Error(err)
		}
	})
}

// Verbs that hold no run lock leave nothing of root's either, but for its own
// leases, which count as long as it is root who owns them.
func TestRootsVerbsLeaveNothingInTheStoreOfAnother(t *testing.T) {
	s, sl := servicesStore(t)
	asNobody(t, func() {
		if lock, err := s.LockRun(t.Context(), "update"); err != nil || lock.Release() != nil {
			t.Fatal(err)
		}
	})
	dir := filepath.Dir(s.Root())
	if err := os.RemoveAll(sl.path(sealsName)); err != nil {
		t.Fatal(err)
	}
	gens, err := s.VerifyTargets("", "")
	if err == nil {
		_, err = s.Verify(t.Context(), gens, VerifyOptions{})
	}
	_, lerr := s.MakeLink(t.Context(), sl, LinkOptions{Path: filepath.Join(dir, "rocm"), By: LinkByVerb})
	if err := errors.Join(err, lerr, sl.Hold(t.Context(), time.Time{}, "")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := sl.Lease(t.Context(), night(1), os.Getpid()); err != nil {
		t.Fatal(err)
	}
	live := func() {
		t.Helper()
		if all, err := s.Leases(); err != nil || len(all) != 1 || all[0].State != LeaseLive || all[0].UID != 0 {
			t.Errorf("leases: %+v, %v", all, err)
		}
	}
	live()
	everything(t, s, sl, night(3)) // which gives back what is root's
	live()
	if found := roots(t, s); len(found) != 1 || filepath.Dir(found[0]) != "/"+leasesName {
		t.Errorf("root's: %v", found)
	}
	if _, err := s.Release(os.Getpid(), ""); err != nil {
		t.Error(err)
	}
	asNobody(t, func() {
		if err := os.Chmod(dir, 0o755); err == nil {
			t.Error("the service owns what is around its store")
		}
		if _, err := s.DropLink(t.Context(), filepath.Join(dir, "rocm")); err == nil || !strings.Contains(err.Error(), "you may not write") {
			t.Errorf("a root's link is dropped by the service: %v", err)
		}
		if _, err := s.Verify(t.Context(), gens[:1], VerifyOptions{}); err != nil {
			t.Error(err)
		}
		everything(t, s, sl, night(4))
	})
}

// What an older program left as root's is given back.
func TestWhatWasRootsIsGivenBack(t *testing.T) {
	s, sl := servicesStore(t)
	asNobody(t, func() { everything(t, s, sl, night(3)) })
	for _, name := range []string{runLock, ledgerName, "slots", "slots/nightly-gfx1151/" + switchLock, "slots/nightly-gfx1151/" + runsName, "spool"} {
		if err := os.Lchown(filepath.Join(s.Root(), name), 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	everything(t, s, sl, night(4))
	if found := roots(t, s); len(found) > 0 {
		t.Errorf("root's: %v", found)
	}
}

// Whatever a hostile owner has laid in root's way: nothing outside the store is
// touched, removed, waited for or given away.
func TestAHostileOwnerGainsNothing(t *testing.T) {
	victim := func(t *testing.T, s *Store) string {
		dir := filepath.Join(filepath.Dir(s.Root()), "victim")
		for _, name := range []string{"generations/" + night(1), "generations/" + night(2), "generations/" + night(3), ".staging-x", ".dying-x", "runs"} {
			if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"generations/" + night(1) + "/f", "run.lock", "switch.lock", "ledger.jsonl", "state.json", "store.json", ".staging-x/f"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("precious\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	look := func(t *testing.T, dir string) string {
		out, err := exec.Command("find", dir, "-printf", "%p %y %U %G %m %s %n\n").Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	type trap func(s *Store, sl *Slot, victim string) error
	replace := func(path string, with func(path string) error) error {
		return errors.Join(os.RemoveAll(path), with(path))
	}
	link := func(to string) func(string) error { return func(path string) error { return os.Symlink(to, path) } }
	for name, lay := range map[string]trap{
		"slot": func(s *Store, sl *Slot, v string) error { return replace(sl.path(), link(v)) },
		"slots": func(s *Store, sl *Slot, v string) error {
			return errors.Join(os.Symlink(".", filepath.Join(v, "nightly-gfx1151")), replace(filepath.Join(s.Root(), "slots"), link(v)))
		},
		"slots, to a directory that is empty": func(s *Store, sl *Slot, v string) error {
			return errors.Join(os.Mkdir(filepath.Join(v, "empty"), 0o755), replace(filepath.Join(s.Root(), "slots"), link(filepath.Join(v, "empty"))))
		},
		"generations": func(s *Store, sl *Slot, v string) error {
			return replace(sl.path("generations"), link(filepath.Join(v, "generations")))
		},
		"runs": func(s *Store, sl *Slot, v string) error {
			return replace(sl.path("runs"), link(filepath.Join(v, "runs")))
		},
		"run.lock": func(s *Store, sl *Slot, v string) error {
			return replace(filepath.Join(s.Root(), runLock), link(filepath.Join(v, "run.lock")))
		},
		"switch.lock": func(s *Store, sl *Slot, v string) error {
			return replace(sl.path(switchLock), link(filepath.Join(v, "switch.lock")))
		},
		"ledger": func(s *Store, sl *Slot, v string) error {
			return replace(filepath.Join(s.Root(), ledgerName), link(filepath.Join(v, "ledger.jsonl")))
		},
		"state": func(s *Store, sl *Slot, v string) error {
			return replace(sl.path(stateName), link(filepath.Join(v, "state.json")))
		},
		"store.json": func(s *Store, sl *Slot, v string) error {
			return replace(filepath.Join(s.Root(), rootName), link(filepath.Join(v, "store.json")))
		},
		"seals": func(s *Store, sl *Slot, v string) error {
			return errors.Join(os.Mkdir(filepath.Join(v, sealsName), 0o755), replace(sl.path(sealsName), link(filepath.Join(v, sealsName))))
		},
		"leases": func(s *Store, sl *Slot, v string) error {
			return replace(filepath.Join(s.Root(), leasesName), link(v))
		},
		"tarballs": func(s *Store, sl *Slot, v string) error {
			return errors.Join(os.MkdirAll(filepath.Join(v, "nightly/.dying-x"), 0o755), replace(s.TarballsDir(), link(v)))
		},
		"links": func(s *Store, sl *Slot, v string) error {
			return errors.Join(replace(filepath.Join(s.Root(), linksLock), link(filepath.Join(v, "run.lock"))), replace(filepath.Join(s.Root(), linksName), link(filepath.Join(v, "state.json"))))
		},
		"hard links": func(s *Store, sl *Slot, v string) error {
			hard := func(from string) func(string) error {
				return func(path string) error { return os.Link(filepath.Join(v, from), path) }
			}
			return errors.Join(replace(filepath.Join(s.Root(), runLock), hard("run.lock")), replace(filepath.Join(s.Root(), ledgerName), hard("ledger.jsonl")), replace(sl.path(switchLock), hard("switch.lock")))
		},
		"pipes": func(s *Store, sl *Slot, v string) error {
			pipe := func(path string) error {
				return errors.Join(unix.Mkfifo(path, 0o666), os.Lchown(path, service, service))
			}
			return errors.Join(replace(filepath.Join(s.Root(), runLock), pipe), replace(sl.path(stateName), pipe), replace(sl.path(switchLock), pipe), replace(filepath.Join(s.Root(), rootName), pipe), replace(sl.path(checksName), pipe))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, sl := servicesStore(t)
			v := victim(t, s)
			if err := lay(s, sl, v); err != nil {
				t.Fatal(err)
			}
			before := look(t, v)
			// Errors are fine, and what one would expect; harm is not.
			if lock, err := s.LockRun(t.Context(), "prune"); err == nil {
				_, _ = s.PruneTarballs(t.Context(), nil)
				_ = lock.Release()
			}
			_, _, _ = sl.Lease(t.Context(), "", os.Getpid())
			_, _ = s.MakeLink(t.Context(), sl, LinkOptions{Path: filepath.Join(filepath.Dir(s.Root()), "rocm"), By: LinkByVerb})
			_ = s.FinishLinks(t.Context())
			gens, _ := s.VerifyTargets("", "")
			_, _ = s.Verify(t.Context(), gens, VerifyOptions{})
			_, _, _ = sl.Rollback(t.Context())
			_, _ = sl.Prune(t.Context(), Keep{Last: 0})
			_ = sl.Remove(t.Context(), night(1))
			if st, err := sl.Stage(t.Context()); err == nil {
				_ = st.Abort()
			}
			_ = sl.Refuse(t.Context(), "x", "y")
			_ = sl.WriteRun(night(1), 1)
			_ = sl.WriteProvenance(night(1), nil)
			_ = s.AppendPin(pinOf("a", 1))
			_, _ = sl.LastCheck()
			_, _ = sl.Generations()
			if after := look(t, v); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}

// Where root would download and unpack by way of a link, it does not begin.
func TestARunOfRootFollowsNoLinks(t *testing.T) {
	for _, name := range []string{"spool", "slots", "spool/nightly", "spool/nightly/a.tar.gz", "slots/nightly-gfx1151", "slots/nightly-gfx1151/generations", "slots/nightly-gfx1151/seals", "tarballs", "tarballs/nightly", "leases"} {
		s, _ := servicesStore(t)
		path := filepath.Join(s.Root(), name)
		if err := os.Symlink("x", filepath.Join(s.Root(), "slots/nightly-gfx1151", currentPrefix+"x")); err != nil { // of a run that was killed
			t.Fatal(err)
		}
		lock, err := s.LockRun(t.Context(), "update")
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Release(); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.RemoveAll(path), os.Symlink(t.TempDir(), path)); err != nil {
			t.Fatal(err)
		}
		_, err = s.LockRun(t.Context(), "update")
		if err == nil || !strings.Contains(err.Error(), path+" is a symlink") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// In one's own store a link to another disk is one's own choice.
	s := open(t)
	if err := errors.Join(os.Mkdir(s.Root(), 0o755), os.Symlink(t.TempDir(), filepath.Join(s.Root(), "spool"))); err != nil {
		t.Fatal(err)
	}
	lock, err := s.LockRun(t.Context(), "update")
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
}

// An ordinary user reads root's store, is told whose it is, and who holds a lock.
func TestAnOrdinaryUserIsToldWhoseItIs(t *testing.T) {
	asRoot(t)
	s := open(t)
	sl := s.Slot("nightly", "gfx1151")
	withUmask(0o077, func() {
		install(t, sl, night(0))
		everything(t, s, sl, night(1))
	})
	lock, err := s.LockRun(t.Context(), "prune")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	if err := os.Chmod(filepath.Dir(s.Root()), 0o755); err != nil {
		t.Fatal(err)
	}
	asNobody(t, func() {
		if h := readHolder(filepath.Join(s.Root(), runLock)); h.What != "prune" || h.PID != os.Getpid() {
			t.Errorf("the holder is %+v", h)
		}
		if _, err := sl.State(); err != nil {
			t.Error(err)
		}
		if _, err := sl.ReadProvenance(night(1)); err != nil {
			t.Error(err)
		}
		if _, err := s.FindPins(night(1)); err != nil {
			t.Error(err)
		}
		var rec map[string]int
		if err := sl.ReadRun(night(1), &rec); err != nil {
			t.Error(err)
		}
	})
	// The hint looks at who one is, so that it needs a process of that user.
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("needs setpriv (Debian: util-linux)")
	}
	cmd := exec.Command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", os.Args[0])
	cmd.Env = append(os.Environ(), "STORE_TEST_ROLE=lock", "STORE_TEST_ROOT="+s.Root())
	if copied := filepath.Join(scratch(t), "test"); true { // the test binary may be out of that user's reach
		b, err := os.ReadFile(os.Args[0])
		if err := errors.Join(err, os.WriteFile(copied, b, 0o755), os.Chmod(filepath.Dir(copied), 0o755)); err != nil {
			t.Fatal(err)
		}
		cmd.Args[4], cmd.Dir = copied, filepath.Dir(copied)
	}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "belongs to root: run it as root") || !strings.Contains(string(out), "--root") {
		t.Errorf("%s, %v", out, err)
	}
}

// Default ACLs, a set group and any umask: what is made has the modes that it
// should have, and nobody else may write.
func TestModesComeOutRight(t *testing.T) {
	for _, mask := range []int{0, 0o007, 0o077, 0o777} {
		for _, acl := range []bool{false, true} {
			s := open(t)
			parent := filepath.Dir(s.Root())
			if err := os.Chmod(parent, 0o2775|os.ModeSetgid); err != nil {
				t.Fatal(err)
			}
			if acl {
				if _, err := exec.LookPath("setfacl"); err != nil {
					t.Skip("needs setfacl (Debian: acl)")
				}
				if out, err := exec.Command("setfacl", "-d", "-m", "u:65534:rwx,g::rwx,o::rwx,m::rwx", parent).CombinedOutput(); err != nil {
					t.Skipf("this file system has no ACLs: %s", out)
				}
			}
			sl := s.Slot("nightly", "gfx1151")
			withUmask(mask, func() {
				lock, err := s.LockRun(t.Context(), "update")
				if err != nil {
					t.Fatal(err)
				}
				st, err := sl.Stage(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer st.Abort()
				if err := errors.Join(sl.WriteRun("x", 1), sl.WriteProvenance("x", nil), s.AppendPin(pinOf("a", 1)), sl.Refuse(t.Context(), "x", "y"), lock.Release()); err != nil {
					t.Fatal(err)
				}
				err = filepath.WalkDir(s.Root(), func(p string, e fs.DirEntry, err error) error {
					if err != nil {
						return err
					}
					fi, err := e.Info()
					want := fs.FileMode(0o644)
					if e.IsDir() {
						want = 0o755
					}
					if err == nil && fi.Mode().Perm() != want {
						t.Errorf("umask %o, ACL %v: %s has mode %v", mask, acl, p, fi.Mode())
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}
