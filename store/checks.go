package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/fault"
)

// checksName is the file in a slot that remembers the last Check.
const checksName = "checks.json"

// checksSchema is the version of checks.json that this package writes.
const checksSchema = 1

// Bounds of checks.json, in bytes. Names, ETags and reasons come from servers.
const (
	maxCheckText = 4 << 10   // of one string; AMD's are under 100
	maxChecksLen = 128 << 10 // of the file, in which a byte may take six
)

// Check is what the server last said of the tarball that is installed in a
// slot, when it was asked for the headers alone. The zero Check says that it
// was never asked, or that nobody remembers: it costs one small request.
type Check struct {
	At        time.Time `json:"at"`   // UTC, set by RecordCheck if zero
	Name      string    `json:"name"` // file name of the tarball
	ETag      string    `json:"etag,omitempty"`
	Size      int64     `json:"size,omitempty"`      // bytes, as the server said
	Suspected string    `json:"suspected,omitempty"` // why the bytes may have changed; "" if they have not
	Gone      bool      `json:"gone,omitempty"`      // the server has it no more
}

// checksFile is the content of checks.json.
type checksFile struct {
	Schema int   `json:"schema"`
	Last   Check `json:"last"`
}

// LastCheck returns what RecordCheck last wrote. Where that is lost, damaged
// or of a newer program, it is the zero Check; an error is the disk's. It
// takes no lock.
func (sl *Slot) LastCheck() (Check, error) {
	if sl.err != nil {
		return Check{}, sl.err
	}
	b, err := readFile(sl.path(checksName), maxChecksLen)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errDamaged) {
		return Check{}, nil
	}
	if err != nil {
		return Check{}, fmt.Errorf("read the last check of %s: %w", sl.Name(), err)
	}
	return parseChecks(b), nil
}

// parseChecks decodes a checks.json; damage is the zero Check.
func parseChecks(b []byte) Check {
	var file checksFile
	if len(b) > maxChecksLen {
		return Check{}
	}
	b, err := checksFormat.Read(b)
	if err != nil || json.Unmarshal(b, &file) != nil {
		return Check{}
	}
	c := file.Last
	if c.check() != nil || c.At.IsZero() {
		return Check{}
	}
	c.At = c.At.UTC()
	return c
}

// check refuses what RecordCheck does not write.
func (c Check) check() error {
	for _, s := range []string{c.Name, c.ETag, c.Suspected} {
		if len(s) > maxCheckText {
			return fmt.Errorf("%.40q… is %d bytes long, more than %d", s, len(s), maxCheckText)
		}
	}
	if c.Name == "" {
		return errors.New("it names no tarball")
	}
	return nil
}

// RecordCheck remembers c instead of the check before it, atomically. The slot
// must exist: of what is not installed nobody asks.
func (sl *Slot) RecordCheck(ctx context.Context, c Check) error {
	if err := sl.recordCheck(ctx, c); err != nil {
		return fmt.Errorf("record a check of %s: %w", sl.Name(), err)
	}
	return nil
}

func (sl *Slot) recordCheck(ctx context.Context, c Check) error {
	for _, s := range []*string{&c.Name, &c.ETag, &c.Suspected} {
		*s = strings.ToValidUTF8(*s, "\ufffd") // as JSON would, before they are measured
	}
	if err := c.check(); err != nil {
		return err
	}
	if c.At.IsZero() {
		c.At = sl.store.now()
	}
	c.At = c.At.UTC()
	b, err := json.MarshalIndent(checksFile{Schema: checksSchema, Last: c}, "", "  ")
	if err != nil {
		return err
	}
	return sl.locked(ctx, func() error {
		if err := sl.sweepChecks(); err != nil {
			return err
		}
		if err := fault.Point("store.checks.write"); err != nil {
			return err
		}
		return sl.store.disk.writeFile(sl.path(checksName), append(b, '\n'))
	})
}

// sweepChecks removes halves of a checks.json that a killed process left: only
// the holder of switch.lock makes them.
func (sl *Slot) sweepChecks() error {
	entries, err := os.ReadDir(sl.path())
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "."+checksName) {
			continue
		}
		if err := os.Remove(sl.path(e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// ChecksType is the type of a checks.json, for those who describe it.
func ChecksType() reflect.Type { return reflect.TypeFor[checksFile]() }
