//go:build heavy

package patchelf

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// census counts what became of the files of a system.
type census struct {
	mu       sync.Mutex
	count    map[string]int
	refusals []string
	grown    int64
}

// TestWholeSystem edits a copy of every dynamic ELF of this machine's /usr and
// compares what ld.so resolves with what it did before. PATCHELF_ROOTS names
// other directories (colon-separated).
func TestWholeSystem(t *testing.T) {
	roots := "/usr/bin:/usr/sbin:/usr/lib/x86_64-linux-gnu:/usr/libexec:/usr/lib/llvm-16:/usr/lib/gcc"
	if s := os.Getenv("PATCHELF_ROOTS"); s != "" {
		roots = s
	}
	c := &census{count: map[string]int{}}
	jobs, wait := make(chan string), sync.WaitGroup{}
	for range 2 {
		dir := t.TempDir()
		wait.Go(func() {
			for path := range jobs {
				c.file(t, path, dir)
			}
		})
	}
	for root := range strings.SplitSeq(roots, ":") {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				jobs <- path
			}
			return nil
		})
	}
	close(jobs)
	wait.Wait()
	slices.Sort(c.refusals)
	for _, r := range c.refusals {
		t.Log(r)
	}
	for _, k := range slices.Sorted(maps.Keys(c.count)) {
		t.Logf("%6d %s", c.count[k], k)
	}
	t.Logf("grown by %d bytes", c.grown)
}

func (c *census) add(verdict string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count[verdict]++
}

// file makes the edits, one after the other, to a copy of path in dir.
func (c *census) file(t *testing.T, path, dir string) {
	g, b := systemELF(path)
	if g == nil {
		c.add("not a dynamic ELF of this machine")
		return
	}
	at := filepath.Join(dir, "copy"+filepath.Ext(path))
	if err := os.WriteFile(at, b, 0o755); err != nil {
		t.Error(err)
		return
	}
	defer os.Remove(at)
	s := &systemFile{path: path, copy: at, first: b, list: resolves(path), read: (&subject{path: path}).readelf()}
	for i, e := range systemEdits(path, g) {
		how, grown, err := s.edit(e)
		var refused *RefusedError
		c.mu.Lock()
		switch {
		case errors.As(err, &refused):
			c.count[fmt.Sprintf("edit %d refused", i)]++
			c.refusals = append(c.refusals, fmt.Sprintf("%s: edit %d: %s", path, i, refused.Reason))
		case err != nil:
			c.count[fmt.Sprintf("edit %d BROKE", i)]++
			t.Errorf("%s: edit %d: %s: %v", path, i, how, err)
		default:
			c.count[fmt.Sprintf("edit %d made", i)]++
			c.grown += grown
			if i == 0 {
				c.count["how: "+how]++
			}
		}
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// systemELF reads a file if it is a dynamic ELF of this machine.
func systemELF(path string) (*File, []byte) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil
	}
	g, err := Parse(f, info.Size())
	if err != nil || !g.Dynamic || g.Machine != elf.EM_X86_64 {
		return nil, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, nil
	}
	return g, b
}

// systemEdits leave alone what ld.so finds, but for libdl.so.2.
func systemEdits(path string, g *File) []Edit {
	old, _ := g.Path()
	long := "/patchelf-heavy/" + strings.Repeat("long/", 30) + ":" + strings.ReplaceAll(old, "$ORIGIN", filepath.Dir(path))
	off := false
	names := Edit{ExecStack: &off, DebugTag: g.Interp != ""}
	if len(g.Needed) > 0 { // ld.so lists more of what needs anything
		names.AddNeeded = []string{"libdl.so.2"}
	}
	if g.Soname != "" {
		names.Soname = ptr(g.Soname + ".of.a.longer.name")
	}
	if slices.Contains(g.Needed, "libc.so.6") {
		names.ReplaceNeeded = map[string]string{"libc.so.6": "/lib/x86_64-linux-gnu/libc.so.6"}
	}
	edits := []Edit{{RunPath: &long, Tag: RPath}, {Tag: RunPath}, {Tag: RPath}, names}
	if g.Interp != "" {
		edits = append(edits, Edit{Interp: "/lib64/" + strings.Repeat("../lib64/", 12) + filepath.Base(usualInterp)})
	}
	gone := Edit{ReplaceNeeded: map[string]string{"/lib/x86_64-linux-gnu/libc.so.6": "libc.so.6"}}
	if !slices.Contains(g.Needed, "libdl.so.2") {
		gone.RemoveNeeded = []string{"libdl.so.2"}
	}
	return append(edits, gone)
}

type systemFile struct {
	path, copy string
	first      []byte
	list       string
	read       []string
}

// edit makes one edit and says what it broke.
func (s *systemFile) edit(e Edit) (how string, grown int64, err error) {
	before, err := os.ReadFile(s.copy)
	if err != nil {
		return "", 0, err
	}
	res, err := EditPath(s.copy, e)
	if err != nil {
		return "", 0, err
	}
	after, err := os.ReadFile(s.copy)
	if err != nil {
		return "", 0, err
	}
	if broken := held(before, after, e); len(broken) > 0 {
		return res.How, 0, errors.New(strings.Join(broken, "; "))
	}
	if again, err := EditPath(s.copy, e); err != nil || again.Changed {
		return res.How, 0, fmt.Errorf("the second edit is not a no-op: %+v, %v", again, err)
	}
	// What the file's own run path finds is found from where the file is.
	if list := resolves(s.copy); foundBy(list) != foundBy(s.list) && e.Tag != RunPath {
		return res.How, 0, fmt.Errorf("ld.so --list:\n%s\nbefore:\n%s", list, s.list)
	}
	if said := news(s.read, (&subject{path: s.copy}).readelf()); len(said) > 0 {
		return res.How, 0, fmt.Errorf("readelf: %q", said)
	}
	return res.How, res.Growth, nil
}

// foundBy is what ld.so --list says in an order of its own, without the
// libraries that the edits are about.
func foundBy(list string) string {
	var out []string
	for line := range strings.SplitSeq(list, "\n") {
		line = strings.TrimSpace(line)
		if !strings.Contains(line, "libdl.so.2") && !strings.Contains(line, "libc.so.6") && !strings.Contains(line, "ld-linux") {
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// TestRealFiles edits large real files of Debian's packages, in copies:
// PATCHELF_REAL is a directory with what dpkg-deb -x makes of librocsparse0,
// libtorch1.13, chromium, firefox-esr and libllvm16, or of others.
func TestRealFiles(t *testing.T) {
	root := os.Getenv("PATCHELF_REAL")
	if cache, err := os.UserCacheDir(); root == "" && err == nil {
		root = filepath.Join(cache, "rocm-nightly", "bench-patchelf") // what scripts/bench-patchelf.sh left
	}
	if _, err := os.Stat(root); err != nil {
		t.Skip("PATCHELF_REAL is not set (Debian: apt-get download librocsparse0 libtorch1.13 chromium, then dpkg-deb -x)")
	}
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		if info, err := d.Info(); err == nil && info.Size() > 4<<20 {
			t.Run(d.Name(), func(t *testing.T) { realFile(t, path) })
		}
		return nil
	})
}

// realFile edits a copy that shares its blocks with the file, where it can.
func realFile(t *testing.T, path string) {
	if f, err := os.Open(path); err == nil {
		info, _ := f.Stat()
		g, err := Parse(f, info.Size())
		f.Close()
		if err != nil || !g.Dynamic {
			return
		}
	}
	at := filepath.Join(t.TempDir(), "real")
	if out, err := exec.Command("cp", "--reflink=auto", path, at).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	list, read := resolves(path), (&subject{path: path}).readelf()
	linted := complaintsOf(path, "eu-elflint", "--gnu-ld")
	for i, e := range []Edit{
		{RunPath: ptr(longPath), Tag: RunPath}, {Tag: RPath}, {RunPath: ptr("$ORIGIN")},
		{AddNeeded: []string{"libdl.so.2"}, Soname: ptr("libreal-with-another-name.so.1")}, {RemoveNeeded: []string{"libdl.so.2"}, RunPath: ptr("")},
	} {
		if res, err := EditPath(at, e); err != nil {
			t.Fatalf("edit %d: %v", i, err)
		} else {
			t.Logf("edit %d: %s: %d written, %d longer", i, res.How, res.Written, res.Growth)
		}
		if now := resolves(at); foundBy(now) != foundBy(list) {
			t.Errorf("edit %d: ld.so --list: %s\nbefore: %s", i, now, list)
		}
		if said := news(read, (&subject{path: at}).readelf()); len(said) > 0 {
			t.Errorf("edit %d: readelf: %q", i, said)
		}
	}
	if said := news(linted, complaintsOf(at, "eu-elflint", "--gnu-ld")); len(said) > 0 {
		t.Errorf("eu-elflint: %q", said)
	}
	sameContent(t, path, at)
}

// sameContent: no byte of code or data of the old file differs in the new one.
func sameContent(t *testing.T, before, after string) {
	t.Helper()
	f, err := elf.Open(before)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	g, err := elf.Open(after)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for i, s := range f.Sections {
		if s.Type != elf.SHT_PROGBITS || s.Name == ".interp" || s.Size > 256<<20 {
			continue
		}
		was, errF := s.Data()
		is, errG := g.Sections[i].Data()
		if errF != nil || errG != nil || string(was) != string(is) {
			t.Errorf("section %s differs", s.Name)
		}
	}
}
