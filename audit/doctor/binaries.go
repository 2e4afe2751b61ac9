package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/rocm-nightly/rocm-nightly/patchelf"
)

// Binaries lists the programs, libraries and texts below a directory that name
// one generation: they work until it is pruned. Of programs and libraries the
// headers alone are read.
func Binaries(ctx context.Context, s *System, o Options, dir string) (*Report, error) {
	x := newExam(s, o)
	if !x.isDir(dir) {
		return nil, fmt.Errorf("look at binaries: %s is not a directory", dir)
	}
	b := &binaries{exam: x, dir: path.Clean(dir)}
	if err := x.section(ctx, "binaries", b.look); err != nil {
		return nil, err
	}
	x.r.close()
	return x.r, nil
}

// maxFiles bounds a walk.
const maxFiles = 4 << 20

type binaries struct {
	*exam
	dir   string
	mu    sync.Mutex
	found []Binary
	files int
	odd   int // could not be read
}

var errEnough = errors.New("enough")

func (b *binaries) look(ctx context.Context, x *exam) error {
	g, ctx := errgroup.WithContext(ctx)
	names := make(chan string, 256)
	g.Go(func() error {
		defer close(names)
		return b.walk(ctx, names)
	})
	for range min(runtime.GOMAXPROCS(0), 8) {
		g.Go(func() error {
			for name := range names {
				b.file(name)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil && !errors.Is(err, errEnough) {
		return err
	}
	slices.SortFunc(b.found, func(p, q Binary) int { return cmp.Or(cmp.Compare(p.Path, q.Path), p.Line-q.Line) })
	for _, f := range b.found {
		x.r.Binaries = append(x.r.Binaries, f)
		x.find(b.judge(f))
	}
	x.fact("%s: %d files, %d of which name a generation", b.dir, b.files, len(b.found))
	if b.odd > 0 {
		x.fact("%d files or directories could not be read", b.odd)
	}
	return nil
}

// walk sends every regular file. Links are not followed, and what is installed
// itself is passed over.
func (b *binaries) walk(ctx context.Context, names chan<- string) error {
	start, _, err := b.resolve(b.dir, true)
	if err != nil {
		return err
	}
	own := strings.TrimPrefix(b.real(path.Join(b.o.Root, "slots")), "/")
	ofKernel := b.ofKernel()
	for at := path.Join("/", start); at != "/"; at = path.Dir(at) {
		if ofKernel(at) {
			b.fact("%s is of the kernel's, and holds no programs", b.dir)
			return nil
		}
	}
	return fs.WalkDir(b.FS, start, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			b.count(0, 1)
			return nil
		case d.IsDir() && (own != "" && name == own || ofKernel("/"+name)):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		if b.count(1, 0) > maxFiles {
			return errEnough
		}
		select {
		case names <- name:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

func (b *binaries) count(files, odd int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.files += files
	b.odd += odd
	return b.files
}

// file looks at one.
func (b *binaries) file(name string) {
	f, err := b.FS.Open(name)
	if err != nil {
		b.count(0, 1)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	at, random := f.(io.ReaderAt)
	if err != nil || !random || !info.Mode().IsRegular() {
		return
	}
	var magic [4]byte
	n, _ := at.ReadAt(magic[:], 0)
	switch head := string(magic[:n]); {
	case head == "\x7fELF":
		b.elf("/"+name, at, info.Size())
	case info.Size() <= maxText && (strings.HasPrefix(head, "#!") || isConfig(path.Base(name))):
		b.config("/"+name, io.NewSectionReader(at, 0, info.Size()))
	}
}

// isConfig reports whether a file is one that build systems keep paths in.
func isConfig(base string) bool {
	switch base {
	case "CMakeCache.txt", "build.ninja", "Makefile", "compile_commands.json", "meson-info.json", "config.status":
		return true
	}
	switch path.Ext(base) {
	case ".cmake", ".pc", ".la", ".sh", ".make", ".ninja", ".cfg", ".service", ".desktop":
		return true
	}
	return false
}

// generationRE matches a path into a generation: what is before slots/, the slot
// and the generation.
var generationRE = regexp.MustCompile(`(/[^\s"'` + "`" + `:;,<>|=()]*)?/slots/([A-Za-z0-9][A-Za-z0-9._+-]*)/generations/([A-Za-z0-9][A-Za-z0-9._+-]*)`)

func (b *binaries) elf(name string, r io.ReaderAt, size int64) {
	f, err := patchelf.Parse(r, size)
	if err != nil {
		return
	}
	facts := f.Facts()
	kind := "elf"
	if facts.RunPath == "" {
		kind = "elf-rpath"
	}
	names := []struct{ kind, text string }{{kind, facts.RunPath}, {kind, facts.RPath}, {"elf-interpreter", facts.Interp}}
	for _, n := range facts.Needed {
		names = append(names, struct{ kind, text string }{"elf-needed", n})
	}
	for _, n := range names {
		if m := generationRE.FindStringSubmatch(n.text); m != nil {
			b.add(Binary{Path: name, Kind: n.kind, Slot: m[2], Generation: m[3], text: n.text}, m[1])
			return
		}
	}
}

// config looks at a text, and files its first line that names a generation.
func (b *binaries) config(name string, r io.Reader) {
	data, err := io.ReadAll(r)
	if err != nil {
		return
	}
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		if m := generationRE.FindStringSubmatch(line); m != nil {
			b.add(Binary{Path: name, Kind: "text", Slot: m[2], Generation: m[3], Line: n, text: m[0]}, m[1])
			return
		}
	}
}

func (b *binaries) add(g Binary, root string) {
	g.Exists = !b.gone(path.Join("/", root, "slots", g.Slot, "generations", g.Generation))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.found = append(b.found, g)
}

// judge makes a finding of one.
func (b *binaries) judge(g Binary) Finding {
	f := Finding{Check: "binary-generation", Severity: Warning, Subject: g.Path, Detail: "it names " + g.Slot + "/" + g.Generation + ", which is installed",
		Why: "it stops working when that generation is pruned"}
	if !g.Exists {
		f.Severity, f.Detail, f.Why = Broken, "it names "+g.Slot+"/"+g.Generation+", which is not installed", "it does not find its libraries, or takes those of another ROCm"
	}
	stable := strings.ReplaceAll(g.text, "/generations/"+g.Generation, "/current")
	switch {
	case g.Kind == "text" && path.Base(g.Path) == "CMakeCache.txt":
		f.Remedy = []string{"cmake --fresh " + quote(path.Dir(g.Path)) + "   # with CMAKE_PREFIX_PATH=" + quote(stable)}
	case g.Kind == "text":
		f.Subject = fmt.Sprintf("%s:%d", g.Path, g.Line)
		f.Remedy = []string{"sed -i " + quote("s|/generations/"+g.Generation+"|/current|g") + " " + quote(g.Path)}
	case g.Kind == "elf-needed":
		f.Remedy = []string{"rocm-nightly patchelf --replace-needed " + quote(g.text) + " " + quote(stable) + " " + quote(g.Path)}
	case g.Kind == "elf-interpreter":
		f.Remedy = []string{"rocm-nightly patchelf --set-interpreter " + quote(stable) + " " + quote(g.Path)}
	case g.Kind == "elf-rpath":
		f.Remedy = []string{"rocm-nightly patchelf --force-rpath --set-rpath " + quote(stable) + " " + quote(g.Path)}
	default:
		f.Remedy = []string{"rocm-nightly patchelf --set-rpath " + quote(stable) + " " + quote(g.Path)}
	}
	return f
}
