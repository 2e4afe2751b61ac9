package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/audit"
)

// Process says which ROCm libraries a process maps, of which ROCm they are, and
// how the loader came to them.
func Process(ctx context.Context, s *System, o Options, pid int) (*Report, error) {
	x := newExam(s, o)
	dir := path.Join("/proc", strconv.Itoa(pid))
	text, err := x.readUpTo(path.Join(dir, "maps"), maxMaps)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("look at process %d: there is none", pid)
	case errors.Is(err, fs.ErrPermission) && s.UID == 0:
		return nil, fmt.Errorf("look at process %d: the kernel does not show it, even to this root: look from outside of the container", pid)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("look at process %d: it is another user's: run it with sudo", pid)
	case err != nil:
		return nil, fmt.Errorf("look at process %d: %w", pid, err)
	}
	p := &process{exam: x, pid: pid, dir: dir, maps: parseMaps(text), why: map[string]audit.Loaded{}}
	if err := x.section(ctx, "process", p.look); err != nil {
		return nil, err
	}
	if err := x.section(ctx, "environment", p.environment); err != nil {
		return nil, err
	}
	x.r.close()
	return x.r, nil
}

// maxMaps is how much is read of the maps of one process: vm.max_map_count allows
// more than other texts may have.
const maxMaps = 64 << 20

// process is one that runs.
type process struct {
	*exam
	pid  int
	dir  string
	exe  string
	maps []mapped
	env  map[string]string // nil if it may not be read
	why  map[string]audit.Loaded
}

func (p *process) look(ctx context.Context, x *exam) error {
	p.exe = strings.TrimSuffix(x.link(p.dir+"/exe"), " (deleted)")
	program := p.exe
	if program == "" {
		program = "no program: it is of the kernel, or ends now"
	}
	x.fact("process %d (%s) runs %s", p.pid, x.line(p.dir+"/comm"), program)
	if text, err := x.read(p.dir + "/environ"); err == nil {
		p.env = map[string]string{}
		for e := range strings.SplitSeq(text, "\x00") {
			if name, value, ok := strings.Cut(e, "="); ok {
				p.env[name] = value
			}
		}
	}
	if own, its := x.link("/proc/self/ns/mnt"), x.link(p.dir+"/ns/mnt"); own != "" && its != "" && own != its {
		x.fact("it sees other file systems than this shell (a container): paths are its own, and how it found them is not looked at")
	} else if err := p.explain(ctx); err != nil {
		return err
	}
	var main []Mapping
	for _, m := range p.maps {
		if base := path.Base(m.path); ofROCm(base) {
			g := p.mapping(m)
			if x.r.Mapped = append(x.r.Mapped, g); g.Main {
				main = append(main, g)
				x.fact("%s: %s", g.Path, g.Why)
			}
		}
	}
	if len(x.r.Mapped) == 0 {
		x.fact("it maps no library of ROCm")
	}
	p.deleted()
	x.mixed(main, "process-mixed")
	return nil
}

// ofROCm reports whether a library's name is one that ROCm's trees have.
func ofROCm(base string) bool {
	for _, prefix := range []string{"libamd_", "libamdhip64.", "libhsa", "libroc", "librccl.", "libhip", "libMIOpen.", "libamdocl64.", "libmigraphx"} {
		if strings.HasPrefix(base, prefix) && strings.Contains(base, ".so") {
			return true
		}
	}
	return false
}

// mapping describes one library.
func (p *process) mapping(m mapped) Mapping {
	g := Mapping{Name: path.Base(m.path), Path: m.path, Deleted: m.deleted, Process: p.pid, Main: mainLibrary(path.Base(m.path)), Why: "opened by its path, or by something that is not there any more (dlopen)"}
	if c := p.copyFor(m.path); c != nil {
		g.Copy = c.Root
	}
	if l, ok := p.why[m.path]; ok {
		g.Why, g.By, g.soname = reason(l), l.By, l.Soname
	}
	if m.deleted {
		g.Why += "; the file was deleted since"
	}
	return g
}

// reason says for people how the loader came to a library.
func reason(l audit.Loaded) string {
	by := "the program"
	if l.By != "" {
		by = l.By
	}
	asks := "needed by "
	if l.Opened {
		asks = "opened by "
	}
	switch l.Why {
	case audit.WhyRPath, audit.WhyRunPath:
		return asks + by + ", found by " + l.Why + " of " + l.Through
	case audit.WhyLibraryPath, audit.WhyPreload, audit.WhyCache:
		return asks + by + ", found by " + l.Why
	case audit.WhyPath:
		return asks + by + ", by its path"
	case audit.WhyDefault:
		return asks + by + ", found in a directory that the loader always searches"
	case audit.WhyProgram:
		return "opened with dlopen"
	}
	return asks + by + ", and not found"
}

// maxRoots bounds how many libraries are followed as if they were opened alone.
const maxRoots = 512

// explain follows the program, then each library that this does not account for,
// as dlopen brings them in: those of Python's modules, say.
func (p *process) explain(ctx context.Context) error {
	r := audit.NewResolver(p.loadEnv(p.env))
	left := 0
	for _, m := range p.maps {
		if ofROCm(path.Base(m.path)) {
			left++
		}
	}
	if left == 0 {
		return nil
	}
	roots := []string{p.exe}
	for _, m := range p.maps {
		if !m.deleted && m.path != p.exe && len(roots) < maxRoots {
			roots = append(roots, m.path)
		}
	}
	have := map[string]bool{}
	for _, m := range p.maps {
		have[m.path] = true
	}
	for _, root := range roots {
		if l, ok := p.why[root]; ok && l.Why != audit.WhyProgram {
			continue
		}
		all, err := r.Resolve(ctx, root)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			continue // a file of data that is mapped
		}
		for i, l := range all {
			if old, ok := p.why[l.Path]; have[l.Path] && (!ok || weaker(old, l)) && (i > 0 || root != p.exe) {
				p.why[l.Path] = l
			}
		}
	}
	return nil
}

// weaker reports whether a reason gives way to another: that something needs a
// library says more than that HIP would open it, and this more than that
// somebody did.
func weaker(old, l audit.Loaded) bool {
	rank := func(l audit.Loaded) int {
		switch {
		case l.Why == audit.WhyProgram:
			return 2
		case l.Opened:
			return 1
		}
		return 0
	}
	return rank(l) < rank(old)
}

// loadEnv is what the loader of a process with an environment goes by.
func (x *exam) loadEnv(env map[string]string) audit.LoadEnv {
	e := audit.LoadEnv{LibraryPath: env["LD_LIBRARY_PATH"], Preload: env["LD_PRELOAD"], Opens: opens}
	if cache, err := x.cache(); err == nil {
		caps := audit.HWCaps()
		e.Cache = func(name string) []string { return cache.Lookup(name, caps) }
	}
	return e
}

// opens are the names that HIP gives to dlopen when its first stream or program
// is made: the comgr of its own generation.
func opens(soname string) []string {
	switch soname {
	case "libamdhip64.so.5", "libamdhip64.so.6":
		return []string{"libamd_comgr.so.2"}
	case "libamdhip64.so.7":
		return []string{"libamd_comgr.so.3"}
	}
	return nil
}

// copyFor is the copy that a library is of; one that is at no usual place is made
// known.
func (x *exam) copyFor(file string) *Copy {
	if c := x.copyOf(file); c != nil {
		return c
	}
	dir := path.Dir(file)
	if len(x.mainLibraries(dir)) == 0 {
		return nil
	}
	f := &finder{exam: x, at: map[string]int{}}
	if base := path.Base(dir); base == "lib" || base == "lib64" {
		f.tree(path.Dir(dir), "found by its use")
	}
	if len(f.all) == 0 {
		f.directory(dir, distribution)
	}
	if len(f.all) == 0 {
		return nil
	}
	x.r.Copies = append(x.r.Copies, f.all[0])
	return &x.r.Copies[len(x.r.Copies)-1]
}

// deleted finds a generation that was taken away under the process.
func (p *process) deleted() {
	n, first := 0, ""
	for _, m := range p.r.Mapped {
		if m.Deleted {
			if n++; first == "" {
				first = m.Path
			}
		}
	}
	if n > 0 {
		p.find(Finding{Check: "process-deleted", Severity: Warning, Subject: first, Detail: fmt.Sprintf("it was deleted or replaced since the process mapped it (libraries of ROCm in all: %d)", n),
			Why: "kernels and databases that were not loaded yet are gone: the process fails at some later call", Remedy: []string{"start it again"}})
	}
}

// mixed finds main libraries of more than one ROCm in one process.
func (x *exam) mixed(main []Mapping, check string) {
	why := "HIP, comgr and the HSA runtime of two ROCms do not fit: hipErrorOutOfMemory at the first stream, a crash, or wrong code in silence"
	kinds := map[string]Mapping{}
	for _, m := range main {
		if m.Path == "" {
			continue
		}
		kind, _, _ := strings.Cut(m.Name, ".so")
		if first, have := kinds[kind]; have && first.Path != m.Path {
			severity := Broken
			if first.soname != "" && m.soname != "" && first.soname != m.soname {
				severity = Warning // each may be whole in itself
			}
			x.find(Finding{Check: check, Severity: severity, Subject: kind, Detail: first.Path + " and " + m.Path + " are both there: " + m.Why, Why: why, Remedy: x.separate(m, first)})
			return
		}
		kinds[kind] = m
	}
	for _, m := range main {
		if first := main[0]; m.Path != "" && first.Path != "" && m.Copy != first.Copy && x.overlap(m, first) {
			x.find(Finding{Check: check, Severity: Broken, Subject: m.Name, Detail: fmt.Sprintf("it is of %s (%s), and %s is of %s (%s)", x.titled(m.Copy), m.Why, first.Name, x.titled(first.Copy), first.Why), Why: why, Remedy: x.separate(m, first)})
			return
		}
	}
}

// overlap reports whether one of two libraries is in place of one that the other
// has beside itself. Where neither has, as in Nix and Spack, where each library is
// a package of its own, that two directories are used means nothing.
func (x *exam) overlap(a, b Mapping) bool {
	return x.beside(a, b) || x.beside(b, a)
}

// beside reports whether the directory of one library has another that the second
// is in place of: of its SONAME, or of its kind where that is not known.
func (x *exam) beside(a, b Mapping) bool {
	if b.soname != "" {
		return slices.Contains(x.mainLibraries(path.Dir(a.Path)), b.soname)
	}
	kind, _, _ := strings.Cut(b.Name, ".so")
	return hasPrefix(x.mainLibraries(path.Dir(a.Path)), kind+".so")
}

// titled describes the copy at a root.
func (x *exam) titled(root string) string {
	for _, c := range x.r.Copies {
		if c.Root == root {
			return c.describe()
		}
	}
	return "an unknown ROCm"
}

// separate says how two ROCms are kept apart, by what mixed them.
func (x *exam) separate(all ...Mapping) []string {
	for _, m := range all {
		switch {
		case strings.HasSuffix(m.Why, audit.WhyLibraryPath):
			return []string{"unset LD_LIBRARY_PATH", "or give the program a run path that goes before it: rocm-nightly patchelf --force-rpath --set-rpath " + quote(path.Dir(m.Path)) + " PROGRAM"}
		case strings.HasSuffix(m.Why, audit.WhyPreload):
			return []string{"unset LD_PRELOAD"}
		case strings.HasSuffix(m.Why, audit.WhyCache):
			return []string{"grep -rl -e " + quote(path.Dir(m.Path)) + " /etc/ld.so.conf.d /etc/ld.so.conf   # remove it there", "sudo ldconfig"}
		}
	}
	return []string{"import or link one of the two alone: what brings in each is said above"}
}

// environment judges the variables that the process was started with.
func (p *process) environment(_ context.Context, x *exam) error {
	if p.env == nil {
		x.fact("the variables of the process could not be read")
		return nil
	}
	x.env = p.env
	x.logins, x.started = nil, true
	return checkEnvironment(context.Background(), x)
}
