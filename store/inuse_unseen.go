package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// stranger is a process that could not be looked into.
type stranger struct {
	uid       int
	groups    []int
	all       bool // it may pass every directory (root's capabilities)
	contained bool // it is in a container that is not this user's
}

// stranger records a process that could not be looked into, unless it is a
// thread of the kernel or has ended. dir is its /proc/PID, -1 if that is hidden.
func (k *looker) stranger(pid, dir int) {
	s := &stranger{uid: -1, all: true}
	if dir >= 0 {
		var live bool
		if s, live = strangerOf(dir); !live {
			return
		}
	}
	k.found.mu.Lock()
	k.found.unseen = append(k.found.unseen, s)
	k.found.mu.Unlock()
}

// strangerOf reads what everybody may know of a process.
func strangerOf(dir int) (s *stranger, live bool) {
	s = &stranger{uid: -1, all: true}
	text, err := readAt(dir, "stat")
	if err != nil {
		return s, denied(err)
	}
	p, err := parseStat(text)
	if err != nil {
		return s, true
	}
	if p.kernel || p.ended() {
		return s, false
	}
	if text, err = readAt(dir, "status"); err != nil {
		return s, denied(err)
	}
	s.read(text)
	return s, true
}

// read takes the lines of /proc/PID/status (proc(5)) that matter: Uid and Gid
// (real, effective, saved, of the file system), Groups, CapEff, and NSpid, which
// has one number for each namespace of processes that the process is in.
func (s *stranger) read(text []byte) {
	for line := range bytes.Lines(text) {
		key, value, _ := strings.Cut(string(line), ":")
		f := strings.Fields(value)
		switch key {
		case "Uid":
			if len(f) == 4 {
				s.uid, _ = strconv.Atoi(f[3])
			}
		case "Gid":
			if len(f) == 4 {
				gid, _ := strconv.Atoi(f[3])
				s.groups = append(s.groups, gid)
			}
		case "Groups":
			for _, g := range f {
				gid, _ := strconv.Atoi(g)
				s.groups = append(s.groups, gid)
			}
		case "CapEff":
			const passes = 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
			if len(f) == 1 {
				set, err := strconv.ParseUint(f[0], 16, 64)
				s.all = err != nil || set&passes != 0
			}
		case "NSpid":
			s.contained = len(f) > 1
		}
	}
	s.contained = s.contained && s.uid != os.Geteuid()
}

// maxStatus bounds /proc/PID/status and stat: 65,536 groups fit.
const maxStatus = 1 << 20

func readAt(dir int, name string) ([]byte, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxStatus))
}

// procStat is what matters of /proc/PID/stat (proc(5)).
type procStat struct {
	kernel  bool // a thread of the kernel
	zombie  bool // it has ended
	threads int
	start   uint64 // clock ticks after the start of the machine
}

// ended reports that nothing of the process is left but its number.
func (p procStat) ended() bool { return p.zombie && p.threads <= 1 }

// parseStat reads fields 3 (state), 9 (flags), 20 (threads) and 22 (start). The
// second is the name in parentheses, which may hold anything.
func parseStat(text []byte) (p procStat, err error) {
	i := bytes.LastIndexByte(text, ')')
	if i < 0 {
		return p, errors.New("no name")
	}
	f := strings.Fields(string(text[i+1:])) // f[0] is field 3
	if len(f) < 20 {
		return p, errors.New("too few fields")
	}
	flags, err := strconv.ParseUint(f[6], 10, 64)
	threads, terr := strconv.Atoi(f[17])
	start, serr := strconv.ParseUint(f[19], 10, 64)
	if err := errors.Join(err, terr, serr); err != nil {
		return p, err
	}
	const kernelThread = 0x00200000 // PF_KTHREAD
	return procStat{kernel: flags&kernelThread != 0, zombie: f[0] == "Z" || f[0] == "X", threads: threads, start: start}, nil
}

// initialPIDs is the inode of the namespace in which all processes of a machine
// are seen (PROC_PID_INIT_INO).
const initialPIDs = "pid:[4026531836]"

// processesHidden reports that there may be processes of which /proc shows
// nothing: it is mounted with hidepid, or this is a container.
func processesHidden() bool {
	if link, err := os.Readlink(procDir + "/self/ns/pid"); err != nil || link != initialPIDs {
		return true
	}
	own, err := mountsOf(procDir + "/self/mountinfo")
	if err != nil {
		return true
	}
	at := own.holding(0, procDir)
	if at == nil || at.kind != "proc" {
		return true
	}
	hides := false
	for o := range strings.SplitSeq(at.super, ",") {
		if v, ok := strings.CutPrefix(o, "hidepid="); ok && v != "0" && v != "off" {
			hides = true
		}
	}
	return hides && os.Geteuid() != 0
}

// unseenFor counts the processes that could not be looked into and could use
// generation i, and those of them that are not this user's own. Root itself,
// outside of containers, is not expected where not everybody may go.
func (f *findings) unseenFor(x *index, i int) (all, foreign int) {
	if len(f.unseen) == 0 && !f.hidden {
		return 0, 0
	}
	way := wayTo(x.dirs[i])
	for _, s := range f.unseen {
		own := s.uid == os.Geteuid()
		if !own && !s.contained && !way.open(s) {
			continue
		}
		all++
		if !own {
			foreign++
		}
	}
	if f.hidden && !onOverlay(x.dirs[i]) {
		all, foreign = all+1, foreign+1
	}
	return all, foreign
}

// onOverlay reports that dir is on an overlay: that of a container as a rule, in
// which nobody looks from outside.
func onOverlay(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && int64(st.Type) == unix.OVERLAYFS_SUPER_MAGIC
}

// way is the directories that one must pass to reach a generation.
type way []dirAccess

type dirAccess struct {
	uid, gid int
	mode     uint32
	acl      bool
}

// wayTo looks at dir and all that it lies in.
func wayTo(dir string) way {
	var w way
	for ; ; dir = filepath.Dir(dir) {
		var st unix.Stat_t
		if unix.Stat(dir, &st) == nil {
			n, err := unix.Getxattr(dir, "system.posix_acl_access", nil)
			w = append(w, dirAccess{int(st.Uid), int(st.Gid), st.Mode, err == nil && n > 0})
		}
		if dir == "/" || dir == "." || dir == "" {
			return w
		}
	}
}

// private reports that one of the directories does not let everybody pass.
func (w way) private() bool {
	return slices.ContainsFunc(w, func(d dirAccess) bool { return d.mode&0o001 == 0 })
}

// open reports whether s could pass all of them.
func (w way) open(s *stranger) bool {
	if s.all {
		return !w.private()
	}
	for _, d := range w {
		ok := d.mode&0o001 != 0
		switch {
		case s.uid == d.uid:
			ok = d.mode&0o100 != 0
		case d.acl:
			ok = d.mode&0o011 != 0 // perhaps: the group's bits are the most that a name in it has
		case slices.Contains(s.groups, d.gid):
			ok = d.mode&0o010 != 0
		}
		if !ok {
			return false
		}
	}
	return true
}

// probe asks the kernel whether anybody at all has a file of generation i open,
// mapped or running: whoever owns a file may take a write lease on it
// (fcntl(2), F_SETLEASE) exactly if nobody else has. It is given back at once.
// unknown: that could not be told of all files; with shared, also not of one that
// is open and has names elsewhere too.
func (x *index) probe(ctx context.Context, i int, shared bool) (open, unknown bool) {
	if x.dirs[i] == "" {
		return false, true
	}
	pr := &prober{ctx: ctx, shared: shared}
	pr.dir(unix.AT_FDCWD, x.dirs[i])
	// What is mapped of an overlay is open on the file system below it alone.
	pr.unknown = pr.unknown || onOverlay(x.dirs[i])
	return pr.open, pr.unknown && !pr.open
}

type prober struct {
	ctx           context.Context // of one look
	shared        bool
	open, unknown bool
}

func (pr *prober) dir(at int, name string) {
	if pr.ctx.Err() != nil || pr.open {
		pr.unknown = true
		return
	}
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		pr.unknown = true
		return
	}
	defer unix.Close(fd)
	var subs []string
	err = eachEntry(fd, make([]byte, direntBytes/4), func(e dirent) error {
		switch e.kind {
		case unix.DT_DIR:
			subs = append(subs, string(e.name))
		case unix.DT_REG:
			pr.file(fd, string(e.name))
		case unix.DT_UNKNOWN:
			pr.unknown = true
		}
		return nil
	})
	pr.unknown = pr.unknown || err != nil
	for _, sub := range subs {
		if pr.open {
			return
		}
		pr.dir(fd, sub)
	}
}

// file asks about one file. Of one with several names it cannot be told through
// which it is used.
func (pr *prober) file(dir int, name string) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		pr.unknown = true
		return
	}
	defer unix.Close(fd)
	_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK)
	switch {
	case err == nil:
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
		pr.unknown = pr.unknown || err != nil
	case errors.Is(err, unix.EAGAIN):
		st, err := statAt(fd, "", unix.AT_EMPTY_PATH)
		if err == nil && st.links == 1 {
			pr.open = true
			return
		}
		pr.unknown = pr.unknown || pr.shared || err != nil
	default:
		pr.unknown = true
	}
}
