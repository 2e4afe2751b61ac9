package unpack

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// Options tells Tree what it may take and how to edit what it writes. The
// zero Options takes AMD's largest tarballs and edits nothing.
type Options struct {
	Limits  Limits
	Writers int // files written at once; 0 means one for each processor, at most 4

	// Wants and Edit, if set, rewrite text before it is written. Wants is
	// asked with the beginning of each regular file of at most MaxEdit bytes;
	// where it says yes, Edit gets the whole and returns the new content with
	// the names of the rules that changed it (none: content unchanged). path
	// is relative to the tree. They are called by one goroutine, in the order
	// of the archive.
	Wants func(path string, head []byte) bool
	Edit  func(path string, mode fs.FileMode, data []byte) ([]byte, []string, error)

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
	MaxBytes   int64   // content of all files; default 200 GiB
	MaxEntries int     // default 1,000,000
	MaxRatio   float64 // bytes out for each byte in; default 200

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

// Result is what Tree wrote.
type Result struct {
	// Files lists every entry of the tree, sorted by path, relative to it. A
	// file that begins with ELF's magic has a non-nil, empty ELF.
	Files   []manifest.File
	Dropped []manifest.Dropped // absolute links that lead nowhere in the tree
	Bytes   int64              // content of regular files as in the archive
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

func (e *EntryError) Error() string { return fmt.Sprintf("unpack %q: %v", e.Name, e.Err) }

// Unwrap returns the cause.
func (e *EntryError) Unwrap() error { return e.Err }

// Tree reads a gzip-compressed tar from r to the very end and writes it into
// root, which must be empty. On error the content of root is incomplete and
// must not be used; Tree does not remove it.
func Tree(ctx context.Context, r io.Reader, root *os.Root, o Options) (*Result, error) {
	o.Limits = o.Limits.withDefaults()
	if o.Writers <= 0 {
		o.Writers = min(runtime.GOMAXPROCS(0), 4)
	}
	g, gctx := errgroup.WithContext(ctx)
	u := &unpacker{
		ctx: gctx, root: root, o: o,
		jobs: make(chan *job), free: make(chan []byte, buffers),
		kinds: map[string]manifest.Kind{".": manifest.Dir},
		dirs:  map[string]*manifest.File{},
	}
	for range buffers {
		u.free <- nil // allocated on first use
	}
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
	jobs chan *job
	free chan []byte // chunk buffers, at most `buffers` of chunkSize

	kinds   map[string]manifest.Kind // every path of the tree, implied directories included
	files   []*manifest.File
	dirs    map[string]*manifest.File // those of files that are directories
	late    []link
	dropped []manifest.Dropped
	entries int
	bytes   int64
}

// read walks the archive and feeds the writers.
func (u *unpacker) read(r io.Reader) error {
	s, err := newStream(u.ctx, r, u.o.Limits)
	if err != nil {
		return err
	}
	defer s.Close()
	tr := tar.NewReader(s)
	for {
		hdr, err := tr.Next()
		if err == io.EOF {
			return s.finish()
		}
		if err != nil {
			return fmt.Errorf("unpack: read entry %d of the tarball: %w", u.entries+1, truncated(err))
		}
		if err := u.entry(hdr, tr); err != nil {
			return err
		}
	}
}

// truncated marks the errors by which a stream that was cut shows itself.
func truncated(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %w", ErrTruncated, err)
	}
	return err
}

// entry handles one entry of the archive.
func (u *unpacker) entry(hdr *tar.Header, content io.Reader) error {
	if u.entries++; u.entries > u.o.Limits.MaxEntries {
		return &EntryError{hdr.Name, fmt.Errorf("%w: more than %d entries (raise unpack.max_entries if this is right)", ErrRefused, u.o.Limits.MaxEntries)}
	}
	if hdr.Typeflag == tar.TypeXGlobalHeader {
		return nil // comments and defaults for other tools; holds no file
	}
	name, err := cleanName(hdr.Name)
	if err != nil {
		return &EntryError{hdr.Name, err}
	}
	if err := u.kind(name, hdr, content); err != nil {
		var ee *EntryError
		if errors.As(err, &ee) {
			return err
		}
		return &EntryError{hdr.Name, err}
	}
	return nil
}

func (u *unpacker) kind(name string, hdr *tar.Header, content io.Reader) error {
	switch hdr.Typeflag {
	case tar.TypeDir:
		return u.dir(name, hdr)
	case tar.TypeReg, tar.TypeGNUSparse, tar.TypeCont:
		return u.file(name, hdr, content)
	case tar.TypeSymlink:
		return u.link(link{path: name, target: hdr.Linkname, mtime: hdr.ModTime.Unix()})
	case tar.TypeLink:
		target, err := cleanName(hdr.Linkname)
		if err != nil {
			return fmt.Errorf("hard link to %q: %w", hdr.Linkname, err)
		}
		return u.link(link{path: name, target: target, hard: true, mtime: hdr.ModTime.Unix()})
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		return fmt.Errorf("%w: a device or FIFO has no place in a ROCm", ErrRefused)
	}
	return fmt.Errorf("%w: entry of unknown type %q", ErrRefused, hdr.Typeflag)
}

// dir makes a directory, or takes over one that a file implied.
func (u *unpacker) dir(name string, hdr *tar.Header) error {
	if name == "." {
		return nil // the prefix's own mode is not the builder's to choose
	}
	if k, ok := u.kinds[name]; ok && k != manifest.Dir {
		return fmt.Errorf("%w: it is already a %s", ErrRefused, k)
	}
	if err := u.mkdir(name); err != nil {
		return err
	}
	u.dirs[name].MTime = hdr.ModTime.Unix()
	return nil
}

// mkdir makes name and its parents. Each becomes an entry of the result once.
func (u *unpacker) mkdir(name string) error {
	switch u.kinds[name] {
	case manifest.Dir:
		return nil
	case "":
	default:
		return fmt.Errorf("%w: its parent %q is not a directory", ErrRefused, name)
	}
	if err := u.mkdir(path.Dir(name)); err != nil {
		return err
	}
	if err := u.root.Mkdir(name, 0o755); err != nil {
		return err
	}
	if err := u.root.Chmod(name, 0o755); err != nil { // whatever the umask says
		return err
	}
	u.kinds[name] = manifest.Dir
	u.dirs[name] = &manifest.File{Path: name, Kind: manifest.Dir, Mode: 0o755}
	u.files = append(u.files, u.dirs[name])
	return nil
}

// claim takes name for an entry of kind k.
func (u *unpacker) claim(name string, k manifest.Kind) error {
	if name == "." {
		return fmt.Errorf("%w: the root of the archive is not a directory", ErrRefused)
	}
	if was, ok := u.kinds[name]; ok {
		return fmt.Errorf("%w: it is already a %s: listed twice", ErrRefused, was)
	}
	if err := u.mkdir(path.Dir(name)); err != nil {
		return err
	}
	u.kinds[name] = k
	return nil
}
