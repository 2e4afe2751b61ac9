package patchelf

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestCopyIsTheEditInPlace: both ways lead to the same bytes, the copy under
// a new inode, and the name is never without a file.
func TestCopyIsTheEditInPlace(t *testing.T) {
	e := Edit{RunPath: ptr(longPath + ":" + shop.deps(t)), Tag: RunPath}
	here, there := copyOf(t, variantOf(t, "bfd-pie-4").make(t)), copyOf(t, variantOf(t, "bfd-pie-4").make(t))
	old := time.Date(2020, 1, 2, 3, 4, 5, 678, time.UTC)
	for _, path := range []string{here, there} {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	before, _ := os.Stat(there)
	keep, err := os.Open(there)
	if err != nil {
		t.Fatal(err)
	}
	defer keep.Close()
	first := read(t, there)
	inPlace := mustEdit(t, here, e)
	res, err := EditCopy(there, there, e, CopyOptions{Sync: true, KeepTime: true})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read(t, here), read(t, there)) {
		t.Error("the copy has other bytes than the edit in place")
	}
	after, _ := os.Stat(there)
	if os.SameFile(before, after) || after.Mode() != before.Mode() || !after.ModTime().Equal(old) {
		t.Errorf("%v %v", after.Mode(), after.ModTime())
	}
	if !res.Changed || res.Growth != inPlace.Growth || res.Written < inPlace.Written || !strings.Contains(res.How, "copied") {
		t.Errorf("%+v", res)
	}
	was := make([]byte, len(first))
	if _, err := keep.ReadAt(was, 0); err != nil || !bytes.Equal(was, first) {
		t.Error("who had the old file open sees another one now")
	}
	if code, out := runs(t, there, false); code != 46 {
		t.Errorf("exit %d: %s", code, out)
	}
	if again, err := EditCopy(there, there, e, CopyOptions{}); err != nil || again.Changed || again.Written != 0 {
		t.Errorf("again: %+v %v", again, err)
	}
	if same, _ := os.Stat(there); !os.SameFile(same, after) {
		t.Error("asking for what is there made a new file")
	}
	onlyFiles(t, there, 1)
}

// onlyFiles checks how many files the directory of path has.
func onlyFiles(t *testing.T, path string, n int) {
	t.Helper()
	names, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(names) != n {
		t.Errorf("%v %v", names, err)
	}
}

// TestCopyToAnotherName: the source stays, and a plain copy is made where
// nothing changes.
func TestCopyToAnotherName(t *testing.T) {
	src := copyOf(t, variantOf(t, "bfd-lib-4").make(t))
	if err := os.Chmod(src, 0o4750); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(src, src+".link"); err != nil { // links of the source do not matter
		t.Fatal(err)
	}
	first := read(t, src)
	for i, e := range []Edit{{}, {RunPath: ptr("/other")}} {
		dst := src + ".out"
		if _, err := EditCopy(src, dst, e, CopyOptions{}); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(read(t, src), first) || bytes.Equal(read(t, dst), first) != (i == 0) {
			t.Errorf("%+v: wrong bytes", e)
		}
		if info, _ := os.Stat(dst); info.Mode() != 0o750 {
			t.Errorf("mode %v: a copy under another name is not setuid", info.Mode())
		}
	}
	var out bytes.Buffer
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		f, err := os.Open(pipe)
		if err == nil {
			_, err = out.ReadFrom(f)
			f.Close()
		}
		done <- err
	}()
	if _, err := EditCopy(src, pipe, Edit{RunPath: ptr("/other")}, CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || !bytes.Equal(out.Bytes(), read(t, src+".out")) {
		t.Errorf("a pipe is given other bytes (%v)", err)
	}
}

// TestCopyRefuses: links of both kinds, and the file is as it was.
func TestCopyRefuses(t *testing.T) {
	path := copyOf(t, variantOf(t, "bfd-pie-4").make(t))
	e := Edit{RunPath: ptr(longPath)}
	soft, hard := path+".soft", path+".hard"
	if err := errors.Join(os.Symlink(path, soft), os.Link(path, hard)); err != nil {
		t.Fatal(err)
	}
	first := read(t, path)
	var refused *RefusedError
	for _, c := range [][2]string{{path, path}, {soft, soft}, {path, soft}} {
		if _, err := EditCopy(c[0], c[1], e, CopyOptions{}); !errors.As(err, &refused) {
			t.Errorf("%v: %v", c, err)
		}
	}
	if _, err := EditCopy(path, t.TempDir(), e, CopyOptions{}); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("to a directory: %v", err)
	}
	if !bytes.Equal(read(t, path), first) {
		t.Error("a refused edit changed the file")
	}
	onlyFiles(t, path, 3)
	if _, err := EditCopy(path, path, e, CopyOptions{BreakLinks: true}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read(t, hard), first) || bytes.Equal(read(t, path), first) {
		t.Error("breaking a link changes one name, and not the other")
	}
}

// TestCopyCleansUp: what a killed run left is removed, what a running one
// works on is not.
func TestCopyCleansUp(t *testing.T) {
	path := copyOf(t, variantOf(t, "bfd-pie-4").make(t))
	left := tempName(path)
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(left)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	e := Edit{RunPath: ptr(longPath)}
	if _, err := EditCopy(path, path, e, CopyOptions{}); !errors.Is(err, errLocked) {
		t.Errorf("beside a running edit: %v", err)
	}
	f.Close()
	if _, err := EditCopy(path, path, e, CopyOptions{}); err != nil {
		t.Error(err)
	}
	onlyFiles(t, path, 1)
	if err := RemoveStale(path); err != nil {
		t.Error("nothing to remove is no error: ", err)
	}
	if n := len(filepath.Base(tempName(strings.Repeat("n", 255)))); n > 255 {
		t.Errorf("a long name gives a name of %d bytes", n)
	}
}

// TestCopyKeepsAttributes: capabilities and attributes are there after an edit
// of either kind.
func TestCopyKeepsAttributes(t *testing.T) {
	path := copyOf(t, variantOf(t, "bfd-pie-4").make(t))
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := map[string][]byte{"user.origin": []byte("a test")}
	if os.Getuid() == 0 {
		// cap_net_bind_service+ep, revision 2 (capability.h).
		want[capability] = []byte{1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	}
	for name, value := range want {
		if err := unix.Fsetxattr(int(f.Fd()), name, value, 0); err != nil {
			t.Skipf("%s: %v: this file system has no such attributes", name, err)
		}
	}
	check := func(how string) {
		t.Helper()
		g, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		for name, value := range want {
			if got, err := getAttribute(g, name); err != nil || !bytes.Equal(got, value) {
				t.Errorf("%s: %s: %v %v", how, name, got, err)
			}
		}
	}
	if _, err := EditCopy(path, path, Edit{RunPath: ptr(longPath)}, CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	check("copy")
	mustEdit(t, path, Edit{RunPath: ptr("/short")})
	check("in place")
}

// TestCopyKeepsHoles: a sparse file stays sparse.
func TestCopyKeepsHoles(t *testing.T) {
	path := copyOf(t, variantOf(t, "bfd-lib-4").make(t))
	src, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	info, _ := src.Stat()
	size := info.Size() + 1<<30
	if err := src.Truncate(size); err != nil {
		t.Fatal(err)
	}
	if _, err := src.WriteAt([]byte("tail"), size-4); err != nil {
		t.Fatal(err)
	}
	dst, err := os.Create(path + ".copy")
	if err != nil {
		t.Fatal(err)
	}
	defer dst.Close()
	shared, copied, err := copyContent(dst, src, size)
	if err != nil || (!shared && copied > 1<<20) {
		t.Errorf("%v %d %v", shared, copied, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(dst.Fd()), &st); err != nil || st.Size != size || st.Blocks*512 > 1<<20 {
		t.Errorf("%d bytes in %d blocks (%v)", st.Size, st.Blocks, err)
	}
	head, tail := make([]byte, info.Size()), make([]byte, 4)
	if _, err := dst.ReadAt(head, 0); err != nil || !bytes.HasPrefix(read(t, variantOf(t, "bfd-lib-4").make(t)), head) {
		t.Error("the head differs: ", err)
	}
	if _, err := dst.ReadAt(tail, size-4); err != nil || string(tail) != "tail" {
		t.Error("the tail differs: ", err)
	}
}

// TestCopyOfARunningProgram: the copy works where an edit in place may not
// even begin, and the first is told that the file is in use.
func TestCopyOfARunningProgram(t *testing.T) {
	sleep := shop.build(t, "sleeper", "#include <unistd.h>\nint main(void) { char c; write(1, \"x\", 1); return read(0, &c, 1); }", "-Wl,-rpath,/a")
	path := copyOf(t, sleep)
	cmd := exec.Command(path)
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	start := cmd.Start
	for err := start(); err != nil; err = start() {
		if !errors.Is(err, syscall.ETXTBSY) {
			t.Fatal(err)
		}
	}
	defer func() { in.Close(); _ = cmd.Wait() }()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if used := inUse(t, path); !used {
		t.Error("a running program is not in use")
	}
	if _, err := EditPath(path, Edit{RunPath: ptr("/b")}); !errors.Is(err, unix.ETXTBSY) {
		t.Errorf("in place: %v", err)
	}
	if _, err := EditCopy(path, path, Edit{RunPath: ptr("/b")}, CopyOptions{}); err != nil {
		t.Error(err)
	}
	if used := inUse(t, path); used {
		t.Error("the copy is in use")
	}
}

func inUse(t *testing.T, path string) bool {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	used, err := InUse(f)
	if err != nil {
		t.Fatal(err)
	}
	return used
}

// TestMapsLine: a file is known by device and inode, or by inode and name.
func TestMapsLine(t *testing.T) {
	m := mappedFile{dev: unix.Mkdev(0xfe, 1), ino: 42, name: "/lib/a b.so"}
	for line, want := range map[string]bool{
		"7f00-7f01 r-xp 00000000 fe:01 42 /elsewhere\n":              true,
		"7f00-7f01 r-xp 00000000 00:15 42    /lib/a b.so\n":          true,
		"7f00-7f01 r-xp 00000000 00:15 42 /lib/b.so\n":               false,
		"7f00-7f01 r-xp 00000000 fe:01 43 /lib/a b.so\n":             false,
		"7f00-7f01 rw-p 00000000 00:00 0 \n":                         false,
		"\n":                                                         false,
		"7f00-7f01 r-xp 00000000 fe:01 42 /lib/a b.so (deleted)\n\n": true,
	} {
		if got, err := m.in(strings.NewReader(line)); err != nil || got != want {
			t.Errorf("%q: %v %v", line, got, err)
		}
	}
}

// TestFailedEditIsTakenBack: where a write fails half-way, the file is as it
// was, length and all.
func TestFailedEditIsTakenBack(t *testing.T) {
	path := copyOf(t, variantOf(t, "bfd-pie-4").make(t))
	first := read(t, path)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, _, err := planFile(f, Edit{RunPath: ptr(longPath), Interp: "/a/rather/long/name/of/an/interpreter"})
	if err != nil {
		t.Fatal(err)
	}
	for n := range p.writes {
		half := *p
		half.writes = slices.Clone(p.writes[:n])
		if err := half.Apply(f); err != nil {
			t.Fatal(err)
		}
		if err := p.undo(f); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(read(t, path), first) {
			t.Fatalf("after %d of %d writes, taking back leaves other bytes", n, len(p.writes))
		}
	}
	wrong := *p
	wrong.result, _ = Parse(f, int64(len(first))) // the check finds what was not planned
	if _, err := applyTo(f, &wrong); err == nil || !bytes.Equal(read(t, path), first) {
		t.Errorf("a result that is not as planned: %v", err)
	}
}
