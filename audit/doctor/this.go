package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/audit"
	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// This is the machine that the program runs on, and its own process.
func This() *System {
	groups, _ := os.Getgroups()
	s := &System{
		FS: os.DirFS("/"), UID: os.Geteuid(), GID: os.Getegid(), Groups: groups, Environ: os.Environ(),
		Xattr: xattr, Try: try, Space: diskspace.Statfs, Missing: missing,
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		s.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) == nil {
		if s.Memlock = int64(limit.Cur); limit.Cur == unix.RLIM_INFINITY {
			s.Memlock = -1
		}
	}
	return s
}

// maxXattr is the most that Linux stores in one attribute.
const maxXattr = 64 << 10

func xattr(name, attr string) ([]byte, error) {
	b := make([]byte, maxXattr)
	n, err := unix.Getxattr(name, attr, b)
	if err != nil {
		return nil, err
	}
	return b[:n], nil
}

// try opens a device as the HSA runtime does. A device that sleeps or is busy
// must not hold it up.
func try(name string) error {
	fd, err := unix.Open(name, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// missing audits a tree. What a manifest knows of its files is not read again.
func missing(ctx context.Context, dir string) ([]Missing, error) {
	report, err := audit.Run(ctx, dir, audit.Options{Files: filesOf(dir)})
	if err != nil {
		return nil, err
	}
	has := sync.OnceValue(func() map[string]bool { return namesBelow(dir) })
	var all []Missing
	at := map[string]int{}
	for _, f := range report.Findings {
		name := f.Subject
		switch f.Rule {
		case audit.RuleNeeded:
			if has()[name] {
				continue // the tree has it, and does not find it: no package helps
			}
		case audit.RuleInterpreter:
			if name = hostCommand(name); name == "" {
				continue
			}
		default:
			continue
		}
		if i, have := at[name]; have {
			all[i].Required = all[i].Required || f.Severity != audit.Warning
			continue
		}
		at[name] = len(all)
		all = append(all, Missing{Name: name, By: f.Path, Required: f.Severity != audit.Warning})
	}
	return all, nil
}

// hostCommand is the name of an interpreter that a host can have, "" for that of
// a build machine.
func hostCommand(name string) string {
	switch filepath.Dir(name) {
	case ".", "/bin", "/usr/bin", "/usr/local/bin":
		return filepath.Base(name)
	}
	return ""
}

// namesBelow are the names of all files of a tree.
func namesBelow(dir string) map[string]bool {
	names := map[string]bool{}
	filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err == nil && len(names) < maxNames {
			names[filepath.Base(p)] = true
		}
		return nil
	})
	return names
}

// filesOf reads a prefix's files.jsonl, nil where there is none that is good.
func filesOf(dir string) []manifest.File {
	f, err := os.Open(filepath.Join(dir, manifest.FilesName))
	if err != nil {
		return nil
	}
	files, err := manifest.ReadFiles(f)
	if err := errors.Join(err, f.Close()); err != nil && !errors.Is(err, fs.ErrClosed) {
		return nil
	}
	return files
}
