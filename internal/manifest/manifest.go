package manifest

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"

	"github.com/rocm-nightly/rocm-nightly/internal/schema"
)

// Schema is the version of the format that this package writes. It is that of
// files.jsonl and omitted.jsonl too, which have none of their own.
const Schema = 1

// format is how a manifest.json of another schema is read. Its steps and Schema
// go together.
var format = schema.Format{Name: Name}

// The names of the files, at the root of a prefix. The last is only there when
// parts of the tarball were to be left out.
const (
	Name        = "manifest.json"
	FilesName   = "files.jsonl"
	OmittedName = "omitted.jsonl"
)

// ErrNewer is matched by errors about a manifest from a newer program.
var ErrNewer = schema.ErrNewer

// Manifest is the content of manifest.json.
type Manifest struct {
	Schema  int             `json:"schema"`
	Digest  string          `json:"digest"` // of the tarball, sha256:<hex>
	SRI     string          `json:"sri"`    // the same, sha256-<base64>
	Size    int64           `json:"size"`   // of the tarball, bytes
	Name    string          `json:"name,omitempty"`
	Channel string          `json:"channel,omitempty"`
	Family  string          `json:"family,omitempty"`
	Version string          `json:"version,omitempty"`
	Checked []string        `json:"checked,omitempty"` // what the tarball was checked against; "trust on first use" if nobody knew it before
	Recipe  string          `json:"recipe"`            // sha256:<hex> of digest, options and ruleset
	Ruleset int             `json:"ruleset"`           // version of the rules that edited the tree
	Options json.RawMessage `json:"options"`           // the repack options that shape the bytes
	Counts  Counts          `json:"counts"`
	Edits   map[string]int  `json:"edits"`             // files edited, by rule
	Dropped []Dropped       `json:"dropped,omitempty"` // links of the tarball that could not be in any prefix

	Omitted map[string]Tally `json:"omitted,omitempty"` // entries that were left out on purpose, by rule; omitted.jsonl lists them
}

// Counts sums up the files of the tree.
type Counts struct {
	Files    int   `json:"files"` // regular files, hard links counted each
	Dirs     int   `json:"dirs"`
	Symlinks int   `json:"symlinks"`
	Bytes    int64 `json:"bytes"` // content of regular files, hard links counted once
	ELF      int   `json:"elf"`
}

// Dropped is an entry of the tarball that was left out, and why.
type Dropped struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Kind is the kind of a File.
type Kind string

// The kinds of file that a prefix can hold. There are no others: devices,
// sockets and the like are refused when the tarball is read.
const (
	Regular Kind = "file"
	Dir     Kind = "dir"
	Symlink Kind = "symlink"
)

// File is one entry of files.jsonl.
type File struct {
	Path   string   `json:"path"` // relative to the prefix, slash-separated, no leading ./
	Kind   Kind     `json:"kind"`
	Mode   Mode     `json:"mode,omitempty"`   // permission bits; not for symlinks
	Size   int64    `json:"size,omitempty"`   // of regular files, bytes, as they are now
	MTime  int64    `json:"mtime,omitempty"`  // Unix seconds, as the tarball says; of a hard link to an older prefix, as on disk
	SHA256 string   `json:"sha256,omitempty"` // hex, as the file is now
	Before string   `json:"before,omitempty"` // hex, as it was in the tarball, if edited since
	Link   string   `json:"link,omitempty"`   // target of a symlink
	Same   string   `json:"same,omitempty"`   // path of the first name of the same inode (hard link)
	Edits  []string `json:"edits,omitempty"`  // rules that edited the file
	ELF    *ELF     `json:"elf,omitempty"`
}

// ELF is what a dynamic or static ELF file says of itself, after edits.
type ELF struct {
	Class   int      `json:"class"`   // 32 or 64
	Machine string   `json:"machine"` // EM_X86_64 without the prefix, lower case: x86_64, amdgpu
	Type    string   `json:"type"`    // exec, dyn, rel, core or a number
	Dynamic bool     `json:"dynamic,omitempty"`
	Soname  string   `json:"soname,omitempty"`
	Needed  []string `json:"needed,omitempty"`
	RPath   string   `json:"rpath,omitempty"`
	RunPath string   `json:"runpath,omitempty"`
	Interp  string   `json:"interp,omitempty"`
}

// Mode is a set of permission bits, written in octal as a string.
type Mode fs.FileMode

// MarshalText implements encoding.TextMarshaler.
func (m Mode) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%04o", uint32(m)), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *Mode) UnmarshalText(b []byte) error {
	v, err := strconv.ParseUint(string(b), 8, 12)
	if err != nil {
		return fmt.Errorf("parse mode %q: %w", b, err)
	}
	*m = Mode(v)
	return nil
}

// Write encodes m, indented, with a final newline.
func Write(w io.Writer, m *Manifest) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(m)
}

// maxManifest bounds a manifest.json, in bytes.
const maxManifest = 64 << 20

// Read decodes a manifest.json. A newer schema is an error that matches ErrNewer.
func Read(r io.Reader) (*Manifest, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxManifest+1))
	if err == nil && len(b) > maxManifest {
		err = fmt.Errorf("longer than %d bytes", maxManifest)
	}
	if err == nil {
		b, err = format.Read(b)
	}
	var m Manifest
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", Name, err)
	}
	return &m, nil
}

// Sort puts files in the order in which they are written: by path.
func Sort(files []File) {
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
}

// WriteFiles encodes files, one JSON value a line, in the order given.
func WriteFiles(w io.Writer, files []File) error {
	buf := bufio.NewWriterSize(w, 1<<20)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	for i := range files {
		if err := enc.Encode(&files[i]); err != nil {
			return err
		}
	}
	return buf.Flush()
}

// maxLine bounds one line of files.jsonl.
const maxLine = 16 << 20

// ReadFiles decodes a files.jsonl.
func ReadFiles(r io.Reader) ([]File, error) {
	var files []File
	err := EachFile(r, nil, func(f *File) error {
		files = append(files, *f)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return files, nil
}

// EachFile decodes a files.jsonl and gives do one entry after the other, each
// in memory of its own. An error of do ends it, and is returned as it is. With
// wanted, lines of another digest than it accepts are passed over unread, which
// is many times as fast; the digest is hex, and wanted keeps nothing of it.
func EachFile(r io.Reader, wanted func(digest []byte) bool, do func(*File) error) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 64<<10), maxLine)
	for n := 1; sc.Scan(); {
		if len(bytes.TrimSpace(sc.Bytes())) == 0 {
			continue
		}
		if wanted != nil && !wanted(digestIn(sc.Bytes())) {
			n++
			continue
		}
		f, err := parseLine(sc.Bytes())
		if err != nil {
			return fmt.Errorf("read %s line %d: %w", FilesName, n, err)
		}
		if err := do(f); err != nil {
			return err
		}
		n++
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("read %s: %w", FilesName, err)
	}
	return nil
}

// digestIn finds the digest in a line as WriteFiles writes it, nil if there is
// none. In a string of JSON every quote has a backslash, so that no name can
// look like it.
func digestIn(line []byte) []byte {
	_, rest, found := bytes.Cut(line, []byte(`"sha256":"`))
	if !found {
		return nil
	}
	digest, _, _ := bytes.Cut(rest, []byte(`"`))
	return digest
}

// Count sums up files.
func Count(files []File) Counts {
	var c Counts
	for _, f := range files {
		switch f.Kind {
		case Dir:
			c.Dirs++
		case Symlink:
			c.Symlinks++
		case Regular:
			c.Files++
			if f.Same == "" {
				c.Bytes += f.Size
			}
			if f.ELF != nil {
				c.ELF++
			}
		}
	}
	return c
}
