package update

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	digest "github.com/opencontainers/go-digest"

	"github.com/rocm-nightly/rocm-nightly/store"
)

// twoKept are two nights that share inodes, of which the tarballs are kept, and
// whose index is empty unless AMD still lists them. What is damaged is one file of
// each sort in the first, where it shares them in both.
func twoKept(t *testing.T, listed bool) (w *world, kept string) {
	t.Helper()
	w = keeping(t, 2)
	w.o.Installs[0].Repack.Dedup = store.DedupHardLink
	var tarballs []string
	for i, v := range []string{"10.2.0a20260928", "10.2.0a20260929"} {
		tarballs = append(tarballs, w.publish(v, 2-i))
		out, _ := w.must()
		if i == 0 {
			kept = out.Kept
		}
	}
	w.publish("10.2.0a20260927", 3) // the index goes on
	for _, path := range tarballs {
		if !listed {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.damageSome("10.2.0a20260928")
	w.damage(w.inGeneration("10.2.0a20260928", w.sharedBy("10.2.0a20260928", "10.2.0a20260929")))
	return w, kept
}

// Where AMD has deleted a night, its kept tarball gives what is damaged in it, and
// what is the same inode in another.
func TestRepairFromTheKeptTarball(t *testing.T) {
	w, kept := twoKept(t, false)
	// Another content of the name that was kept since is not the one.
	junk := []byte("other bytes")
	old, err := w.o.Store.KeptTarball("nightly", filepath.Base(kept))
	if err != nil || old == nil {
		t.Fatalf("%v, %v", old, err)
	}
	pin, dir := old.Entry(), w.o.Store.SpoolDir("nightly", old.Name)
	pin.Digest, pin.Size = digest.FromBytes(junk), int64(len(junk))
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "0000"), junk, 0o644)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.o.Store.KeepTarball(t.Context(), pin, store.Download{Dir: dir, PartSize: 64 << 10}, "nightly-gfx1151"); err != nil {
		t.Fatal(err)
	}
	asked := w.tarballs.Load()
	all, repairs := w.repaired()
	if !all[0].OK() || !all[1].OK() || w.tarballs.Load() != asked {
		t.Fatalf("%+v %+v %+v %+v", all[0].Damage, all[1].Damage, repairs[0], repairs[1])
	}
	if re := repairs[0]; re.From[0].Source != "the kept tarball" || len(re.Notes) != 0 {
		t.Errorf("%+v", re)
	}
	if len(w.kept()) != 3 {
		t.Errorf("kept: %v", w.kept())
	}
}

// A kept tarball that is damaged itself serves nothing, and says where it is; AMD's
// does while it is listed.
func TestRepairFromADamagedKeptTarball(t *testing.T) {
	t.Parallel()
	for _, listed := range []bool{false, true} {
		w, kept := twoKept(t, listed)
		w.damage(filepath.Join(kept, "0001"))
		all, repairs := w.repaired()
		notes := strings.Join(repairs[0].Notes, "\n")
		if all[0].OK() != listed || !strings.Contains(notes, "the kept tarball is of no use") || !strings.Contains(notes, "damaged in 0001") {
			t.Errorf("%v: %+v %+v", listed, all[0].Damage, repairs[0])
		}
		if !listed && (!strings.Contains(notes, "is not listed any more") || !strings.Contains(notes, "cannot be repaired: no good copy of it was found")) {
			t.Errorf("%s", notes)
		}
		if _, err := os.Stat(filepath.Join(kept, "0000")); err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(filepath.Join(w.root, "slots/nightly-gfx1151/.*")); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}
