package patchelf

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// linkage is one way to make a program or library that looks at itself
// (testdata/matrix/self.c).
type linkage struct {
	cc, ld, kind string
	option       option
}

// option is something that a linker is told, or done to what it made.
type option struct {
	name  string
	args  []string
	after func(tb testing.TB, b []byte) []byte
}

func (l linkage) name() string {
	return strings.Join([]string{l.cc, l.ld, l.kind, l.option.name}, "-")
}

func (l linkage) lib() bool { return l.kind == "lib" || l.kind == "module" }

var kinds = map[string][]string{
	"pie":    {"-pie"},
	"exec":   {"-no-pie"},
	"lib":    {"-shared", "-Wl,-soname,libself.so.1"},
	"module": {"-shared", "-nostartfiles", "-Wl,-Bsymbolic"},
}

// options are what makes the outputs of one linker differ for an editor.
func options() []option {
	ld := func(name string, args ...string) option { return option{name: name, args: args} }
	return []option{
		ld("plain"),
		ld("runpath", "-Wl,-rpath,/nowhere/first:/nowhere/second,--enable-new-dtags"),
		ld("rpath", "-Wl,-rpath,/n,--disable-new-dtags"),
		{name: "nosections", args: []string{"-Wl,-rpath,/nowhere/first"}, after: dropSections},
		{name: "tight", after: dropSpares},
		ld("page16k", "-Wl,-z,max-page-size=16384"),
		ld("page64k", "-Wl,-z,max-page-size=65536"),
		ld("page2m", "-Wl,-z,max-page-size=2097152"),
		ld("noseparate", "-Wl,-z,noseparate-code", "-Wl,--build-id=none"),
		ld("now", "-Wl,-z,now", "-Wl,--hash-style=both"),
		ld("norelro", "-Wl,-z,norelro", "-Wl,-z,execstack"),
		ld("bare", "-s", "-Wl,--hash-style=gnu"),
		ld("shared-strings", "-Wl,-rpath,libdep.so", "-Wl,-soname,so.1/libdep.so"),
	}
}

// dropSections makes a file that has no section headers, nor what is not
// loaded.
func dropSections(tb testing.TB, b []byte) []byte {
	f := parsed(tb, b)
	f.put(b[24+2*f.word():], 0)
	clear(b[24+3*f.word()+4+2+4:][:6])
	f.order.PutUint16(b[24+3*f.word()+4+2+4:], uint16(f.shdrSize()))
	end := uint64(0)
	for _, p := range f.phdrs {
		end = max(end, p.end())
	}
	return b[:end]
}

// dropSpares makes the dynamic section end with its one DT_NULL.
func dropSpares(tb testing.TB, b []byte) []byte {
	f := parsed(tb, b)
	i, size := f.segment(elf.PT_DYNAMIC), uint64((len(f.dyns)+1)*f.dynSize())
	p := f.phdrs[i]
	p.filesz, p.memsz = size, size
	copy(b[f.phoff+uint64(i*f.phdrSize()):], f.putPhdrs([]phdr{p}))
	err := f.eachShdr(maxShdrs, func(i int, s shdr) bool {
		if elf.SectionType(s.kind) == elf.SHT_DYNAMIC {
			s.size = size
			f.putShdr(b[f.shoff+uint64(i*f.shdrSize()):], s)
		}
		return true
	})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func parsed(tb testing.TB, b []byte) *File {
	tb.Helper()
	f, err := Parse(byteFile(b), int64(len(b)))
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// linkers are the pairs of compiler and linker that are installed.
func linkers() (have [][2]string, missing []string) {
	for _, p := range [][3]string{
		{"gcc", "bfd", "binutils"}, {"gcc", "gold", "binutils"}, {"gcc", "lld", "lld-16"}, {"gcc", "mold", "mold"},
		{"clang-16", "lld", "clang-16"}, {"clang-16", "bfd", "clang-16"}, {"clang-16", "mold", "clang-16 mold"},
	} {
		ld := "ld." + p[1]
		if p[1] == "lld" {
			ld = "ld.lld-16"
		}
		_, noCompiler := exec.LookPath(p[0])
		_, noLinker := exec.LookPath(ld)
		if noCompiler != nil || noLinker != nil {
			missing = append(missing, p[0]+" with "+p[1]+" (Debian: "+p[2]+")")
			continue
		}
		have = append(have, [2]string{p[0], p[1]})
	}
	return have, missing
}

// linkages are all combinations, or a part in which every pair occurs at
// least once.
func linkages(all bool) []linkage {
	var out []linkage
	pairs, _ := linkers()
	for i, pair := range pairs {
		for k, kind := range []string{"pie", "exec", "lib", "module"} {
			for o, option := range options() {
				if pair[1] == "gold" && option.name == "noseparate" {
					continue // it does not know the flag, and does not separate
				}
				if all || (i+k+o)%5 == 0 {
					out = append(out, linkage{pair[0], pair[1], kind, option})
				}
			}
		}
	}
	return out
}

// dependencies are the libraries that the fixtures need or could need: the
// first two are the same but for their names.
func dependencies(tb testing.TB) string {
	tb.Helper()
	script := put(tb, "versions", []byte("DEP_1 { global: dep; local: *; };\n"))
	for _, name := range []string{"libdep.so", "libother.so", "libextra.so"} {
		source := "static int value = 40; int dep(int x) { return value + x; }\n"
		if name == "libextra.so" {
			source = "int extra(void) { return 1; }\n"
		}
		shop.build(tb, "matrix/deps/"+name, source, "-shared", "-fPIC", "-Wl,-soname,"+name, "-Wl,--version-script,"+script)
	}
	return filepath.Join(shop.dir, "matrix", "deps")
}

// make links the fixture, once, and returns its content.
func (l linkage) make(tb testing.TB) []byte {
	tb.Helper()
	args := l.args(tb)
	shop.mu.Lock()
	defer shop.mu.Unlock()
	path := filepath.Join(shop.dir, "matrix", l.name())
	if _, ok := shop.built[path]; !ok {
		if out, err := exec.Command(l.cc, append([]string{"-o", path}, args...)...).CombinedOutput(); err != nil {
			tb.Fatalf("%s %v: %v\n%s", l.cc, args, err, out)
		}
		shop.built[path] = path
	}
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	if l.option.after != nil {
		b = l.option.after(tb, b)
	}
	return b
}

func (l linkage) args(tb testing.TB) []string {
	tb.Helper()
	deps := dependencies(tb)
	args := []string{selfObject(tb, l.cc, l.kind), "-fuse-ld=" + l.ld}
	if l.ld == "lld" && l.cc == "gcc" {
		args = append(args, "-B"+lldDir(tb))
	}
	args = append(append(args, kinds[l.kind]...), l.option.args...)
	return append(args, "-L"+deps, "-ldep")
}

// selfObject compiles self.c for a kind of output.
func selfObject(tb testing.TB, cc, kind string) string {
	tb.Helper()
	shop.mu.Lock()
	defer shop.mu.Unlock()
	args := []string{"-O1", "-g", "-c", "testdata/matrix/self.c"}
	code := "pic"
	switch kind {
	case "pie":
		code, args = "pie", append(args, "-fPIE", "-DMAIN")
	case "exec":
		code, args = "fixed", append(args, "-fno-pie", "-DMAIN")
	default:
		args = append(args, "-fPIC")
	}
	path := filepath.Join(shop.dir, fmt.Sprintf("self-%s-%s.o", cc, code))
	if _, ok := shop.built[path]; ok {
		return path
	}
	if out, err := exec.Command(cc, append(args, "-o", path)...).CombinedOutput(); err != nil {
		tb.Fatalf("%s %v: %v\n%s", cc, args, err, out)
	}
	shop.built[path] = path
	return path
}

// lldDir is a directory with LLVM's linker by the name that gcc looks for.
func lldDir(tb testing.TB) string {
	tb.Helper()
	dir := filepath.Join(shop.dir, "lld")
	path, err := exec.LookPath("ld.lld-16")
	if err != nil {
		tb.Skip("ld.lld-16 is missing (Debian: lld-16)")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	_ = os.Symlink(path, filepath.Join(dir, "ld.lld"))
	return dir
}
