package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// mend repairs what v names, from the store alone, in as many rounds as it takes.
func mend(t testing.TB, s *Store, v *Verification, prefixes ...string) (*Verification, []MendedFrom) {
	t.Helper()
	var from []MendedFrom
	for range 3 {
		m, err := s.Mend(t.Context(), v)
		must(t, err)
		n, err := m.Directories(t.Context())
		must(t, err)
		if n == 0 {
			must(t, m.FromStore(t.Context()))
			for _, dir := range prefixes {
				must(t, m.FromPrefix(t.Context(), dir, "another"))
			}
			done, err := m.Apply(t.Context())
			must(t, err)
			from = append(from, done.From...)
			if len(done.Notes) > 0 {
				t.Log(done.Notes)
			}
		}
		must(t, m.Close())
		if v, err = s.VerifyAgain(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		if v.OK() {
			break
		}
	}
	return v, from
}

// twoAlike are generations of the same files, none of them the same inode.
func twoAlike(t testing.TB, s *Store, tree map[string]entry) (first, second *Generation) {
	t.Helper()
	n := newNights(t, s, tree, tree)
	return n.first, n.commit(2)
}

// Whatever is damaged is as it was afterwards, times included; the generation that
// gave is untouched, nothing is left behind, and no file was written to.
func TestMendPutsEverythingRight(t *testing.T) {
	for _, tt := range damages {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			g, other := twoAlike(t, s, treeFor(tt.name))
			list := filepath.Join(t.TempDir(), "lists")
			must(t, os.CopyFS(list, os.DirFS(g.Dir)))
			before, slot := snapshot(t, other.Dir), entries(t, filepath.Dir(filepath.Dir(g.Dir)))
			tt.damage(t, g.Dir)
			held, err := os.Open(g.Dir + "/opt/rocm/empty") // a program that uses it
			if err == nil {
				defer held.Close()
			}
			v := verify(t, s, g, VerifyOptions{})
			v, _ = mend(t, s, v, list)
			if !v.OK() {
				t.Fatalf("%+v", v.Damage)
			}
			for _, extra := range v.Extra {
				must(t, os.RemoveAll(filepath.Join(g.Dir, extra)))
			}
			if v := verify(t, s, g, VerifyOptions{}); !v.OK() || v.Seal != SealFresh {
				t.Errorf("%+v", brief(v))
			}
			if v := verify(t, s, g, VerifyOptions{Fast: true}); !v.OK() || v.Read != 0 {
				t.Errorf("the seal was not brought up to date: %+v", brief(v))
			}
			if len(v.Extra) == 0 && len(tt.want) > 0 {
				must(t, asListed(g.Dir))
			}
			if now := snapshot(t, other.Dir); now != before {
				t.Errorf("the other generation was changed:\n%s\n%s", before, now)
			}
			equal(t, "what is left", entries(t, filepath.Dir(filepath.Dir(g.Dir))), slot)
		})
	}
}

// An inode that two generations share is damaged in both. It gives nothing; a good
// copy takes its place in one, and that serves the other.
func TestMendOfASharedInode(t *testing.T) {
	n := newNights(t, open(t), treeToDamage(), treeToDamage())
	n.reuse(DedupHardLink)
	second := n.commit(2)
	tool := "opt/rocm/bin/tool"
	if inodeOf(t, filepath.Join(n.first.Dir, tool)) != inodeOf(t, filepath.Join(second.Dir, tool)) {
		t.Fatal("they share nothing")
	}
	spare := filepath.Join(t.TempDir(), "spare")
	must(t, os.CopyFS(spare, os.DirFS(n.first.Dir)))
	overwrite(t, filepath.Join(second.Dir, tool), flipped)
	damaged, err := os.ReadFile(filepath.Join(second.Dir, tool))
	must(t, err)
	held, err := os.Open(filepath.Join(second.Dir, tool)) // a program that runs
	must(t, err)
	defer held.Close()

	all, err := n.s.Verify(t.Context(), []Generation{*n.first, *second}, VerifyOptions{})
	must(t, err)
	if v, from := mend(t, n.s, all[1]); v.OK() || len(from) > 0 {
		t.Fatalf("the damage was mended with itself: %+v %+v", brief(v), from)
	}
	v, from := mend(t, n.s, all[1], spare)
	if !v.OK() || len(from) != 1 || from[0] != (MendedFrom{"another", 1, int64(len(damaged))}) {
		t.Fatalf("%+v %+v", brief(v), from)
	}
	if got, err := os.ReadFile(filepath.Join(n.first.Dir, tool)); err != nil || string(got) != string(damaged) {
		t.Errorf("it was written into the file of the other generation: %v", err)
	}
	still := make([]byte, len(damaged))
	if _, err := held.ReadAt(still, 0); err != nil || string(still) != string(damaged) {
		t.Errorf("it was written into an open file: %v", err)
	}
	v, from = mend(t, n.s, all[0])
	if !v.OK() || len(from) != 1 || from[0].Source != "nightly-gfx1151/"+second.Name {
		t.Errorf("%+v %+v", brief(v), from)
	}
	must(t, asListed(n.first.Dir), asListed(second.Dir))
}

// Reflinks are inodes of their own: the damage of one is not the other's, and what
// is copied from that shares its extents again.
func TestMendFromAReflink(t *testing.T) {
	s, err := Open(filepath.Join(reflinkDisk(t, "xfs", "xfsprogs"), "root"))
	must(t, err)
	n := newNights(t, s, treeWithLarge(), treeWithLarge())
	if res := n.reuse(DedupReflink); res.Reflinked == 0 {
		t.Fatalf("%+v", res)
	}
	second := n.commit(2)
	overwrite(t, filepath.Join(n.first.Dir, "opt/rocm/large"), flipped)
	all, err := s.Verify(t.Context(), []Generation{*n.first, *second}, VerifyOptions{})
	if err != nil || all[0].OK() || !all[1].OK() {
		t.Fatalf("%+v, %v", all, err)
	}
	v, from := mend(t, s, all[0])
	if !v.OK() || len(from) != 1 {
		t.Fatalf("%+v %+v", brief(v), from)
	}
	c, err := Compare(t.Context(), n.first.Dir, second.Dir)
	if err != nil || c.Reflinked.Bytes < big || c.HardLinked.Files > 0 {
		t.Errorf("%+v, %v", c, err)
	}
	must(t, asListed(n.first.Dir))
}

// Nothing is renamed to its place before its bytes are durable, and the names are
// made durable after that.
func TestMendIsDurable(t *testing.T) {
	s := open(t)
	g, _ := twoAlike(t, s, treeToDamage())
	overwrite(t, filepath.Join(g.Dir, "opt/rocm/bin/tool"), flipped)
	v := verify(t, s, g, VerifyOptions{})
	var order []string
	real := s.disk
	s.disk.syncFS = func(p string) error {
		order = append(order, strings.TrimPrefix(p, filepath.Dir(filepath.Dir(g.Dir)))[:3]+" "+strings.Join(told(verifyWith(t, s, real, g)), ","))
		return real.syncFS(p)
	}
	m, err := s.Mend(t.Context(), v)
	must(t, err)
	must(t, m.FromStore(t.Context()))
	_, err = m.Apply(t.Context())
	must(t, err, m.Close())
	equal(t, "order", order, []string{"/.s opt/rocm/bin/tool content", "/ge "})
}

// verifyWith verifies without being seen.
func verifyWith(t testing.TB, s *Store, d disk, g *Generation) *Verification {
	quiet := *s
	quiet.disk = d
	return verify(t, &quiet, g, VerifyOptions{})
}

// What cannot be mended is said; the rest is mended, and the store stays usable.
func TestMendSaysWhatItCannot(t *testing.T) {
	s := open(t)
	g := oneNight(t, s, treeToDamage())
	overwrite(t, filepath.Join(g.Dir, "opt/rocm/lib/libb.so"), flipped)
	must(t, os.Chmod(filepath.Join(g.Dir, "etc/env.sh"), 0o600), os.Remove(g.Dir+"/opt/rocm/link"),
		os.MkdirAll(g.Dir+"/opt/rocm/link/mine", 0o755))
	v := verify(t, s, g, VerifyOptions{})
	m, err := s.Mend(t.Context(), v)
	must(t, err, m.FromStore(t.Context()))
	equal(t, "missing", m.Missing(), []string{"opt/rocm/lib/libb.so"})
	done, err := m.Apply(t.Context())
	if err != nil || done.Entries != 1 || len(done.Notes) != 1 || !strings.Contains(done.Notes[0], "opt/rocm/link") || !strings.Contains(done.Notes[0], "move it away") {
		t.Errorf("%+v, %v", done, err)
	}
	must(t, m.Close())
	equal(t, "damage", told(verify(t, s, g, VerifyOptions{})), []string{"opt/rocm/lib/libb.so content", "opt/rocm/link kind"})
	if _, err := os.Stat(g.Dir + "/opt/rocm/link/mine"); err != nil {
		t.Errorf("what was not ours was removed: %v", err)
	}
}

// A link that somebody has put in the way leads no repair out of the generation.
func TestMendFollowsNoLink(t *testing.T) {
	s := open(t)
	g, _ := twoAlike(t, s, treeToDamage())
	outside := t.TempDir()
	must(t, os.WriteFile(outside+"/tool", []byte("mine"), 0o644), os.RemoveAll(g.Dir+"/opt/rocm/bin"))
	v := verify(t, s, g, VerifyOptions{})
	must(t, os.Symlink(outside, g.Dir+"/opt/rocm/bin")) // after it was looked at
	m, err := s.Mend(t.Context(), v)
	must(t, err, m.FromStore(t.Context()))
	_, err = m.Apply(t.Context())
	must(t, err, m.Close())
	if b, err := os.ReadFile(outside + "/tool"); err != nil || string(b) != "mine" || len(entries(t, outside)) != 1 {
		t.Errorf("%q, %v: %q", b, err, entries(t, outside))
	}
}

// Nor is a donor's link followed, whatever it leads to.
func TestMendTakesNothingByALink(t *testing.T) {
	s := open(t)
	g, other := twoAlike(t, s, treeToDamage())
	outside := filepath.Join(filepath.Dir(s.root), "bin")
	must(t, os.Rename(other.Dir+"/opt/rocm/bin", outside), os.Symlink(outside, other.Dir+"/opt/rocm/bin"), os.Remove(g.Dir+"/opt/rocm/bin/tool"))
	m, err := s.Mend(t.Context(), verify(t, s, g, VerifyOptions{}))
	must(t, err, m.FromStore(t.Context()))
	if m.Wanted() != 1 {
		t.Error("it was taken from outside of the store")
	}
	must(t, m.Close())
}

// A list that is not what it was is believed in nothing.
func TestMendDoesNotBelieveADamagedList(t *testing.T) {
	s := open(t)
	g, _ := twoAlike(t, s, treeToDamage())
	overwrite(t, filepath.Join(g.Dir, manifest.FilesName), func(b []byte) []byte {
		return []byte(strings.Replace(string(b), `"mode":"0444"`, `"mode":"0777"`, 1))
	})
	v := verify(t, s, g, VerifyOptions{})
	if len(v.Damage) < 2 || v.Seal != SealKept {
		t.Fatalf("%+v", brief(v))
	}
	m, err := s.Mend(t.Context(), v)
	must(t, err, m.FromStore(t.Context()))
	done, err := m.Apply(t.Context())
	if err != nil || done.Entries != 0 {
		t.Errorf("%+v, %v", done, err)
	}
	must(t, m.Close())
	err = filepath.WalkDir(g.Dir, func(p string, e os.DirEntry, err error) error {
		if fi, ierr := os.Lstat(p); err == nil && ierr == nil && fi.Mode().IsRegular() && fi.Mode() != 0o444 {
			err = errors.New(p + " is writable now")
		}
		return err
	})
	must(t, err)
}

// What root mends in somebody's store is that user's.
func TestMendKeepsTheOwner(t *testing.T) {
	asRoot(t)
	s := open(t)
	g, _ := twoAlike(t, s, treeToDamage())
	must(t, os.Chmod(filepath.Dir(s.root), 0o755)) // the way to it
	err := filepath.WalkDir(s.root, func(p string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(p, service, service))
	})
	must(t, err)
	must(t, os.RemoveAll(g.Dir+"/opt/rocm/bin"), os.Remove(g.Dir+"/opt/rocm/link"), os.Remove(g.Dir+"/opt/rocm/lib/liba.so"),
		os.RemoveAll(filepath.Dir(sealPath(g))))
	if v, _ := mend(t, s, verify(t, s, g, VerifyOptions{})); !v.OK() {
		t.Fatalf("%+v", brief(v))
	}
	if found := roots(t, s); len(found) > 0 {
		t.Errorf("root's: %q", found)
	}
}

// What is mended has the SELinux type of an installed file, not that of the
// directory in which it waited.
func TestMendLabelsAsAnInstallDoes(t *testing.T) {
	s := open(t)
	withSELinux(t, s)
	g, _ := twoAlike(t, s, treeToDamage())
	must(t, os.RemoveAll(g.Dir+"/opt/rocm/bin"), os.Remove(g.Dir+"/opt/rocm/lib/liba.so"), os.Remove(g.Dir+"/opt/rocm/link"))
	if v, _ := mend(t, s, verify(t, s, g, VerifyOptions{})); !v.OK() {
		t.Fatalf("%+v", brief(v))
	}
	for name, want := range map[string]string{"bin": "bin_t", "bin/tool": "bin_t", "lib/liba.so": "lib_t", "link": "usr_t"} {
		if got := typeOf(label(t, filepath.Join(g.Dir, "opt/rocm", name))); got != want {
			t.Errorf("%s has %q, not %s", name, got, want)
		}
	}
}

// A link that the owner of a store has laid leads no seal of root's out of it.
func TestRootsSealStaysInTheStore(t *testing.T) {
	s, sl := servicesStore(t)
	gens, err := sl.Generations()
	must(t, err)
	g := gens[0]
	victim := filepath.Join(filepath.Dir(s.root), "victim")
	must(t, os.Mkdir(victim, 0o755), os.RemoveAll(filepath.Dir(sealPath(&g))), os.Symlink(victim, filepath.Dir(sealPath(&g))))
	if err := s.writeSeal(&g, &seal{}); err == nil || len(entries(t, victim)) > 0 {
		t.Errorf("%v: %q", err, entries(t, victim))
	}
	theirs := filepath.Join(victim, g.Name+sealSuffix)
	must(t, os.WriteFile(theirs, []byte("precious"), 0o644))
	must(t, os.RemoveAll(g.Dir))
	_ = s.asOwner(sl.sweepSeals) // with what error, does not matter
	if b, err := os.ReadFile(theirs); err != nil || string(b) != "precious" {
		t.Errorf("%q, %v", b, err)
	}
}

// A repair that was killed may have left the time of a directory; the next one does
// not.
func TestMendSetsTheTimesOfDirectories(t *testing.T) {
	s := open(t)
	g, _ := twoAlike(t, s, treeToDamage())
	must(t, os.Chtimes(g.Dir+"/etc", time.Now(), time.Now()), os.Remove(g.Dir+"/opt/rocm/bin/tool"))
	if v, _ := mend(t, s, verify(t, s, g, VerifyOptions{})); !v.OK() {
		t.Fatalf("%+v", brief(v))
	}
	must(t, asListed(g.Dir))
}

// What belongs to a stranger, who could write to it, is damaged, and given back.
func TestMendGivesBackWhatIsAStrangers(t *testing.T) {
	asRoot(t)
	s := open(t)
	g, _ := twoAlike(t, s, treeToDamage())
	for _, name := range []string{"", "opt/rocm/bin", "opt/rocm/lib/libb.so", manifest.FilesName} {
		must(t, os.Lchown(filepath.Join(g.Dir, name), service, service))
	}
	want := []string{". owner", "files.jsonl owner", "opt/rocm/bin owner", "opt/rocm/lib/libb.so owner"}
	for _, fast := range []bool{true, false} {
		equal(t, "damage", told(verify(t, s, g, VerifyOptions{Fast: fast})), want)
	}
	if v, _ := mend(t, s, verify(t, s, g, VerifyOptions{})); !v.OK() {
		t.Fatalf("%+v", brief(v))
	}
	if v := verify(t, s, g, VerifyOptions{}); !v.OK() {
		t.Errorf("%+v", brief(v))
	}
	must(t, asListed(g.Dir))
}
