package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	leasesName  = "leases"
	leaseSchema = 1
)

// Bounds of what is read of ROOT/leases, which every user may fill.
const (
	maxLease        = 4 << 10 // bytes of a record
	maxLeaseEntries = 100_000 // names in the directory
	maxLeases       = 4096    // records
	maxLeasesOf     = 256     // records of one user: the rest of them does not count
)

// leaseRE is the name of a record; newLease begins that of one being written.
var leaseRE = regexp.MustCompile(`^[0-9]{1,10}-[A-Z0-9]{12}\.json$`)

const newLease = ".new-"

// makeLeases makes ROOT/leases: root's is everybody's to write, as /tmp is, so
// that every user of the machine can keep what he builds with. One that is there
// stays as it is. In the store of somebody else it is his, as what he makes.
func (s *Store) makeLeases() error {
	path := filepath.Join(s.root, leasesName)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := s.makeDir(path); err != nil {
		return err
	}
	if _, foreign := s.foreign(); foreign || os.Geteuid() != 0 {
		return nil
	}
	dir, err := s.openLeases()
	if err != nil {
		return err
	}
	return errors.Join(dir.Chmod(fs.ModeSticky|0o777), dir.Close())
}

// openLeases opens the directory itself, not what a link leads to.
func (s *Store) openLeases() (*os.File, error) {
	path := filepath.Join(s.root, leasesName)
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// writeLease records a lease, and returns the name of its file. Records of this
// user's that are dead are removed first, and one that says the same is enough.
// It need not be durable: the process does not outlive the machine.
func (s *Store) writeLease(slot, generation string, pid int) (*Lease, string, error) {
	l, err := s.newLease(slot, generation, pid)
	if err != nil {
		return nil, "", err
	}
	err = s.makeLeases()
	dir, oerr := s.openLeases()
	if oerr != nil {
		return nil, "", fmt.Errorf("%w (the owner of the store makes it with: update, or prune)", errors.Join(oerr, err))
	}
	defer dir.Close()
	all, err := s.readLeases()
	if err != nil {
		return nil, "", err
	}
	for _, have := range all.leases {
		if have.State == LeaseLive && have.PID == l.PID && have.Slot == slot && have.Generation == generation && have.UID == l.UID {
			return &have.Lease, have.file, nil
		}
	}
	for _, name := range all.dead() {
		_ = unix.Unlinkat(int(dir.Fd()), name, 0) // of others it is not ours to do
	}
	text, err := json.Marshal(l)
	if err != nil {
		return nil, "", err
	}
	key := random()
	name := fmt.Sprintf("%d-%s.json", l.PID, key)
	err = writeIn(dir, newLease+key, name, append(text, '\n'))
	if err != nil {
		return nil, "", fmt.Errorf("write a lease in %s: %w", dir.Name(), err)
	}
	return l, name, nil
}

// writeIn makes a file of dir at once: by a rename.
func writeIn(dir *os.File, temp, name string, text []byte) error {
	at := int(dir.Fd())
	fd, err := unix.Openat(at, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, fileMode)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), temp)
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(fileMode), f.Close())
	if err == nil {
		err = unix.Renameat(at, temp, at, name)
	}
	if err != nil {
		return errors.Join(err, unix.Unlinkat(at, temp, 0))
	}
	return nil
}

// newLease describes process pid, which must be this user's.
func (s *Store) newLease(slot, generation string, pid int) (*Lease, error) {
	p, err := lookUpProcess(pid)
	if err != nil {
		return nil, err
	}
	if p.ended() {
		return nil, fmt.Errorf("process %d has ended", pid)
	}
	uid := os.Geteuid()
	if uid != 0 && !slices.Contains(p.uids, uid) {
		return nil, fmt.Errorf("process %d is another user's: lease for one of your own", pid)
	}
	h := s.holder("lease")
	own, err := os.Readlink(procDir + "/self/ns/pid")
	if err != nil {
		return nil, fmt.Errorf("look at this process: %w", err)
	}
	return &Lease{
		Schema: leaseSchema, PID: pid, Start: p.start, Program: p.name, PIDs: own, BootID: h.BootID, Host: h.Host,
		UID: uid, Slot: slot, Generation: generation, Since: h.Since,
	}, nil
}

// leaseProcess is what is known of a process that has a lease.
type leaseProcess struct {
	procStat
	name string
	uids []int // real, effective, saved, of the file system
}

// lookUpProcess reads what everybody may know of a process. The error matches
// fs.ErrNotExist where there is none.
func lookUpProcess(pid int) (*leaseProcess, error) {
	dir := procDir + "/" + strconv.Itoa(pid)
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("look for process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	text, err := readAt(fd, "stat")
	if err != nil {
		return nil, fmt.Errorf("look at process %d: %w", pid, goneIs(err))
	}
	p := &leaseProcess{}
	if p.procStat, err = parseStat(text); err != nil {
		return nil, fmt.Errorf("look at process %d: %w", pid, err)
	}
	if text, err = readAt(fd, "status"); err != nil {
		return nil, fmt.Errorf("look at process %d: %w", pid, goneIs(err))
	}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		switch key {
		case "Name":
			p.name = strings.TrimSpace(value)
		case "Uid":
			for _, f := range strings.Fields(value) {
				if uid, err := strconv.Atoi(f); err == nil {
					p.uids = append(p.uids, uid)
				}
			}
		}
	}
	return p, nil
}

// goneIs makes the error of a process that ends meanwhile that of none.
func goneIs(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return fs.ErrNotExist
	}
	return err
}

// dropLease removes a record.
func (s *Store) dropLease(name string) error {
	dir, err := s.openLeases()
	if err != nil {
		return err
	}
	defer dir.Close()
	err = unix.Unlinkat(int(dir.Fd()), name, 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &fs.PathError{Op: "remove", Path: filepath.Join(dir.Name(), name), Err: err}
	}
	return nil
}

// leaseList is what was found in ROOT/leases.
type leaseList struct {
	leases []Leased
	unread int      // records that may be leases and could not be read
	halves []string // files that somebody began to write, and did not end
}

// dead names the files that are of no use any more.
func (l *leaseList) dead() []string {
	names := l.halves
	for _, one := range l.leases {
		if one.State == LeaseDead {
			names = append(names, one.file)
		}
	}
	return names
}

// readLeases reads all records. It is never nil.
func (s *Store) readLeases() (*leaseList, error) {
	all := &leaseList{}
	dir, err := s.openLeases()
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return all, err
	}
	defer dir.Close()
	r := &leaseReader{all: all, dir: int(dir.Fd()), now: s.now(), me: s.holder(""), users: map[uint32]int{}}
	if r.pids, err = os.Readlink(procDir + "/self/ns/pid"); err != nil {
		return all, err
	}
	entries := 0
	err = eachEntry(r.dir, make([]byte, direntBytes), func(e dirent) error {
		if entries++; entries > maxLeaseEntries || r.read > maxLeases {
			return fmt.Errorf("%s holds too much to read (look who fills it: ls -l)", dir.Name())
		}
		r.entry(string(e.name))
		return nil
	})
	return all, err
}

type leaseReader struct {
	all   *leaseList
	dir   int
	now   time.Time
	me    Holder
	pids  string
	read  int
	users map[uint32]int
}

// entry reads one name of the directory. What is no plain file of whom it says
// that it is of is nobody's lease.
func (r *leaseReader) entry(name string) {
	half := strings.HasPrefix(name, newLease)
	if !half && !leaseRE.MatchString(name) {
		return
	}
	var st unix.Stat_t
	err := unix.Fstatat(r.dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink != 1 || st.Size > maxLease {
		return
	}
	changed := time.Unix(st.Ctim.Unix())
	if half {
		if r.now.Sub(changed) > time.Hour {
			r.all.halves = append(r.all.halves, name)
		}
		return
	}
	if r.users[st.Uid]++; r.users[st.Uid] > maxLeasesOf {
		return
	}
	r.read++
	fd, err := unix.Openat(r.dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		r.all.unread++
		return
	}
	defer unix.Close(fd)
	text, err := readRecord(fd, &st)
	if err != nil {
		r.all.unread++
		return
	}
	l, err := parseLease(text)
	if errors.Is(err, ErrNewer) {
		r.all.unread++
		return
	}
	if err != nil || l.UID != int(st.Uid) {
		return
	}
	r.all.leases = append(r.all.leases, Leased{Lease: *l, State: r.judge(l, changed), file: name})
}

// readRecord reads the file that st was told of; another one, which has taken its
// name meanwhile, could be a pipe, on which one waits for ever.
func readRecord(fd int, st *unix.Stat_t) ([]byte, error) {
	var now unix.Stat_t
	if err := unix.Fstat(fd, &now); err != nil {
		return nil, err
	}
	if now.Ino != st.Ino || now.Dev != st.Dev || now.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, errors.New("it changes")
	}
	buf := make([]byte, maxLease+1)
	n, err := unix.Pread(fd, buf, 0)
	return buf[:max(n, 0)], err
}

// parseLease reads a record. Names in it are compared, and lead nowhere.
func parseLease(text []byte) (*Lease, error) {
	if len(text) > maxLease {
		return nil, fmt.Errorf("longer than %d bytes", maxLease)
	}
	text, err := leaseFormat.Read(text)
	if err != nil {
		return nil, err
	}
	var l Lease
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, err
	}
	if l.PID <= 0 || l.UID < 0 {
		return nil, errors.New("no lease")
	}
	return &l, errors.Join(checkName("slot", l.Slot), checkName("generation", l.Generation))
}

// judge finds out what became of the process of a lease.
func (r *leaseReader) judge(l *Lease, changed time.Time) LeaseState {
	if l.BootID != r.me.BootID && l.Host == r.me.Host {
		return LeaseDead // the machine was started again
	}
	if l.BootID != r.me.BootID || l.PIDs != r.pids {
		if r.now.Sub(changed) > LeaseForeign {
			return LeaseDead
		}
		return LeaseUnknown
	}
	p, err := lookUpProcess(l.PID)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return LeaseUnknown // hidden from this user
	case err != nil && errors.Is(unix.Kill(l.PID, 0), unix.EPERM):
		return LeaseUnknown // /proc does not show it
	case err != nil || p.ended() || p.start != l.Start:
		return LeaseDead
	case l.UID != 0 && !slices.Contains(p.uids, l.UID):
		return LeaseDead // somebody speaks for a process that is not his
	}
	return LeaseLive
}
