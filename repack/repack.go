package repack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/audit"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// Schema is the version of Result's JSON form.
const Schema = 1

// Event is progress: a stage begins, or has come so far.
type Event struct {
	Stage string // unpack and patch, or clone; wrap, audit
	Done  int64  // bytes of content written, for unpack; that are in their place, for clone
}

// Result is what became of a tarball.
type Result struct {
	Schema  int            `json:"schema"`
	Digest  release.Digest `json:"digest"`
	SRI     string         `json:"sri"`
	Size    int64          `json:"size"`  // of the tarball, bytes
	Files   int            `json:"files"` // regular files of the tarball that are in the tree
	Bytes   int64          `json:"bytes"` // their content, without what was left out; of a clone, as it is after the edits
	ELF     ELFCounts      `json:"elf"`
	Scripts int            `json:"scripts"` // script interpreters rewritten
	Links   int            `json:"links"`   // symlinks of the tarball that are in the tree; of a clone, without an amdgcn and llvm that may be ours
	Dropped int            `json:"dropped"` // links of the tarball that are not
	Audit   Verdict        `json:"audit"`
	Seconds float64        `json:"seconds"`
	Skips   []Skip         `json:"skips,omitempty"`

	// Drops are the links that Dropped counts, and why each is not there.
	Drops []manifest.Dropped `json:"drops,omitempty"`

	// Omitted sums up what Options.Omit left out, by its names, and Kept lists
	// what it would have, had not a file that stays needed it.
	Omitted map[string]manifest.Tally `json:"omitted,omitempty"`
	Kept    []manifest.Omission       `json:"kept,omitempty"`

	// Etc are the files that Options.Etc got, by their path below it.
	Etc []string          `json:"etc,omitempty"`
	etc map[string]string // their content, and the time that they get
	at  time.Time

	// ClonedFrom is the prefix that Clone took the tree from, and Shared how.
	ClonedFrom string   `json:"cloned_from,omitempty"`
	Shared     *Sharing `json:"shared,omitempty"`

	// Decompressor is what the tarball was decompressed with, as
	// unpack.Result has it; "" for a clone.
	Decompressor string `json:"decompressor,omitempty"`
	// Described is the digest of manifest.json, and Listing that of files.jsonl: of a
	// tree on its own, of those that it would have. Equal tarballs, options and rules
	// give equal ones.
	Described release.Digest `json:"manifest_digest,omitempty"`
	Listing   release.Digest `json:"files_digest,omitempty"`

	Manifest *manifest.Manifest `json:"-"`
	Report   *audit.Report      `json:"-"`
}

// ELFCounts counts ELF files, each inode once: those seen, those edited, and
// those that an edit was planned for but that were left as they are. A file
// that begins with ELF's magic but cannot be parsed is not counted: it stays as
// it is, and has no elf in files.jsonl.
type ELFCounts struct {
	Seen    int `json:"seen"`
	Patched int `json:"patched"`
	Skipped int `json:"skipped"`
}

// Skip is a file that was left as it is, and why.
type Skip struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Verdict sums up the audit.
type Verdict struct {
	Refused  bool `json:"refused"`
	Fatal    int  `json:"fatal"`
	Required int  `json:"required"`
	Warnings int  `json:"warnings"`
}

// RefusedError says that the audit refused the tree.
type RefusedError struct {
	Findings []audit.Finding // those that it was refused for
	Result   *Result
}

func (e *RefusedError) Error() string {
	if len(e.Findings) == 0 {
		return "the audit refused the tree"
	}
	f := e.Findings[0]
	more := ""
	if n := len(e.Findings) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Sprintf("the audit refused the tree: %s: %s: %s%s", f.Rule, f.Path, f.Detail, more)
}

// Run makes dir, which must be absent or empty, from the tarball that src
// yields. It is staged beside dir and appears with one rename; the parents of
// dir are made. With o.Etc the files for that directory are written just before,
// and taken back when dir cannot appear; none is written over. When something is
// in the place of dir, or comes to be there meanwhile, the error matches
// ErrOccupied.
func Run(ctx context.Context, src io.Reader, dir string, o Options) (*Result, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("repack: %w", err)
	}
	if o, err = o.ready(dir); err != nil {
		return nil, err
	}
	if o.Etc != "" {
		if err := apart(o.Etc, dir); err != nil {
			return nil, fmt.Errorf("repack: %w", err)
		}
	}
	s, err := stageBeside(dir)
	if err != nil {
		return nil, fmt.Errorf("repack into %s: %w", dir, err)
	}
	in := &source{r: src}
	res, err := Into(ctx, in, s.dir, o)
	if err != nil {
		return nil, errors.Join(in.explain(err, dir), s.abort())
	}
	etc, err := writeEtc(o.Etc, res.etc, res.at)
	if err != nil {
		return nil, fmt.Errorf("repack into %s: %w", dir, errors.Join(err, s.abort()))
	}
	if err := s.commit(dir); err != nil {
		return nil, fmt.Errorf("repack into %s: %w", dir, errors.Join(err, etc.takeBack(), s.abort()))
	}
	return res, etc.close()
}

// Into makes the prefix in dir itself, which must be an empty directory. On
// error its content must be thrown away. The caller makes it durable.
func Into(ctx context.Context, src io.Reader, dir string, o Options) (*Result, error) {
	o, err := o.ready(dir)
	if err != nil {
		return nil, err
	}
	m, err := newMaker(dir, o)
	if err != nil {
		return nil, err
	}
	defer m.root.Close()
	return m.make(ctx, func(ctx context.Context) error { return m.unpack(ctx, src) }, m.patch)
}

// source remembers how the tarball's reader ended.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// explain says which file system could not be written to. What the source
// reports of its own is about another place.
func (s *source) explain(err error, dir string) error {
	if s.err != nil && errors.Is(err, s.err) {
		return err
	}
	for _, full := range []error{unix.ENOSPC, unix.EDQUOT, unix.EROFS, unix.EFBIG, unix.EIO} {
		if errors.Is(err, full) {
			return fmt.Errorf("write on the file system of %s: %w", dir, err)
		}
	}
	return err
}
