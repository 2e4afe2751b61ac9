package wrap

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/patchelf"
)

// lib is a shared library; path is its run path (DT_RUNPATH).
func lib(name, path string, needed ...string) manifest.File {
	return manifest.File{Path: name, Kind: manifest.Regular, Mode: 0o755, ELF: &manifest.ELF{
		Class: 64, Machine: "x86_64", Type: "dyn", Dynamic: true, RunPath: path, Needed: needed,
	}}
}

func exe(name, path string, needed ...string) manifest.File {
	f := lib(name, path, needed...)
	f.ELF.Interp = "/lib64/ld-linux-x86-64.so.2"
	return f
}

func sym(name, target string) manifest.File {
	return manifest.File{Path: name, Kind: manifest.Symlink, Link: target}
}

func dir(name string) manifest.File {
	return manifest.File{Path: name, Kind: manifest.Dir, Mode: 0o755}
}

func hard(name, first string) manifest.File {
	return manifest.File{Path: name, Kind: manifest.Regular, Mode: 0o755, Same: first}
}

func with(f manifest.File, change func(*manifest.ELF)) manifest.File {
	change(f.ELF)
	return f
}

// none is what the tests write for a path that is removed; "" is no edit.
const none = "(none)"

func TestRunPathValue(t *testing.T) {
	tests := []struct {
		name  string
		files []manifest.File
		want  map[string]string
		o     RunPathOptions
	}{
		{name: "already right", files: []manifest.File{
			exe("bin/a", "$ORIGIN/../lib", "libx.so.1", "libc.so.6"), lib("lib/libx.so.1", ""),
		}},
		{name: "missing directory is added", files: []manifest.File{
			exe("bin/a", "", "libx.so.1"), lib("lib/libx.so.1", "$ORIGIN", "liby.so"), lib("lib/rocm_sysdeps/lib/liby.so", ""),
		}, want: map[string]string{"bin/a": "$ORIGIN/../lib", "lib/libx.so.1": "$ORIGIN:$ORIGIN/rocm_sysdeps/lib"}},
		{name: "what leaves the tree from one name is searched last", files: []manifest.File{
			lib("lib/llvm/lib/libq.so", "", "libw.so"), sym("lib/libq.so", "llvm/lib/libq.so"), lib("lib/libw.so", ""),
			lib("bin/tool.so", "", "libw.so", "libv.so"), hard("lib/a/b/tool.so", "bin/tool.so"), lib("lib/a/libv.so", ""),
		}, want: map[string]string{
			"lib/llvm/lib/libq.so": "$ORIGIN:$ORIGIN/../..",
			"bin/tool.so":          "$ORIGIN/../lib:$ORIGIN/../lib/a:$ORIGIN/..:$ORIGIN/../..",
		}},
		{name: "entries for dlopen stay in order", files: []manifest.File{
			exe("bin/a", "$ORIGIN/../plug:$ORIGIN/../lib", "libx.so.1"), lib("lib/libx.so.1", ""), dir("plug"),
		}},
		{name: "same directory", files: []manifest.File{
			lib("lib/liby.so", "", "libx.so"), lib("lib/libx.so", ""),
		}, want: map[string]string{"lib/liby.so": "$ORIGIN"}},
		{name: "absolute, empty, relative and escaping entries go", files: []manifest.File{
			exe("bin/a", "/__w/x/lib::lib:$ORIGIN/../../..:$ORIGIN/../gone:$ORIGINAL:$ORIGIN/../$LIB:$ORIGIN/../lib", "libx.so"), lib("lib/libx.so", ""),
		}, want: map[string]string{"bin/a": "$ORIGIN/../lib"}},
		{name: "nothing is left", files: []manifest.File{
			exe("bin/a", "/opt/python-shared/cp310/lib", "libpython3.10.so"),
		}, want: map[string]string{"bin/a": none}},
		{name: "braces, slashes and duplicates", files: []manifest.File{
			exe("bin/a", "${ORIGIN}/../lib/:$ORIGIN/../lib:$ORIGIN/.././lib:$ORIGIN/"), lib("lib/libx.so", ""),
		}, want: map[string]string{"bin/a": "$ORIGIN/../lib:$ORIGIN"}},
		{name: "needed through a link", files: []manifest.File{
			exe("bin/a", "", "libx.so.1"), lib("lib/libx.so.1.2", ""), sym("lib/libx.so.1", "libx.so.1.2"),
		}, want: map[string]string{"bin/a": "$ORIGIN/../lib"}},
		{name: "directory link resolves", files: []manifest.File{
			exe("bin/a", "$ORIGIN/../lib64", "libx.so"), lib("lib/libx.so", ""), sym("lib64", "lib"),
		}},
		{name: "dots after a directory link follow the disk", files: []manifest.File{
			exe("bin/a", "$ORIGIN/../alias/../x", "libx.so"), sym("alias", "deep/er"), dir("deep/er"), lib("deep/x/libx.so", ""), dir("x"),
		}},
		{name: "nearest wins", files: []manifest.File{
			exe("lib/llvm/bin/a", "", "libx.so"), lib("lib/llvm/lib/libx.so", ""), lib("lib/libx.so", ""), lib("lib/zz/yy/libx.so", ""),
		}, want: map[string]string{"lib/llvm/bin/a": "$ORIGIN/../.."}},
		{name: "byte order breaks a tie", files: []manifest.File{
			exe("bin/a", "", "libx.so"), lib("m/libx.so", ""), lib("b/libx.so", ""),
		}, want: map[string]string{"bin/a": "$ORIGIN/../b"}},
		{name: "the library's other names count", files: []manifest.File{
			lib("lib/llvm/lib/libomp.so", "$ORIGIN/../../rocm_sysdeps/lib", "libz.so.1"), sym("lib/libomp.so", "llvm/lib/libomp.so"), lib("lib/rocm_sysdeps/lib/libz.so.1", ""),
		}, want: map[string]string{"lib/llvm/lib/libomp.so": "$ORIGIN/../../rocm_sysdeps/lib:$ORIGIN/rocm_sysdeps/lib"}},
		{name: "a directory already named is preferred", files: []manifest.File{
			lib("a/p/libq.so", "$ORIGIN/far/away", "libx.so"), sym("b/libq.so", "../a/p/libq.so"), lib("a/p/far/away/libx.so", ""), lib("b/n/libx.so", ""),
		}, want: map[string]string{"a/p/libq.so": "$ORIGIN/far/away:$ORIGIN/../a/p/far/away"}},
		{name: "links to a program do not count", files: []manifest.File{
			exe("lib/llvm/bin/clang", "$ORIGIN/../lib", "libLLVM.so"), lib("lib/llvm/lib/libLLVM.so", ""), sym("bin/amdclang", "../lib/llvm/bin/clang"),
		}},
		{name: "hard links are one object", files: []manifest.File{
			lib("lib/a/libx.so", "", "liby.so"), hard("lib/b/libx.so", "lib/a/libx.so"), hard("lib/c/d/libx.so", "lib/a/libx.so"), lib("lib/liby.so", ""),
		}, want: map[string]string{"lib/a/libx.so": "$ORIGIN/..:$ORIGIN/../.."}},
		{name: "a slash in NEEDED is no search", files: []manifest.File{
			exe("bin/a", "", "./libx.so", "sub/libx.so"), lib("lib/libx.so", ""),
		}},
		{name: "foreign ELF is neither edited nor found", files: []manifest.File{
			exe("bin/a", "", "libx.so", "liby.so", "libz.so"),
			with(lib("lib/libx.so", "/abs", "libx.so"), func(e *manifest.ELF) { e.Machine = "amdgpu" }),
			with(lib("lib/liby.so", "/abs"), func(e *manifest.ELF) { e.Class = 32 }),
			with(lib("lib/libz.so", "/abs"), func(e *manifest.ELF) { e.Type = "rel" }),
			with(lib("bin/static", "/abs"), func(e *manifest.ELF) { e.Dynamic = false }),
			{Path: "lib/notes.so", Kind: manifest.Regular},
		}},
		{name: "added entries come last, absolute or not", files: []manifest.File{
			exe("bin/a", "/nix/gcc/lib:/gone:$ORIGIN/../lib", "libstdc++.so.6"), lib("lib/liby.so", ""), lib("lib/libx.so", "", "libc.so.6"),
		}, o: RunPathOptions{AddRPath: []string{"/nix/gcc/lib"}},
			want: map[string]string{"bin/a": "$ORIGIN/../lib:/nix/gcc/lib", "lib/libx.so": "/nix/gcc/lib"}},
		{name: "loops and absolute links", files: []manifest.File{
			exe("bin/a", "$ORIGIN/../l1:$ORIGIN/../abs", "libx.so"), sym("l1", "l2"), sym("l2", "l1"), sym("abs", "/usr/lib"), sym("l/libx.so", "/usr/lib/libx.so"),
		}, want: map[string]string{"bin/a": none}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkRunPaths(t, tt.files, tt.o, tt.want)
		})
	}
}

func checkRunPaths(t *testing.T, files []manifest.File, o RunPathOptions, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	edits := RunPaths(files, o)
	for _, e := range edits {
		got[e.Path] = *e.Edit.RunPath
		if got[e.Path] == "" {
			got[e.Path] = none
		}
		if !slices.Equal(e.Rules, []string{RuleRunPath}) {
			t.Errorf("%s: rules %q", e.Path, e.Rules)
		}
	}
	if want == nil {
		want = map[string]string{}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if again := RunPaths(applied(files, edits), o); len(again) > 0 {
		t.Errorf("not idempotent: %s to %q", again[0].Path, *again[0].Edit.RunPath)
	}
}

// applied is files as they are after the edits.
func applied(files []manifest.File, edits []RunPathEdit) []manifest.File {
	files = slices.Clone(files)
	for _, e := range edits {
		for i := range files {
			if files[i].Path != e.Path {
				continue
			}
			elf := *files[i].ELF
			value := elf.RunPath
			if value == "" {
				value = elf.RPath
			}
			if e.Edit.RunPath != nil {
				value = *e.Edit.RunPath
			}
			elf.RPath, elf.RunPath = "", value
			if e.Edit.Tag == patchelf.RPath {
				elf.RPath, elf.RunPath = value, ""
			}
			if e.Edit.Interp != "" {
				elf.Interp = e.Edit.Interp
			}
			files[i].ELF = &elf
		}
	}
	return files
}

func TestRunPathTagAndInterpreter(t *testing.T) {
	files := []manifest.File{
		exe("opt/rocm/bin/a", "$ORIGIN/../lib", "libx.so"),
		lib("opt/rocm/lib/libx.so", ""),
		with(lib("opt/rocm/lib/liby.so", "", "libx.so"), func(e *manifest.ELF) { e.RPath = "$ORIGIN" }),
		with(lib("opt/rocm/lib/libz.so", "$ORIGIN", "libx.so"), func(e *manifest.ELF) { e.RPath = "/x" }),
		exe("elsewhere/bin/a", "/abs"),
	}
	o := RunPathOptions{Tree: "opt/rocm", Tag: patchelf.RPath, Interp: "/nix/ld.so"}
	edits := RunPaths(files, o)
	if len(edits) != 2 {
		t.Fatalf("%+v", edits)
	}
	a, z := edits[0], edits[1]
	if a.Path != "opt/rocm/bin/a" || *a.Edit.RunPath != "$ORIGIN/../lib" || a.Edit.Tag != patchelf.RPath || a.Edit.Interp != "/nix/ld.so" ||
		!slices.Equal(a.Rules, []string{RuleRunPath, RuleELFInterpreter}) {
		t.Errorf("%+v", a)
	}
	if z.Path != "opt/rocm/lib/libz.so" || *z.Edit.RunPath != "$ORIGIN" {
		t.Errorf("%+v", z)
	}
	if again := RunPaths(applied(files, edits), o); len(again) > 0 {
		t.Errorf("not idempotent: %+v", again)
	}
	if e := RunPaths(files[:1], RunPathOptions{Tree: "opt/rocm", Interp: "/i"}); len(e) != 1 || e[0].Edit.RunPath == nil {
		t.Errorf("with its library gone the entry goes: %+v", e)
	}
}

func FuzzRunPathValue(f *testing.F) {
	f.Add("$ORIGIN/../lib:/abs", "../lib", "lib64", "libx.so", "/add")
	f.Add("${ORIGIN}//.:$ORIGIN/l/..", "l", "..", "sub/libx.so", "$ORIGIN/../lib/")
	f.Add("$ORIGIN/l/../l", "deep/er/..", "x/../../..", "libx.so", "$ORIGIN")
	f.Fuzz(func(t *testing.T, path, link1, link2, needed, add string) {
		if strings.Contains(add, ":") {
			return
		}
		files := []manifest.File{
			exe("bin/a", path, needed, "libx.so"), lib("lib/libx.so", path, needed), sym("l", link1), sym("deep/l", link2),
			sym("deep/er/libx.so", "../../lib/libx.so"), lib("deep/er/liby.so", path, "libx.so"), hard("liby.so", "deep/er/liby.so"),
		}
		o := RunPathOptions{AddRPath: []string{add}}
		edits := RunPaths(files, o)
		for _, e := range edits {
			for entry := range strings.SplitSeq(*e.Edit.RunPath, ":") {
				if entry != "" && entry != add && !strings.HasPrefix(entry, "$ORIGIN") {
					t.Fatalf("%s keeps %q", e.Path, entry)
				}
			}
		}
		if again := RunPaths(applied(files, edits), o); len(again) > 0 {
			t.Fatalf("not idempotent: %s to %+v then %q", again[0].Path, edits, *again[0].Edit.RunPath)
		}
	})
}

func BenchmarkRunPaths(b *testing.B) {
	var files []manifest.File
	for i := range 60 {
		files = append(files, dir(fmt.Sprintf("opt/rocm/lib/d%d", i)))
	}
	for i := range 25000 {
		files = append(files, manifest.File{Path: fmt.Sprintf("opt/rocm/share/a%d/b%d/file%d.txt", i%40, i%400, i), Kind: manifest.Regular})
	}
	for i := range 5000 {
		name := fmt.Sprintf("opt/rocm/lib/d%d/libf%d.so.1.0", i%60, i)
		files = append(files, lib(name, "$ORIGIN:$ORIGIN/../../lib:$ORIGIN/../d3:/__w/x",
			"libc.so.6", "libm.so.6", fmt.Sprintf("libf%d.so.1", (i*7)%5000), fmt.Sprintf("libf%d.so.1", (i*13)%5000), "libstdc++.so.6"))
		files = append(files, sym(strings.TrimSuffix(name, ".0"), fmt.Sprintf("libf%d.so.1.0", i)))
	}
	for b.Loop() {
		RunPaths(files, RunPathOptions{Tree: "opt/rocm", Tag: patchelf.RPath})
	}
}
