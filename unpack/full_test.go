package unpack

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// tiny mounts a file system of so many pages and inodes.
func tiny(t *testing.T, options string) *os.Root {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("a file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// fullCases are archives that do not fit, and the entry at which that shows.
var fullCases = []struct {
	what, options string
	entries       func() []entry
	blames        string
}{
	{"one large file", "size=1m", func() []entry {
		return []entry{{name: "./large", body: varied(2 << 20)}}
	}, "large"},
	{"many small files", "size=256k", func() []entry { return filesOf(200, 20_000) }, "d/"},
	{"no inode for a file", "nr_inodes=20", func() []entry { return filesOf(200, 10) }, "d/"},
	{"no inode for a directory", "nr_inodes=4", func() []entry {
		return []entry{{name: "./a/b/c/d/e/f", kind: tar.TypeDir, mode: 0o755}}
	}, "a/b"},
	{"no inode for a symlink", "nr_inodes=3", func() []entry {
		return []entry{{name: "./a", body: "x"}, {name: "./b", kind: tar.TypeSymlink, link: "a"}, {name: "./c", kind: tar.TypeSymlink, link: "a"}}
	}, "c"},
}

func filesOf(n, size int) []entry {
	list := make([]entry, n)
	for i := range list {
		list[i] = entry{name: fmt.Sprintf("./d/%03d", i), body: strings.Repeat("x", size)}
	}
	return list
}

// A full disk is an error that names what was being written, at once, though
// the source goes on or hangs.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for _, c := range fullCases {
		t.Run(c.what, func(t *testing.T) {
			raw := rawTar(t, c.entries()...)
			whole := archive(t, c.entries()...)
			for _, writers := range []int{1, 4} {
				_, err := Tree(context.Background(), bytes.NewReader(whole), tiny(t, c.options), Options{Writers: writers})
				blames(t, err, unix.ENOSPC, c.blames)
			}
			if !strings.Contains(c.what, "symlink") { // those are made at the end
				blames(t, soon(t, context.Background(), newHung(t, flushed(t, raw)), tiny(t, c.options)), unix.ENOSPC, c.blames)
			}
		})
	}
}

func blames(t *testing.T, err, cause error, name string) {
	t.Helper()
	var ee *EntryError
	if !errors.Is(err, cause) || !errors.As(err, &ee) || !strings.HasPrefix(strings.TrimPrefix(ee.Name, "./"), name) {
		t.Errorf("error %v", err)
	}
}

// A quota or a limit on the size of a file shows as another error of a write.
func TestWriteErrorNamesTheFile(t *testing.T) {
	if os.Getenv("UNPACK_TEST_LIMITED") != "" {
		limited(t)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run", "^TestWriteErrorNamesTheFile$", "-test.v")
	cmd.Env = append(os.Environ(), "UNPACK_TEST_LIMITED=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// limited runs in a process that may write no file of more than 2 MB.
func limited(t *testing.T) {
	in := archive(t, entry{name: "./small", body: "x"}, entry{name: "./large", body: varied(5 << 20)})
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 2_000_000, Max: 2_000_000}); err != nil {
		t.Fatal(err)
	}
	_, err = Tree(context.Background(), bytes.NewReader(in), root, Options{})
	blames(t, err, unix.EFBIG, "large")
	if fi, err := os.Stat(filepath.Join(dir, "large")); err != nil || fi.Size() > 2_000_000 {
		t.Errorf("%v, %v", fi, err)
	}
}
