package store

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// What root keeps in the store of a service is the service's, readable by
// everybody whatever the umask, and the service goes on with it.
func TestRootKeepsTarballsForTheOwner(t *testing.T) {
	s, sl := servicesStore(t)
	lock, err := s.LockRun(t.Context(), "update")
	must(t, err)
	k := keepOne(t, s, 1, sl.Name())
	must(t, s.WantTarball(k, "nightly-gfx1152"))
	if found := roots(t, s); len(found) > 0 {
		t.Errorf("root's, while it runs: %v", found)
	}
	must(t, lock.Release())
	must(t, filepath.WalkDir(s.TarballsDir(), func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if want := fs.FileMode(fileMode); err == nil && fi.Mode().IsRegular() && fi.Mode() != want {
			t.Errorf("%s has mode %v", p, fi.Mode())
		}
		if err == nil && fi.IsDir() && fi.Mode().Perm() != dirMode {
			t.Errorf("%s has mode %v", p, fi.Mode())
		}
		return err
	}))
	asNobody(t, func() {
		keepOne(t, s, 2, sl.Name())
		if _, err := s.PruneTarballs(t.Context(), map[string]int{sl.Name(): 1, "nightly-gfx1152": 0}); err != nil {
			t.Error(err)
		}
	})
	equal(t, "kept", keptNames(t, s), []string{night(2) + ".tar.gz"})
}

// A link that the owner has laid in place of the kept tarballs lets root remove
// and write nothing that the owner could not.
func TestRootKeepsNoTarballsElsewhereForAHostileOwner(t *testing.T) {
	s, sl := servicesStore(t)
	victim := filepath.Join(filepath.Dir(s.Root()), "victim")
	for _, name := range []string{".dying-x/f", ".keeping-x/f", "x/.tarball.json1"} {
		p := filepath.Join(victim, "nightly", name)
		must(t, os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte("precious"), 0o644))
	}
	must(t, os.Symlink(victim, s.TarballsDir()))
	before := snapshot(t, victim)
	_, _ = s.PruneTarballs(t.Context(), nil)
	pin, d := downloaded(t, s, tarballFile(1), tarballBytes(1))
	if k, err := s.KeepTarball(t.Context(), pin, d, sl.Name()); err == nil {
		t.Errorf("kept in %s", k.Dir)
	}
	if now := snapshot(t, victim); now != before {
		t.Errorf("changed:\n%s\n%s", before, now)
	}
}
