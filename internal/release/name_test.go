package release

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestParseName(t *testing.T) {
	const sha = "0123456789abcdef0123456789abcdef01234567"
	for in, want := range map[string]string{ // platform family variant version archive
		"therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz":                    "linux gfx1151  10.2.0a20260930 tar.gz",
		"therock-dist-linux-gfx110X-all-10.1.0a20260827.tar.gz":                "linux gfx110X-all  10.1.0a20260827 tar.gz",
		"therock-dist-linux-gfx110X-dgpu-7.9.0.tar.gz":                         "linux gfx110X-dgpu  7.9.0 tar.gz",
		"therock-dist-linux-gfx94X-dcgpu-10.0.0rc4.tar.gz":                     "linux gfx94X-dcgpu  10.0.0rc4 tar.gz",
		"therock-dist-linux-gfx115X-igpu-7.10.0.tar.gz":                        "linux gfx115X-igpu  7.10.0 tar.gz",
		"therock-dist-linux-gfx950-dcgpu-10.0.0rc10.tar.gz":                    "linux gfx950-dcgpu  10.0.0rc10 tar.gz",
		"therock-dist-linux-gfx90a-10.0.0.tar.gz":                              "linux gfx90a  10.0.0 tar.gz",
		"therock-dist-linux-gfx90c-10.0.0.post1.tar.gz":                        "linux gfx90c  10.0.0.post1 tar.gz",
		"therock-dist-linux-multiarch-10.2.0a20260930.tar.gz":                  "linux multiarch  10.2.0a20260930 tar.gz",
		"therock-dist-linux-multiarch-tests-10.2.0a20260930.tar.gz":            "linux multiarch tests 10.2.0a20260930 tar.gz",
		"therock-dist-linux-gfx1151-tests-10.2.0a20260930.tar.gz":              "linux gfx1151 tests 10.2.0a20260930 tar.gz",
		"therock-dist-linux-gfx110X-all-tests-10.2.0a20260930.tar.gz":          "linux gfx110X-all tests 10.2.0a20260930 tar.gz",
		"therock-dist-linux-gfx94X-dcgpu-asan-10.2.0a20260930.tar.gz":          "linux gfx94X-dcgpu asan 10.2.0a20260930 tar.gz",
		"therock-dist-linux-multiarch-asan-tests-10.2.0a20260930.tar.gz":       "linux multiarch asan-tests 10.2.0a20260930 tar.gz",
		"therock-dist-linux-multiarch-tests-asan-10.2.0a20260930.tar.gz":       "linux multiarch tests-asan 10.2.0a20260930 tar.gz",
		"therock-dist-windows-gfx1151-10.2.0a20260930.tar.gz":                  "windows gfx1151  10.2.0a20260930 tar.gz",
		"therock-dist-windows-gfx120X-all-tests-10.2.0.tar.gz":                 "windows gfx120X-all tests 10.2.0 tar.gz",
		"therock-dist-linux-gfx1151-10.2.0a20260930+bkc.20261001.tar.gz":       "linux gfx1151  10.2.0a20260930+bkc.20261001 tar.gz",
		"therock-dist-linux-multiarch-tests-10.2.0a20260930+bkc.9.tar.gz":      "linux multiarch tests 10.2.0a20260930+bkc.9 tar.gz",
		"therock-dist-linux-gfx125X-dcgpu-10.2.0.dev0+" + sha + ".tar.gz":      "linux gfx125X-dcgpu  10.2.0.dev0+" + sha + " tar.gz",
		"therock-dist-linux-gfx90X-dcgpu-6.5.0rc20250610.tar.gz":               "linux gfx90X-dcgpu  6.5.0rc20250610 tar.gz",
		"rocm-sdk-10.3.0-linux.tar.zst":                                        "linux multiarch  10.3.0 tar.zst",
		"rocm-sdk-10.3.0-windows.zip":                                          "windows multiarch  10.3.0 zip",
		"rocm-sdk-linux-10.3.0.tar.xz":                                         "linux multiarch  10.3.0 tar.xz",
		"rocm-sdk-gfx1151-10.3.0a20261101-linux.tar.gz":                        "linux gfx1151  10.3.0a20261101 tar.gz",
		"rocm-sdk-gfx110X-all-linux-10.3.0rc1.tar.gz":                          "linux gfx110X-all  10.3.0rc1 tar.gz",
		"rocm-sdk-multiarch-10.3.0-linux.tar.gz":                               "linux multiarch  10.3.0 tar.gz",
		"rocm-sdk-lite-10.3.0-linux.tar.gz":                                    "linux multiarch lite 10.3.0 tar.gz",
		"rocm-sdk-lite-gfx1151-10.3.0-linux.tar.gz":                            "linux gfx1151 lite 10.3.0 tar.gz",
		"rocm-sdk-gfx1151-lite-10.3.0-linux.tar.gz":                            "linux gfx1151 lite 10.3.0 tar.gz",
		"rocm-sdk-gfx110X-all-lite-tests-linux-10.3.0a20261101+bkc.1.tar.zst":  "linux gfx110X-all lite-tests 10.3.0a20261101+bkc.1 tar.zst",
		"rocm-sdk-gfx94X-dcgpu-asan-10.3.0.dev0+" + sha + "-linux.tar.gz":      "linux gfx94X-dcgpu asan 10.3.0.dev0+" + sha + " tar.gz",
		"rocm-sdk-tests-10.3.0-linux.tar.gz":                                   "linux multiarch tests 10.3.0 tar.gz",
		"rocm-sdk-lite-multiarch-tests-linux-10.3.0a20261101+bkc.2026.tar.zst": "linux multiarch lite-tests 10.3.0a20261101+bkc.2026 tar.zst",
	} {
		n, err := ParseName(in)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if got := fmt.Sprint(n.Platform, " ", n.Family, " ", n.Variant, " ", n.Version, " ", n.Archive); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
		if n.String() != in {
			t.Errorf("%s: written as %s", in, n)
		}
		if n.Tests != slices.Contains(strings.Split(n.Variant, "-"), "tests") {
			t.Errorf("%s: tests %t", in, n.Tests)
		}
	}
}

func TestParseNameGuessesNothing(t *testing.T) {
	for _, in := range []string{
		"", "index.html", "therock-dist-", "rocm-sdk-", "rocm-sdk-.tar.gz", "therock-dist-linux-gfx1151-ADHOCBUILD.tar.gz", "therock-dist-linux-gfx1151.tar.gz",
		"therock-dist-linux-ADHOCBUILD.tar.gz", "therock-dist-linux-gfx1151-ADHOCBUILD-10.2.0.tar.gz", "therock-dist-linux-gfx1151-10.2.0ADHOCBUILD.tar.gz",
		"therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz.sha256", "therock-dist-linux-gfx1151-10.2.0a20260930.tar.xz",
		"xtherock-dist-linux-gfx1151-10.2.0a20260930.tar.gz", "therock-dist-linux--10.2.0a20260930.tar.gz",
		"therock-dist-macos-gfx1151-10.2.0.tar.gz", "therock-dist-Linux-gfx1151-10.2.0.tar.gz",
		"therock-dist-linux-../gfx1151-10.2.0.tar.gz", "therock-dist-linux-gfx1151-10.2.0.tar.gz\n", "therock-dist-linux-gfx1151-10.2.0%2Bbkc.1.tar.gz",
		"therock-dist-linux-gfx110X-all-extra-10.2.0.tar.gz", "therock-dist-linux-gfx1151-tests-tests-10.2.0.tar.gz", "therock-dist-linux-tests-gfx1151-10.2.0.tar.gz",
		"therock-dist-linux-gfx1151-debug-10.2.0.tar.gz", "therock-dist-linux-gfx1151-lite-10.2.0.tar.gz", "therock-dist-linux-multiarch-all-10.2.0.tar.gz",
		"therock-dist-linux-multi-arch-10.2.0.tar.gz", "therock-dist-linux-gfx1151-10.2.0-1.tar.gz", "therock-dist-linux-gfx1151-rc1-10.2.0.tar.gz",
		"therock-dist-linux-gfx11X0X-10.2.0.tar.gz", "therock-dist-linux-gfx-10.2.0.tar.gz", "therock-dist-linux-gfxX-10.2.0.tar.gz", "therock-dist-linux-gfx1151X23456789-10.2.0.tar.gz",
		"therock-dist-linux-gfx123456789-10.2.0.tar.gz", "therock-dist-linux-gfx110X-xxxgpu9-10.2.0.tar.gz", "therock-dist-linux-gfx110X-pu-10.2.0.tar.gz", "therock-dist-linux-gfx1151-10.2.tar.gz.tar.gz",
		"rocm-sdk-10.3.0.tar.gz", "rocm-sdk-linux.tar.gz", "rocm-sdk-10.3.0-macos.tar.gz", "rocm-sdk-10.3.0-linux.tar.bz2", "rocm-sdk-10.3.0-linux", "rocm-sdk-10.3.0-linux-x86-64.tar.gz",
		"rocm-sdk-gfx1151-gfx1150-10.3.0-linux.tar.gz", "rocm-sdk-instinct-10.3.0-linux.tar.gz", "rocm-sdk-lite-gfx1151-lite-10.3.0-linux.tar.gz", "rocm-sdk-lite-lite-10.3.0-linux.tar.gz",
		"rocm-sdk-tests-lite-10.3.0-linux.tar.gz", "rocm-sdk-10.3.0-gfx1151-linux.tar.gz", "rocm-sdk-linux-10.3.0-gfx1151.tar.gz", "rocm-sdk-10.3.0-linux-10.3.0.tar.gz", "rocm-sdk--10.3.0-linux.tar.gz",
		"rocm-sdk-linux-linux.tar.gz", "rocm-sdk-SHA256SUMS", "rocm-sdkx-10.3.0-linux.tar.gz", "rocm-sdk-linux-windows-10.3.0.tar.gz",
		"therock-dist-linux-gfx1151-10.2.0+" + strings.Repeat("a", 255) + ".tar.gz",
	} {
		if n, err := ParseName(in); !errors.Is(err, ErrName) {
			t.Errorf("%q parsed as %+v, error %v", in, n, err)
		}
	}
}

// TestNameOfFields: a Name need not come from a string.
func TestNameOfFields(t *testing.T) {
	v := mustVersion(t, "10.2.0")
	for want, n := range map[string]Name{
		"therock-dist-linux-gfx1151-10.2.0.tar.gz":       {Platform: "linux", Family: "gfx1151", Version: v},
		"therock-dist-linux-gfx1151-tests-10.2.0.tar.gz": {Platform: "linux", Family: "gfx1151", Tests: true, Version: v},
		"therock-dist-linux-gfx1151-asan-10.2.0.tar.gz":  {Platform: "linux", Family: "gfx1151", Variant: VariantASan, Version: v},
	} {
		if n.String() != want {
			t.Errorf("%+v is written %s", n, n)
		}
	}
}

func TestUnusable(t *testing.T) {
	for name, want := range map[string][2]string{ // in nightly, in asan
		"therock-dist-linux-gfx1151-10.2.0.tar.gz":             {"", ""},
		"therock-dist-linux-gfx1151-asan-10.2.0.tar.gz":        {"is the asan variant", ""},
		"therock-dist-linux-gfx1151-tests-10.2.0.tar.gz":       {"is the -tests sibling, not a ROCm", "is the -tests sibling, not a ROCm"},
		"therock-dist-linux-gfx1151-asan-tests-10.2.0.tar.gz":  {"is the -tests sibling, not a ROCm", "is the -tests sibling, not a ROCm"},
		"therock-dist-linux-gfx1151-tsan-10.2.0.tar.gz":        {"is the tsan variant", "is the tsan variant"},
		"therock-dist-windows-gfx1151-10.2.0.tar.gz":           {"is for windows", "is for windows"},
		"rocm-sdk-gfx1151-10.2.0-linux.tar.gz":                 {"", ""},
		"rocm-sdk-lite-gfx1151-10.2.0-linux.tar.gz":            {"is the lite variant", "is the lite variant"},
		"rocm-sdk-gfx1151-10.2.0-linux.tar.zst":                {"is a tar.zst, which update does not take", "is a tar.zst, which update does not take"},
		"rocm-sdk-gfx1151-lite-asan-linux-10.2.0rc1.tar.gz":    {"is the lite-asan variant", "is the lite-asan variant"},
		"therock-dist-linux-gfx1151-asan-tsan-10.2.0.tar.gz":   {"is the asan-tsan variant", "is the asan-tsan variant"},
		"therock-dist-linux-multiarch-10.2.0a20260930.tar.gz":  {"", ""},
		"therock-dist-linux-multiarch-asan-10.2.0.dev0.tar.gz": {"is the asan variant", ""},
	} {
		n, err := ParseName(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, channel := range []string{"nightly", ChannelASan} {
			r := Release{Channel: channel, Platform: n.Platform, Variant: n.Variant, Tests: n.Tests, Archive: n.Archive}
			if got := r.Unusable(); got != want[i] {
				t.Errorf("%s in %s: %q, want %q", name, channel, got, want[i])
			}
		}
	}
	if why := (Release{Platform: "linux"}).Unusable(); why != "" {
		t.Errorf("a release without an archive format %s", why)
	}
}

func FuzzParseName(f *testing.F) {
	f.Add("therock-dist-linux-gfx110X-all-tests-10.2.0a20260930+bkc.20261001.tar.gz")
	f.Add("therock-dist-linux-gfx1151-ADHOCBUILD.tar.gz")
	f.Add("rocm-sdk-gfx110X-all-lite-tests-linux-10.3.0.tar.zst")
	f.Add("rocm-sdk-lite-10.3.0-windows.zip")
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseName(s)
		if err != nil {
			if !errors.Is(err, ErrName) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if n.String() != s {
			t.Fatalf("%q parsed as %q", s, n)
		}
		if n.Family == "" || n.Archive == "" || n.Version.IsZero() || strings.ContainsAny(n.Family, "/.\\") {
			t.Fatalf("%q parsed as %+v", s, n)
		}
	})
}

func BenchmarkParseAndSort(b *testing.B) {
	const names = 5000
	list := make([]string, 0, names)
	for i := range names {
		list = append(list, fmt.Sprintf("therock-dist-linux-gfx%03xX-all-10.%d.0a2026%02d%02d+bkc.%d.tar.gz", i%16+0x110, i%7, i%12+1, i%28+1, i))
	}
	b.ReportAllocs()
	for b.Loop() {
		all := make([]Release, 0, names)
		for _, s := range list {
			n, err := ParseName(s)
			if err != nil {
				b.Fatal(err)
			}
			all = append(all, Release{Name: s, Version: n.Version})
		}
		slices.SortFunc(all, Compare)
	}
}
