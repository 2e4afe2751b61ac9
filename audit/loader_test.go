package audit

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const ldso = "/lib64/ld-linux-x86-64.so.2"

// layouts are trees whose main is resolved here and by ld.so.
var layouts = []struct {
	name  string
	main  string
	files map[string]elfSpec
	links map[string]string
}{
	{"DT_RPATH is inherited", "bin/main", map[string]elfSpec{
		"bin/main":          {program: true, needed: []string{"liba.so.1"}, rpath: "$ORIGIN/../lib:$ORIGIN/../lib/sys"},
		"lib/liba.so.1":     {soname: "liba.so.1", needed: []string{"libb.so.1"}},
		"lib/sys/libb.so.1": {soname: "libb.so.1", needed: []string{"libm.so.6"}},
	}, nil},
	{"DT_RUNPATH is not", "bin/main", map[string]elfSpec{
		"bin/main":          {program: true, needed: []string{"liba.so.1"}, runpath: "$ORIGIN/../lib:$ORIGIN/../lib/sys"},
		"lib/liba.so.1":     {soname: "liba.so.1", needed: []string{"libb.so.1"}},
		"lib/sys/libb.so.1": {soname: "libb.so.1"},
	}, nil},
	{"DT_RUNPATH shuts off what is inherited", "bin/main", map[string]elfSpec{
		"bin/main":          {program: true, needed: []string{"liba.so.1"}, rpath: "$ORIGIN/../lib:$ORIGIN/../lib/sys"},
		"lib/liba.so.1":     {soname: "liba.so.1", needed: []string{"libb.so.1"}, runpath: "$ORIGIN/gone"},
		"lib/sys/libb.so.1": {soname: "libb.so.1"},
	}, nil},
	{"a library's DT_RPATH serves what it loads", "lib/liba.so.1", map[string]elfSpec{
		"lib/liba.so.1":      {soname: "liba.so.1", needed: []string{"libb.so.1"}, rpath: "$ORIGIN/sys:$ORIGIN/deep"},
		"lib/sys/libb.so.1":  {soname: "libb.so.1", needed: []string{"libd.so.1"}},
		"lib/deep/libd.so.1": {soname: "libd.so.1"},
	}, nil},
	{"the loader in between has DT_RUNPATH", "bin/main", map[string]elfSpec{
		"bin/main":           {program: true, needed: []string{"liba.so.1"}, rpath: "$ORIGIN/../lib:$ORIGIN/../lib/deep"},
		"lib/liba.so.1":      {soname: "liba.so.1", needed: []string{"libb.so.1"}, runpath: "$ORIGIN/sys"},
		"lib/sys/libb.so.1":  {soname: "libb.so.1", needed: []string{"libd.so.1"}},
		"lib/deep/libd.so.1": {soname: "libd.so.1"},
	}, nil},
	{"$ORIGIN through a linked directory", "bin/main", map[string]elfSpec{
		"bin/main":           {program: true, needed: []string{"liba.so.1"}, runpath: "$ORIGIN/../link"},
		"lib/deep/liba.so.1": {soname: "liba.so.1", needed: []string{"libb.so.1"}, runpath: "$ORIGIN/../sys"},
		"lib/sys/libb.so.1":  {soname: "libb.so.1"},
		"sys/libb.so.1":      {soname: "libb.so.1"},
	}, map[string]string{"link": "lib/deep"}},
	{".. behind a linked directory", "bin/main", map[string]elfSpec{
		"bin/main":           {program: true, needed: []string{"libb.so.1"}, runpath: "$ORIGIN/../link/../sys"},
		"lib/sys/libb.so.1":  {soname: "libb.so.1"},
		"sys/libb.so.1":      {soname: "libb.so.1"},
		"lib/deep/unused.so": {soname: "unused.so"},
	}, map[string]string{"link": "lib/deep"}},
	{"$ORIGIN of a linked file", "bin/main", map[string]elfSpec{
		"bin/main":           {program: true, needed: []string{"liba.so.1"}, runpath: "$ORIGIN/../llvm"},
		"lib/liba.so.1.0":    {soname: "liba.so.1", needed: []string{"libb.so.1", "libd.so.1"}, runpath: "$ORIGIN/sys"},
		"lib/sys/libb.so.1":  {soname: "libb.so.1"},
		"llvm/sys/libd.so.1": {soname: "libd.so.1"},
	}, map[string]string{"llvm/liba.so.1": "../lib/liba.so.1.0"}},
	{"a name that is loaded is not searched for", "bin/main", map[string]elfSpec{
		"bin/main":      {program: true, needed: []string{"libx.so", "liba.so.1"}, runpath: "$ORIGIN/../lib"},
		"lib/libx.so":   {soname: "libreal.so.1"},
		"lib/liba.so.1": {soname: "liba.so.1", needed: []string{"libreal.so.1"}},
	}, nil},
	{"two names of one file", "bin/main", map[string]elfSpec{
		"bin/main":      {program: true, needed: []string{"libx.so", "liby.so"}, runpath: "$ORIGIN/../lib"},
		"lib/libx.so.1": {},
	}, map[string]string{"lib/libx.so": "libx.so.1", "lib/liby.so": "libx.so.1"}},
	{"breadth first", "bin/main", map[string]elfSpec{
		"bin/main":        {program: true, needed: []string{"liba.so.1", "libb.so.1"}, runpath: "$ORIGIN/../lib"},
		"lib/liba.so.1":   {soname: "liba.so.1", needed: []string{"libc1.so"}, runpath: "$ORIGIN"},
		"lib/libb.so.1":   {soname: "libb.so.1", needed: []string{"libd.so.1"}, runpath: "$ORIGIN/b"},
		"lib/libc1.so":    {soname: "libc1.so", needed: []string{"libd.so.1"}, runpath: "$ORIGIN/c"},
		"lib/b/libd.so.1": {soname: "libd.so.1"},
		"lib/c/libd.so.1": {soname: "libd.so.1"},
	}, nil},
	{"$LIB and $PLATFORM", "bin/main", map[string]elfSpec{
		"bin/main":                       {program: true, needed: []string{"liba.so.1", "libb.so.1", "libd.so.1"}, runpath: "$ORIGIN/../$LIB:$ORIGIN/../${PLATFORM}"},
		"lib/x86_64-linux-gnu/liba.so.1": {soname: "liba.so.1"},
		"lib64/libd.so.1":                {soname: "libd.so.1"},
		"x86_64/libb.so.1":               {soname: "libb.so.1"},
	}, nil},
	{"tokens that are none", "bin/main", map[string]elfSpec{
		"bin/main":            {program: true, needed: []string{"liba.so.1", "libb.so.1"}, runpath: "$ORIGINAL/../lib:$ORIGIN_/../lib:${ORIGINAL}/../lib:$ORIGIN/../$LIBS:$ORIGIN-x/lib"},
		"binAL/x":             {},
		"bin_/x":              {},
		"lib/liba.so.1":       {soname: "liba.so.1"},
		"lib64S/x":            {},
		"bin-x/lib/libb.so.1": {soname: "libb.so.1"},
	}, nil},
	{"hwcaps", "bin/main", map[string]elfSpec{
		"bin/main":                             {program: true, needed: []string{"liba.so.1", "libb.so.1"}, runpath: "$ORIGIN/../lib"},
		"lib/liba.so.1":                        {soname: "liba.so.1"},
		"lib/glibc-hwcaps/x86-64-v2/liba.so.1": {soname: "liba.so.1", needed: []string{"libe.so.1"}, runpath: "$ORIGIN"},
		"lib/glibc-hwcaps/x86-64-v2/libe.so.1": {soname: "libe.so.1"},
		"lib/glibc-hwcaps/x86-64-v2/libb.so.1": {soname: "libb.so.1"},
	}, nil},
	{"a path as DT_NEEDED", "lib/liba.so.1", map[string]elfSpec{
		"lib/liba.so.1":     {soname: "liba.so.1", needed: []string{"$ORIGIN/sys/libb.so.1"}},
		"lib/sys/libb.so.1": {soname: "libb.so.1"},
	}, nil},
	{"a filter and an auxiliary one", "bin/main", map[string]elfSpec{
		"bin/main":          {program: true, needed: []string{"liba.so.1", "libd.so.1"}, runpath: "$ORIGIN/../lib"},
		"lib/liba.so.1":     {soname: "liba.so.1", filter: "libb.so.1", runpath: "$ORIGIN/sys"},
		"lib/libd.so.1":     {soname: "libd.so.1", auxiliary: "libe.so.1", needed: []string{"libb.so.1"}, runpath: "$ORIGIN/sys"},
		"lib/sys/libb.so.1": {soname: "libb.so.1", needed: []string{"libm.so.6"}},
		"lib/sys/libe.so.1": {soname: "libe.so.1"},
	}, nil},
	{"what is missing", "lib/liba.so.1", map[string]elfSpec{
		"lib/liba.so.1": {soname: "liba.so.1", needed: []string{"libgone.so.1", "libz-gone.so"}, runpath: "$ORIGIN:/no/such::relative"},
	}, nil},
}

// listed matches a line of ld.so --list that tells where a name was found.
var listed = regexp.MustCompile(`(?m)^\t(\S+) => (not found|\S+)`)

// list asks ld.so, with an empty environment.
func list(t *testing.T, file string) map[string]string {
	t.Helper()
	// As --list, but it goes on when something is missing, as ldd does.
	cmd := exec.Command(ldso, file)
	cmd.Env = []string{"LD_TRACE_LOADED_OBJECTS=1"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got := map[string]string{}
	for _, m := range listed.FindAllStringSubmatch(string(out), -1) {
		if m[2] != "not found" {
			m[2] = real(t, m[2])
		}
		got[m[1]] = m[2]
	}
	return got
}

func real(t *testing.T, name string) string {
	t.Helper()
	p, err := filepath.EvalSymlinks(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// resolve asks our loader for the same.
func resolve(t *testing.T, dir, main string) map[string]string {
	t.Helper()
	return resolveIn(loaderOf(t, dir), main)
}

// loaderOf reads a tree.
func loaderOf(t *testing.T, dir string) *loader {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	tr := newTree(root, real(t, dir), nil)
	if err := tr.read(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	h := newHost()
	h.libraries("/etc/ld.so.cache", "/etc/ld.so.conf")
	return newLoader(tr, h)
}

// resolveIn maps one file of a tree, where it stands.
func resolveIn(l *loader, main string) map[string]string {
	tr := l.tree
	got := map[string]string{}
	k := l.link(l.make(false, filepath.Dir(main)), tr.entries[main].object(), "./"+main)
	l.start(k, func(_ *process, n need) {
		switch {
		case n.to == nil:
			got[n.name] = "not found"
		case n.to.host:
			got[n.name] = n.to.path
		default:
			got[n.name] = filepath.Join(tr.abs, n.to.path)
		}
	})
	return got
}

func TestANeedWithASlashIsAPath(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "lib/liba.so.1"), string(build(t, elfSpec{needed: []string{"$ORIGIN/sys/libb.so.1", "sys/libb.so.1", "/no/such.so"}})), 0o755)
	write(t, filepath.Join(dir, "lib/sys/libb.so.1"), string(build(t, elfSpec{soname: "libb.so.1"})), 0o755)
	got := resolve(t, dir, "lib/liba.so.1")
	if got["$ORIGIN/sys/libb.so.1"] != filepath.Join(real(t, dir), "lib/sys/libb.so.1") || got["sys/libb.so.1"] != "not found" || got["/no/such.so"] != "not found" {
		t.Errorf("%v", got)
	}
}

func needLoader(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(ldso); err != nil {
		t.Skip("no ld.so of glibc here: install the package libc6")
	}
}

// agree compares what both say. ld.so lists an object once, under the name that
// it was asked for first; other names of it are ours alone.
func agree(t *testing.T, theirs, ours map[string]string) {
	t.Helper()
	for name, where := range theirs {
		if filepath.IsAbs(name) { // the loader
			continue
		}
		if ours[name] != where {
			t.Errorf("%s: ld.so %s, ours %q", name, where, ours[name])
		}
	}
	found := map[string]bool{}
	for where := range maps.Values(theirs) {
		found[where] = true
	}
	for name, where := range ours {
		if theirs[name] == "" && !found[where] && !strings.Contains(where, "ld-linux") && !strings.Contains(name, "/") {
			t.Errorf("%s: ours %s, ld.so does not know it: %v", name, where, theirs)
		}
	}
}

func TestTheLoaderAgreesWithLdSo(t *testing.T) {
	needLoader(t)
	for _, l := range layouts {
		t.Run(l.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, spec := range l.files {
				write(t, filepath.Join(dir, name), string(build(t, spec)), 0o755)
			}
			for name, to := range l.links {
				symlink(t, to, filepath.Join(dir, name))
			}
			agree(t, list(t, filepath.Join(real(t, dir), l.main)), resolve(t, dir, l.main))
		})
	}
}

func TestALibraryForAnotherMachineIsPassedOver(t *testing.T) {
	needLoader(t)
	dir := t.TempDir()
	b := build(t, elfSpec{soname: "liba.so.1"})
	other := []byte(string(b))
	other[18] = 183 // EM_AARCH64
	write(t, filepath.Join(dir, "one/liba.so.1"), string(other), 0o755)
	write(t, filepath.Join(dir, "two/liba.so.1"), string(b), 0o755)
	write(t, filepath.Join(dir, "main"), string(build(t, elfSpec{program: true, needed: []string{"liba.so.1"}, runpath: "$ORIGIN/one:$ORIGIN/two"})), 0o755)
	ours := resolve(t, dir, "main")
	if want := filepath.Join(real(t, dir), "two/liba.so.1"); ours["liba.so.1"] != want {
		t.Errorf("%v", ours)
	}
	agree(t, list(t, filepath.Join(real(t, dir), "main")), ours)
}

func TestTheLoaderAgreesWithLdSoOnPrograms(t *testing.T) {
	needLoader(t)
	dir := t.TempDir()
	names := []string{"/usr/bin/ls", "/usr/bin/gcc", "/usr/bin/perl", "/usr/bin/git", "/usr/bin/ld", "/usr/bin/curl"}
	for _, glob := range []string{"/usr/bin/[c-g]*", "/usr/lib/x86_64-linux-gnu/lib[a-l]*.so.?"} {
		more, _ := filepath.Glob(glob)
		names = append(names, more[:min(len(more), 20)]...)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil || !strings.HasPrefix(string(b[:min(len(b), 4)]), "\x7fELF") || len(b) > 8<<20 {
			continue // any of them will do
		}
		write(t, filepath.Join(dir, filepath.Base(name)), string(b), 0o755)
	}
	l := loaderOf(t, dir)
	for _, e := range l.tree.all {
		if e.hostELF() && len(e.elf.Needed) > 0 {
			agree(t, list(t, filepath.Join(real(t, dir), e.path)), resolveIn(l, e.path))
		}
	}
}

func TestLdSoConf(t *testing.T) {
	dir := t.TempDir()
	conf := filepath.Join(dir, "ld.so.conf")
	write(t, conf, "# first\n/one /two:/three # x\ninclude sub/*.conf\ninclude "+conf+"\nhwcap 1 nosegneg\nrelative\n/one\n/four=libc6\n", 0o644)
	write(t, filepath.Join(dir, "sub/b.conf"), "/b\n", 0o644)
	write(t, filepath.Join(dir, "sub/a.conf"), "/a\r\ninclude "+conf+"\n", 0o644)
	got := strings.Join(hostLibDirs(conf), " ")
	want := "/one /two /three /a /b /four " + strings.Join(builtInLibDirs, " ")
	for _, d := range strings.Fields(want) {
		if !strings.Contains(" "+got+" ", " "+d+" ") {
			t.Errorf("%s is not in %s", d, got)
		}
	}
	if n := len(strings.Fields(got)); n != len(strings.Fields(want)) {
		t.Errorf("%s", got)
	}
}

// TestLoaderReadsTheCache compares with ld.so on libraries of this host that its
// cache alone leads to, or would if ldconfig had been run.
func TestLoaderReadsTheCache(t *testing.T) {
	h := newHost()
	h.libraries("/etc/ld.so.cache", "/etc/ld.so.conf")
	if h.cache == nil {
		t.Skip("no ld.so.cache: run ldconfig (package libc-bin)")
	}
	dir := real(t, t.TempDir())
	conf := filepath.Join(dir, "ld.so.conf")
	write(t, filepath.Join(dir, "added/libadded.so.1"), string(build(t, elfSpec{soname: "libadded.so.1"})), 0o755)
	write(t, conf, dir+"/added\n", 0o644)
	write(t, filepath.Join(dir, "cut"), "ld.so-1.7.0", 0o644)

	main := filepath.Join(dir, "tree/bin/main")
	write(t, main, string(build(t, elfSpec{program: true, needed: []string{"libadded.so.1", "libc.so.6", "libm.so.6"}})), 0o755)
	for cache, found := range map[string]bool{"/etc/ld.so.cache": false, dir + "/cut": true, dir + "/none": true} {
		h := newHost()
		h.libraries(cache, conf)
		got := resolveIn(newLoader(loaderOf(t, filepath.Join(dir, "tree")).tree, h), "bin/main")
		if ok := got["libadded.so.1"] != "not found"; ok != found {
			t.Errorf("%s: %v", cache, got)
		}
		if !found && !maps.Equal(got, list(t, main)) {
			t.Errorf("%v\nld.so: %v", got, list(t, main))
		}
	}
}
