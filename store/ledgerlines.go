package store

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// ledgerSchema is the version of the ledger's lines that this package writes.
const ledgerSchema = 1

// Bounds of a ledger. Those of the whole hold for the ledgers of others only:
// our own is read without keeping it.
const (
	maxLedgerLine    = 64 << 10 // bytes; longer ones are damage
	maxLedgerLen     = 64 << 20 // bytes
	maxLedgerEntries = 100_000
)

// ErrLedgerTooLong is matched when a ledger of others is past every use.
var ErrLedgerTooLong = errors.New("the ledger is too long")

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
	FirstSeen    time.Time      `json:"first_seen"`     // set by Append if zero
}

// Pin is the pin that e is a line of.
func (e LedgerEntry) Pin() (release.Pin, error) {
	n, err := release.ParseName(e.Name)
	if err != nil {
		return release.Pin{}, fmt.Errorf("read the ledger: %w", err)
	}
	return release.Pin{Digest: e.Digest, Size: e.Size, ETag: e.ETag, Release: release.Release{
		Channel: e.Channel, Name: e.Name, Family: e.Family, Version: n.Version, Platform: n.Platform,
		Tests: n.Tests, Variant: n.Variant, Archive: n.Archive, URL: e.URL, MTime: e.MTime,
	}}, nil
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

// ParseLedger reads a whole ledger that somebody else keeps, in the order of
// its lines. Lines that cannot be read, those of a newer program among them,
// are passed over and counted; empty ones are not. What is longer than any
// ledger gives what was read so far and an error that matches
// ErrLedgerTooLong; any other error is r's.
func ParseLedger(r io.Reader) (entries []LedgerEntry, skipped int, err error) {
	bounded := &io.LimitedReader{R: r, N: maxLedgerLen + 1}
	for line, err := range ledgerLines(bounded) {
		switch {
		case err != nil:
			return entries, skipped, fmt.Errorf("read the ledger: %w", err)
		case len(trimLine(line)) == 0 && line != nil:
			continue
		}
		pin, err := parsePin(line)
		if err != nil {
			skipped++
			continue
		}
		if len(entries) == maxLedgerEntries {
			return entries, skipped, fmt.Errorf("%w: more than %d entries", ErrLedgerTooLong, maxLedgerEntries)
		}
		entries = append(entries, pin)
	}
	if bounded.N == 0 {
		return entries, skipped, fmt.Errorf("%w: more than %d bytes", ErrLedgerTooLong, maxLedgerLen)
	}
	return entries, skipped, nil
}

// ledgerLines yields each line of r, with or without its end, until the next
// step; nil for one that is too long. An error is yielded last.
func ledgerLines(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		br := bufio.NewReaderSize(r, maxLedgerLine)
		long := false // in the middle of a line that is too long
		for {
			line, err := br.ReadSlice('\n')
			rest := long
			long = errors.Is(err, bufio.ErrBufferFull)
			switch {
			case err != nil && !long && err != io.EOF:
				yield(nil, err)
				return
			case long && !rest:
				if !yield(nil, nil) {
					return
				}
			case !long && !rest && len(line) > 0:
				if !yield(line, nil) {
					return
				}
			}
			if err == io.EOF {
				return
			}
		}
	}
}

// findPins reads a ledger for one name.
func findPins(r io.Reader, name string) ([]LedgerEntry, error) {
	var pins []LedgerEntry
	for line, err := range ledgerLines(r) {
		if err != nil {
			return nil, err
		}
		if !mayName(line, name) {
			continue
		}
		pin, err := parsePin(line)
		switch {
		case pin.Name != name:
		case errors.Is(err, ErrNewer):
			return nil, fmt.Errorf("line about %s: %w", name, err)
		case err == nil:
			pins = append(pins, pin)
		}
	}
	return pins, nil
}

// mayName reports whether a line can be about name, without decoding it: it
// names it literally, or writes something in another way. A year of lines is
// then read in a few milliseconds.
func mayName(line []byte, name string) bool {
	if bytes.Contains(line, []byte(name)) || bytes.IndexByte(line, '\\') >= 0 {
		return true
	}
	for i := range len(name) {
		if name[i] >= 0x80 {
			return true // decoding may have made it of something else
		}
	}
	return false
}

// parsePin reads one line. With ErrNewer the name, if any, is set.
func parsePin(line []byte) (LedgerEntry, error) {
	var head struct {
		Schema int    `json:"schema"`
		Name   string `json:"name"`
	}
	line = trimLine(line)
	if err := json.Unmarshal(line, &head); err != nil {
		return LedgerEntry{}, err
	}
	if head.Schema > ledgerSchema {
		return LedgerEntry{Name: head.Name}, ledgerFormat.Newer(head.Schema)
	}
	if head.Schema < 1 || head.Name == "" {
		return LedgerEntry{}, errors.New("not a line of the ledger")
	}
	if head.Schema < ledgerSchema {
		var err error
		if line, err = ledgerFormat.Read(line); err != nil {
			return LedgerEntry{}, err
		}
	}
	var pin LedgerEntry
	if err := json.Unmarshal(line, &pin); err != nil {
		return LedgerEntry{}, err
	}
	return checkPin(pin)
}

// trimLine removes the end of a line, CRLF too, and the byte order mark that
// some editors begin a file with.
func trimLine(line []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")))
}

// checkPin refuses what no ledger can say, and puts the digest into its usual
// form.
func checkPin(pin LedgerEntry) (LedgerEntry, error) {
	d, err := release.ParseDigest(string(pin.Digest))
	switch {
	case err != nil:
		return LedgerEntry{}, err
	case pin.Name == "":
		return LedgerEntry{}, errors.New("it has no name")
	case pin.Size < 0:
		return LedgerEntry{}, fmt.Errorf("its size is %d", pin.Size)
	}
	pin.Digest = d
	return pin, nil
}

// encodePin returns pin as it is written, and its line.
func encodePin(pin LedgerEntry) (LedgerEntry, []byte, error) {
	pin, err := checkPin(pin)
	if err != nil {
		return pin, nil, err
	}
	pin.Schema = ledgerSchema
	line, err := jsonLine(pin)
	if err == nil && len(line) >= maxLedgerLine {
		err = fmt.Errorf("it is %d bytes long, more than %d", len(line), maxLedgerLine)
	}
	return pin, line, err
}

// jsonLine encodes pin as one line; URLs keep their &.
func jsonLine(pin LedgerEntry) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(pin)
	return buf.Bytes(), err
}

// same reports whether e says of a tarball what pin says.
func (e LedgerEntry) same(pin LedgerEntry) bool {
	return e.Digest == pin.Digest && e.ETag == pin.ETag && e.MTime.Equal(pin.MTime) && e.LastModified.Equal(pin.LastModified)
}
