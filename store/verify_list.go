package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"runtime"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// item is an entry of files.jsonl, without what verify does not need, and what
// was found in its place.
type item struct {
	path       string
	kind       manifest.Kind
	mode       uint32
	size       int64
	mtime      int64 // Unix seconds
	sum        [32]byte
	link, same string

	found found
}

// found is what is on disk under a listed name.
type found struct {
	bad    flaws
	detail string
	dev    uint64
	nlink  uint64
	stamp
}

// stamp is by what an unchanged file is told.
type stamp struct {
	ino   uint64
	mtime int64 // nanoseconds
	size  int64
}

// flaws is a set of kinds of damage.
type flaws uint16

// flawNames are the kinds of damage by their bits.
var flawNames = [...]string{DamageMissing, DamageKind, DamageUnreadable, DamageSize, DamageContent, DamageLink, DamageHardLink, DamageMode, DamageOwner, DamageCapability, DamageTime, DamageList}

const (
	flawMissing flaws = 1 << iota
	flawKind
	flawUnreadable
	flawSize
	flawContent
	flawLink
	flawHardLink
	flawMode
	flawOwner
	flawCapability
	flawTime
	flawList

	// wantsBytes are the flaws that only a good copy mends.
	wantsBytes = flawMissing | flawKind | flawUnreadable | flawSize | flawContent
)

func (f flaws) names() []string {
	var names []string
	for i, name := range flawNames {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// flaw adds a kind of damage, described by the first one's words.
func (e *item) flaw(f flaws, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if e.found.detail != "" {
		text = e.found.detail + "; " + text
	}
	e.found.bad, e.found.detail = e.found.bad|f, text
}

// listing is what a generation says of itself.
type listing struct {
	entries []item
	byPath  map[string]int
	byDir   map[string][]int // indexes of the entries of each directory
	dirs    []string         // keys of byDir, in the order in which they were met
	sum     [32]byte         // of files.jsonl
	counts  manifest.Counts  // of what is in opt/rocm
	files   int
	bytes   int64
}

// chunkLen is about how much of files.jsonl one goroutine decodes at once.
const chunkLen = 256 << 10

// readListing decodes files.jsonl, some goroutines at once, and hashes it.
func readListing(ctx context.Context, r io.Reader) (*listing, error) {
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0) + 1)
	var parts []*listing
	h := sha256.New()
	in := io.TeeReader(io.LimitReader(r, maxListing+1), h)
	var rest []byte
	var size, lines int64
	for ended := false; !ended; {
		if gctx.Err() != nil {
			break
		}
		buf := make([]byte, len(rest)+chunkLen)
		copy(buf, rest)
		n, err := io.ReadFull(in, buf[len(rest):])
		ended = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return nil, errors.Join(fmt.Errorf("read %s: %w", manifest.FilesName, err), group.Wait())
		}
		buf = buf[:len(rest)+n]
		size += int64(n)
		lines += int64(bytes.Count(buf[len(rest):], []byte("\n")))
		if size > maxListing || lines > maxListed || !ended && len(buf) > maxListedLine {
			return nil, errors.Join(fmt.Errorf("read %s: it is longer than that of any prefix", manifest.FilesName), group.Wait())
		}
		end := bytes.LastIndexByte(buf, '\n') + 1
		if ended {
			end = len(buf)
		}
		rest = buf[end:]
		if end == 0 {
			continue
		}
		part := &listing{}
		parts = append(parts, part)
		group.Go(func() error { return part.decode(buf[:end]) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l := join(parts)
	h.Sum(l.sum[:0])
	return l, l.index()
}

// maxListedLine bounds what has no end of line in it.
const maxListedLine = 16 << 20

func (l *listing) decode(text []byte) error {
	return manifest.EachFile(bytes.NewReader(text), nil, func(f *manifest.File) error {
		if !fs.ValidPath(f.Path) || f.Path == "." || isList(f.Path) {
			return fmt.Errorf("read %s: %q is no path of a file", manifest.FilesName, f.Path)
		}
		e := item{path: f.Path, kind: f.Kind, mode: uint32(f.Mode), size: f.Size, mtime: f.MTime, link: f.Link, same: f.Same}
		switch f.Kind {
		case manifest.Dir, manifest.Symlink:
		case manifest.Regular:
			var ok bool
			if e.sum, ok = sumOf(f.SHA256); !ok || f.Size < 0 {
				return fmt.Errorf("read %s: %q has no size or digest", manifest.FilesName, f.Path)
			}
		default:
			return fmt.Errorf("read %s: %q is of kind %q, which is unknown", manifest.FilesName, f.Path, f.Kind)
		}
		if e.mode&^0o777 != 0 {
			return fmt.Errorf("read %s: %q has mode %04o, which nothing in a prefix has", manifest.FilesName, f.Path, e.mode)
		}
		if inTree(f.Path) {
			l.counts = addCounts(l.counts, manifest.Count([]manifest.File{*f}))
		}
		l.entries = append(l.entries, e)
		return nil
	})
}

// sumOf is the digest that text is in hex.
func sumOf(text string) (sum [32]byte, ok bool) {
	if len(text) != hex.EncodedLen(len(sum)) {
		return sum, false
	}
	_, err := hex.Decode(sum[:], []byte(text))
	return sum, err == nil
}

// isList reports whether a path is that of one of the lists, which list all but
// themselves.
func isList(p string) bool {
	return p == manifest.Name || p == manifest.FilesName || p == manifest.OmittedName
}

// inTree reports whether a path is in the ROCm tree of a prefix: manifest.json
// counts what is.
func inTree(p string) bool { return len(p) > len(treePrefix) && p[:len(treePrefix)] == treePrefix }

const treePrefix = "opt/rocm/"

func addCounts(a, b manifest.Counts) manifest.Counts {
	return manifest.Counts{Files: a.Files + b.Files, Dirs: a.Dirs + b.Dirs, Symlinks: a.Symlinks + b.Symlinks, Bytes: a.Bytes + b.Bytes, ELF: a.ELF + b.ELF}
}

func join(parts []*listing) *listing {
	l := &listing{byDir: map[string][]int{}}
	n := 0
	for _, p := range parts {
		n += len(p.entries)
	}
	l.entries, l.byPath = make([]item, 0, n), make(map[string]int, n)
	for _, p := range parts {
		l.entries = append(l.entries, p.entries...)
		l.counts = addCounts(l.counts, p.counts)
	}
	return l
}

// index finds the entries of each directory, and refuses what no list of ours is.
func (l *listing) index() error {
	for i := range l.entries {
		e := &l.entries[i]
		if i > 0 && e.path <= l.entries[i-1].path {
			return fmt.Errorf("read %s: %q is not in its place", manifest.FilesName, e.path)
		}
		l.byPath[e.path] = i
		dir := path.Dir(e.path)
		if l.byDir[dir] == nil {
			l.dirs = append(l.dirs, dir)
		}
		l.byDir[dir] = append(l.byDir[dir], i)
		if e.kind != manifest.Regular {
			continue
		}
		l.files++
		if e.same == "" {
			l.bytes += e.size
			continue
		}
	}
	for i := range l.entries {
		e := &l.entries[i]
		if e.kind != manifest.Regular || e.same == "" {
			continue
		}
		first := l.first(e)
		if first == nil || first.kind != manifest.Regular || first.same != "" || first.sum != e.sum || first.size != e.size {
			return fmt.Errorf("read %s: %q is not the same as %q", manifest.FilesName, e.path, e.same)
		}
	}
	return nil
}

// first is the entry whose inode e has, nil if it is not listed.
func (l *listing) first(e *item) *item { return l.at(e.same) }

// at is the entry of a path, nil if it is not listed.
func (l *listing) at(p string) *item {
	if i, ok := l.byPath[p]; ok {
		return &l.entries[i]
	}
	return nil
}

// lstat looks at a path and follows no link at its end.
func lstat(p string) (*unix.Stat_t, error) {
	var st unix.Stat_t
	if err := uninterrupted(func() error { return unix.Lstat(p, &st) }); err != nil {
		return nil, &fs.PathError{Op: "lstat", Path: p, Err: err}
	}
	return &st, nil
}
