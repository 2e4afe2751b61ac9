package cage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// The ways in which a place can be used.
const (
	readable = "readable" // read and executed
	writable = "writable"
	device   = "device" // opened for reading and writing, and spoken to
	link     = "link"   // a symlink that is to be there
)

// place is one path of the host that can be seen inside, under the same name.
type place struct {
	Path   string
	Access string
	Target string `json:",omitempty"` // of a link
}

// systemDirs hold the programs and libraries that every program needs: the
// loader, libc, sh, perl, python, a host compiler. Nix and Guix keep them in a
// store of their own.
var systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"}

// systemFiles is what of /etc the loader, Debian's alternatives, clang's look
// for its distribution, and the C library need. Nothing in it is a secret.
var systemFiles = []string{
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime",
	"/etc/os-release", "/etc/lsb-release", "/etc/debian_version", "/etc/redhat-release", "/etc/gentoo-release", "/etc/SuSE-release",
}

// sysfsDirs is what ROCm's runtime reads of a GPU.
var sysfsDirs = []string{"/sys/devices", "/sys/class/kfd", "/sys/class/drm", "/sys/bus/pci", "/sys/dev/char", "/sys/module/amdgpu"}

// plainDevices are the devices that every program may have.
var plainDevices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// whole lists what would let in a whole system, somebody's home or everybody's
// secrets: a prefix never lies there, and a mistaken "audit /" must not show
// /etc to what is in /bin.
var whole = []string{
	"/", "/etc", "/home", "/root", "/run", "/run/user", "/run/credentials", "/var", "/var/lib", "/var/tmp", "/tmp", "/proc", "/sys", "/dev",
	"/boot", "/mnt", "/media", "/srv",
}

// admissible refuses a directory that must not be let in whole.
func admissible(dir string) error {
	for _, w := range whole {
		if dir == w {
			return fmt.Errorf("cage: %s as a whole is not let into a cage: name the prefix itself", dir)
		}
	}
	for _, w := range []string{"/etc", "/boot", "/proc", "/sys", "/dev", "/run/credentials"} {
		if within(dir, w) && !within(dir, "/dev/shm") {
			return fmt.Errorf("cage: %s is not let into a cage: it lies in %s", dir, w)
		}
	}
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) && within(filepath.Clean(home), dir) {
		return fmt.Errorf("cage: %s is not let into a cage: the home directory lies in it", dir)
	}
	return nil
}

// system lists the places of the system that this machine has.
func system() []place { return append(existing(systemDirs...), existing(systemFiles...)...) }

// existing lists those of the paths that there are, and the links to them.
func existing(paths ...string) []place {
	var all []place
	for _, path := range paths {
		if links, real, err := trace(path); err == nil {
			all = append(append(all, links...), place{Path: real, Access: readable})
		}
	}
	return all
}

// traceDevice is trace for a character device, or a directory of devices: not
// one that something else is mounted on, as /dev/shm is.
func traceDevice(path string) (links []place, real string, err error) {
	if links, real, err = trace(path); err != nil {
		return nil, "", fmt.Errorf("cage: device: %w", err)
	}
	var st, dev unix.Stat_t
	if err := errors.Join(unix.Stat(real, &st), unix.Stat("/dev", &dev)); err != nil {
		return nil, "", fmt.Errorf("cage: device %s: %w", path, err)
	}
	kind := st.Mode & unix.S_IFMT
	if !within(real, "/dev") || real == "/dev" || kind != unix.S_IFCHR && (kind != unix.S_IFDIR || st.Dev != dev.Dev) {
		return nil, "", fmt.Errorf("cage: %s is not a character device below /dev", path)
	}
	return links, real, nil
}

// walk opens path, a real one, below root and follows no link on the way: what
// was a directory when it was looked at may be a link by now, if somebody else
// can write there.
func walk(root, path string) (fd int, err error) {
	if fd, err = unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return -1, err
	}
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		next, err := unix.Openat(fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		unix.Close(fd)
		if err != nil {
			return -1, err
		}
		fd = next
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
		err = unix.ELOOP
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// trace follows path to its end, as the kernel does, and returns the symlinks
// on the way: a program that was told /opt/rocm must find it under that name.
func trace(path string) (links []place, real string, err error) {
	if !filepath.IsAbs(path) {
		return nil, "", fmt.Errorf("%q is not an absolute path", path)
	}
	real, rest := "/", strings.Split(path, "/")
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			real = filepath.Dir(real)
			continue
		}
		next := filepath.Join(real, name)
		info, err := os.Lstat(next)
		if err != nil {
			return nil, "", err
		}
		if info.Mode()&os.ModeSymlink == 0 {
			real = next
			continue
		}
		target, err := os.Readlink(next)
		if err != nil {
			return nil, "", err
		}
		if len(links) == 40 {
			return nil, "", fmt.Errorf("%s: %w", path, unix.ELOOP)
		}
		links = append(links, place{Path: next, Access: link, Target: target})
		if filepath.IsAbs(target) {
			real = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return links, real, nil
}
