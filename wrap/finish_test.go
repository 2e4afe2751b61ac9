package wrap

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

func TestFinish(t *testing.T) {
	prefix, files := newPrefix(t, "p")
	made := finish(t, prefix, files, Options{Version: "10.2.0a20260930"})
	got := map[string]string{}
	for _, f := range made {
		switch f.Kind {
		case manifest.Symlink:
			got[f.Path] = f.Link
		case manifest.Dir:
			got[f.Path] = "dir"
		default:
			got[f.Path] = fmt.Sprintf("%04o", f.Mode)
		}
	}
	want := map[string]string{
		"opt/rocm/amdgcn": "lib/llvm/amdgcn", "opt/rocm/llvm": "lib/llvm",
		"amdgcn": "opt/rocm/amdgcn", "llvm": "opt/rocm/llvm",
		"bin": "dir", "bin/probe": "0555", "bin/rocminfo": "0555", "bin/again": "0555", "bin/smi": "0555", "bin/" + oddName: "0555",
		"bin/notes.txt": "../opt/rocm/bin/notes.txt", "bin/data": "../opt/rocm/bin/data", "bin/plugin.so": "../opt/rocm/bin/plugin.so",
		"bin/MIOpen": "../opt/rocm/bin/MIOpen", "bin/amdclang": "../opt/rocm/bin/amdclang", "bin/dead": "../opt/rocm/bin/dead",
		"lib": "opt/rocm/lib", "lib64": "opt/rocm/lib64", "include": "opt/rocm/include", "libexec": "opt/rocm/libexec", ".info": "opt/rocm/.info",
		".kpack": "opt/rocm/.kpack", "LICENSE": "opt/rocm/LICENSE",
		"share": "dir", "share/doc": "../opt/rocm/share/doc", "share/man": "../opt/rocm/share/man",
		"share/licenses": "dir", "share/licenses/rocm": "../../opt/rocm/share/licenses/rocm", "share/licenses/rocm-nightly": "dir",
		"share/licenses/rocm-nightly/LICENSE":         "../../../opt/rocm/LICENSE",
		"share/licenses/rocm-nightly/rocm":            "../../../opt/rocm/share/licenses/rocm",
		"share/licenses/rocm-nightly/hip-LICENSE.txt": "../../../opt/rocm/share/doc/hip/LICENSE.txt",
		"etc": "dir", "etc/tree.conf": "../opt/rocm/etc/tree.conf", "etc/profile.d": "dir",
		"etc/profile.d/tree.sh": "../../opt/rocm/etc/profile.d/tree.sh", "etc/profile.d/rocm-nightly.sh": "0444",
		"etc/env.sh": "0444", "etc/env.fish": "0444", "etc/env.csh": "0444", "etc/env-csh.sh": "0444", "etc/env.nu": "0444", "etc/env.json": "0444",
		"etc/ld.so.conf.d": "dir", "etc/ld.so.conf.d/rocm-nightly.conf": "0444",
		"etc/modulefiles": "dir", "etc/modulefiles/rocm-nightly": "dir",
		"etc/modulefiles/rocm-nightly/10.2.0a20260930": "0444", "etc/modulefiles/rocm-nightly/10.2.0a20260930.lua": "0444",
		"etc/OpenCL": "dir", "etc/OpenCL/vendors": "dir", "etc/OpenCL/vendors/rocm-nightly.icd": "0444",
		"nix-support": "dir", "nix-support/setup-hook": "0444",
	}
	for p := range want {
		if got[p] != want[p] {
			t.Errorf("%s: got %q, want %q", p, got[p], want[p])
		}
	}
	for p := range got {
		if want[p] == "" {
			t.Errorf("%s: %q is not expected", p, got[p])
		}
	}
	if !slices.IsSortedFunc(made, func(a, b manifest.File) int { return strings.Compare(a.Path, b.Path) }) {
		t.Error("not sorted")
	}
	checkOnDisk(t, prefix, made, newest(files))
}

// checkOnDisk compares manifest entries with what lies in the prefix.
func checkOnDisk(t *testing.T, prefix string, made []manifest.File, mtime int64) {
	t.Helper()
	for _, f := range made {
		p := filepath.Join(prefix, f.Path)
		fi, err := os.Lstat(p)
		if err != nil {
			t.Fatal(err)
		}
		if fi.ModTime().Unix() != mtime || f.MTime != mtime {
			t.Errorf("%s: mtime %d, manifest %d, want %d", f.Path, fi.ModTime().Unix(), f.MTime, mtime)
		}
		if f.Kind == manifest.Symlink {
			if link, _ := os.Readlink(p); link != f.Link {
				t.Errorf("%s: link %s", f.Path, link)
			}
			if _, err := os.Stat(p); err != nil && f.Path != "bin/dead" {
				t.Errorf("link leads nowhere: %v", err)
			}
			continue
		}
		if manifest.Mode(fi.Mode().Perm()) != f.Mode {
			t.Errorf("%s: mode %v", f.Path, fi.Mode())
		}
		if f.Kind == manifest.Dir {
			continue
		}
		data, err := os.ReadFile(p)
		sum := sha256.Sum256(data)
		if err != nil || f.SHA256 != hex.EncodeToString(sum[:]) || f.Size != int64(len(data)) {
			t.Errorf("%s: %v, digest or size differ", f.Path, err)
		}
	}
}

func TestExistingLinksAreRespected(t *testing.T) {
	prefix, files := newPrefix(t, "p")
	for _, f := range []manifest.File{sym("opt/rocm/amdgcn", "lib/llvm/amdgcn"), dir("opt/rocm/llvm")} {
		writeEntry(t, prefix, f)
		files = append(files, f)
	}
	for _, f := range finish(t, prefix, files, Options{}) {
		if strings.HasPrefix(f.Path, "opt/") {
			t.Errorf("made %s", f.Path)
		}
	}
}

func TestNothingIsWrittenOver(t *testing.T) {
	prefix, files := newPrefix(t, "p")
	if err := os.WriteFile(filepath.Join(prefix, "include"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(prefix)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := Finish(context.Background(), root, files, Options{FinalPrefix: prefix}); err == nil || !strings.Contains(err.Error(), "include") {
		t.Errorf("%v", err)
	}
}

func TestFinishRefuses(t *testing.T) {
	prefix, files := newPrefix(t, "p")
	root, err := os.OpenRoot(prefix)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for want, o := range map[string]Options{
		"absolute":   {FinalPrefix: "relative"},
		"line end":   {FinalPrefix: "/a\nb"},
		"NUL":        {FinalPrefix: "/a\x00b"},
		"colon":      {FinalPrefix: "/a:b"},
		`"/a\rb"`:    {FinalPrefix: "/a\rb"},
		`""`:         {},
		"profile":    {FinalPrefix: "/a", Profile: "other"},
		"version":    {FinalPrefix: "/a", Version: "1; rm"},
		"digest":     {FinalPrefix: "/a", Digest: "sha256:x"},
		"target":     {FinalPrefix: "/a", Target: "a b"},
		"first line": {FinalPrefix: "/a", Shell: "/a b/sh"},
		"readlink":   {FinalPrefix: "/a", Readlink: "a\nb"},
		"control":    {FinalPrefix: "/a\x1bb"},
		"loader":     {FinalPrefix: "/a", Env: map[string]string{"LD_PRELOAD": "/x"}},
		"variable":   {FinalPrefix: "/a", Env: map[string]string{"X": "a\nb"}},
	} {
		var bad *OptionError
		if err := o.Check(); !errors.As(err, &bad) || !strings.Contains(err.Error(), want) || optionNames[bad.Option] == "" {
			t.Errorf("%+v: %v", o, err)
		}
		bad = nil
		if _, err := Finish(context.Background(), root, files, o); !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if err := (Options{FinalPrefix: hostile}).Check(); err != nil {
		t.Errorf("an odd but possible final prefix: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Finish(ctx, root, files, Options{FinalPrefix: "/a"}); err == nil {
		t.Error("a cancelled run went on")
	}
	empty, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer empty.Close()
	if _, err := Finish(context.Background(), empty, nil, Options{FinalPrefix: "/a"}); err == nil || !strings.Contains(err.Error(), "opt/rocm") {
		t.Errorf("no tree: %v", err)
	}
}

// A release may claim any second, such as one that nanoseconds in 64 bits do not
// reach.
func TestTimesAfter2262(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	const year2286 = 10_000_000_000
	if err := setTime(root, ".", year2286); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(dir)
	// A filesystem that ends earlier takes its last second, in 2038 or later.
	if err != nil || fi.ModTime().Unix() != year2286 && fi.ModTime().Unix() < math.MaxInt32 {
		t.Errorf("%v, %v", fi.ModTime(), err)
	}
}

// What Finish makes depends on the place of the prefix in etc/ and nix-support/
// alone.
func TestDeterministic(t *testing.T) {
	a, files := newPrefix(t, "a")
	b, _ := newPrefix(t, "b")
	one := finish(t, a, files, Options{Version: "1", FinalPrefix: "/same"})
	two := finish(t, b, files, Options{Version: "1", FinalPrefix: "/same"})
	if !reflect.DeepEqual(one, two) {
		t.Error("two runs differ")
	}
	c, _ := newPrefix(t, "c")
	three := finish(t, c, files, Options{Version: "1", FinalPrefix: "/other"})
	for i, f := range three {
		if f.SHA256 != one[i].SHA256 && !strings.HasPrefix(f.Path, "etc/") && !strings.HasPrefix(f.Path, "nix-support/") {
			t.Errorf("%s holds the final prefix", f.Path)
		}
	}
}

func ExampleFinish() {
	dir, err := os.MkdirTemp("", "prefix")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := os.MkdirAll(filepath.Join(dir, "opt/rocm/bin"), 0o755); err != nil {
		fmt.Println(err)
		return
	}
	if err := os.WriteFile(filepath.Join(dir, "opt/rocm/bin/hello"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		fmt.Println(err)
		return
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer root.Close()
	files := []manifest.File{{Path: "opt/rocm/bin/hello", Kind: manifest.Regular, Mode: 0o755}}
	made, err := Finish(context.Background(), root, files, Options{FinalPrefix: "/opt/rocm-nightly", Version: "10.2.0a20260930"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range made {
		if f.Kind == manifest.Regular && f.Mode&0o111 != 0 {
			fmt.Println(f.Path)
		}
	}
	// Output: bin/hello
}

func ExampleScripts_Edit() {
	s := NewScripts(ScriptOptions{Profile: FHS})
	out, rules, err := s.Edit("bin/tool", 0o755, []byte("#!/opt/python/cp312-cp312/bin/python3.12 -E\n"))
	fmt.Printf("%s%q %v\n", out, rules, err)
	// Output:
	// #!/usr/bin/env -S python3 -E
	// ["interpreter"] <nil>
}

func ExampleRunPaths() {
	program := manifest.ELF{Class: 64, Machine: "x86_64", Type: "dyn", Dynamic: true, Interp: "/lib64/ld-linux-x86-64.so.2",
		RunPath: "/__w/build/lib", Needed: []string{"libhsa-runtime64.so.1", "libc.so.6"}}
	library := manifest.ELF{Class: 64, Machine: "x86_64", Type: "dyn", Dynamic: true, Soname: "libhsa-runtime64.so.1"}
	for _, e := range RunPaths([]manifest.File{
		{Path: "bin/rocminfo", Kind: manifest.Regular, ELF: &program},
		{Path: "lib/libhsa-runtime64.so.1.18", Kind: manifest.Regular, ELF: &library},
		{Path: "lib/libhsa-runtime64.so.1", Kind: manifest.Symlink, Link: "libhsa-runtime64.so.1.18"},
	}, RunPathOptions{}) {
		fmt.Println(e.Path, *e.Edit.RunPath)
	}
	// Output: bin/rocminfo $ORIGIN/../lib
}

func ExampleCompilerPaths() {
	dir, err := os.MkdirTemp("", "tree")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "lib/llvm/bin")
	err = errors.Join(os.MkdirAll(bin, 0o755), os.WriteFile(filepath.Join(bin, "rocm.cfg"), []byte("$-Wl,--enable-new-dtags\n-frtlib-add-rpath\n"), 0o644))
	if err != nil {
		fmt.Println(err)
		return
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer root.Close()
	files := []manifest.File{{Path: "lib/llvm/bin/rocm.cfg", Kind: manifest.Regular}}
	edits, left, err := CompilerPaths(root, "", files, "/opt/rocm")
	for _, e := range edits {
		fmt.Printf("%s %v\n%s", e.Path, e.Rules, e.Data)
	}
	fmt.Println(left, err)
	// Output:
	// lib/llvm/bin/rocm.cfg [compiler-path]
	// $-Wl,--enable-new-dtags
	// # rocm-nightly, instead of: -frtlib-add-rpath
	// $-Wl,-rpath,/opt/rocm/lib
	// # rocm-nightly: end
	// [] <nil>
}
