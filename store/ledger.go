package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/fault"
)

// ledgerWait bounds the wait for another process that appends. It holds the
// lock for one read and one write of a small file.
const ledgerWait = 30 * time.Second

// Ledger is a file of pins, one a line, that only grows. It is the store's own
// (Store.Ledger) or one that its user keeps, in a git repository perhaps
// (OpenLedger): then nothing is ever written beside it, and what an editor or
// git leaves in it (CRLF, a byte order mark, the markers of a conflict, no
// newline at the end) costs no line of its own. It holds no open files and may
// be used by several goroutines; other processes may use the same file.
type Ledger struct {
	// Now is the clock of FirstSeen; nil is time.Now.
	Now func() time.Time

	path string
	own  bool // the directory is the store's: made when it is absent, and its links are trusted
	disk disk
	as   func(do func() error) error // with whose rights it is written; nil: this process's
}

// OpenLedger returns the ledger in the file at path, which need not exist.
// Append creates it, readable by everybody, but never its directory. A path
// that is a symlink is followed to a regular file in or below its own
// directory, nowhere else: in a repository, links are somebody else's choice.
func OpenLedger(path string) *Ledger { return &Ledger{path: path, disk: realDisk()} }

// Ledger returns the store's own ledger.
func (s *Store) Ledger() *Ledger {
	return &Ledger{Now: s.now, path: filepath.Join(s.root, ledgerName), own: true, disk: s.disk, as: func(do func() error) error {
		if err := s.giveBack(ledgerName); err != nil {
			return err
		}
		return s.asOwner(do)
	}}
}

// AppendPin is Append of the store's own ledger.
func (s *Store) AppendPin(pin LedgerEntry) error { return s.Ledger().Append(pin) }

// FindPins is Find of the store's own ledger.
func (s *Store) FindPins(name string) ([]LedgerEntry, error) { return s.Ledger().Find(name) }

// Path returns the path of the ledger, as it was given.
func (l *Ledger) Path() string { return l.path }

// Append writes pin at the end of the ledger, durably, unless the last line
// about that name in that channel says the same already. Lines are never changed. A line that
// a power cut has torn stays as it is; the next one begins a line.
func (l *Ledger) Append(pin LedgerEntry) error {
	if err := l.append(pin); err != nil {
		return fmt.Errorf("append %s to the ledger: %w", pin.Name, l.hint(err))
	}
	return nil
}

func (l *Ledger) append(pin LedgerEntry) error {
	if pin.FirstSeen.IsZero() {
		pin.FirstSeen = l.now()
	}
	pin, line, err := encodePin(pin)
	if err != nil {
		return err
	}
	if l.own {
		if err := l.disk.mkdirAll(filepath.Dir(l.path)); err != nil {
			return err
		}
	}
	write := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), ledgerWait)
		defer cancel()
		if err := fault.Point("store.ledger.open"); err != nil {
			return err
		}
		f, err := l.openLocked(ctx)
		if err != nil {
			return err
		}
		// Closing gives the lock up.
		return errors.Join(l.appendLine(f, pin, line), f.Close())
	}
	if l.as != nil {
		return l.as(write)
	}
	return write()
}

// appendLine writes line at the end of f, which is locked.
func (l *Ledger) appendLine(f *os.File, pin LedgerEntry, line []byte) error {
	known, err := findPins(f, pin.Name)
	if err != nil {
		return err
	}
	// What the last line says already is not said again; what an older one says
	// is, for AMD may publish the first bytes once more. Channels use one name
	// for different bytes, and each has lines of its own.
	known = slices.DeleteFunc(known, func(e LedgerEntry) bool { return e.Channel != pin.Channel })
	if n := len(known); n > 0 && known[n-1].same(pin) {
		return f.Sync() // who wrote it may have been killed before it was durable
	}
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if end > 0 {
		var b [1]byte
		if _, err := f.ReadAt(b[:], end-1); err != nil {
			return err
		}
		if b[0] != '\n' {
			line = append([]byte{'\n'}, line...)
		}
	}
	if _, err := fault.Write("store.ledger.append", f, line); err != nil {
		return errors.Join(err, f.Truncate(end)) // a full disk leaves no torn line
	}
	return errors.Join(fault.Do("store.ledger.sync", f.Sync), l.disk.syncDir(filepath.Dir(l.path)))
}

// Find returns what the ledger says of the tarball called name, in the order
// of the lines: the newest last. More than one means that AMD has published
// other bytes, or the same once more, under the same name. Lines that cannot
// be read are passed over; one about name that a newer program wrote is an
// error that matches ErrNewer. A ledger that does not exist says nothing.
func (l *Ledger) Find(name string) ([]LedgerEntry, error) {
	f, err := l.openRead()
	if f == nil {
		return nil, err
	}
	defer f.Close()
	pins, err := findPins(f, name)
	if err != nil {
		return nil, fmt.Errorf("read the ledger %s: %w", l.path, err)
	}
	return pins, nil
}

// All yields every entry in the order of the lines. Lines that cannot be read
// are passed over. One that a newer program wrote is yielded as an error that
// matches ErrNewer, with the name alone, and the next ones follow; any other
// error is the last that is yielded.
func (l *Ledger) All(ctx context.Context) iter.Seq2[LedgerEntry, error] {
	return func(yield func(LedgerEntry, error) bool) {
		f, err := l.openRead()
		if err != nil {
			yield(LedgerEntry{}, err)
		}
		if f == nil {
			return
		}
		defer f.Close()
		for line, err := range ledgerLines(f) {
			if err = errors.Join(err, ctx.Err()); err != nil {
				yield(LedgerEntry{}, fmt.Errorf("read the ledger %s: %w", l.path, err))
				return
			}
			pin, err := parsePin(line)
			switch {
			case errors.Is(err, ErrNewer):
				err = fmt.Errorf("read the ledger %s: line about %s: %w", l.path, pin.Name, err)
			case err != nil:
				continue
			}
			if !yield(pin, err) {
				return
			}
		}
	}
}

// openRead opens the ledger for reading; nil without an error if there is none.
func (l *Ledger) openRead() (*os.File, error) {
	f, err := l.open(os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", l.hint(err))
	}
	return f, nil
}

// open opens the file, and nothing but a regular file.
func (l *Ledger) open(flag int) (*os.File, error) {
	// A pipe that nobody writes to must not be waited for.
	f, err := l.openWithin(flag | unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", l.path)
	}
	if err == nil && flag&os.O_CREATE != 0 {
		err = f.Chmod(fileMode) // whatever the umask
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// openWithin opens the path, within its directory where that is somebody else's.
func (l *Ledger) openWithin(flag int) (*os.File, error) {
	if l.path == "" {
		return nil, errors.New("no file is named")
	}
	if l.own {
		f, err := os.OpenFile(l.path, flag, fileMode)
		return f, l.linkHint(err)
	}
	root, err := os.OpenRoot(filepath.Dir(l.path))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(filepath.Base(l.path), flag, fileMode)
	return f, l.linkHint(err)
}

// openLocked opens the ledger for appending, creates it when it is absent, and
// takes a lock on the file itself. Git and editors replace a file instead of
// writing to it: a lock on one that is replaced is taken again on the new one.
func (l *Ledger) openLocked(ctx context.Context) (*os.File, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("it is replaced all the time: %w", err)
		}
		f, err := l.open(os.O_RDWR | os.O_APPEND)
		if errors.Is(err, fs.ErrNotExist) {
			f, err = l.open(os.O_RDWR | os.O_APPEND | os.O_CREATE | os.O_EXCL)
			if errors.Is(err, fs.ErrExist) && !l.dangles() {
				continue // another was faster
			}
		}
		if err != nil {
			return nil, err
		}
		current := false
		if err = waitFlock(ctx, f); err == nil {
			current, err = l.names(f)
		}
		if current {
			return f, nil
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
}

// names reports whether f is still the file at the ledger's path.
func (l *Ledger) names(f *os.File) (bool, error) {
	held, err := f.Stat()
	if err != nil {
		return false, err
	}
	now, err := os.Stat(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(held, now), err
}

// dangles reports whether the path is a symlink that leads nowhere.
func (l *Ledger) dangles() bool {
	fi, err := os.Lstat(l.path)
	if err != nil || fi.Mode()&fs.ModeSymlink == 0 {
		return false
	}
	_, err = os.Stat(l.path)
	return errors.Is(err, fs.ErrNotExist)
}

// waitFlock takes the lock on an open file as soon as it is free.
func waitFlock(ctx context.Context, f *os.File) error {
	for {
		err := uninterrupted(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
		if !errors.Is(err, unix.EWOULDBLOCK) {
			if err != nil {
				err = &fs.PathError{Op: "lock", Path: f.Name(), Err: err}
			}
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("another process has locked it: %w", ctx.Err())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func (l *Ledger) now() time.Time {
	if l.Now != nil {
		return l.Now().UTC()
	}
	return time.Now().UTC()
}

// linkHint says of an error why a symlink was not followed.
func (l *Ledger) linkHint(err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	target, lerr := os.Readlink(l.path)
	switch {
	case lerr == nil && l.dangles():
		return fmt.Errorf("%s is a symlink to %s, which does not exist (create it, or name the file itself): %w", l.path, target, err)
	case lerr != nil || l.own:
		return err
	}
	return fmt.Errorf("%s is a symlink to %s; only one to a file in or below its own directory is followed (name the file itself): %w", l.path, target, err)
}

// hint adds to err what a user can do about it.
func (l *Ledger) hint(err error) error {
	if l.own {
		return lockHint(err)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w (create the directory first, or name another file with --ledger)", err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.EROFS):
		return fmt.Errorf("%w (make it writable, or name another file with --ledger)", err)
	}
	return err
}
