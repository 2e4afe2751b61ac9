package audit

import (
	"context"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/plain"
)

func TestATreeInWhichEverythingIsRightHasNoFindings(t *testing.T) {
	f := newFixture(t)
	for _, scope := range []string{"", ScopeHost, ScopeTree} {
		o := f.options()
		o.Scope, o.ScanBinaries = scope, true
		r := f.audit(o)
		if len(r.Findings) != 0 {
			t.Errorf("scope %q: %+v", scope, r.Findings)
		}
		if r.Layout != "root" || r.Schema != Schema || r.Checked["elf"] != 4 || r.Checked["kpack"] != 1 || r.Checked["wrappers"] != 2 || r.Checked["version"] != 1 {
			t.Errorf("%+v", r)
		}
	}
	// The same tree alone.
	r, err := Run(context.Background(), f.path("opt/rocm"), f.options())
	if err != nil || len(r.Findings) != 0 || r.Layout != "tree" {
		t.Errorf("%+v, %v", r, err)
	}
}

const rocm = "opt/rocm/"

// breaks are the ways in which a tree is broken on purpose, and all that may be
// found then.
var breaks = []struct {
	name  string
	do    func(f *fixture)
	scope string
	want  []string
}{
	{"a library that nobody has", func(f *fixture) {
		f.elf(rocm+"lib/liba.so.1.0", elfSpec{soname: "liba.so.1", needed: []string{"libb.so.1", "libnuma.so.1"}, runpath: "$ORIGIN/sys"})
	}, "", []string{"required needed opt/rocm/lib/liba.so.1.0 | libnuma.so.1"}},
	{"a library that only the host could have", func(f *fixture) {
		f.elf(rocm+"lib/liba.so.1.0", elfSpec{soname: "liba.so.1", needed: []string{"libb.so.1", "libnuma.so.1"}, runpath: "$ORIGIN/sys"})
	}, ScopeTree, []string{}},
	{"a run path that misses its directory", func(f *fixture) {
		f.elf(rocm+"lib/liba.so.1.0", elfSpec{soname: "liba.so.1", needed: []string{"libb.so.1"}, runpath: "$ORIGIN/gone"})
	}, "", []string{"required needed opt/rocm/lib/liba.so.1.0 | libb.so.1"}},
	{"the same, inside a build", func(f *fixture) {
		f.elf(rocm+"lib/liba.so.1.0", elfSpec{soname: "liba.so.1", needed: []string{"libb.so.1"}, runpath: "$ORIGIN/gone"})
	}, ScopeTree, []string{"required needed opt/rocm/lib/liba.so.1.0 | libb.so.1"}},
	{"an object that nothing public needs", func(f *fixture) {
		f.elf(rocm+"lib/sys/libalone.so", elfSpec{needed: []string{"libgone.so.1"}})
	}, "", []string{"warning needed opt/rocm/lib/sys/libalone.so | libgone.so.1"}},
	{"an optional object", func(f *fixture) {
		f.elf(rocm+"bin/rocgdb-py3.11", elfSpec{program: true, needed: []string{"libpython3.11.so.1.0"}})
		f.text("bin/rocgdb-py3.11", "#!/bin/sh\n_rocm_nightly_root=..\nexec x \"$@\"\n", 0o755)
	}, "", []string{"warning needed opt/rocm/bin/rocgdb-py3.11 | libpython3.11.so.1.0"}},
	{"a library that lives on its loader's run path", func(f *fixture) {
		f.elf(rocm+"bin/tool", elfSpec{program: true, needed: []string{"liba.so.1", "libhost.so.1"}, rpath: "$ORIGIN/../lib:$ORIGIN/../lib/sys"})
		f.elf(rocm+"lib/liba.so.1.0", elfSpec{soname: "liba.so.1", needed: []string{"libb.so.1"}})
	}, "", []string{"warning needed opt/rocm/lib/liba.so.1.0 | libb.so.1"}},
	{"a loader's run path that DT_RUNPATH does not pass on", func(f *fixture) {
		f.elf(rocm+"bin/tool", elfSpec{program: true, needed: []string{"liba.so.1", "libhost.so.1"}, runpath: "$ORIGIN/../lib:$ORIGIN/../lib/sys"})
		f.elf(rocm+"lib/liba.so.1.0", elfSpec{soname: "liba.so.1", needed: []string{"libb.so.1"}})
	}, "", []string{"required needed opt/rocm/lib/liba.so.1.0 | libb.so.1"}},
	{"a text where a library should be", func(f *fixture) {
		f.text(rocm+"lib/sys/libb.so.1", "INPUT(-lb)\n", 0o644)
	}, "", []string{"required needed opt/rocm/lib/liba.so.1.0 | libb.so.1"}},
	{"another ROCm on the host", func(f *fixture) {
		f.hostLibrary("libb.so.1", elfSpec{soname: "libb.so.1"})
		f.elf(rocm+"lib/liba.so.1.0", elfSpec{soname: "liba.so.1", needed: []string{"libb.so.1"}})
	}, "", []string{"fatal foreign-library opt/rocm/lib/liba.so.1.0 | libb.so.1"}},
	{"another ROCm in the run path", func(f *fixture) {
		f.hostLibrary("libb.so.1", elfSpec{soname: "libb.so.1"})
		f.elf(rocm+"lib/liba.so.1.0", elfSpec{soname: "liba.so.1", needed: []string{"libb.so.1"}, runpath: f.host + ":$ORIGIN/sys"})
	}, ScopeTree, []string{"fatal foreign-library opt/rocm/lib/liba.so.1.0 | libb.so.1"}},
	{"a cut ELF file", func(f *fixture) {
		b := build(f, elfSpec{soname: "libcut.so"})
		f.text(rocm+"lib/sys/libcut.so", string(b[:100]), 0o644)
	}, "", []string{"fatal invalid-elf opt/rocm/lib/sys/libcut.so"}},
	{"a GPU object and a foreign one", func(f *fixture) {
		b := slices.Clone(build(f, elfSpec{soname: "libx.so", needed: []string{"libgone.so"}}))
		b[18] = 224 // EM_AMDGPU
		f.text(rocm+"lib/sys/x.hsaco", string(b), 0o644)
		b[18] = 183 // EM_AARCH64
		f.text(rocm+"lib/sys/libx.so", string(b), 0o644)
		f.text(rocm+"lib/sys/cut.hsaco", string(append(slices.Clone(b[:18]), 224, 0, 0)), 0o644)
	}, "", []string{}},
	{"the archives of one library", func(f *fixture) {
		f.remove(rocm + ".kpack/k_lib_gfx1151.kpack")
		f.text(rocm+".kpack/other_lib_gfx1151.kpack", archive, 0o644)
		f.text(rocm+".kpack/k_lib_empty.kpack", archive, 0o644)
		f.text(rocm+".kpack/k_lib_gfx90a.kpack", "", 0o644)
	}, "", []string{"fatal kpack opt/rocm/lib/libk.so.1 | ../.kpack/k_lib_@GFXARCH@.kpack", "warning kpack opt/rocm/.kpack/k_lib_gfx90a.kpack"}},
	{"the directory of archives", func(f *fixture) {
		f.remove(rocm + ".kpack")
		f.remove(".kpack")
		f.elf(rocm+"lib/libl.so.1", elfSpec{soname: "libl.so.1", ref: refTo("../.kpack/l_lib_@GFXARCH@.kpack")})
	}, "", []string{"fatal kpack opt/rocm/.kpack | .kpack"}},
	{"one archive of several, and one GPU in a directory", func(f *fixture) {
		f.elf(rocm+"lib/sys/libm.so", elfSpec{ref: refTo("../../.kpack/none.kpack", "../../.kpack/k_lib_gfx1151.kpack")})
		f.elf(rocm+"lib/sys/libn.so", elfSpec{ref: refTo("../../.kpack/@GFXARCH@/n_@GFXARCH@.kpack")})
		f.text(rocm+".kpack/gfx1151/n_gfx1151.kpack", archive, 0o644)
	}, "", []string{}},
	{"a section that is no map", func(f *fixture) {
		f.elf(rocm+"lib/sys/libo.so", elfSpec{ref: []byte("\xc1../../.kpack/gone_@GFXARCH@.kpack")})
		f.elf(rocm+"lib/sys/libp.so", elfSpec{ref: []byte("\xc1\xc1")})
	}, "", []string{
		"fatal kpack opt/rocm/lib/sys/libo.so | ../../.kpack/gone_@GFXARCH@.kpack",
		"warning kpack opt/rocm/lib/sys/libp.so | .rocm_kpack_ref"}},
	{"the builder's interpreter", func(f *fixture) {
		f.text(rocm+"bin/script", "#!/opt/python/cp312-cp312/bin/python3.12 -s\n", 0o755)
		f.text(rocm+"share/x/example.py", "#!/opt/python/cp312-cp312/bin/python3.12\n", 0o644)
	}, ScopeTree, []string{
		"required interpreter opt/rocm/bin/script | /opt/python/cp312-cp312/bin/python3.12",
		"warning interpreter opt/rocm/share/x/example.py | /opt/python/cp312-cp312/bin/python3.12",
		"warning leaked-path opt/rocm/bin/script",
		"warning leaked-path opt/rocm/share/x/example.py"}},
	{"interpreters that this host lacks", func(f *fixture) {
		f.text(rocm+"bin/script", "#!/usr/bin/no-such-thing\n", 0o755)
		f.text(rocm+"libexec/helper", "#!/usr/bin/env -S no-such-thing -x\n", 0o755)
		f.text(rocm+"libexec/module.py", "#!/usr/bin/env no-such-thing\n", 0o644)
		f.text(rocm+"libexec/own", "#!/usr/bin/env tool\n", 0o755)
		f.text(rocm+"libexec/lib.rs", "#![allow(x)]\n", 0o755)
	}, "", []string{
		"warning interpreter opt/rocm/bin/script | /usr/bin/no-such-thing",
		"warning interpreter opt/rocm/libexec/helper | no-such-thing"}},
	{"a loader that this host lacks", func(f *fixture) {
		f.elf(rocm+"bin/tool", elfSpec{program: true, interp: "/lib64/ld-no-such.so.9", needed: []string{"liba.so.1"}, runpath: "$ORIGIN/../lib"})
	}, "", []string{"required interpreter opt/rocm/bin/tool | /lib64/ld-no-such.so.9"}},
	{"links that lead nowhere", func(f *fixture) {
		f.link(rocm+"bin/gone", "../lib/llvm/bin/gone")
		f.link("bin/gone", "../opt/rocm/bin/gone")
		f.link(rocm+"lib/libgone.so.1", "libgone.so.1.2")
		f.link(rocm+"lib/cmake/x", "y")
		f.link(rocm+"lib/cmake/loop", "loop")
		f.link(rocm+"lib/rocm_sysdeps/lib/libz.so", "libz.so.1")
	}, "", []string{
		"required link opt/rocm/bin/gone | ../lib/llvm/bin/gone",
		"required link opt/rocm/lib/libgone.so.1 | libgone.so.1.2",
		"warning link opt/rocm/lib/cmake/x | y",
		"warning link opt/rocm/lib/cmake/loop | loop"}},
	{"links that leave", func(f *fixture) {
		f.link(rocm+"share/etc", "/etc")
		f.link(rocm+"share/up", "../../../../x")
		f.link(rocm+"share/through", "etc/passwd")
		f.link(rocm+"share/inside", f.path("opt/rocm/bin"))
	}, "", []string{
		"fatal escape opt/rocm/share/etc | /etc",
		"fatal escape opt/rocm/share/up | ../../../../x",
		"required link opt/rocm/share/inside | PREFIX/opt/rocm/bin"}},
	{"builder paths", func(f *fixture) {
		f.elf(rocm+"bin/tool", elfSpec{program: true, needed: []string{"liba.so.1"}, runpath: "$ORIGIN/../lib:/opt/python-shared/cp312/lib:/therock/build"})
		f.text(rocm+"lib/pkgconfig/x.pc", "prefix=/__w/rockrel/stage\nlibdir=${prefix}/lib\nlibs=-L/opt/python/x\nok=/usr/share/opt/python/x\n", 0o644)
		f.text(rocm+"lib/cmake/x.txt", "/__w/x\n", 0o644)
		f.text(rocm+"lib/x-config.cmake", "set(X \"/therock\")\nset(Y \"/home/runner/x\")\nset(Z /therockets/home)\n", 0o644)
	}, "", []string{
		"required leaked-path opt/rocm/bin/tool | /opt/python-shared/cp312/lib",
		"required leaked-path opt/rocm/bin/tool | /therock/build",
		"warning leaked-path opt/rocm/lib/pkgconfig/x.pc",
		"warning leaked-path opt/rocm/lib/x-config.cmake"}},
	{"its own place, which looks like a builder's", func(f *fixture) {
		f.text(rocm+"lib/llvm/bin/rocm.cfg", "--rocm-path=/__w/rocm/opt/rocm\n", 0o644)
	}, "", []string{}},
	{"modes that give rights away", func(f *fixture) {
		chmod(f, rocm+"bin/tool", 0o755|os.ModeSetuid)
		chmod(f, rocm+"lib/sys", 0o777)
	}, "", []string{"fatal mode opt/rocm/bin/tool | set-id", "fatal mode opt/rocm/lib/sys | world-writable"}},
	{"wrappers", func(f *fixture) {
		f.remove("bin/tool")
		f.text("bin/script", "#!/bin/sh\n", 0o644)
		f.text("bin/extra", "#!/bin/sh\n", 0o755)
	}, "", []string{
		"required wrapper bin/extra | extra", "required wrapper bin/script | script", "required wrapper bin/tool | tool"}},
	{"the shape of a root", func(f *fixture) {
		f.remove(rocm + "amdgcn")
		f.remove("amdgcn")
		f.remove("llvm")
		f.remove(rocm + ".info")
		f.remove(".info")
	}, "", []string{"required root-shape llvm", "required root-shape opt/rocm/amdgcn", "warning root-shape opt/rocm/.info"}},
	{"names that a terminal obeys", func(f *fixture) {
		f.link(rocm+"share/\x1b[2J\xff\u202e\\x", "/\x1bx\n")
		f.text(rocm+"lib/x\n.pc", "prefix=/__w/\u009bx\n", 0o644)
	}, "", []string{
		`fatal escape opt/rocm/share/\x1b[2J\xff\u202e\\x | /\x1bx\n`,
		`warning leaked-path opt/rocm/lib/x\n.pc`}},
	{"the version", func(f *fixture) {
		f.text(rocm+"share/therock/therock_manifest.json", `{"rocm_package_version":"10.2.0a20260929","rocm_version":"10.2.0"}`, 0o644)
	}, "", []string{"warning version opt/rocm/share/therock/therock_manifest.json | 10.2.0a20260929"}},
}

func chmod(f *fixture, name string, mode os.FileMode) {
	f.Helper()
	if err := os.Chmod(f.path(name), mode); err != nil {
		f.Fatal(err)
	}
}

func TestEachBreakIsFoundAndNothingElse(t *testing.T) {
	for _, b := range breaks {
		t.Run(b.name, func(t *testing.T) {
			f := newFixture(t)
			b.do(f)
			o := f.options()
			o.Scope, o.FinalPrefix = b.scope, "/__w/rocm"
			r := f.audit(o)
			got := brief(r.Findings)
			for i := range got {
				got[i] = strings.ReplaceAll(got[i], f.dir, "PREFIX")
			}
			want := slices.Sorted(slices.Values(b.want))
			if !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q\n%+v", got, want, r.Findings)
			}
			for _, x := range r.Findings {
				if !plain.Is(x.Path + x.Subject + x.Detail + x.Hint) {
					t.Errorf("not printable: %q", x)
				}
				if x.Detail == "" || x.Hint == "" {
					t.Errorf("says nothing: %+v", x)
				}
			}
		})
	}
}

func TestFactsThatAreKnownAreNotReadAgain(t *testing.T) {
	f := newFixture(t)
	o := f.options()
	o.Files = []manifest.File{
		{Path: rocm + "bin/tool", Kind: manifest.Regular, Mode: 0o4755, Size: 1, ELF: &manifest.ELF{Class: 64, Machine: "x86_64", Type: "dyn",
			Dynamic: true, Needed: []string{"libgone.so.1"}, Interp: "/lib64/ld-linux-x86-64.so.2"}},
		{Path: rocm + "lib/sys/libb.so.1", Kind: manifest.Regular, Mode: 0o644, Size: 1, ELF: &manifest.ELF{Class: 64, Machine: "amdgpu", Type: "dyn"}},
	}
	f.text(rocm+"lib/sys/libcut.so", "\x7fELF\x02\x01\x01", 0o644)
	o.Files = append(o.Files, manifest.File{Path: rocm + "lib/sys/libcut.so", Kind: manifest.Regular, Mode: 0o644, Size: 7, ELF: &manifest.ELF{}})
	got := brief(f.audit(o).Findings)
	want := []string{"fatal invalid-elf opt/rocm/lib/sys/libcut.so", "fatal mode opt/rocm/bin/tool | set-id", "required needed opt/rocm/bin/tool | libgone.so.1",
		"required needed opt/rocm/lib/liba.so.1.0 | libb.so.1"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestAllowedFindingsAreCountedOnly(t *testing.T) {
	f := newFixture(t)
	f.link(rocm+"lib/cmake/x", "y")
	f.link(rocm+"lib/cmake/a/b/z", "y")
	o := f.options()
	o.Allow = []Allow{{Rule: RuleLink, Path: "lib/cmake/**"}, {Rule: RuleMode, Path: "**"}}
	r := f.audit(o)
	if len(r.Findings) != 0 || r.Allowed != 2 || r.Counts.Warning != 0 {
		t.Errorf("%+v", r)
	}
	for _, bad := range []Allow{{Rule: "no-such-rule", Path: "x"}, {Rule: RuleLink, Path: strings.Repeat("x", maxGlob+1)}} {
		o.Allow = []Allow{bad}
		if _, err := Run(context.Background(), f.dir, o); err == nil {
			t.Errorf("%.50v was taken", bad)
		}
	}
}

func TestRunRefusesWhatItCannotJudge(t *testing.T) {
	if _, err := Run(context.Background(), t.TempDir(), Options{}); !errors.Is(err, ErrNotTree) {
		t.Errorf("an empty directory: %v", err)
	}
	if _, err := Run(context.Background(), "/no/such", Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	f := newFixture(t)
	for _, o := range []Options{{Scope: "x"}, {Profile: "x"}} {
		if _, err := Run(context.Background(), f.dir, o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, f.dir, f.options()); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestReportsAreTheSameEveryTime(t *testing.T) {
	f := newFixture(t)
	for _, b := range breaks[:12] {
		b.do(f)
	}
	first := f.audit(f.options())
	for range 3 {
		if again := f.audit(f.options()); !reflect.DeepEqual(first, again) {
			t.Fatalf("%+v\n%+v", first, again)
		}
	}
}

func TestAPrefixBehindALinkIsTheSame(t *testing.T) {
	f := newFixture(t)
	f.link(rocm+"share/inside", f.path("opt/rocm/bin"))
	symlink(t, f.dir, f.dir+"-current")
	a := f.audit(f.options())
	f.dir += "-current"
	if b := f.audit(f.options()); !reflect.DeepEqual(a.Findings, b.Findings) {
		t.Errorf("%+v\n%+v", a.Findings, b.Findings)
	}
}
