package patchelf

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// asNobody runs do on a thread that has the file permissions of a user without
// any rights. The thread ends with it.
func asNobody(t *testing.T, do func()) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can edit files as another user")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked
		if err := errors.Join(unix.Setfsgid(65534), unix.Setfsuid(65534)); err != nil {
			t.Error(err)
			return
		}
		do()
	}()
	<-done
}

// TestEditWhatIsNotOwned: who may write to a file may edit it. That the
// modification time cannot be kept is told, and no failure.
func TestEditWhatIsNotOwned(t *testing.T) {
	path := forAll(t)
	if err := errors.Join(os.Chmod(path, 0o666), os.Chown(path, 1, 1)); err != nil && os.Getuid() == 0 {
		t.Fatal(err)
	}
	asNobody(t, func() {
		res, err := EditPath(path, Edit{RunPath: ptr(longPath)})
		if err != nil || !res.Changed || !slices.Equal(res.Lost, []string{"modification time"}) {
			t.Errorf("%+v %v", res, err)
		}
	})
	checkPath(t, path, longPath, RunPath)
}

// TestEditKeepsModeOrRefuses: a file whose setuid bits a write would take, and
// who writes could not give back, is as it was.
func TestEditKeepsModeOrRefuses(t *testing.T) {
	for _, mode := range []uint32{0o4777, 0o2777, 0o6777} {
		path := forAll(t)
		if os.Getuid() == 0 {
			if err := errors.Join(os.Chown(path, 1, 1), unix.Chmod(path, mode)); err != nil {
				t.Fatal(err)
			}
		}
		first, before := read(t, path), statOf(t, path)
		asNobody(t, func() {
			var refused *RefusedError
			if _, err := EditPath(path, Edit{RunPath: ptr(longPath)}); !errors.As(err, &refused) {
				t.Errorf("%o: %v", mode, err)
			}
		})
		if after := statOf(t, path); after.Mode() != before.Mode() || !after.ModTime().Equal(before.ModTime()) || !bytes.Equal(read(t, path), first) {
			t.Errorf("%o: it is %v now", mode, after.Mode())
		}
		mustEdit(t, path, Edit{RunPath: ptr(longPath)}) // its owner, and root, may
		if after := statOf(t, path); after.Mode() != before.Mode() {
			t.Errorf("%o: it is %v now", mode, after.Mode())
		}
	}
}

// forAll makes a copy whose directory anybody may enter.
func forAll(t *testing.T) string {
	t.Helper()
	path := copyOf(t, variantOf(t, "bfd-pie-4").make(t))
	for dir := filepath.Dir(path); dir != filepath.Clean(os.TempDir()); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func statOf(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// TestCopyToAnOpenFile: a name under /proc/self/fd, which /dev/stdout is, is
// written through, whatever was in the file; the source itself is not.
func TestCopyToAnOpenFile(t *testing.T) {
	src := copyOf(t, variantOf(t, "bfd-lib-4").make(t))
	e := Edit{RunPath: ptr("/other")}
	if _, err := EditCopy(src, src+".want", e, CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	open := func(path string, flag int) (string, os.FileInfo) {
		f, err := os.OpenFile(path, flag, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		name := filepath.Join("/proc/self/fd", strconv.Itoa(int(f.Fd())))
		link := filepath.Join(t.TempDir(), "stdout")
		if err := os.Symlink(name, link); err != nil {
			t.Fatal(err)
		}
		return link, statOf(t, path)
	}
	out := src + ".out"
	if err := os.WriteFile(out, bytes.Repeat([]byte("more than will be written"), 10000), 0o644); err != nil {
		t.Fatal(err)
	}
	link, was := open(out, os.O_WRONLY)
	res, err := EditCopy(src, link, e, CopyOptions{})
	if now := statOf(t, out); err != nil || !os.SameFile(was, now) || res.Written != now.Size() || !bytes.Equal(read(t, out), read(t, src+".want")) {
		t.Errorf("%+v %v: not what was to be written, or not to the file that is open", res, err)
	}
	first := read(t, src)
	link, _ = open(src, os.O_RDWR)
	var refused *RefusedError
	if _, err := EditCopy(src, link, e, CopyOptions{}); !errors.As(err, &refused) || !bytes.Equal(read(t, src), first) {
		t.Errorf("onto itself: %v", err)
	}
}
