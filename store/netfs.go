package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// reach is who sees a lock.
type reach int

const (
	reachLocal  reach = iota // one kernel has the file system, and all processes on it see a lock
	reachShared              // several hosts have it, and each sees the others' locks
	reachBlind               // several hosts may have it, and a lock is not known to be seen by the others
)

// fsMount is what the kernel says of the file system that holds a directory.
type fsMount struct {
	Type    string   // nfs4, fuse.sshfs, ext4 …; "" if it is not known
	Options []string // of the file system and of the mount
}

// LocksError says that a store is on a file system on which a lock does not keep
// other hosts out.
type LocksError struct {
	Root string
	Type string // of the file system
	Why  string
}

func (e *LocksError) Error() string {
	return fmt.Sprintf("%s is on %s, where a lock does not keep other hosts out: %s (put the root on a local disk with --root; or, where this host alone uses it, set root_alone: true)",
		e.Root, e.Type, e.Why)
}

// ErrNoLocks is matched where a lock does not even keep another process of this
// machine out.
var ErrNoLocks = errors.New("locks do not work on this file system: one that is held could be taken again (put the root on a local disk with --root)")

// mountOf returns the mount that dir is on, by its id, so that neither links in
// its path nor mounts over mounts matter.
func mountOf(dir string) (fsMount, error) {
	var stx unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, dir, 0, unix.STATX_MNT_ID, &stx); err == nil && stx.Mask&unix.STATX_MNT_ID != 0 {
		f, err := os.Open("/proc/self/mountinfo")
		if err == nil {
			defer f.Close()
			if m, err := findMount(f, stx.Mnt_id); err == nil {
				return m, nil
			}
		}
	}
	var st unix.Statfs_t
	if err := uninterrupted(func() error { return unix.Statfs(dir, &st) }); err != nil {
		return fsMount{}, fmt.Errorf("look at the file system of %s: %w", dir, err)
	}
	return fsMount{Type: typeByMagic(int64(st.Type))}, nil // without its options: the worst is assumed
}

// typeByMagic names the file systems that judge cares for, where /proc does not
// tell (statfs(2)). nfs without its options is taken for blind.
func typeByMagic(magic int64) string {
	switch uint32(magic) {
	case unix.NFS_SUPER_MAGIC:
		return "nfs"
	case unix.FUSE_SUPER_MAGIC:
		return "fuse"
	case 0xff534d42, 0xfe534d42, unix.SMB_SUPER_MAGIC: // CIFS, SMB2
		return "cifs"
	case unix.V9FS_MAGIC:
		return "9p"
	case unix.AFS_SUPER_MAGIC, 0x6b414653:
		return "afs"
	case 0x0bd00bd0:
		return "lustre"
	case 0x19830326:
		return "beegfs"
	case 0x786f4256:
		return "vboxsf"
	}
	return ""
}

// findMount finds the mount with an id in a /proc/self/mountinfo.
func findMount(r io.Reader, id uint64) (fsMount, error) {
	all, err := readMounts(r)
	for _, m := range all {
		if m.id == id && m.kind != "" {
			return fsMount{Type: m.kind, Options: append(strings.Split(m.super, ","), strings.Split(m.options, ",")...)}, nil
		}
	}
	return fsMount{}, errors.Join(errors.New("the mount is not in the list"), err)
}

// has reports whether one of the options is on.
func (m fsMount) has(options ...string) bool {
	return slices.ContainsFunc(options, func(o string) bool { return slices.Contains(m.Options, o) })
}

// localFUSE are FUSE file systems that have one host by nature: they show what
// is on a local disk, or is the root of a container.
var localFUSE = []string{
	"fuse-overlayfs", "unionfs-fuse", "unionfs", "mergerfs", "bindfs", "gocryptfs", "cryfs", "encfs", "ntfs-3g", "exfat", "lxcfs", "zfs-fuse", "fuse2fs", "ext4", "apfs",
}

// judge says who sees a lock on a mount, and why not more do. What is not known
// here is taken for local: LockRun tries the lock itself besides.
func (m fsMount) judge() (reach, string) {
	switch kind, sub, _ := strings.Cut(m.Type, "."); kind {
	case "nfs", "nfs4":
		// Since Linux 2.6.12 flock(2) is a byte-range lock on the server (nfs(5)).
		switch {
		case m.has("nolock", "local_lock=all", "local_lock=flock"):
			return reachBlind, "it is mounted so that locks stay on this host (nolock, or local_lock); mount it with NFSv4, or with lockd"
		case len(m.Options) == 0:
			return reachBlind, "how it is mounted is not known"
		}
		return reachShared, ""
	case "cifs", "smb3", "smb2", "smbfs":
		if m.has("nobrl") || len(m.Options) == 0 {
			return reachBlind, "it is mounted so that locks stay on this host (nobrl)"
		}
		return reachShared, ""
	case "lustre":
		if !m.has("flock") {
			return reachBlind, "it is mounted so that locks stay on this host; mount it with -o flock"
		}
		return reachShared, ""
	case "gfs2":
		if m.has("localflocks", "lockproto=lock_nolock") {
			return reachBlind, "it is mounted so that locks stay on this host (localflocks)"
		}
		return reachShared, ""
	case "ceph", "ocfs2", "gpfs":
		return reachShared, ""
	case "fuse":
		if slices.Contains(localFUSE, sub) {
			return reachLocal, ""
		}
		return reachBlind, "a FUSE file system keeps locks on this host, or passes them on, and does not say which"
	case "9p", "virtiofs", "vboxsf", "prl_fs", "vmhgfs", "fakeowner", "afs", "beegfs", "orangefs", "coda":
		return reachBlind, "such a file system keeps locks on this host, or passes them on, and does not say which"
	}
	return reachLocal, "" // fuseblk too: a disk of this machine
}

// look says on what kind of file system ROOT is.
func (s *Store) lockReach() (fsMount, reach, string, error) {
	find := s.mountOf
	if find == nil {
		find = mountOf
	}
	m, err := find(s.root)
	if err != nil {
		return m, reachBlind, err.Error(), err
	}
	r, why := m.judge()
	return m, r, why, nil
}

// checkLocks refuses a file system on which a lock does not keep other hosts
// out, unless there is none.
func (s *Store) checkLocks() error {
	if s.Alone {
		return nil
	}
	m, r, why, err := s.lockReach()
	if err != nil {
		return err
	}
	if r == reachBlind {
		return &LocksError{Root: s.root, Type: m.Type, Why: why}
	}
	return nil
}

// testLock takes a lock that is held for a second time, which must fail: there
// are file systems that grant every lock.
func testLock(path string) error {
	second := openLock(path)
	defer second.Close()
	ok, err := tryLock(second)
	if err != nil {
		return lockHint(err)
	}
	if ok {
		return fmt.Errorf("%s: %w", filepath.Dir(path), ErrNoLocks)
	}
	return nil
}
