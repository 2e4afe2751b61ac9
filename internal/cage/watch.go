package cage

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	lookEvery    = 50 * time.Millisecond // at processes and memory
	scratchEvery = 10                    // so many looks, one at scratch
	maxFiles     = 100_000               // in the scratch directory
	deepest      = 100                   // levels of directories there; each look costs their square
	sweepFor     = 5 * time.Second
)

// watch waits for the program to end, or ends it: its time is over, a bound is
// exceeded, or stop was closed. What it left running ends after it.
func (s *spec) watch(c *child, stop <-chan struct{}) *report {
	r := &report{Ended: true}
	deadline := time.NewTimer(s.Limits.Timeout)
	defer deadline.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	// Scratch is looked at beside the rest: it may take long, and nothing else
	// may wait for it.
	over, looking := make(chan bool, 1), false
	start := available()
	for n := 1; ; n++ {
		if !looking && n%scratchEvery == 0 {
			looking = true
			go func() { over <- s.overScratch() }()
		}
		select {
		case r.Status = <-c.status:
			r.Duration = time.Since(c.since)
			return r
		case <-deadline.C:
			r.TimedOut = true
		case <-stop:
			r.Stopped = true
		case <-look.C:
			r.Exceeded = s.exceeded(start)
		case full := <-over:
			looking = false
			if full {
				r.Exceeded = "scratch"
			}
		}
		if r.TimedOut || r.Stopped || r.Exceeded != "" {
			r.Status = uint32(unix.SIGKILL)
			r.Duration = time.Since(c.since)
			return r
		}
	}
}

// exceeded names the bound that all that runs inside is over.
func (s *spec) exceeded(start int64) string {
	var memory, threads int64
	for _, p := range descendants() {
		threads += p.threads
		memory += residentOf(p.pid)
	}
	if s.Kind == Namespaces {
		memory += usedOf("/tmp") + usedOf("/dev/shm") // they are memory too
	}
	switch {
	case memory > s.Limits.Memory || exhausted(start, available()):
		return "memory"
	case threads > int64(s.Limits.Processes):
		return "processes"
	}
	return ""
}

// available is what is left of the machine's memory and swap, in bytes
// (proc_meminfo(5)); 0: not known.
func available() int64 {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	return kilobytes(b, "MemAvailable:", "SwapFree:")
}

// exhausted reports whether a machine that had start bytes left is at its end.
// There are many ways to use memory that is no process's: the buffers of sockets,
// pages that are shared and not mapped any more.
func exhausted(start, now int64) bool {
	const enough = 512 << 20
	return now > 0 && now < enough && now < start/2
}

// kilobytes sums what is given in kB under the keys, in bytes.
func kilobytes(b []byte, keys ...string) (sum int64) {
	for line := range bytes.Lines(b) {
		for _, key := range keys {
			rest, found := bytes.CutPrefix(line, []byte(key))
			if f := bytes.Fields(rest); found && len(f) > 0 {
				kib, _ := strconv.ParseInt(string(f[0]), 10, 64)
				sum += kib << 10
			}
		}
	}
	return sum
}

// overScratch measures the scratch directory. A private /tmp has the bound as
// its size; that is reached by ENOSPC. What cannot be looked at hides something.
func (s *spec) overScratch() bool {
	dir := s.home()
	if dir == privateHome {
		return false
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return true
	}
	defer root.Close()
	var bytes, files int64
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		bytes += allocated(info)
		if strings.Count(path, "/") > deepest {
			files = maxFiles
		}
		if files++; files > maxFiles || bytes > s.Limits.ScratchSize {
			return fs.SkipAll
		}
		return nil
	})
	return err != nil || files > maxFiles || bytes > s.Limits.ScratchSize
}

// process is what /proc says of one.
type process struct {
	pid, parent int
	threads     int64
	born        int64 // when, in ticks: with it a number is one process's alone
	state       byte
}

// descendants lists our children, theirs, and so on. Orphans come to us, so
// that nobody gets away by forking twice or by a session of their own.
func descendants() []process {
	names, err := processNames()
	if err != nil {
		return nil
	}
	children := map[int][]process{}
	for _, name := range names {
		if p, ok := readProcess(name); ok {
			children[p.parent] = append(children[p.parent], p)
		}
	}
	all := children[os.Getpid()]
	for i := 0; i < len(all) && i < 1<<20; i++ {
		all = append(all, children[all[i].pid]...)
	}
	return all
}

func processNames() ([]string, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	all, err := dir.Readdirnames(-1)
	names := all[:0]
	for _, name := range all {
		if name[0] >= '0' && name[0] <= '9' {
			names = append(names, name)
		}
	}
	return names, err
}

// readProcess reads /proc/NAME/stat (proc_pid_stat(5)): the second field, the
// program's name, is in parentheses and may hold anything, so that what is
// counted comes after the last one.
func readProcess(name string) (p process, ok bool) {
	b, err := os.ReadFile("/proc/" + name + "/stat")
	if err != nil {
		return p, false
	}
	return parseStat(b)
}

func parseStat(b []byte) (p process, ok bool) {
	number, _, found := bytes.Cut(b, []byte(" ("))
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if !found || len(f) < 20 {
		return p, false
	}
	pid, errPID := strconv.Atoi(string(number))
	parent, errParent := strconv.Atoi(string(f[1]))
	threads, errThreads := strconv.ParseInt(string(f[17]), 10, 64)
	born, errBorn := strconv.ParseInt(string(f[19]), 10, 64)
	if errPID != nil || errParent != nil || errThreads != nil || errBorn != nil {
		return p, false
	}
	return process{pid: pid, parent: parent, threads: threads, born: born, state: f[0][0]}, true
}

// residentOf gives the bytes of memory and swap that a process has for itself
// or shares with others of its kind; mapped files are not counted.
func residentOf(pid int) int64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	return kilobytes(b, "RssAnon:", "RssShmem:", "VmSwap:")
}

// usedOf gives the bytes in a file system.
func usedOf(path string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return 0
	}
	return int64(st.Blocks-st.Bfree) * st.Bsize
}

// sweep ends every descendant. They are stopped first, again and again until no
// new one is seen: a stopped process has no children any more.
func sweep() {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(sweepFor); time.Now().Before(end); <-tick.C {
		all := descendants()
		if len(all) == 0 {
			return
		}
		running := false
		for _, p := range all {
			// One that waits for what it started by vfork(2) is in D until that ends,
			// and stops as soon as it could do anything.
			if p.state != 'T' && p.state != 'Z' && p.state != 'D' {
				running = true
			}
			p.send(unix.SIGSTOP)
		}
		if running && len(all) > 1 {
			continue
		}
		for _, p := range all {
			p.send(unix.SIGKILL)
		}
	}
	for _, p := range descendants() {
		p.send(unix.SIGKILL)
	}
}

// send sends a signal to this process: its number may be that of another of the
// user's by now, and what forks fast enough can choose when.
func (p process) send(signal unix.Signal) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	if err != nil { // a filter of somebody's that does not know it
		unix.Kill(p.pid, signal)
		return
	}
	defer unix.Close(fd)
	if now, ok := readProcess(strconv.Itoa(p.pid)); ok && now.born == p.born {
		unix.PidfdSendSignal(fd, signal, nil, 0)
	}
}

// threadsOf counts the threads of a user, which a limit on processes counts
// with those of the cage.
func threadsOf(uid int) int {
	names, err := processNames()
	if err != nil {
		return 0
	}
	sum := 0
	for _, name := range names {
		var st unix.Stat_t
		if unix.Stat("/proc/"+name, &st) != nil || int(st.Uid) != uid {
			continue
		}
		if p, ok := readProcess(name); ok {
			sum += int(p.threads)
		}
	}
	return sum
}
