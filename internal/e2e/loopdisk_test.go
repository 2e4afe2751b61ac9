package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// loopDisk is a real file system in a file, which can lose its power.
type loopDisk struct {
	kind, options string
	image, dir    string
}

// newLoopDisk makes a file system and mounts it.
func newLoopDisk(t *testing.T, kind, debian, options string) *loopDisk {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can mount a file system")
	}
	if _, err := exec.LookPath("mkfs." + kind); err != nil {
		t.Skipf("mkfs.%s is missing: apt-get install %s", kind, debian)
	}
	// Of a mount that another namespace has a copy of, the file system stays when it
	// is unmounted here: the caller is in a namespace of its own (smallfs.Inside),
	// from which nothing reaches the machine.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Skipf("mounts cannot be made private: %v", err)
	}
	base := memory(t)
	d := &loopDisk{kind: kind, options: "loop" + options, image: filepath.Join(base, "image"), dir: filepath.Join(base, "disk")}
	err := errors.Join(os.WriteFile(d.image, nil, 0o600), os.Truncate(d.image, 400<<20), os.Mkdir(d.dir, 0o755))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs."+kind, "-q", d.image).CombinedOutput(); err != nil {
		t.Fatalf("mkfs.%s: %v: %s", kind, err, out)
	}
	if out, err := d.mount(); err != nil {
		t.Skipf("%s cannot be mounted here: %v: %s", kind, err, out)
	}
	t.Cleanup(func() { d.unmount(t) })
	return d
}

func (d *loopDisk) mount() ([]byte, error) {
	return exec.Command("mount", "-t", d.kind, "-o", d.options, d.image, d.dir).CombinedOutput()
}

func (d *loopDisk) unmount(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("umount", d.dir).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// again mounts the file system anew, as after a boot: what was in memory alone
// is gone, and what is read comes from the image.
func (d *loopDisk) again(t *testing.T) {
	t.Helper()
	d.unmount(t)
	if out, err := d.mount(); err != nil {
		t.Fatalf("mount %s again: %v: %s", d.kind, err, out)
	}
}

// cut takes the power away: from now on every call fails, and nothing more
// reaches the image, not even the journal that is in memory. It is what the
// file systems' own developers test themselves with (FS_IOC_SHUTDOWN of
// linux/fs.h, with EXT4_GOING_FLAGS_NOLOGFLUSH, XFS_FSOP_GOING_FLAGS_NOLOGFLUSH).
func (d *loopDisk) cut(t *testing.T) {
	t.Helper()
	const shutdown, noLogFlush = 0x8004587d, 2
	f, err := os.Open(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	how := uint32(noLogFlush)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), shutdown, uintptr(unsafe.Pointer(&how))); errno != 0 {
		t.Fatalf("shut down %s: %v", d.kind, errno)
	}
}

// abort makes the file system read-only at once, with files open for writing:
// what ext4 does by itself when it finds the disk damaged (errors=remount-ro).
func (d *loopDisk) abort(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("mount", "-o", "remount,abort", d.dir).CombinedOutput(); err != nil {
		t.Fatalf("abort %s: %v: %s", d.kind, err, out)
	}
}

// fill leaves room for so many bytes, and returns what makes room again.
func (d *loopDisk) fill(t *testing.T, left int64) (empty func()) {
	t.Helper()
	ballast := filepath.Join(d.dir, "ballast")
	var st unix.Statfs_t
	if err := unix.Statfs(d.dir, &st); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size := int64(st.Bavail)*st.Bsize - left
	for err = unix.ENOSPC; errors.Is(err, unix.ENOSPC) && size > 0; size -= 128 << 10 { // what it has for itself
		err = unix.Fallocate(int(f.Fd()), 0, 0, size)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(ballast); err != nil {
			t.Error(err)
		}
	}
}
