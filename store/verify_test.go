package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// treeToDamage has an entry of each kind.
func treeToDamage() map[string]entry {
	return with(treeOf("bin/tool", "lib/liba.so", "lib/libb.so", "share/doc/x"), map[string]entry{
		"opt/rocm/lib/liba.so.1": {same: "opt/rocm/lib/liba.so"}, "opt/rocm/empty": {},
		"opt/rocm/link": {link: "lib/liba.so"}, "etc/env.sh": {text: "export A=b\n"},
	})
}

// treeWithLarge has a file that a worker takes for itself, too.
func treeWithLarge() map[string]entry {
	return with(treeToDamage(), map[string]entry{"opt/rocm/large": {text: strings.Repeat("0123456789abcdef", big/16) + "tail"}})
}

// treeFor is the tree of one of the damages.
func treeFor(name string) map[string]entry {
	if strings.Contains(name, "large") {
		return treeWithLarge()
	}
	return treeToDamage()
}

// oneNight is a store with one generation of tree.
func oneNight(t testing.TB, s *Store, tree map[string]entry) *Generation {
	t.Helper()
	n := &nights{t: t, s: s}
	n.st = n.stage("gfx1151", 1, tree)
	return n.commit(1)
}

// verify verifies one generation.
func verify(t testing.TB, s *Store, g *Generation, o VerifyOptions) *Verification {
	t.Helper()
	all, err := s.Verify(t.Context(), []Generation{*g}, o)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d, %v", len(all), err)
	}
	return all[0]
}

// told is what a Verification says is damaged, as PATH WHAT+WHAT.
func told(v *Verification) []string {
	all := []string{}
	for _, d := range v.Damage {
		all = append(all, d.Path+" "+strings.Join(d.What, "+"))
	}
	return all
}

// brief is a Verification in few words.
func brief(v *Verification) string {
	return fmt.Sprintf("%s, seal %s, %d bytes read, gone %v: %q, extra %q", v.Method, v.Seal, v.Read, v.Gone, told(v), v.Extra)
}

// overwrite writes into a file that is there, as somebody with the rights could,
// and gives it its mode and time back.
func overwrite(t testing.TB, name string, change func([]byte) []byte) {
	t.Helper()
	fi, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(os.Chmod(name, 0o600), os.WriteFile(name, change(data), 0o600), os.Chmod(name, fi.Mode()), os.Chtimes(name, fi.ModTime(), fi.ModTime()))
	if err != nil {
		t.Fatal(err)
	}
}

func flipped(b []byte) []byte { b[len(b)/2] ^= 1; return b }

// must is for the damage that tests do.
func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// damages are ways to damage a generation of treeToDamage at dir, and what verify
// calls them.
var damages = []struct {
	name   string
	damage func(t *testing.T, dir string)
	want   []string
	fast   bool // --fast sees it too
}{
	{"content", func(t *testing.T, dir string) { overwrite(t, dir+"/opt/rocm/bin/tool", flipped) }, []string{"opt/rocm/bin/tool content"}, false},
	{"content and time", func(t *testing.T, dir string) {
		overwrite(t, dir+"/opt/rocm/bin/tool", flipped)
		must(t, os.Chtimes(dir+"/opt/rocm/bin/tool", time.Now(), time.Now()))
	}, []string{"opt/rocm/bin/tool content+time"}, true},
	{"content of a large file", func(t *testing.T, dir string) {
		overwrite(t, dir+"/opt/rocm/large", func(b []byte) []byte { b[len(b)-1] ^= 1; return b })
	}, []string{"opt/rocm/large content"}, false},
	{"size", func(t *testing.T, dir string) {
		overwrite(t, dir+"/etc/env.sh", func(b []byte) []byte { return append(b, "x"...) })
	}, []string{"etc/env.sh size"}, true},
	{"a large file that was truncated", func(t *testing.T, dir string) {
		overwrite(t, dir+"/opt/rocm/large", func(b []byte) []byte { return b[:5] })
	}, []string{"opt/rocm/large size"}, true},
	{"replaced by equal bytes", func(t *testing.T, dir string) {
		name := dir + "/opt/rocm/bin/tool"
		data, err := os.ReadFile(name)
		must(t, err, os.WriteFile(name+"~", data, 0o444), os.Chmod(name+"~", 0o444), os.Chtimes(name+"~", dayOf(1), dayOf(1)), os.Rename(name+"~", name))
	}, []string{}, true},
	{"replaced", func(t *testing.T, dir string) {
		name := dir + "/opt/rocm/bin/tool"
		data, err := os.ReadFile(name)
		must(t, err, os.WriteFile(name+"~", flipped(data), 0o444), os.Chmod(name+"~", 0o444), os.Chtimes(name+"~", dayOf(1), dayOf(1)), os.Rename(name+"~", name))
	}, []string{"opt/rocm/bin/tool content"}, true},
	{"missing", func(t *testing.T, dir string) { must(t, os.Remove(dir+"/opt/rocm/empty")) }, []string{"opt/rocm/empty missing"}, true},
	{"a directory is missing", func(t *testing.T, dir string) { must(t, os.RemoveAll(dir+"/opt/rocm/share")) },
		[]string{"opt/rocm/share missing", "opt/rocm/share/doc missing", "opt/rocm/share/doc/x missing"}, true},
	{"a link in place of a file", func(t *testing.T, dir string) {
		must(t, os.Rename(dir+"/opt/rocm/bin/tool", dir+"/opt/rocm/bin/tool.real"), os.Symlink("tool.real", dir+"/opt/rocm/bin/tool"))
	}, []string{"opt/rocm/bin/tool kind"}, true},
	{"a link in place of a directory", func(t *testing.T, dir string) {
		must(t, os.Rename(dir+"/opt/rocm/bin", dir+"/opt/rocm/bin.real"), os.Symlink("bin.real", dir+"/opt/rocm/bin"))
	}, []string{"opt/rocm/bin kind", "opt/rocm/bin/tool missing"}, true},
	{"a directory in place of a file", func(t *testing.T, dir string) {
		must(t, os.Remove(dir+"/opt/rocm/bin/tool"), os.Mkdir(dir+"/opt/rocm/bin/tool", 0o755))
	}, []string{"opt/rocm/bin/tool kind"}, true},
	{"a fifo in place of a large file", func(t *testing.T, dir string) {
		must(t, os.Remove(dir+"/opt/rocm/large"), unix.Mkfifo(dir+"/opt/rocm/large", 0o644))
	}, []string{"opt/rocm/large kind"}, true},
	{"a file in place of a link", func(t *testing.T, dir string) {
		must(t, os.Remove(dir+"/opt/rocm/link"), os.WriteFile(dir+"/opt/rocm/link", nil, 0o644))
	}, []string{"opt/rocm/link kind"}, true},
	{"a link that leads elsewhere", func(t *testing.T, dir string) {
		must(t, os.Remove(dir+"/opt/rocm/link"), os.Symlink("/etc/passwd", dir+"/opt/rocm/link"))
	}, []string{"opt/rocm/link link"}, true},
	{"mode", func(t *testing.T, dir string) { must(t, os.Chmod(dir+"/opt/rocm/bin/tool", 0o666)) }, []string{"opt/rocm/bin/tool mode"}, true},
	{"setuid", func(t *testing.T, dir string) { must(t, os.Chmod(dir+"/opt/rocm/bin/tool", 0o444|fs.ModeSetuid)) }, []string{"opt/rocm/bin/tool mode"}, true},
	{"mode of a directory", func(t *testing.T, dir string) { must(t, os.Chmod(dir+"/opt/rocm/bin", 0o777)) }, []string{"opt/rocm/bin mode"}, true},
	{"mode of the generation", func(t *testing.T, dir string) { must(t, os.Chmod(dir, 0o777)) }, []string{". mode"}, true},
	{"time", func(t *testing.T, dir string) { must(t, os.Chtimes(dir+"/opt/rocm/bin/tool", time.Now(), time.Now())) }, []string{"opt/rocm/bin/tool time"}, true},
	{"a further name is gone", func(t *testing.T, dir string) { must(t, os.Remove(dir+"/opt/rocm/lib/liba.so.1")) }, []string{"opt/rocm/lib/liba.so.1 missing"}, true},
	{"a further name is a file of its own", func(t *testing.T, dir string) {
		name := dir + "/opt/rocm/lib/liba.so.1"
		data, err := os.ReadFile(name)
		must(t, err, os.Remove(name), os.WriteFile(name, data, 0o444))
	}, []string{"opt/rocm/lib/liba.so.1 hard-link"}, true},
	{"the first name is gone", func(t *testing.T, dir string) { must(t, os.Remove(dir+"/opt/rocm/lib/liba.so")) },
		[]string{"opt/rocm/lib/liba.so missing", "opt/rocm/lib/liba.so.1 hard-link"}, true},
	{"an inode with two names", func(t *testing.T, dir string) { overwrite(t, dir+"/opt/rocm/lib/liba.so.1", flipped) }, []string{"opt/rocm/lib/liba.so content"}, false},
	{"files.jsonl", func(t *testing.T, dir string) {
		overwrite(t, dir+"/"+manifest.FilesName, func(b []byte) []byte { return []byte(strings.Replace(string(b), `"size":11`, `"size":11 `, 1)) })
	}, []string{"files.jsonl content"}, true},
	{"files.jsonl is gone", func(t *testing.T, dir string) { must(t, os.Remove(dir+"/"+manifest.FilesName)) }, []string{"files.jsonl missing"}, true},
	{"files.jsonl is nonsense", func(t *testing.T, dir string) {
		overwrite(t, dir+"/"+manifest.FilesName, func(b []byte) []byte { return b[:len(b)-9] })
	}, []string{"files.jsonl content+list"}, true},
	{"manifest.json", func(t *testing.T, dir string) {
		overwrite(t, dir+"/"+manifest.Name, func(b []byte) []byte { return append(b, '\n') })
	}, []string{"manifest.json content"}, true},
	{"manifest.json is writable", func(t *testing.T, dir string) { must(t, os.Chmod(dir+"/"+manifest.Name, 0o644)) }, []string{"manifest.json mode"}, true},
}

// Every kind of damage is named, and nothing else is; by size, time and inode what
// they show is named too, and what is right all the same is not.
func TestVerifyNamesEveryDamage(t *testing.T) {
	for _, tt := range damages {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			g := oneNight(t, s, treeFor(tt.name))
			if v := verify(t, s, g, VerifyOptions{Fast: true}); !v.OK() || v.Method != MethodSeal || v.Read != 0 || v.Seal != SealFresh {
				t.Fatalf("before: %+v", brief(v))
			}
			tt.damage(t, g.Dir)
			want := tt.want
			if !tt.fast {
				want = []string{}
			}
			equal(t, "fast", told(verify(t, s, g, VerifyOptions{Fast: true})), want)
			equal(t, "full", told(verify(t, s, g, VerifyOptions{})), tt.want)
			equal(t, "fast, after that", told(verify(t, s, g, VerifyOptions{Fast: true})), tt.want)
		})
	}
}

// A second user's capabilities are damage, where the file system has them.
func TestVerifyNamesCapabilities(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give a file capabilities")
	}
	s, err := Open(filepath.Join(t.TempDir(), "root"))
	must(t, err)
	g := oneNight(t, s, treeToDamage())
	name := filepath.Join(g.Dir, "opt/rocm/bin/tool")
	// VFS_CAP_REVISION_2 with CAP_NET_RAW permitted (linux/capability.h).
	raw := []byte{0, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if err := unix.Setxattr(name, capability, raw, 0); err != nil {
		t.Skipf("this file system has no capabilities: %v", err)
	}
	v := verify(t, s, g, VerifyOptions{})
	equal(t, "damage", told(v), []string{"opt/rocm/bin/tool capability"})
	mend(t, s, v)
	if n, err := unix.Getxattr(name, capability, nil); !errors.Is(err, unix.ENODATA) {
		t.Errorf("it has %d bytes of capabilities still, %v", n, err)
	}
}

// What is not listed is named, directories without what is in them, and nothing is
// made of it.
func TestVerifyLeavesStrangersAlone(t *testing.T) {
	s := open(t)
	g := oneNight(t, s, treeToDamage())
	cache := filepath.Join(g.Dir, "opt/rocm/lib/__pycache__")
	must(t, os.Mkdir(cache, 0o755), os.WriteFile(cache+"/x.pyc", nil, 0o644), os.WriteFile(g.Dir+"/notes", nil, 0o644))
	v := verify(t, s, g, VerifyOptions{})
	if !v.OK() || !slices.Equal(v.Extra, []string{"notes", "opt/rocm/lib/__pycache__"}) || v.ExtraMore != 0 {
		t.Errorf("%+v", brief(v))
	}
	for i := range maxExtra + 5 {
		must(t, os.WriteFile(filepath.Join(g.Dir, "opt/rocm", fmt.Sprint("x", i)), nil, 0o644))
	}
	if v := verify(t, s, g, VerifyOptions{}); !v.OK() || len(v.Extra) != maxExtra || v.ExtraMore != 7 {
		t.Errorf("%d and %d more", len(v.Extra), v.ExtraMore)
	}
}

// A file that the disk does not give is named, and the others are read.
func TestVerifyGoesOnAfterAnErrorOfTheDisk(t *testing.T) {
	s := open(t)
	g := oneNight(t, s, treeToDamage())
	bad := inodeOf(t, filepath.Join(g.Dir, "opt/rocm/lib/libb.so"))
	overwrite(t, filepath.Join(g.Dir, "opt/rocm/bin/tool"), flipped)
	v := verify(t, s, g, VerifyOptions{read: func(fd int, b []byte, off int64) (int, error) {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil || st.Ino == bad.ino {
			return 0, unix.EIO
		}
		return unix.Pread(fd, b, off)
	}})
	equal(t, "damage", told(v), []string{"opt/rocm/bin/tool content", "opt/rocm/lib/libb.so unreadable"})
	if !strings.Contains(v.Damage[1].Detail, "input/output error") {
		t.Errorf("%+v", v.Damage)
	}
}

// Who may not read a file is told so; the seal of a store that is not one's own is
// left.
func TestVerifyAsAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	s := open(t)
	g := oneNight(t, s, treeToDamage())
	must(t, os.Chmod(g.Dir+"/opt/rocm/bin/tool", 0o400), os.Chmod(g.Dir+"/opt/rocm/share", 0o700), os.Chmod(filepath.Dir(s.root), 0o755))
	before, err := os.ReadFile(sealPath(g))
	must(t, err)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "STORE_TEST_ROLE=verify", "STORE_TEST_ROOT="+s.root)
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	must(t, err)
	equal(t, "damage", strings.Split(strings.TrimSpace(string(out)), "\n"), []string{
		"opt/rocm/bin/tool unreadable+mode", "opt/rocm/share mode", "opt/rocm/share/doc unreadable", "opt/rocm/share/doc/x unreadable", "seal unwritable"})
	now, err := os.ReadFile(sealPath(g))
	if err != nil || !bytes.Equal(now, before) {
		t.Errorf("the seal was changed: %v", err)
	}
}

// verifyAll is what another process does: it verifies everything and says so.
func verifyAll(root string) error {
	s, err := Open(root)
	if err != nil {
		return err
	}
	gens, err := s.VerifyTargets("", "")
	if err != nil {
		return err
	}
	all, err := s.Verify(context.Background(), gens, VerifyOptions{})
	for _, v := range all {
		fmt.Println(strings.Join(append(told(v), "seal "+v.Seal), "\n"))
	}
	return err
}

// Files that generations share are read once.
func TestVerifyReadsAnInodeOnce(t *testing.T) {
	n := newNights(t, open(t), treeToDamage(), treeToDamage())
	n.reuse(DedupHardLink)
	second := n.commit(2)
	all, err := n.s.Verify(t.Context(), []Generation{*n.first, *second}, VerifyOptions{})
	if err != nil || !all[0].OK() || !all[1].OK() {
		t.Fatalf("%+v, %v", all, err)
	}
	if all[0].Read != all[0].Bytes || all[1].Read != 0 || all[1].Bytes != all[0].Bytes {
		t.Errorf("%d of %d bytes were read, then %d of %d", all[0].Read, all[0].Bytes, all[1].Read, all[1].Bytes)
	}
	overwrite(t, filepath.Join(second.Dir, "opt/rocm/bin/tool"), flipped)
	all, err = n.s.Verify(t.Context(), []Generation{*n.first, *second}, VerifyOptions{})
	if err != nil || len(all) != 2 {
		t.Fatal(err)
	}
	for i, other := range []string{"nightly-gfx1151/" + night(2), "nightly-gfx1151/" + night(1)} {
		if d := all[i].Damage; len(d) != 1 || !slices.Equal(d[0].Shared, []string{other + "/opt/rocm/bin/tool"}) {
			t.Errorf("%+v", d)
		}
	}
}

// A generation that is removed while it is verified is no error.
func TestVerifyOfWhatIsRemovedMeanwhile(t *testing.T) {
	s := open(t)
	g := oneNight(t, s, treeToDamage())
	v := verify(t, s, g, VerifyOptions{Next: func(g *Generation, files int) {
		must(t, removeTree(g.Dir))
	}})
	if !v.Gone || !v.OK() {
		t.Errorf("%+v", brief(v))
	}
	if v := verify(t, s, g, VerifyOptions{}); !v.Gone {
		t.Errorf("%+v", brief(v))
	}
	if _, err := os.Lstat(sealPath(g)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its seal is left: %v", err)
	}
}

func TestVerifyTargets(t *testing.T) {
	s := open(t)
	if _, err := s.VerifyTargets("", ""); err == nil {
		t.Error("nothing is installed, and that is all right")
	}
	for target, n := range map[string]int{"gfx1151": 2, "gfx1036": 1} {
		for i := range n {
			commit(t, s.Slot("nightly", target), night(i+1), fmt.Sprint(target, i))
		}
	}
	for _, tt := range []struct {
		slot, version string
		want          int
	}{{"", "", 3}, {"gfx1151", "", 2}, {"nightly-gfx1036", "", 1}, {"gfx1151", night(2), 1}, {"gfx1036", night(2), -1}, {"", night(1), -1}, {"gfx9", "", -1}} {
		gens, err := s.VerifyTargets(tt.slot, tt.version)
		if (err != nil) != (tt.want < 0) || err == nil && len(gens) != tt.want {
			t.Errorf("%q %q: %d, %v", tt.slot, tt.version, len(gens), err)
		}
	}
}

func TestVerifyIsCanceled(t *testing.T) {
	s := open(t)
	g := oneNight(t, s, treeToDamage())
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.Verify(ctx, []Generation{*g}, VerifyOptions{Next: func(*Generation, int) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// However files.jsonl is cut into pieces, it is read as it is written.
func TestReadListingInPieces(t *testing.T) {
	var files []manifest.File
	for i := range 3000 {
		f := manifest.File{Path: fmt.Sprintf("opt/rocm/%05d", i), Kind: manifest.Regular, Mode: 0o444, Size: int64(i), SHA256: fmt.Sprintf("%064x", i)}
		if i%500 == 7 { // a line that is longer than a piece
			f.ELF = &manifest.ELF{Class: 64, Needed: []string{strings.Repeat("n", chunkLen+i*13)}}
		}
		files = append(files, f)
	}
	var text bytes.Buffer
	must(t, manifest.WriteFiles(&text, files))
	for _, end := range []string{"", "\n\n"} {
		l, err := readListing(t.Context(), iotest.HalfReader(strings.NewReader(text.String()+end)))
		must(t, err)
		if len(l.entries) != len(files) || l.counts != manifest.Count(files) || l.sum != sha256.Sum256([]byte(text.String()+end)) {
			t.Fatalf("%d entries, %+v", len(l.entries), l.counts)
		}
		for i, f := range files {
			if e := l.entries[i]; e.path != f.Path || e.size != f.Size || fmt.Sprintf("%x", e.sum) != f.SHA256 || l.at(f.Path) != &l.entries[i] {
				t.Fatalf("%+v is read as %+v", f, e)
			}
		}
	}
	if _, err := readListing(t.Context(), iotest.TimeoutReader(bytes.NewReader(text.Bytes()))); err == nil {
		t.Error("an error of the disk was overlooked")
	}
}

// Lists that no repack has written are refused, and never a panic.
func TestReadListingRefuses(t *testing.T) {
	good := `{"path":"a","kind":"file","mode":"0444","sha256":"` + strings.Repeat("0", 64) + `"}`
	for _, text := range []string{
		"{", `{"path":"../a","kind":"dir"}`, `{"path":"/a","kind":"dir"}`, `{"path":".","kind":"dir"}`, `{"path":"manifest.json","kind":"dir"}`,
		`{"path":"a","kind":"device"}`, `{"path":"a","kind":"file","sha256":"00"}`, strings.Replace(good, "0444", "4755", 1), strings.Replace(good, `"mode"`, `"size":-1,"mode"`, 1),
		good + "\n" + good, `{"path":"b","kind":"dir"}` + "\n" + good, strings.Replace(good, `"sha256"`, `"same":"b","sha256"`, 1),
		strings.Replace(good, `256":"`, `256":"00`, 1),
	} {
		if l, err := readListing(t.Context(), strings.NewReader(text)); err == nil {
			t.Errorf("%s was read: %+v", text, l.entries)
		}
	}
	if _, err := readListing(t.Context(), strings.NewReader(good)); err != nil {
		t.Error(err)
	}
}
