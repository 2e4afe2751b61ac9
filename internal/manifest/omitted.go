package manifest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// Tally sums up what one rule left out of a prefix.
type Tally struct {
	Files int   `json:"files"` // names: files, hard links counted each, symlinks and directories that were emptied
	Bytes int64 `json:"bytes"` // content of regular files, hard links counted once
}

// Omission is one line of omitted.jsonl: an entry of the tarball that a rule
// leaves out, or would have.
type Omission struct {
	Path string `json:"path"` // as it would be in files.jsonl
	Kind Kind   `json:"kind"`
	Rule string `json:"rule"`
	Size int64  `json:"size,omitempty"` // of regular files, bytes; 0 for a further name of one

	// Needs is the path of a file of the prefix that needs this one, so that
	// it is there in spite of the rule.
	Needs string `json:"needed_by,omitempty"`
}

// CountOmitted sums up by rule what is not in the prefix.
func CountOmitted(omitted []Omission) map[string]Tally {
	var sums map[string]Tally
	for i := range omitted {
		o := &omitted[i]
		if o.Needs != "" {
			continue
		}
		if sums == nil {
			sums = map[string]Tally{}
		}
		t := sums[o.Rule]
		t.Files, t.Bytes = t.Files+1, t.Bytes+o.Size
		sums[o.Rule] = t
	}
	return sums
}

// WriteOmitted encodes an omitted.jsonl, in the order given.
func WriteOmitted(w io.Writer, omitted []Omission) error {
	buf := bufio.NewWriterSize(w, 1<<20)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	for i := range omitted {
		if err := enc.Encode(&omitted[i]); err != nil {
			return err
		}
	}
	return buf.Flush()
}

// ReadOmitted decodes an omitted.jsonl of at most limit lines.
func ReadOmitted(r io.Reader, limit int) ([]Omission, error) {
	var omitted []Omission
	err := ScanOmitted(r, limit, func(o Omission) { omitted = append(omitted, o) })
	if err != nil {
		return nil, err
	}
	return omitted, nil
}

// ScanOmitted decodes an omitted.jsonl of at most limit lines, for those who
// need a few of them: each is handed to line.
func ScanOmitted(r io.Reader, limit int, line func(Omission)) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 64<<10), maxLine)
	for n := 1; sc.Scan(); n++ {
		if n > limit {
			return fmt.Errorf("read %s: more than %d lines", OmittedName, limit)
		}
		if len(bytes.TrimSpace(sc.Bytes())) == 0 {
			continue
		}
		var o Omission
		if err := json.Unmarshal(sc.Bytes(), &o); err != nil {
			return fmt.Errorf("read %s line %d: %w", OmittedName, n, err)
		}
		line(o)
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("read %s: %w", OmittedName, err)
	}
	return nil
}
