package smallfs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// inside tells the process that runs in the namespace from the one that
// started it.
const inside = "ROCM_NIGHTLY_SMALLFS_TEST"

// Inside reports whether this process has a mount namespace of its own. If not,
// it runs the test again in one that has, and its output and failure are t's.
func Inside(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inside) == t.Name() {
		return true
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1")
	cmd.Env = append(os.Environ(), inside+"="+t.Name(), "TMPDIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if os.Geteuid() != 0 { // root of a user namespace may mount a tmpfs
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	_, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case err != nil && !ended:
		t.Skipf("no mount namespace of its own: %v", err)
	case err != nil:
		t.Fatal(err)
	case bytes.Contains(out, []byte("--- SKIP: "+t.Name())):
		t.Skip("mounting is not permitted here")
	}
	return false
}

// FS is a file system of a test.
type FS struct {
	Dir string

	t *testing.T
}

// Tmpfs mounts a tmpfs of so many bytes and inodes; 0 is any number.
func Tmpfs(t *testing.T, size, inodes int64) *FS {
	t.Helper()
	if os.Getenv(inside) == "" {
		t.Fatal("not inside a namespace")
	}
	// What is mounted here must not reach the machine.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Skipf("mounts cannot be made private: %v", err)
	}
	fs := &FS{Dir: filepath.Join(t.TempDir(), "small"), t: t}
	if err := os.Mkdir(fs.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("smallfs", fs.Dir, "tmpfs", 0, limits(size, inodes)); err != nil {
		t.Skipf("a tmpfs cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(fs.Dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return fs
}

func limits(size, inodes int64) string {
	return fmt.Sprintf("size=%d,nr_inodes=%d,mode=755", size, inodes)
}

// Limit sets how many bytes and inodes the file system may hold, the used ones
// included; 0 is any number. It cannot be less than is used.
func (f *FS) Limit(size, inodes int64) { f.remount(0, limits(size, inodes)) }

// Leave leaves room for so many bytes and inodes more than are used, also while
// others are writing: then what is used may outgrow the limit before it is set.
func (f *FS) Leave(size, inodes int64) {
	f.t.Helper()
	var err error
	for range 100 {
		usedBytes, usedInodes := f.Used()
		err = unix.Mount("smallfs", f.Dir, "tmpfs", unix.MS_REMOUNT, limits(usedBytes+size, usedInodes+inodes))
		if !errors.Is(err, unix.EINVAL) {
			break
		}
	}
	if err != nil {
		f.t.Errorf("leave %d bytes and %d inodes in %s: %v", size, inodes, f.Dir, err)
	}
}

// ReadOnly makes the file system read-only, or writable again.
func (f *FS) ReadOnly(yes bool) {
	flags := uintptr(0)
	if yes {
		flags = unix.MS_RDONLY
	}
	f.remount(flags, "")
}

func (f *FS) remount(flags uintptr, data string) {
	f.t.Helper()
	if err := unix.Mount("smallfs", f.Dir, "tmpfs", unix.MS_REMOUNT|flags, data); err != nil {
		f.t.Errorf("remount %s %s: %v", f.Dir, data, err)
	}
}

// Used returns how many bytes and inodes are in use.
func (f *FS) Used() (size, inodes int64) {
	f.t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(f.Dir, &st); err != nil {
		f.t.Fatal(err)
	}
	return int64(st.Blocks-st.Bfree) * int64(st.Bsize), int64(st.Files - st.Ffree)
}

// Snapshot lists what is below dir: names, modes, and the content of files and
// links.
func Snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		content := ""
		switch {
		case fi.Mode()&os.ModeSymlink != 0:
			content, err = os.Readlink(path)
		case fi.Mode().IsRegular():
			var b []byte
			b, err = os.ReadFile(path)
			content = string(b)
		}
		rel, rerr := filepath.Rel(dir, path)
		all[rel] = fi.Mode().String() + " " + content
		return errors.Join(err, rerr)
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
