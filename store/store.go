package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/schema"
)

// The names in ROOT.
const (
	slotsName    = "slots"
	spoolDirName = "spool"
	ledgerName   = "ledger.jsonl"
	runLock      = "run.lock"
)

// ErrNewer is matched by errors about a file that a newer program wrote.
var ErrNewer = schema.ErrNewer

// Event reports something that the store did or met on the side, which is no
// reason for an operation to fail.
type Event struct {
	Kind    string // one of the Event constants
	Slot    string // name of the slot, "" if none
	Path    string // what it is about
	Message string // for people: lower case, no full stop
}

// The kinds of Event.
const (
	EventCleaned = "cleaned" // debris of a run that died is gone
	EventDebris  = "debris"  // debris is there and could not be removed
	EventState   = "state"   // state.json was lost or damaged, or could not be written
	EventWaiting = "waiting" // another process holds a lock for longer than it should

	EventUnmeasured = "unmeasured" // what generations occupy could not be told
)

// Store is one ROOT. It holds no open files and may be used by several
// goroutines; other processes may use the same ROOT at the same time.
type Store struct {
	// Event is told what happens on the side; nil tells nobody. It is called
	// from the goroutine that called the store, perhaps with a lock held: it
	// must not call the store.
	Event func(Event)
	// Now is the clock of every record; nil is time.Now.
	Now func() time.Time
	// SELinux says where the labels of what is installed come from.
	SELinux SELinux
	// Alone says that no other host uses ROOT: then a file system on which locks
	// do not keep other hosts out will do.
	Alone bool

	root    string
	disk    disk
	mountOf func(dir string) (fsMount, error) // nil: the kernel's word
}

// Open returns the store at root, which is made absolute. Nothing is created
// until something is written; what is created then is readable by everybody,
// whatever the umask. The error matches ErrNewer when a newer program has laid it
// out.
func Open(root string) (*Store, error) {
	if root == "" {
		return nil, errors.New("open store: no root given")
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", root, err)
	}
	fi, err := os.Stat(abs)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("open store: %w", err)
	case !fi.IsDir():
		return nil, fmt.Errorf("open store %s: not a directory (choose another with --root)", abs)
	}
	s := &Store{root: abs, disk: realDisk()}
	if _, err := s.checkRoot(); errors.Is(err, ErrNewer) {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return s, nil
}

// Root returns the absolute path of the store.
func (s *Store) Root() string { return s.root }

// SpoolDir returns the directory that holds the segments of one tarball
// while it is downloaded. It is not created. Any two strings are safe: what
// could leave the spool is escaped.
func (s *Store) SpoolDir(channel, filename string) string {
	return filepath.Join(s.root, spoolDirName, spoolName(channel), spoolName(filename))
}

func (s *Store) now() time.Time {
	if s.Now != nil {
		return s.Now().UTC()
	}
	return time.Now().UTC()
}

func (s *Store) event(kind, slot, path, format string, args ...any) {
	if s.Event != nil {
		s.Event(Event{Kind: kind, Slot: slot, Path: path, Message: fmt.Sprintf(format, args...)})
	}
}
