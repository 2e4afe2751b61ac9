package store

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// ledgerSchema is the version of the ledger's lines that this package writes.
const ledgerSchema = 1

// maxLedgerLine bounds a line, in bytes; longer ones are damage.
const maxLedgerLine = 64 << 10

// LedgerEntry is one line of the ledger: a tarball whose bytes were read to
// the end and agreed with everything known of them.
type LedgerEntry struct {
	Schema       int            `json:"schema"`
	Name         string         `json:"name"` // file name of the tarball
	Channel      string         `json:"channel"`
	Family       string         `json:"family"`
	Version      string         `json:"version"`
	URL          string         `json:"url"`
	Digest       release.Digest `json:"digest"`
	Size         int64          `json:"size"` // bytes
	ETag         string         `json:"etag,omitempty"`
	LastModified time.Time      `json:"last_modified,omitzero"`
	MTime        time.Time      `json:"mtime,omitzero"` // as the index says
	FirstSeen    time.Time      `json:"first_seen"`     // set by AppendPin if zero
}

// NewLedgerEntry returns the line of pin; lastModified is the server's, zero
// if it sent none.
func NewLedgerEntry(pin release.Pin, lastModified time.Time) LedgerEntry {
	return LedgerEntry{
		Schema: ledgerSchema, Name: pin.Name, Channel: pin.Channel, Family: pin.Family,
		Version: pin.Version.String(), URL: pin.URL, Digest: pin.Digest, Size: pin.Size,
		ETag: pin.ETag, LastModified: lastModified, MTime: pin.MTime,
	}
}

// AppendPin writes pin at the end of the ledger, durably, unless the ledger
// has the same digest under the same name already. Lines are never changed. A
// line that a power cut has torn stays as it is; the next one begins a line.
func (s *Store) AppendPin(pin LedgerEntry) error {
	if err := s.appendPin(pin); err != nil {
		return fmt.Errorf("append %s to the ledger: %w", pin.Name, err)
	}
	return nil
}

func (s *Store) appendPin(pin LedgerEntry) error {
	d, err := release.ParseDigest(string(pin.Digest))
	if err != nil {
		return err
	}
	if pin.Name == "" {
		return errors.New("it has no name")
	}
	pin.Schema, pin.Digest = ledgerSchema, d
	if pin.FirstSeen.IsZero() {
		pin.FirstSeen = s.now()
	}
	line, err := jsonLine(pin)
	if err != nil {
		return err
	}
	if len(line) >= maxLedgerLine {
		return fmt.Errorf("it is %d bytes long, more than %d", len(line), maxLedgerLine)
	}
	if err := s.disk.mkdirAll(s.root); err != nil {
		return err
	}
	path := filepath.Join(s.root, ledgerName)
	// The lock is on the ledger itself, which is never renamed, and is held
	// for one read and one write of a small file.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	fl, err := waitLock(ctx, path)
	if err != nil {
		return err
	}
	return errors.Join(s.appendLine(path, pin, line), fl.Unlock())
}

func (s *Store) appendLine(path string, pin LedgerEntry, line []byte) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	known, err := findPins(f, pin.Name)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	// What the last line says already is not said again; what an older one says
	// is, for AMD may publish the first bytes once more.
	if n := len(known); n > 0 && known[n-1].same(pin) {
		return f.Close()
	}
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	if end > 0 {
		var b [1]byte
		if _, err := f.ReadAt(b[:], end-1); err != nil {
			return errors.Join(err, f.Close())
		}
		if b[0] != '\n' {
			line = append([]byte{'\n'}, line...)
		}
	}
	if _, err := f.Write(line); err != nil {
		return errors.Join(err, f.Truncate(end), f.Close()) // a full disk leaves no torn line
	}
	return errors.Join(f.Sync(), f.Close(), s.disk.syncDir(s.root))
}

// same reports whether e says of a tarball what pin says.
func (e LedgerEntry) same(pin LedgerEntry) bool {
	return e.Digest == pin.Digest && e.ETag == pin.ETag && e.MTime.Equal(pin.MTime)
}

// jsonLine encodes pin as one line; URLs keep their &.
func jsonLine(pin LedgerEntry) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(pin)
	return buf.Bytes(), err
}

// FindPins returns what the ledger says of the tarball called name, the oldest
// first; more than one means that AMD has published other bytes under the same
// name. Lines that cannot be read are passed over; one about name that a newer
// program wrote is an error that matches ErrNewer.
func (s *Store) FindPins(name string) ([]LedgerEntry, error) {
	f, err := os.Open(filepath.Join(s.root, ledgerName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	defer f.Close()
	pins, err := findPins(f, name)
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	return pins, nil
}

// findPins reads a ledger.
func findPins(r io.Reader, name string) ([]LedgerEntry, error) {
	br := bufio.NewReaderSize(r, maxLedgerLine)
	var pins []LedgerEntry
	long := false // in the middle of a line that is too long
	for {
		line, err := br.ReadSlice('\n')
		whole := !long
		long = errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !long && err != io.EOF {
			return nil, err
		}
		if whole && !long {
			pin, perr := parsePin(line)
			switch {
			case pin.Name != name:
			case errors.Is(perr, ErrNewer):
				return nil, fmt.Errorf("line about %s: %w", name, perr)
			case perr == nil:
				pins = append(pins, pin)
			}
		}
		if err == io.EOF {
			return pins, nil
		}
	}
}

// parsePin reads one line. With ErrNewer the name, if any, is set.
func parsePin(line []byte) (LedgerEntry, error) {
	var head struct {
		Schema int    `json:"schema"`
		Name   string `json:"name"`
	}
	line = bytes.TrimSpace(line)
	if err := json.Unmarshal(line, &head); err != nil {
		return LedgerEntry{}, err
	}
	if head.Schema > ledgerSchema {
		return LedgerEntry{Name: head.Name}, fmt.Errorf("schema %d: %w", head.Schema, ErrNewer)
	}
	if head.Schema < 1 || head.Name == "" {
		return LedgerEntry{}, errors.New("not a line of the ledger")
	}
	var pin LedgerEntry
	if err := json.Unmarshal(line, &pin); err != nil {
		return LedgerEntry{}, err
	}
	d, err := release.ParseDigest(string(pin.Digest))
	if err != nil {
		return LedgerEntry{}, err
	}
	pin.Digest = d
	return pin, nil
}
