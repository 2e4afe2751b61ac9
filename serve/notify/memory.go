package notify

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
)

// Bounds of the memory: of its file in bytes, of its lists, of how often and for how
// long an event is tried, and of how long it is known that something was told.
const (
	memoryBytes = 4 << 20
	maxTold     = 500
	maxOutbox   = 100
	maxName     = 200 // of what an event is about, in bytes
	maxTries    = 100
	outboxAge   = 72 * time.Hour
	toldAge     = 180 * 24 * time.Hour

	// claimTime is for how long who took an event out to send it is left alone with
	// it: longer than a call takes, so that only a process that died is overtaken.
	claimTime = 2 * time.Minute

	// lockPatience is for how long a memory that somebody else writes is waited for.
	lockPatience = 5 * time.Second
)

// memory is notified.json: what was told to whom, and what is still to be sent.
type memory struct {
	Schema int       `json:"schema"`
	Told   []told    `json:"told"`
	Outbox []pending `json:"outbox"`
}

// told is the last event of a kind about a key that a sink took.
type told struct {
	Sink string    `json:"sink"`
	Kind string    `json:"kind"`
	Key  string    `json:"key"`
	Mark string    `json:"mark,omitempty"`
	At   time.Time `json:"at"` // when it was told, or last kept back for being no news
}

// pending is an event on its way to a sink.
type pending struct {
	Sink    string    `json:"sink"`
	ID      string    `json:"id"`
	Event   Event     `json:"event"`
	Since   time.Time `json:"since"`
	Tries   int       `json:"tries"`
	Claimed time.Time `json:"claimed,omitzero"` // until then somebody is sending it
}

// MemoryType is the type of notified.json, for its schema.
func MemoryType() reflect.Type { return reflect.TypeFor[memory]() }

// cures lists, by the mark of an event recovered, the kinds that are over with it.
func cures(mark string) []string {
	if mark == Stale {
		return []string{Stale}
	}
	return []string{Failed, Refused, NewBytes}
}

// add puts an event into the outbox if it is news for the sink.
func (m *memory) add(s Sink, e Event, now time.Time) {
	e = e.bounded()
	if e.Kind == Recovered {
		if !m.cure(s.Name, e) {
			return
		}
	} else {
		m.supersede(s.Name, e, now)
		if m.known(s.Name, e, now) {
			return
		}
	}
	if !s.wants(e.Kind) {
		return
	}
	m.Outbox = append(m.Outbox, pending{Sink: s.Name, ID: eventID(e), Event: e, Since: now})
}

// bounded is an event that fits into the memory, whatever an index or a forge has
// written. What is cut ends in a hash, so that what differs stays different.
func (e Event) bounded() Event {
	for _, name := range []*string{&e.Key, &e.Mark, &e.Host, &e.Slot, &e.Version, &e.From} {
		t := plain.Cut(*name, maxName)
		if strings.HasSuffix(t, "…") {
			t += fmt.Sprintf("%.12x", sha256.Sum256([]byte(*name)))
		}
		*name = t
	}
	e.Title, e.Text = plain.Cut(strings.Join(strings.Fields(e.Title), " "), maxTitle), plainLines(e.Text, maxText)
	if !link(e.URL) {
		e.URL = ""
	}
	return e
}

// supersede takes back what could not be sent and is not so any more, also where the
// sink knows already how it is now. Every new content under an old name is told.
func (m *memory) supersede(sink string, e Event, now time.Time) {
	m.Outbox = slices.DeleteFunc(m.Outbox, func(p pending) bool {
		was := p.Sink == sink && p.Event.Kind == e.Kind && p.Event.Key == e.Key && p.Event.Mark != e.Mark
		return was && e.Kind != NewBytes && !p.Claimed.After(now)
	})
}

// known reports whether an event was told already, or is on its way.
func (m *memory) known(sink string, e Event, now time.Time) bool {
	for i := range m.Told {
		if t := &m.Told[i]; t.Sink == sink && t.Kind == e.Kind && t.Key == e.Key && t.Mark == e.Mark {
			if now.Sub(t.At) > 24*time.Hour { // not every hour: each is a write
				t.At = now
			}
			return true
		}
	}
	return slices.ContainsFunc(m.Outbox, func(p pending) bool {
		return p.Sink == sink && p.Event.Kind == e.Kind && p.Event.Key == e.Key && p.Event.Mark == e.Mark
	})
}

// cure forgets the troubles that e ends, so that the next one is news again, and
// reports whether the sink knew of one. A failure that never got out is not told any
// more; what was refused, or had new bytes, is.
func (m *memory) cure(sink string, e Event) bool {
	kinds := cures(e.Mark)
	before := len(m.Told)
	m.Told = slices.DeleteFunc(m.Told, func(t told) bool {
		return t.Sink == sink && t.Key == e.Key && slices.Contains(kinds, t.Kind)
	})
	m.Outbox = slices.DeleteFunc(m.Outbox, func(p pending) bool {
		return p.Sink == sink && p.Event.Key == e.Key && slices.Contains(kinds, p.Event.Kind) && (p.Event.Kind == Failed || p.Event.Kind == Stale)
	})
	return len(m.Told) < before
}

// claim takes what is to be sent to some sinks; for a while nobody else does.
func (m *memory) claim(sinks []string, now time.Time) []pending {
	var due []pending
	for i := range m.Outbox {
		p := &m.Outbox[i]
		// A claim from further ahead than any is made was made by another clock.
		if slices.Contains(sinks, p.Sink) && (!p.Claimed.After(now) || p.Claimed.Sub(now) > claimTime) {
			p.Claimed = now.Add(claimTime)
			due = append(due, *p)
		}
	}
	return due
}

// settle notes what became of what was claimed.
func (m *memory) settle(results []outcome, now time.Time) {
	for _, r := range results {
		i := slices.IndexFunc(m.Outbox, func(p pending) bool { return p.Sink == r.Sink && p.ID == r.ID })
		if r.tried && r.err == nil {
			m.tell(r.Sink, r.Event, now)
			if i >= 0 {
				m.Outbox = slices.Delete(m.Outbox, i, i+1)
			}
			continue
		}
		if i >= 0 {
			m.Outbox[i].Claimed = time.Time{}
			if r.tried {
				m.Outbox[i].Tries++
			}
		}
	}
}

// tell notes that a sink knows of an event. Recovered is no state to remember.
func (m *memory) tell(sink string, e Event, now time.Time) {
	if e.Kind == Recovered || e.Kind == Test {
		return
	}
	m.Told = slices.DeleteFunc(m.Told, func(t told) bool {
		// The few causes of an index that stands still may alternate by the hour, as it
		// answers or not: each is news once.
		return t.Sink == sink && t.Kind == e.Kind && t.Key == e.Key && (t.Mark == e.Mark || e.Kind != Stale)
	})
	m.Told = append(m.Told, told{Sink: sink, Kind: e.Kind, Key: e.Key, Mark: e.Mark, At: now})
}

// expire forgets what is too old or too much, and returns what will not be sent.
func (m *memory) expire(now time.Time) []pending {
	var gone []pending
	m.Outbox = slices.DeleteFunc(m.Outbox, func(p pending) bool {
		old := now.Sub(p.Since) > outboxAge || p.Tries >= maxTries
		if old {
			gone = append(gone, p)
		}
		return old
	})
	if over := len(m.Outbox) - maxOutbox; over > 0 {
		gone = append(gone, m.Outbox[:over]...)
		m.Outbox = slices.Delete(m.Outbox, 0, over)
	}
	m.Told = slices.DeleteFunc(m.Told, func(t told) bool { return now.Sub(t.At) > toldAge })
	if over := len(m.Told) - maxTold; over > 0 {
		m.Told = slices.Delete(m.Told, 0, over)
	}
	return gone
}

// remember changes the memory, alone among all processes. Where its file cannot be
// used the change is made to what this process remembers, and the error says so.
func (n *Notifier) remember(ctx context.Context, change func(*memory)) error {
	if n.o.Memory == "" {
		n.o.Desk.remember(change)
		return nil
	}
	unlock, err := lockFile(ctx, n.o.Memory)
	if err != nil {
		n.o.Desk.remember(change)
		return fmt.Errorf("remember in %s what was told: %w", n.o.Memory, err)
	}
	defer unlock()
	m := n.read()
	was, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("remember what was told: %w", err)
	}
	change(m)
	now, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("remember what was told: %w", err)
	}
	n.o.Desk.set(m)
	if string(was) == string(now) {
		return nil
	}
	if err := replace(n.o.Memory, append(now, '\n')); err != nil {
		return fmt.Errorf("remember in %s what was told: %w (the same may be told again)", n.o.Memory, err)
	}
	return nil
}

// read reads the memory. One that is lost or damaged is started anew, from what this
// process remembers if that is anything.
func (n *Notifier) read() *memory {
	m := &memory{Schema: 1, Told: []told{}, Outbox: []pending{}}
	raw, err := readBounded(n.o.Memory)
	if err == nil && len(raw) == 0 {
		return m
	}
	if err == nil {
		err = json.Unmarshal(raw, m)
	}
	if err == nil && m.Schema != 1 {
		err = fmt.Errorf("schema %d is not known", m.Schema)
	}
	if err != nil {
		n.o.Log.Warn("what was told before is not known any more: it is started anew", "file", n.o.Memory, "error", err)
		return n.o.Desk.copy()
	}
	return m
}

// readBounded reads a regular file that is not too large.
func readBounded(path string) (raw []byte, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no regular file")
	}
	raw, err = io.ReadAll(io.LimitReader(f, memoryBytes+1))
	if err == nil && len(raw) > memoryBytes {
		err = fmt.Errorf("it is larger than %d bytes", memoryBytes)
	}
	return raw, err
}

// lockFile takes flock(2) on the file itself, which is made if there is none. It
// looks again whether that is still the file of this name: whoever had the lock
// before may have replaced it.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o644)
		if errors.Is(err, fs.ErrPermission) { // root has written it: to replace it, the directory is enough
			f, err = os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		}
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil && inPlace(f, path) {
			return func() { _ = f.Close() }, nil
		}
		_ = f.Close()
		if err != nil && !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, fmt.Errorf("lock it: %w", err)
		}
		timer := time.NewTimer(20 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("another process writes it: %w", ctx.Err())
		}
	}
}

// inPlace reports whether f is what path names.
func inPlace(f *os.File, path string) bool {
	have, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Lstat(path)
	return err == nil && os.SameFile(have, now)
}

// replace writes a file whole, or not at all.
func replace(path string, data []byte) error {
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithStaticPermissions(0o644))
	if err != nil {
		return err
	}
	defer f.Cleanup() // after the rename it does nothing
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}

// remember changes what the process remembers.
func (d *Desk) remember(change func(*memory)) {
	d.remembering.Lock()
	defer d.remembering.Unlock()
	m := d.copy()
	change(m)
	d.set(m)
}

// copy is what the process remembers, for others to change.
func (d *Desk) copy() *memory {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := &memory{Schema: 1, Told: []told{}, Outbox: []pending{}}
	if d.mem != nil {
		m.Told, m.Outbox = append(m.Told, d.mem.Told...), append(m.Outbox, d.mem.Outbox...)
	}
	return m
}

func (d *Desk) set(m *memory) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mem = m
}
