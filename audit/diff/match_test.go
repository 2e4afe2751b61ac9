package diff

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

func TestStem(t *testing.T) {
	for p, want := range map[string]string{
		"lib/libfoo.so.1.2":                    "lib/libfoo.so.#",
		"lib/libfoo.so":                        "",
		"lib/libamdhip64.so.7.15.26333":        "lib/libamdhip64.so.#",
		"lib/llvm/lib/clang/22/include/a.h":    "lib/llvm/lib/clang/#/include/a.h",
		"lib/python3.12/site-packages/x":       "lib/python#/site-packages/x",
		"lib/libLLVM.so.22.0git":               "lib/libLLVM.so.#git",
		"lib/libLLVM-22.so":                    "lib/libLLVM-#.so",
		"bin/clang-22":                         "bin/clang-#",
		"lib/cmake/foo-1.2.3/x":                "lib/cmake/foo-#/x",
		"lib/rocblas/library/Kernels-1.hsaco":  "",
		"bitcode/oclc_isa_version_1030.bc":     "bitcode/oclc_isa_version_#.bc",
		bitcodeDir + "oclc_abi_version_500.bc": "",
		"include/sha256.h":                     "",
		"share/part-001.txt":                   "",
	} {
		got := stem(&file{File: manifest.File{Path: p, Kind: manifest.Regular}}, true)
		if want != "" {
			want = "file " + want
		}
		if got != want {
			t.Errorf("%s: %q, not %q", p, got, want)
		}
	}
}

// Where it is not clear what was renamed to what, nothing was.
func TestAmbiguousRenames(t *testing.T) {
	a := tree{"bin/x": "x", "share/v-1": "1", "share/v-2": "2"}
	b := tree{"bin/x": "x", "share/v-3": "3", "share/v-4": "4"}
	r := compare(t, a.on(t), b.on(t))
	if len(r.Renamed) != 0 || r.Files.Added.Files != 2 || r.Files.Removed.Files != 2 {
		t.Errorf("%+v", r)
	}
}

// A file that is somewhere else as it was has moved.
func TestMovedByContent(t *testing.T) {
	big := strings.Repeat("content", 200)
	a := tree{"bin/x": "x", "share/one/data": big, "share/tiny": "t"}
	b := tree{"bin/x": "x", "share/other/name": big, "share/tinier": "t"}
	r := compare(t, a.prefix(t), b.prefix(t))
	if len(r.Renamed) != 1 || r.Renamed[0] != (Rename{"share/one/data", "share/other/name", 1, false, 1}) || r.Files.Added.Files != 1 {
		t.Errorf("%+v", r)
	}
}

// The difference of two texts is one that patch takes.
func TestUnifiedIsAPatch(t *testing.T) {
	if _, err := exec.LookPath("patch"); err != nil {
		t.Skip("patch is missing: install the package patch")
	}
	lines := strings.Fields("a b c d e f g h i j k l m n o p q r s t u v w x y z")
	for _, c := range [][2]string{
		{"a b c", "a x c"}, {"", "a"}, {"a", ""}, {"a b c d e f g h i j k l", "b c d e f g h i j k x"}, {"a a a b", "a b b a"},
		{strings.Join(lines, " "), strings.Join(lines[3:20], " ") + " new " + strings.Join(lines[15:], " ")},
	} {
		a, b := strings.Fields(c[0]), strings.Fields(c[1])
		got, cut := unified(a, b)
		if cut != 0 {
			t.Errorf("%q: %d lines were left out", c, cut)
		}
		dir := t.TempDir()
		text := func(l []string) string {
			if len(l) == 0 {
				return ""
			}
			return strings.Join(l, "\n") + "\n"
		}
		write(t, filepath.Join(dir, "f"), text(a))
		cmd := exec.Command("patch", "-s", "--posix", "f")
		cmd.Dir = dir
		cmd.Stdin = strings.NewReader("--- f\n+++ f\n" + text(got))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%q: %v %s\n%s", c, err, out, text(got))
			continue
		}
		now, err := os.ReadFile(filepath.Join(dir, "f"))
		if err != nil && !os.IsNotExist(err) || string(now) != text(b) {
			t.Errorf("%q: %q, %v", c, now, err)
		}
	}
	long := strings.Split(strings.Repeat("x\n", maxLines+1), "\n")
	if got, _ := unified(long, nil); len(got) != 1 {
		t.Errorf("%d lines", len(got))
	}
	if got, left := unified(nil, long[:1000]); len(got) != maxDiffLines || left != 801 {
		t.Errorf("%d lines, %d left", len(got), left)
	}
}

func TestTargetsOf(t *testing.T) {
	for _, c := range []struct{ path, want string }{
		{"lib/rocblas/library/Kernels.so-000-gfx90a-xnack+.hsaco", "rocBLAS gfx90a"},
		{"lib/rocblas/library/gfx1151/TensileLibrary_lazy_gfx1151.dat", "rocBLAS gfx1151"},
		{"lib/hipblaslt/library/gfx1100/x_gfx1100.dat", "hipBLASLt gfx1100"},
		{".kpack/blas_lib_gfx9-4-generic.kpack", "kpack blas_lib gfx9-4-generic"},
		{"share/miopen/db/gfx90a6e.kdb", "MIOpen gfx90a"},
		{"share/miopen/db/gfx1030_36.HIP.fdb.txt", "MIOpen gfx1030"},
		{bitcodeDir + "oclc_isa_version_1151.bc", "device library gfx1151"},
		{"lib/rocblas/library/TensileManifest.txt", "rocBLAS "},
		{"share/doc/gfx1151", " gfx1151"},
	} {
		lib := kernelLibrary(c.path)
		if got := lib + " " + strings.Join(targetsOf(c.path, lib), ","); got != c.want {
			t.Errorf("%s: %q, not %q", c.path, got, c.want)
		}
	}
}

func TestNumbered(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"GLIBC_2.28", "GLIBC_2.34", -1}, {"GLIBC_2.9", "GLIBC_2.10", -1}, {"GLIBC_2.2.5", "GLIBC_2.2", 1}, {"CXXABI_1.3.11", "CXXABI_1.3.9", 1}} {
		if got := compareNumbers(c.a, c.b); got != c.want {
			t.Errorf("%s, %s: %d", c.a, c.b, got)
		}
	}
	for _, bad := range []string{"GLIBC_PRIVATE", "V1", "_1", "GLIBC_", "X_-1", "X_1..2"} {
		if series, _, ok := numbered(bad); ok {
			t.Errorf("%s: %s", bad, series)
		}
	}
}
