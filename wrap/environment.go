package wrap

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/environ"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// environment works out the variables for a tree that will live in rocm, of a
// prefix o.FinalPrefix. Only what the tree has is named. PATH comes first, so
// that the shell finds this ROCm; the others come last, so that the user's own
// entries are found before it. lib/rocm_sysdeps/lib/pkgconfig is left out on
// purpose: it would put AMD's private zlib and libdrm in the way of the system's.
// So is AMD_COMGR_CACHE_DIR: a shell outlives the release that would key it.
func (l *layout) environment(o Options, rocm string) *environ.Environment {
	prefix := path.Clean(o.FinalPrefix)
	e := &environ.Environment{Schema: environ.Schema, Prefix: prefix, Cache: cacheKey(o)}
	e.About = strings.TrimSpace("ROCm " + o.Version + " " + o.Target)
	e.Set = []environ.Variable{
		{Name: "ROCM_PATH", Value: rocm}, {Name: "ROCM_HOME", Value: rocm}, {Name: "HIP_PATH", Value: rocm}, {Name: "HIP_PLATFORM", Value: "amd"},
	}
	if dir := "lib/llvm/amdgcn/bitcode"; l.tree.isDir(dir) {
		e.Set = append(e.Set, environ.Variable{Name: "HIP_DEVICE_LIB_PATH", Value: path.Join(rocm, dir)})
	}
	if file := "lib/llvm/bin/clang++"; l.tree.isFile(file) {
		e.Set = append(e.Set, environ.Variable{Name: "HIPCXX", Value: path.Join(rocm, file)})
	}
	e.Set = withOwn(e.Set, o.Env)
	e.Lists = []environ.Search{
		{Name: "PATH", Dir: path.Join(prefix, "bin"), First: true},
		{Name: "CMAKE_PREFIX_PATH", Dir: rocm},
	}
	for _, dir := range []string{"lib/pkgconfig", "share/pkgconfig"} {
		if l.tree.isDir(dir) {
			e.Lists = append(e.Lists, environ.Search{Name: "PKG_CONFIG_PATH", Dir: path.Join(rocm, dir)})
		}
	}
	if l.tree.isDir("lib") {
		e.Lists = append(e.Lists, environ.Search{Name: "LD_LIBRARY_PATH", Dir: path.Join(rocm, "lib")})
	}
	return e
}

// withOwn lays the variables that were asked for over ours: one that is empty
// takes ours away.
func withOwn(set []environ.Variable, env map[string]string) []environ.Variable {
	set = slices.DeleteFunc(set, func(v environ.Variable) bool { _, own := env[v.Name]; return own })
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if env[name] != "" {
			set = append(set, environ.Variable{Name: name, Value: env[name]})
		}
	}
	return set
}

// environmentFiles adds etc/: the opt-in environment in the syntax of each shell
// and of modules, and what a system-wide install registers.
func (l *layout) environmentFiles(o Options) {
	e := l.environment(o, under(strings.TrimRight(o.FinalPrefix, "/"), treeDir))
	for name, text := range e.Files(o.Shell, cmp.Or(o.Version, "unknown")) {
		l.file(name, modeFile, text)
	}
	l.systemFiles(e, o, "etc/")
}

// systemFiles adds what a system-wide install registers in /etc.
func (l *layout) systemFiles(e *environ.Environment, o Options, etc string) {
	rocm := e.Set[0].Value
	names := append([]string{e.Set[0].Name}, slices.Sorted(maps.Keys(o.Env))...)
	l.file(etc+"profile.d/rocm-nightly.sh", modeFile, e.Profile(names...))
	l.file(etc+"ld.so.conf.d/rocm-nightly.conf", modeFile, ldConf(rocm))
	for _, lib := range []string{"lib/opencl/libamdocl64.so", "lib/libamdocl64.so"} {
		if l.tree.isFile(lib) {
			l.file(etc+"OpenCL/vendors/rocm-nightly.icd", modeFile, path.Join(rocm, lib)+"\n")
			break
		}
	}
}

// SystemFiles are what makes a bare tree known to a system, by their path below
// /etc: a profile.d file, one for ld.so.conf.d, and an OpenCL vendor. files are
// the tree's entries, with paths relative to it, and o.FinalPrefix is where the
// tree itself will live.
func SystemFiles(files []manifest.File, o Options) (map[string]string, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	l := newLayout(newTree(files, ""))
	l.systemFiles(l.environment(o, o.FinalPrefix), o, "")
	texts := map[string]string{}
	for name, it := range l.items {
		if it.kind == manifest.Regular {
			texts[name] = string(it.data)
		}
	}
	return texts, l.err
}

// ldConf registers the libraries with ldconfig, whose files have no quoting: a
// path that its syntax would cut is not written (glibc elf/ldconfig.c,
// parse_conf).
func ldConf(rocm string) string {
	if strings.ContainsAny(rocm, " \t#=*?[\v\f") {
		return "# The path of this prefix cannot be written in this format.\n"
	}
	return path.Join(rocm, "lib") + "\n"
}
