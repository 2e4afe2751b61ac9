package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
	"github.com/rocm-nightly/rocm-nightly/internal/schema"
)

// Bounds of the memory, in bytes and in jobs.
const (
	maxMemory = 1 << 20
	maxJobs   = 256
	maxText   = 2 << 10 // of an error
)

// memoryFormat is of daemon.json.
var memoryFormat = schema.Format{Name: "daemon.json", Else: "move it away: it is made anew"}

// memory is the content of daemon.json: what the next process has to know of this
// one. Where it is lost, each job waits for its next time.
type memory struct {
	Schema int               `json:"schema"`
	Jobs   map[string]record `json:"jobs"`
}

// record is what is remembered of a job. Times are UTC.
type record struct {
	Spec     string    `json:"spec"`
	After    time.Time `json:"after"`              // times of the schedule until then are of the past
	Began    time.Time `json:"began,omitzero"`     // the last run
	Seconds  float64   `json:"seconds,omitempty"`  // how long it took
	Unended  int       `json:"unended,omitempty"`  // runs in a row of which no end is known
	Success  time.Time `json:"success,omitzero"`   // when the last run that did not fail ended
	Failures int       `json:"failures,omitempty"` // in a row
	Exit     int       `json:"exit,omitempty"`     // of the last run
	Error    string    `json:"error,omitempty"`    // of the last run
	Missed   time.Time `json:"missed,omitzero"`    // the last time for which no run began
	Next     time.Time `json:"next,omitzero"`      // a run that is planned within the window
	Why      Why       `json:"why,omitempty"`      // of it
	Ends     time.Time `json:"ends,omitzero"`      // of the window
	Tries    int       `json:"tries,omitempty"`    // in it
}

// loadMemory reads what was remembered. What is lost, damaged or not of this program
// is nothing, and the error says so.
func loadMemory(path string) (map[string]record, error) {
	none := map[string]record{}
	if path == "" {
		return none, nil
	}
	b, err := readSmall(path, maxMemory)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err == nil {
		b, err = memoryFormat.Read(b)
	}
	var m memory
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err == nil && len(m.Jobs) > maxJobs {
		err = fmt.Errorf("%d jobs are more than %d", len(m.Jobs), maxJobs)
	}
	if err != nil {
		return none, fmt.Errorf("read what was done before: %s: %w", path, err)
	}
	if m.Jobs == nil {
		return none, nil
	}
	return m.Jobs, nil
}

// readSmall reads a regular file of at most limit bytes.
func readSmall(path string, limit int64) (b []byte, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() || fi.Size() > limit {
		return nil, errors.New("it is no small file")
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// encode makes the file of the memory.
func (m memory) encode() ([]byte, error) {
	m.Schema = memoryFormat.Now()
	for name, r := range m.Jobs {
		r.Error = plain.Cut(r.Error, maxText)
		m.Jobs[name] = r
	}
	b, err := json.MarshalIndent(m, "", "  ")
	return append(b, '\n'), err
}

// saveMemory replaces the file, durably. Its directory is made: before the first
// installation there may be none.
func saveMemory(path string, b []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("remember what was done: %w", err)
	}
	if err := dropHalves(dir, filepath.Base(path)); err != nil {
		return fmt.Errorf("remember what was done: %w", err)
	}
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(dir), renameio.WithStaticPermissions(0o644))
	if err != nil {
		return fmt.Errorf("remember what was done: %w", err)
	}
	defer f.Cleanup() // after the rename it does nothing
	if _, err = f.Write(b); err == nil {
		err = f.CloseAtomicallyReplace()
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("remember what was done: %w", err)
	}
	return nil
}

// dropHalves removes what a killed process left of its file: renameio puts a dot
// before the name and a number behind it.
func dropHalves(dir, name string) error {
	halves, err := filepath.Glob(filepath.Join(globQuote(dir), "."+name+"[0-9]*"))
	if err != nil {
		return err
	}
	for _, half := range halves {
		if err := os.Remove(half); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// globQuote takes what a pattern would mean by a name out of it.
func globQuote(s string) string {
	out := make([]byte, 0, len(s))
	for i := range len(s) {
		if c := s[i]; c == '*' || c == '?' || c == '[' || c == '\\' {
			out = append(out, '\\')
		}
		out = append(out, s[i])
	}
	return string(out)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
