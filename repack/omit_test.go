package repack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/audit"
	"github.com/rocm-nightly/rocm-nightly/internal/demo"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/omit"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/unpack"
)

// linker makes real libraries and programs.
type linker struct {
	testing.TB
	dir  string
	made int
	libs map[string]string // by SONAME
}

func newLinker(t testing.TB) *linker {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("gcc is missing: install the package gcc")
	}
	l := &linker{TB: t, dir: t.TempDir(), libs: map[string]string{}}
	if err := os.WriteFile(filepath.Join(l.dir, "x.c"), []byte("int main(void) { return 0; }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return l
}

// elf links a library with a SONAME, or a program if that is "".
func (l *linker) elf(soname string, needed ...string) []byte {
	l.Helper()
	for _, name := range needed {
		if l.libs[name] == "" {
			l.elf(name)
		}
	}
	l.made++
	out := filepath.Join(l.dir, fmt.Sprintf("out%d", l.made))
	args := []string{"-nostdlib", "-Wl,--no-as-needed", "-Wl,--build-id=none", "-Wl,--unresolved-symbols=ignore-all", "-o", out, "x.c"}
	if soname != "" {
		args = append(args, "-shared", "-fPIC", "-Wl,-soname,"+soname)
	} else {
		args = append(args, "-pie", "-Wl,-e,main")
	}
	for _, name := range needed {
		args = append(args, l.libs[name])
	}
	cmd := exec.Command("gcc", args...)
	cmd.Dir = l.dir
	if text, err := cmd.CombinedOutput(); err != nil {
		l.Fatalf("gcc: %v\n%s", err, text)
	}
	l.libs[soname] = out
	data, err := os.ReadFile(out)
	if err != nil {
		l.Fatal(err)
	}
	return data
}

// omitTree has one of each thing that can happen to what is to be left out.
func omitTree(t testing.TB) *demo.Tree {
	l := newLinker(t)
	tree := &demo.Tree{MTime: time.Date(2026, 9, 30, 11, 0, 0, 0, time.UTC)}
	text := func(name, s string) { tree.File(name, 0o644, []byte(s)) }
	tree.File("bin/tool", 0o755, l.elf("", "liba.so.1"))
	tree.File("lib/liba.so.1", 0o644, l.elf("liba.so.1", "libneeded.so.1"))
	// Needed through a link that stays and one that would go.
	tree.Symlink("lib/libneeded.so.1", "../clients/staging/libneeded.so.1")
	tree.Symlink("clients/staging/libneeded.so.1", "libneeded.so.1.0")
	tree.Symlink("clients/staging/libneeded.so", "libneeded.so.1")
	tree.File("clients/staging/libneeded.so.1.0", 0o644, l.elf("libneeded.so.1", "libdeep.so.1"))
	tree.File("clients/staging/libdeep.so.1", 0o644, l.elf("libdeep.so.1"))
	// Needed by tests alone.
	tree.File("bin/test_tool", 0o755, l.elf("", "libunneeded.so.1"))
	tree.File("clients/lib/libunneeded.so.1", 0o644, l.elf("libunneeded.so.1", "libdeep.so.1"))
	// The first name of an inode goes, two others stay.
	tree.File("clients/first.so", 0o644, l.elf("libtwin.so.1"))
	tree.Link("lib/libtwin.so.1", "clients/first.so")
	tree.Link("lib/libtwin.so.1.0", "clients/first.so")
	// All names of one go.
	tree.File("clients/both.so", 0o644, l.elf("libboth.so"))
	tree.Link("clients/second.so", "clients/both.so")
	// A script with the builder's interpreter that nobody misses.
	tree.File("share/x/tests/run.py", 0o755, []byte("#!/opt/python/cp312-cp312/bin/python3.12\n"))
	// Links that lead nowhere then, and did before.
	tree.Symlink("bin/alias", "test_tool")
	tree.Symlink("bin/alias2", "alias")
	tree.Symlink("share/x/t", "tests")
	tree.Symlink("share/x/broken", "nothing")
	// A directory of nothing but such a link, and two that were empty before.
	tree.Symlink("share/links/only", "../x/tests/run.py")
	tree.Dir("share/empty", 0o755)
	tree.Dir("clients/empty", 0o755)
	text("share/doc/rocm/CHANGES", "new\n")
	text("share/doc/rocm/LICENSE", "free\n")
	text("share/doc/other/README", "read\n")
	text("lib/libstatic.a", "!<arch>\n")
	for _, gpu := range []string{"gfx1030", "gfx1036", "gfx10-3-generic"} {
		text(".kpack/a_lib_"+gpu+".kpack", "KPAK\x01\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00"+gpu)
		text("lib/rocblas/library/"+gpu+"/Kernels.so-000-"+gpu+".hsaco", gpu)
		text("share/miopen/db/"+gpu+"_36.HIP.fdb.txt", gpu)
	}
	text("lib/llvm/include/llvm/IR/Module.h", "#pragma once\n")
	tree.File("lib/llvm/bin/mlir-opt", 0o755, l.elf("", "libMLIR.so.22"))
	tree.File("lib/llvm/lib/libMLIR.so.22", 0o644, l.elf("libMLIR.so.22", "libLLVM.so.22"))
	tree.File("lib/llvm/bin/clang", 0o755, l.elf("", "libLLVM.so.22"))
	tree.File("lib/llvm/lib/libLLVM.so.22", 0o644, l.elf("libLLVM.so.22"))
	text("lib/llvm/amdgcn/bitcode/ocml.bc", "BC")
	text("lib/llvm/amdgcn/bitcode/ockl.bc", "BC")
	text("lib/llvm/amdgcn/bitcode/oclc_isa_version_1036.bc", "BC")
	text("lib/llvm/amdgcn/bitcode/oclc_isa_version_1030.bc", "BC")
	text(".info/version", "10.2.0\n")
	return tree
}

// trimmable is a tarball of omitTree, made once.
func trimmable(t testing.TB) string {
	t.Helper()
	dir, err := made()
	if err != nil {
		t.Fatal(err)
	}
	trimmed.Lock()
	defer trimmed.Unlock()
	if trimmed.path == "" {
		trimmed.path = filepath.Join(dir, "trimmed.tar.gz")
		if err := os.Rename(pack(t, omitTree(t)), trimmed.path); err != nil {
			t.Fatal(err)
		}
	}
	return trimmed.path
}

var trimmed struct {
	sync.Mutex
	path string
}

// pack writes a tarball of tree.
func pack(t testing.TB, tree *demo.Tree) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "therock-dist-linux-gfx103X-all-"+version+".tar.gz")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(demo.WriteTarball(f, tree), f.Close()); err != nil {
		t.Fatal(err)
	}
	return name
}

// every is all that can be left out, for gfx1036.
func every() Options {
	return Options{Omit: omit.Names(), Target: "gfx1036", FinalPrefix: "/opt/here", Audit: AuditOptions{Scope: audit.ScopeTree}}
}

// listed reads a prefix's lists.
func listed(t testing.TB, dir string) (map[string]manifest.File, []manifest.Omission, *manifest.Manifest) {
	t.Helper()
	open := func(name string) *os.File {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	files, err := manifest.ReadFiles(open(manifest.FilesName))
	if err != nil {
		t.Fatal(err)
	}
	omitted, err := manifest.ReadOmitted(open(manifest.OmittedName), 1000)
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Read(open(manifest.Name))
	if err != nil {
		t.Fatal(err)
	}
	byPath := map[string]manifest.File{}
	for _, f := range files {
		byPath[strings.TrimPrefix(f.Path, treeDir+"/")] = f
	}
	return byPath, omitted, m
}

func TestOmit(t *testing.T) {
	dir, res := into(t, trimmable(t), every())
	files, omitted, m := listed(t, dir)
	var got []string
	for _, o := range omitted {
		line := strings.TrimPrefix(o.Path, treeDir+"/") + " " + string(o.Kind) + " " + o.Rule
		if o.Needs != "" {
			line += " < " + strings.TrimPrefix(o.Needs, treeDir+"/")
		}
		if (o.Size > 0) != (o.Kind == manifest.Regular) && o.Path != treeDir+"/clients/first.so" && o.Path != treeDir+"/clients/second.so" {
			t.Errorf("%s: size %d", line, o.Size)
		}
		got = append(got, line)
	}
	want := []string{
		".kpack/a_lib_gfx1030.kpack file kernels",
		"bin/alias symlink tests", "bin/alias2 symlink tests", "bin/test_tool file tests",
		"clients/both.so file tests", "clients/first.so file tests",
		"clients/lib dir tests", "clients/lib/libunneeded.so.1 file tests", "clients/second.so file tests",
		"clients/staging/libdeep.so.1 file tests < clients/staging/libneeded.so.1.0",
		"clients/staging/libneeded.so symlink tests",
		"clients/staging/libneeded.so.1 symlink tests < lib/liba.so.1",
		"clients/staging/libneeded.so.1.0 file tests < lib/liba.so.1",
		"lib/libstatic.a file static", "lib/llvm/bin/mlir-opt file llvm",
		"lib/llvm/include dir llvm", "lib/llvm/include/llvm dir llvm", "lib/llvm/include/llvm/IR dir llvm", "lib/llvm/include/llvm/IR/Module.h file llvm",
		"lib/llvm/lib/libLLVM.so.22 file llvm < lib/llvm/bin/clang", "lib/llvm/lib/libMLIR.so.22 file llvm",
		"lib/rocblas/library/gfx1030 dir kernels", "lib/rocblas/library/gfx1030/Kernels.so-000-gfx1030.hsaco file kernels",
		"share/doc/other dir docs", "share/doc/other/README file docs", "share/doc/rocm/CHANGES file docs",
		"share/links dir tests", "share/links/only symlink tests", "share/miopen/db/gfx1030_36.HIP.fdb.txt file databases",
		"share/x/t symlink tests", "share/x/tests dir tests", "share/x/tests/run.py file tests",
	}
	if !slices.Equal(got, want) {
		t.Errorf("left out\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, o := range omitted {
		_, err := os.Lstat(filepath.Join(dir, o.Path))
		if _, in := files[strings.TrimPrefix(o.Path, treeDir+"/")]; in != (o.Needs != "") || in != (err == nil) {
			t.Errorf("%s: listed %v, on disk: %v", o.Path, in, err)
		}
	}
	for _, stays := range []string{"share/empty", "clients/empty", "share/x/broken", "share/doc/rocm/LICENSE", ".kpack/a_lib_gfx10-3-generic.kpack", "share/miopen/db/gfx10-3-generic_36.HIP.fdb.txt"} {
		if _, err := os.Lstat(filepath.Join(dir, treeDir, stays)); err != nil {
			t.Error(err)
		}
	}

	// The names that are left of an inode refer to the first of them.
	one, two := files["lib/libtwin.so.1"], files["lib/libtwin.so.1.0"]
	if one.Same != "" || two.Same != one.Path || one.SHA256 == "" || one.ELF == nil || two.ELF == nil {
		t.Errorf("%+v %+v", one, two)
	}
	for p, f := range files {
		if f.Same != "" {
			if first, ok := files[strings.TrimPrefix(f.Same, treeDir+"/")]; !ok || first.Same != "" {
				t.Errorf("%s is the same as %s", p, f.Same)
			}
		}
	}

	// What is counted is what is there.
	onDisk, links, content := 0, 0, int64(0)
	seen := map[string]bool{}
	filepath.WalkDir(filepath.Join(dir, treeDir), func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			t.Error(err)
		case d.Type().IsRegular():
			onDisk++
		case d.Type() == fs.ModeSymlink:
			links++
		}
		return nil
	})
	for p, f := range files {
		if strings.HasPrefix(f.Path, treeDir+"/") && f.Kind == manifest.Regular && f.Same == "" && !seen[p] {
			content += f.Size
		}
	}
	if m.Counts.Files != onDisk || res.Files != onDisk || m.Counts.Bytes != content || m.Counts.Symlinks != links {
		t.Errorf("%+v and %d files; on disk %d files, %d links, %d bytes", m.Counts, res.Files, onDisk, links, content)
	}
	// llvm and amdgcn are ours.
	if res.Links != links-2 || res.Scripts != 0 || len(res.Skips) != 0 || res.ELF.Seen != m.Counts.ELF-1 {
		t.Errorf("%+v", res)
	}
	if !reflect.DeepEqual(m.Omitted, res.Omitted) || len(res.Kept) != 4 || res.Omitted["docs"].Files != 3 || res.Omitted["docs"].Bytes != 9 {
		t.Errorf("%+v %+v", res.Omitted, res.Kept)
	}
	if !strings.Contains(string(m.Options), `"omit"`) {
		t.Errorf("%s", m.Options)
	}
	if report, err := audit.Run(context.Background(), dir, audit.Options{Scope: audit.ScopeTree}); err != nil || report.Counts.Fatal+report.Counts.Required > 0 {
		t.Errorf("%v, %+v", err, report.Findings)
	}
}

// A rule alone takes what all together say that it takes, but for what another
// has taken before it.
func TestOmitEachRuleAlone(t *testing.T) {
	tarball := trimmable(t)
	_, all := into(t, tarball, every())
	for _, rule := range omit.Names() {
		o := every()
		o.Omit = []string{rule}
		dir, res := into(t, tarball, o)
		_, omitted, m := listed(t, dir)
		if len(omitted) == 0 || len(res.Omitted) != 1 || res.Omitted[rule].Bytes != all.Omitted[rule].Bytes || !reflect.DeepEqual(m.Omitted, res.Omitted) {
			t.Errorf("%s: %+v, of all together %+v", rule, res.Omitted, all.Omitted)
		}
		if res.Bytes+res.Omitted[rule].Bytes != all.Bytes+sum(all.Omitted) {
			t.Errorf("%s: %d bytes are left and %+v is not", rule, res.Bytes, res.Omitted)
		}
	}
}

func sum(omitted map[string]manifest.Tally) (bytes int64) {
	for _, t := range omitted {
		bytes += t.Bytes
	}
	return bytes
}

// The same tarball gives the same prefix, in the layout of packages too.
func TestOmitIsDeterministic(t *testing.T) {
	tarball := trimmable(t)
	one, _ := into(t, tarball, every())
	o := every()
	slices.Reverse(o.Omit)
	o.Omit = append(o.Omit, o.Omit...)
	two, _ := into(t, tarball, o)
	same(t, one, two)
	o.Layout = LayoutTree
	three, res := into(t, tarball, o)
	if _, err := os.Lstat(filepath.Join(three, manifest.OmittedName)); err == nil || len(res.Omitted) == 0 {
		t.Errorf("%v %+v", err, res.Omitted)
	}
	if one, three := groups(t, filepath.Join(one, treeDir)), groups(t, three); one != three {
		t.Errorf("%s\n%s", one, three)
	}
}

func TestRecipeKnowsWhatIsLeftOut(t *testing.T) {
	d := release.Digest("sha256:" + strings.Repeat("0", 64))
	recipe := func(o Options) string {
		t.Helper()
		r, err := Recipe(d, o)
		if err != nil {
			t.Fatal(err)
		}
		return r.String()
	}
	// What was made before there was anything to leave out stays up to date.
	text, err := json.Marshal(Options{Target: "gfx1151"}.withDefaults().shape())
	if want := `{"layout":"root","profile":"fhs","target":"gfx1151","run_path":"rpath"}`; err != nil || string(text) != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
	none := recipe(Options{})
	if recipe(Options{Omit: []string{}}) != none {
		t.Error("an empty list makes another recipe")
	}
	docs := recipe(Options{Omit: []string{"docs", "tests"}})
	if docs == none || docs != recipe(Options{Omit: []string{"tests", "docs", "tests"}}) || docs == recipe(Options{Omit: []string{"docs"}}) {
		t.Error("the recipe does not follow the list")
	}
}

func TestOmitIsCheckedBeforeAByteIsRead(t *testing.T) {
	for _, o := range []Options{
		{Omit: []string{"kernels"}},
		{Omit: []string{"databases"}, Target: "multiarch"},
		{Omit: []string{"kernels"}, Target: "gfx110X-all"},
		{Omit: []string{"nothing"}, Target: "gfx1151"},
		{Omit: []string{""}, Layout: LayoutTree},
	} {
		src := &neverRead{t}
		if _, err := Run(context.Background(), src, filepath.Join(t.TempDir(), "x"), o); err == nil || o.Check("/x") == nil {
			t.Errorf("%v for %q was taken", o.Omit, o.Target)
		}
	}
}

type neverRead struct{ t *testing.T }

func (n *neverRead) Read([]byte) (int, error) {
	n.t.Error("it was read")
	return 0, errors.New("no")
}

// A script that is left out under one name and stays under another is edited as
// it would be without, and what nothing can run is told by the name that is left.
func TestOmitFirstNameOfAScript(t *testing.T) {
	const run, lost = "#!/opt/python/cp312-cp312/bin/python3.12\nprint(1)\n", "#!@STRANGE_INTERPRETER@\n"
	tree := &demo.Tree{MTime: time.Date(2026, 9, 30, 11, 0, 0, 0, time.UTC)}
	tree.File(".info/version", 0o644, []byte("10.2.0\n"))
	for name, text := range map[string]string{"run": run, "lost": lost} {
		tree.File("share/x/tests/"+name, 0o755, []byte(text))
		tree.Link("share/y/"+name, "share/x/tests/"+name)
	}
	tree.File("share/x/tests/alone", 0o755, []byte(run))
	tree.File("share/x/tests/gone", 0o755, []byte(lost))
	o := Options{Omit: []string{"tests"}, FinalPrefix: "/opt/here", Audit: AuditOptions{Scope: audit.ScopeTree, Refuse: audit.RefuseNever}}
	dir, res := into(t, pack(t, tree), o)
	text, err := os.ReadFile(filepath.Join(dir, treeDir, "share/y/run"))
	if err != nil || !strings.HasPrefix(string(text), "#!/usr/bin/env python3\n") {
		t.Errorf("%v\n%s", err, text)
	}
	if len(res.Skips) != 1 || res.Skips[0].Path != treeDir+"/share/y/lost" {
		t.Errorf("%+v", res.Skips)
	}
	if got, want := res.Omitted["tests"], (manifest.Tally{Files: 6, Bytes: int64(len(run) + len(lost))}); got != want || res.Scripts != 1 {
		t.Errorf("%+v, want %+v; %d scripts", got, want, res.Scripts)
	}
	if want := int64(len("10.2.0\n") + len(run) + len(lost)); res.Bytes != want {
		t.Errorf("%d bytes are left, not %d", res.Bytes, want)
	}
	to := t.TempDir()
	again, err := Clone(context.Background(), dir, to, o)
	if err != nil {
		t.Fatal(err)
	}
	if same(t, dir, to); !reflect.DeepEqual(again.Skips, res.Skips) {
		t.Errorf("%+v, and of the clone %+v", res.Skips, again.Skips)
	}
}

// A tarball of another target, and one whose hard links cannot be honoured,
// are no damage: the error says what to change.
func TestOmitErrors(t *testing.T) {
	o := every()
	o.Target = "gfx1151"
	tarball := trimmable(t)
	_, err := repackFile(t, tarball, filepath.Join(t.TempDir(), "x"), o)
	var wrong *OmitError
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "gfx1030, gfx1036") && !strings.Contains(err.Error(), "gfx10-3-generic") {
		t.Error(err)
	}
	tree := &demo.Tree{}
	tree.File("share/doc/a/page", 0o644, []byte("x"))
	tree.Link("share/x/page", "share/doc/a/page")
	tree.File("lib/x", 0o644, nil)
	_, err = repackFile(t, pack(t, tree), filepath.Join(t.TempDir(), "x"), Options{Omit: []string{"docs"}})
	if !errors.As(err, &wrong) || !errors.Is(err, unpack.ErrRefused) || !strings.Contains(err.Error(), "share/x/page") || !strings.Contains(err.Error(), "share/doc/a/page") {
		t.Error(err)
	}
}

// A tarball need not list its directories: those that only what is left out
// implies are never made, and links to them go.
func TestOmitImpliedDirectories(t *testing.T) {
	var buf bytes.Buffer
	gz := gzip.NewWriter(&buf)
	tw := tar.NewWriter(gz)
	for _, hdr := range []*tar.Header{
		{Name: "share/doc/a/page", Typeflag: tar.TypeReg},
		{Name: "share/manual", Typeflag: tar.TypeSymlink, Linkname: "doc/a"},
		{Name: "bin/manual", Typeflag: tar.TypeSymlink, Linkname: "../share/doc"},
		{Name: "links/only", Typeflag: tar.TypeSymlink, Linkname: "../share/manual/page"},
		{Name: "lib/x", Typeflag: tar.TypeReg},
		{Name: "lib/nowhere", Typeflag: tar.TypeSymlink, Linkname: "../share/else"},
		{Name: "lib/odd", Typeflag: tar.TypeSymlink, Linkname: "nothing/../../share/doc/a/page"},
	} {
		if err := tw.WriteHeader(hdr); err != nil {
			t.Fatal(err)
		}
	}
	tarball := filepath.Join(t.TempDir(), "t.tar.gz")
	if err := errors.Join(tw.Close(), gz.Close(), os.WriteFile(tarball, buf.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
	dir, _ := into(t, tarball, Options{Layout: LayoutTree, Omit: []string{"docs"}, Audit: AuditOptions{Refuse: audit.RefuseNever}})
	var left []string
	for _, line := range snapshot(t, dir) {
		name, _, _ := strings.Cut(line, " ")
		left = append(left, name)
	}
	if want := []string{".", "lib", "lib/nowhere", "lib/odd", "lib/x"}; !slices.Equal(left, want) {
		t.Errorf("%q, want %q", left, want)
	}
}
