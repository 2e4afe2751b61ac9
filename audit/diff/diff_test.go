package diff

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	fooSource   = "extern \"C\" int foo(void) { return 1; } extern \"C\" int bar(void) { return 2; } namespace ns { int baz(int x, const char *) { return x; } template <class T> T inl(T x) { return x; } template int inl(int); }"
	fooLess     = "extern \"C\" int foo(void) { return 1; } namespace ns { template <class T> T inl(T x) { return x; } template int inl(int); }"
	fooNoWeak   = "extern \"C\" int foo(void) { return 1; } extern \"C\" int bar(void) { return 2; } namespace ns { int baz(int x, const char *) { return x; } }"
	fooMore     = fooSource + " extern \"C\" int more(void) { return 3; }"
	fooVersions = "V1 { global: foo; local: *; }; V2 { global: bar; } V1;"
	fooOne      = "V1 { global: foo; bar; local: *; };"
)

// stub is a library of the host that others need, with versions.
func stub(t testing.TB, soname, version string) string {
	src := "extern \"C\" int fn_" + strings.NewReplacer(".", "_", "-", "_").Replace(version) + "(void) { return 0; }"
	compile(t, src, version+" { *; };", "-Wl,-soname,"+soname)
	made.Lock()
	defer made.Unlock()
	name := filepath.Join(made.dir, "stub-"+soname+"-"+version+".so")
	key := fmt.Sprintf("%q", []string{src, version + " { *; };", "-Wl,-soname," + soname})
	write(t, name, made.files[key])
	return name
}

// user is a library that needs one version of a library of the host.
func user(t testing.TB, soname, version string) string {
	fn := "fn_" + strings.NewReplacer(".", "_", "-", "_").Replace(version)
	return compile(t, "extern \"C\" int "+fn+"(void); extern \"C\" int use(void) { return "+fn+"(); }", "", stub(t, soname, version), "-Wl,-soname,libuser.so.1")
}

const rockA = `{"the_rock_commit": "1111111111111111111111111111111111111111", "rocm_package_version": "10.2.0a20260930", "submodules": [
 {"submodule_name": "llvm-project", "submodule_path": "compiler/amd-llvm", "submodule_url": "https://github.com/ROCm/llvm-project.git", "pin_sha": "2222222222222222222222222222222222222222", "patches": ["patches/a.patch"]},
 {"submodule_name": "half", "submodule_path": "base/half", "submodule_url": "https://github.com/ROCm/half.git", "pin_sha": "3333333333333333333333333333333333333333", "patches": []}], "flags": {"KPACK_SPLIT_ARTIFACTS": true}}`

// base is a small sound tree, of real libraries.
func base(t testing.TB) tree {
	return tree{
		".info/version":                          "10.2.0\n",
		"share/therock/therock_manifest.json":    rockA,
		"share/hip/version":                      "HIP_VERSION_MAJOR=7\nHIP_VERSION_MINOR=15\nHIP_VERSION_PATCH=26333\n",
		"bin/hipcc":                              "#!/bin/sh\n",
		"bin/tool":                               "#!/usr/bin/env python3\nprint()\n",
		"amdgcn":                                 "-> lib/llvm/amdgcn",
		"lib/libfoo.so":                          "-> libfoo.so.1",
		"lib/libfoo.so.1":                        "-> libfoo.so.1.2",
		"lib/libfoo.so.1.2":                      compile(t, fooSource, "", "-Wl,-soname,libfoo.so.1"),
		"lib/libver.so.1":                        compile(t, fooSource, fooVersions, "-Wl,-soname,libver.so.1"),
		"lib/libuser.so.1":                       user(t, "libc.so.6", "GLIBC_2.28"),
		"lib/llvm/lib/libLLVM.so.22":             compile(t, fooSource, "", "-Wl,-soname,libLLVM.so.22"),
		"lib/llvm/bin/clang.cfg":                 "@rocm.cfg\n",
		"lib/llvm/bin/clang-22":                  "clang",
		"lib/llvm/bin/rocm.cfg":                  "--rocm-path='<CFGDIR>/../../..'\n-frtlib-add-rpath\n",
		"lib/llvm/lib/clang/22/include/a.h":      "a",
		"lib/llvm/lib/clang/22/include/b.h":      "b",
		"lib/rocblas/library/gfx1151/K.co":       "kernel",
		"lib/rocblas/library/gfx1100/K.co":       "kernel",
		"lib/llvm/amdgcn/bitcode/ocml.bc":        "BC",
		bitcodeDir + "oclc_isa_version_1151.bc":  "BC",
		".kpack/blas_lib_gfx1151.kpack":          "kpack",
		".kpack/rand_lib_gfx1151.kpack":          "kpack",
		"share/miopen/db/gfx1151_20.db.txt":      "db",
		"lib/cmake/foo/foo-config-version.cmake": "set(PACKAGE_VERSION \"1.2.0\")\n",
		"lib/pkgconfig/foo.pc":                   "Name: foo\nVersion: 1.2.0\n",
		"include/foo.h":                          "int foo(void);\n",
		"include/foo.hpp":                        "namespace ns { int baz(int, const char *); }\n",
		"share/big.bin":                          strings.Repeat("x", 100_000),
	}
}

// kindsOf are the kinds of risk in a report, each once.
func kindsOf(r *Report) []string {
	var out []string
	for _, k := range r.Risks {
		if !slices.Contains(out, k.Kind) {
			out = append(out, k.Kind)
		}
	}
	return out
}

// Each change is found, named, and nothing else is: whether trees are read or
// their lists believed.
func TestEachChange(t *testing.T) {
	a := base(t)
	lib := func(p string) func(*Report) *Library {
		return func(r *Report) *Library {
			for i := range r.Libraries {
				if r.Libraries[i].Path == p {
					return &r.Libraries[i]
				}
			}
			return &Library{}
		}
	}
	dirA := a.prefix(t)
	foo, ver := lib("lib/libfoo.so.1.2"), lib("lib/libver.so.1")
	for _, c := range []struct {
		name  string
		more  tree
		risks []string
		check func(r *Report) bool
	}{
		{"nothing", nil, nil, func(r *Report) bool {
			return r.Files.Same.Files == len(a) && len(r.Changed)+len(r.Added)+len(r.Removed)+len(r.Groups)+len(r.Libraries)+len(r.Config)+len(r.Notes) == 0 && r.Sources.Same == 2
		}},
		{"header added", tree{"include/bar.h": "int bar(void);\n"}, nil, func(r *Report) bool {
			return r.Files.Added == Tally{1, 15} && r.Added[0].Path == "include/bar.h" && r.Files.Delta == 15
		}},
		{"header removed", tree{"include/foo.h": ""}, nil, func(r *Report) bool { return r.Removed[0].Path == "include/foo.h" && r.Groups[0].Removed == 1 }},
		{"header changed, same size", tree{"include/foo.h": "int fou(void);\n"}, nil, func(r *Report) bool { return r.Changed[0].Why == "content" && r.Files.Changed.Files == 1 }},
		{"file became a link", tree{"include/foo.h": "-> ../share/big.bin"}, nil, func(r *Report) bool { return r.Files.Kind == 1 && r.Changed[0].Why == "kind" }},
		{"mode", tree{"include/foo.h": "#!sh"}.with(tree{"include/foo.h": "#!t foo(void);\n"}), nil, func(r *Report) bool { return r.Files.Mode == 1 }},
		{"grown", tree{"share/big.bin": strings.Repeat("x", 300_000)}, nil, func(r *Report) bool {
			return r.Grown[0].Path == "share/big.bin" && r.GrownMost[0].To-r.GrownMost[0].From == 200_000
		}},
		{"library renamed by a version", tree{"lib/libfoo.so.1.2": "", "lib/libfoo.so.1.3": compile(t, fooMore, "", "-Wl,-soname,libfoo.so.1"), "lib/libfoo.so.1": "-> libfoo.so.1.3"}, nil, func(r *Report) bool {
			return len(r.Added)+len(r.Removed) == 0 && reflect.DeepEqual(r.Renamed, []Rename{{From: "lib/libfoo.so.1.2", To: "lib/libfoo.so.1.3", Files: 1}}) && r.Files.Retargeted == 1
		}},
		{"directory renamed by a version", tree{
			"lib/llvm/lib/clang/22/include/a.h": "", "lib/llvm/lib/clang/22/include/b.h": "", "lib/llvm/lib/clang/23/include/a.h": "a", "lib/llvm/lib/clang/23/include/b.h": "B",
		}, nil, func(r *Report) bool {
			return len(r.Added)+len(r.Removed) == 0 && reflect.DeepEqual(r.Renamed, []Rename{{From: "lib/llvm/lib/clang/22", To: "lib/llvm/lib/clang/23", Files: 2, Dir: true, Same: 1}}) &&
				r.Versions[2] == VersionChange{"LLVM", "22", "23", "lib/llvm/lib/clang"}
		}},
		{"SONAME bumped", tree{"lib/libfoo.so.1.2": "", "lib/libfoo.so.1": "", "lib/libfoo.so": "-> libfoo.so.2", "lib/libfoo.so.2": "-> libfoo.so.2.0", "lib/libfoo.so.2.0": compile(t, fooSource, "", "-Wl,-soname,libfoo.so.2")},
			[]string{RiskSoname}, func(r *Report) bool {
				return foo(r).Now == "libfoo.so.2" && foo(r).Public && foo(r).To == "lib/libfoo.so.2.0" && strings.Contains(r.Risks[0].Detail, "libfoo.so.2")
			}},
		{"library gone", tree{"lib/libfoo.so.1.2": "", "lib/libfoo.so.1": "", "lib/libfoo.so": ""}, []string{RiskSoname}, func(r *Report) bool { return foo(r).Gone }},
		{"library gone, its links are left", tree{"lib/libfoo.so.1.2": ""}, []string{RiskSoname}, func(r *Report) bool { return foo(r).Gone }},
		{"library became a link, and lost symbols", tree{"lib/libver.so.1": "-> libver-new.so", "lib/libver-new.so": compile(t, fooSource, fooOne, "-Wl,-soname,libver.so.1")}, []string{RiskVersions, RiskSymbols}, func(r *Report) bool {
			return ver(r).To == "lib/libver-new.so" && ver(r).Lost == 1
		}},
		{"library has a name of another kind, and lost symbols", tree{"lib/libfoo.so.1.2": "", "lib/libfoo.so.1": "-> libfoo-git.so", "lib/libfoo-git.so": compile(t, fooLess, "", "-Wl,-soname,libfoo.so.1", "-Wl,-z,nodelete")}, []string{RiskSymbols}, func(r *Report) bool { return foo(r).Lost == 2 }},
		{"compatibility link to a library with another SONAME", tree{"lib/libver.so.1": "-> libver.so.2", "lib/libver.so.2": compile(t, fooSource, fooVersions, "-Wl,-soname,libver.so.2")}, nil, func(r *Report) bool { return len(r.Libraries) == 0 }},
		{"manifest gone", tree{"share/therock/therock_manifest.json": ""}, []string{}, func(r *Report) bool { return r.Sources != nil && len(r.Sources.Submodules) == 0 && len(r.Notes) == 1 }},
		{"name of a library gone", tree{"lib/libfoo.so.1": ""}, []string{RiskSoname}, func(r *Report) bool { return foo(r).NameGone }},
		{"private library bumped", tree{"lib/llvm/lib/libLLVM.so.22": "", "lib/llvm/lib/libLLVM.so.23": compile(t, fooSource, "", "-Wl,-soname,libLLVM.so.23")}, nil, func(r *Report) bool {
			return len(r.Libraries) == 1 && !r.Libraries[0].Public && r.Libraries[0].Now == "libLLVM.so.23"
		}},
		{"library moved", tree{"lib/llvm/lib/libLLVM.so.22": "", "lib/llvm/lib/x86_64-unknown-linux-gnu/libLLVM.so.22": compile(t, fooMore, "", "-Wl,-soname,libLLVM.so.22")}, nil, func(r *Report) bool {
			return len(r.Added)+len(r.Removed)+len(r.Libraries) == 0 && r.Renamed[0].Files == 1
		}},
		{"symbols added", tree{"lib/libfoo.so.1.2": compile(t, fooMore, "", "-Wl,-soname,libfoo.so.1")}, nil, func(r *Report) bool { return len(r.Libraries) == 0 && r.Files.Changed.Files == 1 }},
		{"symbols lost", tree{"lib/libfoo.so.1.2": compile(t, fooLess, "", "-Wl,-soname,libfoo.so.1")}, []string{RiskSymbols}, func(r *Report) bool {
			l := foo(r)
			return l.Lost == 2 && l.Weak == 0 && l.Exports == 4 && l.Symbols[1].Name == "bar" && l.Symbols[0].Pretty == "ns::baz(int, char const*)" && strings.Contains(r.Risks[0].Detail, "lost 2 symbols of 4: ns::baz(int, char const*), bar")
		}},
		{"weak symbols lost", tree{"lib/libfoo.so.1.2": compile(t, fooNoWeak, "", "-Wl,-soname,libfoo.so.1")}, nil, func(r *Report) bool { return foo(r).Weak == 1 && foo(r).Lost == 0 && foo(r).Symbols[0].Weak }},
		{"symbol version lost", tree{"lib/libver.so.1": compile(t, fooSource, fooOne, "-Wl,-soname,libver.so.1")}, []string{RiskVersions, RiskSymbols}, func(r *Report) bool {
			return slices.Equal(ver(r).Versions, []string{"V2"}) && ver(r).Lost == 1 && ver(r).Symbols[0] == Symbol{Name: "bar", Version: "V2"}
		}},
		{"versions added to a library without", tree{"lib/libfoo.so.1.2": compile(t, fooSource, "V9 { *; };", "-Wl,-soname,libfoo.so.1")}, nil, func(r *Report) bool { return len(r.Libraries) == 0 }},
		{"ELF file damaged", tree{"lib/libver.so.1": a["lib/libver.so.1"][:100]}, []string{RiskUnread}, nil},
		{"floor rose", tree{"lib/libuser.so.1": user(t, "libc.so.6", "GLIBC_2.34")}, []string{RiskFloor}, func(r *Report) bool {
			return reflect.DeepEqual(r.Host.Floors, []Floor{{"GLIBC", "GLIBC_2.28", "GLIBC_2.34", "lib/libuser.so.1", 1}}) && r.Host.Versions[0].Version == "GLIBC_2.34"
		}},
		{"floor fell", tree{"lib/libuser.so.1": user(t, "libc.so.6", "GLIBC_2.17")}, nil, func(r *Report) bool { return len(r.Host.Floors) == 0 && len(r.Host.Versions) == 1 }},
		{"floor is that of another file", tree{"lib/libextra.so": user(t, "libc.so.6", "GLIBC_2.28")}, nil, func(r *Report) bool { return len(r.Host.Versions) == 0 }},
		{"library of the host newly needed", tree{"lib/libextra.so": user(t, "libnuma.so.1", "libnuma_1.1")}, []string{RiskFloor, RiskNeeded}, func(r *Report) bool {
			return reflect.DeepEqual(r.Host.Libraries, []NewNeeded{{"libnuma.so.1", "lib/libextra.so", 1}})
		}},
		{"library of the tree newly needed", tree{"lib/libextra.so": user(t, "libver.so.1", "V1")}, nil, func(r *Report) bool { return len(r.Host.Libraries)+len(r.Host.Versions) == 0 }},
		{"configuration changed", tree{"lib/llvm/bin/rocm.cfg": "--rocm-path='<CFGDIR>/../../..'\n-Wl,--enable-new-dtags\n"}, []string{RiskConfig}, func(r *Report) bool {
			return slices.Equal(r.Config[0].Diff, []string{"@@ -1,2 +1,2 @@", " --rocm-path='<CFGDIR>/../../..'", "--frtlib-add-rpath", "+-Wl,--enable-new-dtags"})
		}},
		{"configuration led elsewhere", tree{"lib/llvm/bin/rocm.cfg": "-> clang.cfg"}, []string{RiskConfig}, func(r *Report) bool {
			return slices.Contains(r.Config[0].Diff, "+(link to clang.cfg)")
		}},
		{"another configuration", tree{"share/tool/x.cfg": "a=1\n"}, nil, func(r *Report) bool { return r.Config[0].Path == "share/tool/x.cfg" }},
		{"configuration added", tree{"lib/llvm/bin/x.cfg": "-O2\n"}, []string{RiskConfig}, func(r *Report) bool {
			return slices.Equal(r.Config[0].Diff, []string{"@@ -0,0 +1 @@", "+-O2"}) && r.Config[0].Why == "added"
		}},
		{"configuration removed", tree{"lib/llvm/bin/clang.cfg": ""}, []string{RiskConfig}, func(r *Report) bool { return r.Config[0].Why == "removed" }},
		{"program gone", tree{"bin/tool": ""}, []string{RiskPrograms}, func(r *Report) bool { return slices.Equal(r.Programs, []string{"bin/tool"}) }},
		{"program of the compiler gone", tree{"lib/llvm/bin/clang-22": ""}, nil, func(r *Report) bool { return len(r.Programs) == 1 }},
		{"interpreter changed", tree{"bin/tool": "#!/opt/python/bin/python3\nprint()\n"}, nil, func(r *Report) bool {
			return reflect.DeepEqual(r.Scripts, Scripts{1, []Interpreter{{"/usr/bin/env python3", "/opt/python/bin/python3", 1, "bin/tool"}}})
		}},
		{"script changed", tree{"bin/tool": "#!/usr/bin/env python3\nprint(1)\n"}, nil, func(r *Report) bool { return r.Scripts.Changed == 1 && len(r.Scripts.Interpreters) == 0 }},
		{"kernels of a target lost", tree{"lib/rocblas/library/gfx1151/K.co": ""}, []string{RiskKernels}, func(r *Report) bool {
			return r.Risks[0].Subject == "gfx1151" && strings.HasPrefix(r.Risks[0].Detail, "rocBLAS has nothing for it") && len(r.Risks) == 1
		}},
		{"kernels of two targets lost", tree{"lib/rocblas/library/gfx1151/K.co": "", "lib/rocblas/library/gfx1100/K.co": ""}, []string{RiskKernels}, func(r *Report) bool {
			return r.Risks[0] == Risk{RiskKernels, "gfx1100, gfx1151", "rocBLAS has nothing for them any more, and had 2 files, 12 B"}
		}},
		{"kernels of another target", tree{"lib/rocblas/library/gfx1200/K.co": "k"}, nil, func(r *Report) bool {
			return slices.Contains(r.Kernels, Kernels{"rocBLAS", "gfx1200", Tally{}, Tally{1, 1}})
		}},
		{"one archive lost", tree{".kpack/rand_lib_gfx1151.kpack": ""}, []string{RiskKernels}, func(r *Report) bool { return strings.HasPrefix(r.Risks[0].Detail, "kpack rand_lib has nothing") }},
		{"database lost", tree{"share/miopen/db/gfx1151_20.db.txt": ""}, []string{RiskKernels}, nil},
		{"device library lost", tree{bitcodeDir + "oclc_isa_version_1151.bc": ""}, []string{RiskKernels}, nil},
		{"link at the top gone", tree{"amdgcn": ""}, []string{RiskLayout}, nil},
		{"HIP", tree{"share/hip/version": "HIP_VERSION_MAJOR=8\nHIP_VERSION_MINOR=0\n"}, nil, func(r *Report) bool { return r.Versions[1] == VersionChange{"HIP", "7.15.26333", "8.0", ""} }},
		{"component", tree{"lib/cmake/foo/foo-config-version.cmake": "  set(PACKAGE_VERSION 2.0)\n"}, nil, func(r *Report) bool {
			return r.Versions[3] == VersionChange{"foo (CMake)", "1.2.0", "2.0", "lib/cmake/foo/foo-config-version.cmake"}
		}},
		{"component of .info", tree{".info/version-hip": "7.15\n"}, nil, func(r *Report) bool { return r.Versions[3] == VersionChange{"hip", "", "7.15", ".info/version-hip"} }},
		{"pkg-config", tree{"lib/pkgconfig/foo.pc": "Version: 1.3\n"}, nil, func(r *Report) bool { return r.Versions[3].Name == "foo (pkg-config)" && r.Versions[3].To == "1.3" }},
		{"package without change of version", tree{"lib/pkgconfig/foo.pc": "Name: FOO\nVersion: 1.2.0\n"}, nil, func(r *Report) bool { return len(r.Versions) == 3 }},
		{"older night", tree{"share/therock/therock_manifest.json": strings.Replace(rockA, "0930", "0929", 1)}, []string{RiskDowngrade}, nil},
		{"newer night", tree{"share/therock/therock_manifest.json": strings.NewReplacer("0930", "1001", "1111111111", "4444444444", "2222222222", "5555555555", "a.patch", "b.patch").Replace(rockA)}, nil, func(r *Report) bool {
			s := r.Sources
			return strings.HasPrefix(s.Rock.Link, "https://github.com/ROCm/TheRock/compare/1111") && len(s.Submodules) == 1 && s.Submodules[0].Link != "" &&
				slices.Equal(s.Submodules[0].PatchesAdded, []string{"patches/b.patch"}) && s.Submodules[0].PatchesTo == 1 && s.Same == 1
		}},
		{"flags", tree{"share/therock/therock_manifest.json": strings.Replace(rockA, "true", "false", 1)}, nil, func(r *Report) bool {
			return reflect.DeepEqual(r.Sources.Flags, []Flag{{"KPACK_SPLIT_ARTIFACTS", "true", "false"}})
		}},
		{"manifest that is none", tree{"share/therock/therock_manifest.json": "{"}, nil, func(r *Report) bool { return len(r.Notes) == 2 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dirB := a.with(c.more).prefix(t)
			treeA, treeB := filepath.Join(dirA, rocmDir), filepath.Join(dirB, rocmDir)
			for _, r := range []*Report{compare(t, treeA, treeB), compare(t, dirA, dirB), compare(t, dirA, treeB), compare(t, treeA, dirB)} {
				if got := kindsOf(r); !slices.Equal(got, c.risks) {
					t.Errorf("risks %q, not %q: %+v", got, c.risks, r.Risks)
				}
				if c.check != nil && !c.check(r) {
					t.Errorf("%+v", r)
				}
				if !strings.HasPrefix(c.name, "manifest") && len(r.Notes) > 0 {
					t.Errorf("%q", r.Notes)
				}
			}
		})
	}
}

// docs/diff.md explains each kind of risk, in the order of the report.
func TestKindsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/diff.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(string(doc), -1) {
		got = append(got, m[1])
	}
	want := []string{RiskDowngrade, RiskKernels, RiskLayout, RiskSoname, RiskVersions, RiskSymbols, RiskUnread, RiskPrograms, RiskFloor, RiskNeeded, RiskConfig}
	if !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}
