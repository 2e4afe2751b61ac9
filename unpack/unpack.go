package unpack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// Options tells Tree what it may take and how to edit what it writes. The
// zero Options takes AMD's largest tarballs and edits nothing.
type Options struct {
	Limits  Limits
	Writers int // files written at once; 0 means one for each processor, at most 4

	Decompressor string // DecompressorAuto (default) or DecompressorKlauspost

	// Wants and Edit, if set, rewrite text before it is written. Wants is
	// asked with the beginning of each regular file of at most MaxEdit bytes;
	// where it says yes, Edit gets the whole and returns the new content with
	// the names of the rules that changed it (none: content unchanged). path
	// is relative to the tree. They are called by one goroutine, in the order
	// of the archive.
	Wants func(path string, head []byte) bool
	Edit  func(path string, mode fs.FileMode, data []byte) ([]byte, []string, error)

	// Omit, if set, is asked about each entry but the root, in the order of the
	// archive, by one goroutine. For "" the entry is kept; any other reason
	// leaves it out: its content is read and judged, but not written. size is
	// that of a regular file; a hard link is offered as a regular file of size
	// 0. A directory is made all the same where something kept is in it. A
	// hard link that is kept must not name a file that is left out.
	Omit func(path string, kind manifest.Kind, size int64) (reason string)

	// Event, if set, is called now and then with how far the work has come.
	Event func(Event)
}

// Event is progress.
type Event struct {
	Bytes   int64 // content written so far
	Entries int   // entries of the archive seen so far
}

// MaxEdit is the size in bytes up to which a file is offered to Wants.
const MaxEdit = 16 << 20

// Limits bounds what a tarball may hold. A zero field means its default.
type Limits struct {
	MaxBytes   int64   // content of all files, holes included; default 200 GiB
	MaxEntries int     // entries, and names with the directories that they imply; default 1,000,000
	MaxRatio   float64 // bytes out, of tar and of content, for each byte in; default 200

	ratioFrom int64 // bytes out from which the ratio is judged; default ratioGrace
}

const (
	defaultMaxBytes   = 200 << 30
	defaultMaxEntries = 1_000_000
	defaultMaxRatio   = 200
	// ratioGrace is how much may come out before the ratio is judged: small
	// archives of repetitive text have ratios that large ones never reach.
	ratioGrace = 256 << 20
)

func (l Limits) withDefaults() Limits {
	if l.MaxBytes == 0 {
		l.MaxBytes = defaultMaxBytes
	}
	if l.MaxEntries == 0 {
		l.MaxEntries = defaultMaxEntries
	}
	if l.MaxRatio == 0 {
		l.MaxRatio = defaultMaxRatio
	}
	if l.ratioFrom == 0 {
		l.ratioFrom = ratioGrace
	}
	return l
}

const (
	// textEach is the room for the name and the link target of an entry, on
	// average: AMD's need about 80 bytes.
	textEach = 256
	// headersEach is the room for the headers of an entry, on average, the
	// longest extended ones of a real archive included.
	headersEach = 16 << 10
	// fixedRoom lets the limits of a small archive not be reached by the blocks
	// that fill it up.
	fixedRoom = 1 << 20
)

// maxText bounds the bytes of names and link targets.
func (l Limits) maxText() int64 { return l.room(textEach) }

// maxOut bounds the bytes of tar: extended headers, and what archive/tar passes
// over, are no content and no entries.
func (l Limits) maxOut() int64 {
	room := l.room(headersEach)
	return room + min(l.MaxBytes, math.MaxInt64-room)
}

// room is what the entries may have of something of which each needs some.
func (l Limits) room(each int64) int64 {
	return fixedRoom + each*min(int64(l.MaxEntries), math.MaxInt64/each/2)
}

// Result is what Tree wrote.
type Result struct {
	// Files lists every entry of the tree, sorted by path, relative to it. A
	// file that begins with ELF's magic has a non-nil, empty ELF.
	Files   []manifest.File
	Dropped []manifest.Dropped // absolute links that lead nowhere in the tree
	Omitted []manifest.Dropped // what Omit left out, sorted by path; Files has none of it
	Bytes   int64              // content of regular files as in the archive, those left out too

	// Checks lists what the stream proved of itself: "gzip checksum", "zstd
	// checksum" or "xz checksum" unless it has none, and "end of archive".
	Checks []string

	// Decompressor is what decompressed it: pgunzip (our own), klauspost/compress,
	// therootcompany/xz, or none for a plain tar. The tree is the same with each.
	Decompressor string
}

// ErrRefused is matched by the error about an entry that Tree does not accept.
var ErrRefused = errors.New("refused")

// ErrTruncated is matched by the error about a stream that ends too early.
var ErrTruncated = errors.New("the tarball ends too early")

// EntryError is an error about one entry of the archive.
type EntryError struct {
	Name string // as in the archive
	Err  error
}

// Error names the entry in one line; of a name that only a hostile archive has,
// it gives the beginning.
func (e *EntryError) Error() string {
	if shown := 512; len(e.Name) > shown {
		return fmt.Sprintf("unpack %q… (a name of %d bytes): %v", e.Name[:shown], len(e.Name), e.Err)
	}
	return fmt.Sprintf("unpack %q: %v", e.Name, e.Err)
}

// Unwrap returns the cause.
func (e *EntryError) Unwrap() error { return e.Err }

// Tree reads a tar, as it is or compressed with gzip, zstd or xz, from r to the
// very end and writes it into
// root, which must be empty. On error the content of root is incomplete and
// must not be used; Tree does not remove it. When ctx ends, the error is that
// of ctx, and names no entry.
//
// r is read by a goroutine of its own. It has ended when Tree returns, unless
// Tree fails while a Read of r hangs: a source that can hang should stop when
// ctx ends, and must bear being closed during a Read.
func Tree(ctx context.Context, r io.Reader, root *os.Root, o Options) (*Result, error) {
	res, err := tree(ctx, r, root, o)
	if over := ctx.Err(); over != nil && errors.Is(err, over) {
		return nil, fmt.Errorf("unpack: %w", over) // no entry is to blame
	}
	if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("%w: the directory was not empty, or its file system takes two names of the archive for one, as those that ignore case do: choose another", err)
	}
	return res, err
}

func tree(ctx context.Context, r io.Reader, root *os.Root, o Options) (*Result, error) {
	o.Limits = o.Limits.withDefaults()
	if o.Writers <= 0 {
		o.Writers = min(runtime.GOMAXPROCS(0), 4)
	}
	g, gctx := errgroup.WithContext(ctx)
	u := newUnpacker(gctx, root, o)
	defer u.dirs.close()
	for range o.Writers {
		g.Go(u.write)
	}
	g.Go(func() error {
		defer close(u.jobs)
		return u.read(r)
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	u.ctx = ctx // the group's has ended with it
	if err := u.links(); err != nil {
		return nil, err
	}
	return u.result(), nil
}

// unpacker is the state of one call of Tree. All of it belongs to the reading
// goroutine, but for what a job hands to a writer.
type unpacker struct {
	ctx  context.Context
	root *os.Root
	o    Options
	text int64 // bytes of names and link targets that are kept
	src  *stream
	jobs chan job
	pool *pool
	dirs *dirs // of the reading goroutine

	direct bool // large files go past the page cache

	// plainModes is set if the first directory, which is always one of the
	// root's, got just the mode that was asked for: the umask takes away
	// nothing that matters, and the root has no setgid bit or default ACL to
	// pass on. Otherwise each mode is set again.
	plainModes atomic.Bool
	probed     bool

	nodes   map[string]*manifest.File // every path of the tree by its name, "." and implied directories included
	late    []link
	dropped []manifest.Dropped
	omitted map[string]string // of nodes: what is not on disk, and why; "" for what only implies it
	entries int
	bytes   int64    // content read
	checks  []string // what the stream proved of itself
	engine  string   // what decompressed it
}

func newUnpacker(ctx context.Context, root *os.Root, o Options) *unpacker {
	return &unpacker{
		ctx: ctx, root: root, o: o,
		jobs: make(chan job, jobsAhead), pool: newPool(), dirs: newDirs(root), direct: direct(root),
		nodes:   map[string]*manifest.File{".": {Kind: manifest.Dir}},
		omitted: make(map[string]string),
	}
}

// result lists the tree. It gives up u's own copies as it goes, so that both
// lists need not be in memory at once.
func (u *unpacker) result() *Result {
	delete(u.nodes, ".")
	left := u.leftOut()
	files := make([]*manifest.File, 0, len(u.nodes))
	for _, f := range u.nodes {
		files = append(files, f)
	}
	u.nodes = nil
	slices.SortFunc(files, func(a, b *manifest.File) int { return strings.Compare(a.Path, b.Path) })
	r := &Result{Dropped: u.dropped, Omitted: left, Checks: u.checks, Decompressor: u.engine, Bytes: u.bytes, Files: make([]manifest.File, len(files))}
	for i, f := range files {
		r.Files[i], files[i] = *f, nil
	}
	slices.SortFunc(r.Dropped, func(a, b manifest.Dropped) int { return strings.Compare(a.Path, b.Path) })
	return r
}
