package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

var errNoReflinks error = unix.EOPNOTSUPP

func refuseRange(err error) func(_, _ *os.File, _, _ int64) (int64, bool, error) {
	return func(_, _ *os.File, _, _ int64) (int64, bool, error) { return 0, false, err }
}

// snapshot is everything of a tree that a reader could notice, but for the
// number of names and the time of the last change of the inode.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(p string, _ os.DirEntry, err error) error {
		fi, serr := os.Lstat(p)
		if err = errors.Join(err, serr); err != nil {
			return err
		}
		fmt.Fprintln(&b, p, fi.Mode(), fi.Size(), fi.ModTime(), statOf(fi).Ino, statOf(fi).Uid, statOf(fi).Gid)
		if fi.Mode().IsRegular() {
			data, err := os.ReadFile(p)
			fmt.Fprintf(&b, "%x\n", data)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A donor is whatever somebody has made of it. What is staged stays whole, and
// so does the donor.
func TestReuseHostileDonors(t *testing.T) {
	tree := treeOf("a", "b")
	for name, c := range map[string]struct {
		change  func(t *testing.T, file string) error
		means   func(file string) func(*means, *ReuseOptions)
		shared  int // of the two files
		damaged bool
		why     string
	}{
		"untouched": {shared: 2},
		"other content of the same size": {damaged: true, shared: 1, why: whyDamaged, change: func(_ *testing.T, file string) error {
			data, err := os.ReadFile(file)
			data[len(data)/2] ^= 1
			return errors.Join(err, os.Remove(file), os.WriteFile(file, data, 0o444), os.Chmod(file, 0o444), os.Chtimes(file, dayOf(1), dayOf(1)))
		}},
		"shorter": {damaged: true, shared: 1, why: whyDamaged, change: func(_ *testing.T, file string) error {
			return force(file, func() error { return os.Truncate(file, 5) })
		}},
		"a symlink to the right content": {damaged: true, shared: 1, why: whyDamaged, change: func(_ *testing.T, file string) error {
			return errors.Join(os.Rename(file, file+".x"), os.Symlink("a.x", file))
		}},
		"a fifo": {damaged: true, shared: 1, why: whyDamaged, change: func(_ *testing.T, file string) error {
			return errors.Join(os.Remove(file), unix.Mkfifo(file, 0o444))
		}},
		"a directory": {damaged: true, shared: 1, why: whyDamaged, change: func(_ *testing.T, file string) error {
			return errors.Join(os.Remove(file), os.Mkdir(file, 0o755))
		}},
		"a link out of the donor": {shared: 0, why: "", change: func(t *testing.T, file string) error {
			dir := filepath.Dir(file)
			other := filepath.Join(t.TempDir(), "rocm")
			return errors.Join(os.CopyFS(other, os.DirFS(dir)), os.RemoveAll(dir), os.Symlink(other, dir))
		}},
		"setuid":        {damaged: true, shared: 1, why: whyDamaged, change: func(_ *testing.T, file string) error { return os.Chmod(file, 0o444|os.ModeSetuid) }},
		"writable":      {damaged: true, shared: 1, why: whyDamaged, change: func(_ *testing.T, file string) error { return os.Chmod(file, 0o664) }},
		"executable":    {damaged: true, shared: 1, why: whyDamaged, change: func(_ *testing.T, file string) error { return os.Chmod(file, 0o555) }},
		"another user":  {shared: 1, why: whyForeign, change: func(t *testing.T, file string) error { return chown(t, file, 12345, 0) }},
		"another group": {shared: 1, why: whyForeign, change: func(t *testing.T, file string) error { return chown(t, file, 0, 12345) }},
		"an attribute": {shared: 1, why: whyAttrs, change: func(t *testing.T, file string) error {
			return force(file, func() error {
				err := unix.Setxattr(file, "user.x", []byte("y"), 0)
				if err != nil && unix.Setxattr(file, "trusted.x", []byte("y"), 0) != nil {
					t.Skipf("no extended attributes here: %v", err)
				}
				return nil
			})
		}},
		"a fraction of a second": {shared: 1, why: whyTime, change: func(_ *testing.T, file string) error {
			odd := dayOf(1).Add(time.Millisecond)
			return os.Chtimes(file, odd, odd)
		}},
		"gone": {shared: 1, why: whyGone, change: func(_ *testing.T, file string) error { return os.Remove(file) }},
		"all of it gone": {shared: 0, change: func(_ *testing.T, file string) error {
			return os.RemoveAll(filepath.Dir(filepath.Dir(filepath.Dir(file))))
		}},
		"no list": {shared: 0, change: func(_ *testing.T, file string) error { return os.Remove(listOf(file)) }},
		"a torn list": {shared: 0, change: func(_ *testing.T, file string) error {
			fi, err := os.Stat(listOf(file))
			return errors.Join(err, force(listOf(file), func() error { return os.Truncate(listOf(file), fi.Size()-3) }))
		}},
		"a list that is a fifo": {shared: 0, change: func(_ *testing.T, file string) error {
			return errors.Join(os.Remove(listOf(file)), unix.Mkfifo(listOf(file), 0o644))
		}},
		"a list that lies": {damaged: true, shared: 1, why: whyDamaged, change: func(_ *testing.T, file string) error {
			data, err := os.ReadFile(file)
			for i := range data {
				data[i] ^= 3
			}
			return errors.Join(err, os.Chmod(file, 0o644), os.WriteFile(file, data, 0o644), os.Chmod(file, 0o444), os.Chtimes(file, dayOf(1), dayOf(1)))
		}},
		"a list of paths that lead out": {shared: 0, why: "", change: func(_ *testing.T, file string) error {
			text, err := os.ReadFile(listOf(file))
			lies := strings.ReplaceAll(string(text), `"path":"opt/`, `"path":"../x/../opt/`)
			return errors.Join(err, force(listOf(file), func() error { return os.WriteFile(listOf(file), []byte(lies), 0o644) }))
		}},
		"truncated while it is hashed": {damaged: true, shared: 1, why: whyDamaged, means: func(file string) func(*means, *ReuseOptions) {
			return whileHashing(file, func() error { return force(file, func() error { return os.Truncate(file, 100) }) })
		}},
		"written while it is hashed": {shared: 1, why: whyBusy, means: func(file string) func(*means, *ReuseOptions) {
			return afterHashing(file, func() error {
				return force(file, func() error { return os.WriteFile(file, []byte("evil"), 0) })
			})
		}},
		"linked while it is hashed": {shared: 1, why: whyBusy, means: func(file string) func(*means, *ReuseOptions) {
			return afterHashing(file, func() error { return os.Link(file, file+".more") })
		}},
		"pruned while it is hashed": {shared: 1, why: whyBusy, means: func(file string) func(*means, *ReuseOptions) {
			return afterHashing(file, func() error { return os.Remove(file) })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNights(t, open(t), tree, tree)
			file := filepath.Join(n.first.Dir, "opt/rocm/a")
			n.donors = []Generation{*n.first}
			if c.change != nil {
				if err := c.change(t, file); err != nil {
					t.Fatal(err)
				}
			}
			hooks := []func(*means, *ReuseOptions){}
			before := ""
			if c.means != nil {
				hooks = append(hooks, c.means(file))
			} else if name != "a fifo" && name != "a list that is a fifo" && name != "all of it gone" {
				before = snapshot(t, n.first.Dir)
			}
			res := n.reuse("", hooks...)
			if before != "" && snapshot(t, n.first.Dir) != before {
				t.Error("the donor was changed")
			}
			if res.Files != c.shared || (len(res.Damaged) > 0) != c.damaged || c.why != "" && res.Left[c.why] != 1 {
				t.Errorf("%+v", res)
			}
			if c.shared == 0 && c.why == "" && len(res.Notes) == 0 && len(res.Left) == 0 && name != "a list of paths that lead out" {
				t.Errorf("nothing is said: %+v", res)
			}
		})
	}
}

// force does something to a file that is read-only, which only root may do
// otherwise, and gives it its mode and time back.
func force(file string, do func() error) error {
	fi, err := os.Stat(file)
	if err != nil {
		return err
	}
	return errors.Join(os.Chmod(file, 0o600), do(), os.Chmod(file, fi.Mode()), os.Chtimes(file, fi.ModTime(), fi.ModTime()))
}

func chown(t *testing.T, file string, uid, gid int) error {
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	return os.Chown(file, uid, gid)
}

func listOf(file string) string {
	return filepath.Join(filepath.Dir(file), "../..", manifest.FilesName)
}

// whileHashing does something before a file is hashed, when it has been looked
// at; afterHashing does it when it has been hashed.
func whileHashing(file string, do func() error) func(*means, *ReuseOptions) {
	return func(by *means, _ *ReuseOptions) {
		by.hash = func(ctx context.Context, f *os.File, size int64) ([32]byte, error) {
			if filepath.Base(f.Name()) == filepath.Base(file) {
				if err := do(); err != nil {
					return [32]byte{}, err
				}
			}
			return hashFile(ctx, f, size)
		}
	}
}

func afterHashing(file string, do func() error) func(*means, *ReuseOptions) {
	return func(by *means, _ *ReuseOptions) {
		by.hash = func(ctx context.Context, f *os.File, size int64) ([32]byte, error) {
			sum, err := hashFile(ctx, f, size)
			if filepath.Base(f.Name()) == filepath.Base(file) {
				err = errors.Join(err, do())
			}
			return sum, err
		}
	}
}

// An inode that could not be linked in one generation, which was going just
// then, is tried by its name in another.
func TestReuseTriesTheOtherNamesOfAnInode(t *testing.T) {
	n := newNights(t, open(t), treeOf("a"), treeOf("a"))
	if res := n.reuse(DedupHardLink); res.HardLinked != 1 {
		t.Fatalf("%+v", res)
	}
	n.commit(2)
	n.st = n.stage("gfx1151", 3, treeOf("a"))
	times := 0
	res := n.reuse(DedupHardLink, func(by *means, _ *ReuseOptions) {
		by.hash = func(ctx context.Context, f *os.File, size int64) ([32]byte, error) {
			sum, err := hashFile(ctx, f, size)
			if times++; times == 1 {
				err = errors.Join(err, os.Link(f.Name(), filepath.Join(t.TempDir(), "more")))
			}
			return sum, err
		}
	})
	if res.HardLinked != 1 || times != 2 {
		t.Errorf("%d attempts: %+v", times, res)
	}
}

// Whatever the kernel refuses costs space, and nothing else.
func TestReuseSurvivesRefusedCalls(t *testing.T) {
	tree := with(treeOf("a", "b"), map[string]entry{"opt/rocm/a2": {same: "opt/rocm/a"}, "opt/rocm/a3": {same: "opt/rocm/a"}})
	for _, err := range []error{unix.EMLINK, unix.EPERM, unix.ENOSPC, unix.EXDEV, unix.EIO, unix.ENOENT} {
		for after := range 4 {
			n := newNights(t, open(t), tree, tree)
			calls := 0
			res := n.reuse("", func(by *means, o *ReuseOptions) {
				o.Jobs = 1
				link := by.link
				by.link = func(src, dir *os.File, name string) error {
					if calls++; calls > after {
						return err
					}
					return link(src, dir, name)
				}
			})
			if why := because(err, ""); res.Left[why] == 0 || res.Files+res.Left[why] != 2 || res.HardLinked != res.Files {
				t.Errorf("%v after %d: %+v", err, after, res)
			}
		}
	}
	for _, err := range []error{unix.EINVAL, unix.EXDEV, unix.EOPNOTSUPP, unix.ENOTTY} {
		n := newNights(t, open(t), tree, tree)
		if res := n.reuse(DedupAuto, func(by *means, _ *ReuseOptions) { by.dedupe = refuseRange(err) }); res.HardLinked != 2 {
			t.Errorf("%v: %+v", err, res)
		}
		n = newNights(t, open(t), tree, tree)
		if res := n.reuse(DedupReflink, func(by *means, _ *ReuseOptions) { by.dedupe = refuseRange(err) }); res.Files != 0 {
			t.Errorf("%v: %+v", err, res)
		}
	}
	many := treeOf("a", "b", "c", "d", "e", "f", "g", "h", "i")
	n := newNights(t, open(t), many, many)
	hashed := 0
	res := n.reuse("", func(by *means, o *ReuseOptions) {
		o.Jobs = 1
		by.link = func(_, _ *os.File, _ string) error { return unix.EXDEV }
		by.hash = func(ctx context.Context, f *os.File, size int64) ([32]byte, error) {
			hashed++
			return hashFile(ctx, f, size)
		}
	})
	if hashed != maxBarren || res.Left[whyBarren] != len(many)-maxBarren {
		t.Errorf("%d files were hashed in vain: %+v", hashed, res)
	}
	n = newNights(t, open(t), tree, tree)
	idle := func(by *means, _ *ReuseOptions) {
		by.dedupe = func(_, _ *os.File, _, _ int64) (int64, bool, error) { return 0, true, nil }
	}
	if res := n.reuse(DedupReflink, idle); res.Files != 0 {
		t.Errorf("a kernel that shares nothing: %+v", res)
	}
}

// Where files.jsonl cannot be written again, no time may change.
func TestReuseOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("a small file system cannot be mounted here (%v): run it as root", err)
	}
	defer func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	s, err := Open(filepath.Join(dir, "root"))
	if err != nil {
		t.Fatal(err)
	}
	tree := treeOf("a", "b", "c")
	n := newNights(t, s, tree, tree)
	ballast, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = ballast.Write(make([]byte, 4096))
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	if res := n.reuse(""); res.Files != 0 || res.Bytes != 0 || res.HardLinked != 0 || len(res.Notes) != 1 || len(res.From) != 0 || len(res.Left) != 1 {
		t.Errorf("%+v", res)
	}
	if err := errors.Join(ballast.Close(), os.Remove(ballast.Name())); err != nil {
		t.Fatal(err)
	}
	if res := n.reuse(""); res.Files != 3 {
		t.Errorf("%+v", res)
	}
}

// What is staged is not believed either: a file that has another name, or is
// not as listed, stays as it is.
func TestReuseLooksAtWhatIsStaged(t *testing.T) {
	for name, change := range map[string]func(file string) error{
		"another name": func(file string) error { return os.Link(file, filepath.Dir(file)+"/../../../outside") },
		"longer": func(file string) error {
			return errors.Join(os.Chmod(file, 0o644), os.WriteFile(file, make([]byte, 20<<10), 0o644), os.Chmod(file, 0o444))
		},
		"a link": func(file string) error { return errors.Join(os.Remove(file), os.Symlink("b", file)) },
		"gone":   os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			n := newNights(t, open(t), treeOf("a", "b"), treeOf("a", "b"))
			file := filepath.Join(n.st.Dir(), "opt/rocm/a")
			if err := change(file); err != nil {
				t.Fatal(err)
			}
			donors, err := n.st.Donors()
			if err != nil {
				t.Fatal(err)
			}
			res, err := n.st.Reuse(t.Context(), donors, ReuseOptions{})
			if err != nil || res.Files != 1 || len(res.Left) != 1 || len(res.Damaged) > 0 {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
}
