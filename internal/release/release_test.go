package release

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	digest "github.com/opencontainers/go-digest"
)

// ordered lists versions as PEP 440 orders them, lowest first. The comments
// name the mistake that each neighbour guards against.
var ordered = []string{
	"6.4.0rc20250416", // a night of the old scheme
	"6.5.0rc20250610",
	"7.0.0rc20250714",
	"7.1.0",
	"7.9.0", // 7.10 is above 7.9: not string order
	"7.10.0a20251120",
	"7.12.0.dev0+0123456789abcdef0123456789abcdef01234567", // dev is lowest of its base
	"7.12.0a20260121",
	"7.12.0a20260301",
	"7.12.0rc0",
	"7.12.0rc1",
	"7.12.0rc10", // not string order
	"7.12.0",     // sort -V puts it below its pre-releases
	"7.13.0a20260312",
	"7.14.0",
	"7.14.1",
	"7.15.0a20260719",
	"10.0.0rc4", // 10 is above 7: not string order
	"10.0.0",
	"10.1.0a20260822",
	"10.1.0a20260822+bkc.20260823", // above its base, below the next night
	"10.1.0a20260823",
	"10.2.0a20260930",
}

func TestVersionOrderIsPEP440(t *testing.T) {
	var want []Version
	for _, s := range ordered {
		v, err := ParseVersion(s)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, v)
	}
	got := slices.Clone(want)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
	slices.SortFunc(got, Version.Compare)
	for i := range want {
		if got[i].String() != want[i].String() {
			t.Errorf("place %d is %s, want %s", i, got[i], want[i])
		}
	}
}

func TestParseVersion(t *testing.T) {
	for _, tt := range []struct {
		in, base string
		kind     Kind
		date     string
	}{
		{"10.2.0a20260930", "10.2.0", Nightly, "20260930"},
		{"10.2.0a20260930+bkc.20261001", "10.2.0", BKC, "20261001"},
		{"7.0.0rc20250714", "7.0.0", Nightly, "20250714"},
		{"10.0.0rc0", "10.0.0", RC, ""},
		{"10.0.0rc12", "10.0.0", RC, ""},
		{"10.0.0", "10.0.0", Final, ""},
		{"10.2.0.dev0+0123456789abcdef0123456789abcdef01234567", "10.2.0", Dev, ""},
		{"10.2.0a20269999", "10.2.0", Nightly, ""},
	} {
		v, err := ParseVersion(tt.in)
		if err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		date := ""
		if d, ok := v.Date(); ok {
			date = d.Format("20060102")
		}
		if v.Base() != tt.base || v.Kind() != tt.kind || date != tt.date || v.String() != tt.in {
			t.Errorf("%s: base %s, kind %s, date %s", tt.in, v.Base(), v.Kind(), date)
		}
	}
	for _, in := range []string{
		"", "10", "ADHOCBUILD", "tests-10.2.0", "10.2.0a", "10.2.0 ", " 10.2.0", "v10.2.0", "10.2.0-1",
		"10.2.0a20260930\n", "10.2.0+", "10.2.0A1", "10.2.0rc1-tests", "10..0", "1!10.2.0",
		"10.2.0a" + strings.Repeat("9", 400), "99999999999999999999.1",
	} {
		if v, err := ParseVersion(in); !errors.Is(err, ErrVersion) {
			t.Errorf("%q parsed as %s, error %v", in, v, err)
		}
	}
}

func TestInSeries(t *testing.T) {
	v, err := ParseVersion("7.10.0a20251120")
	if err != nil {
		t.Fatal(err)
	}
	for series, want := range map[string]bool{"": true, "7": true, "7.10": true, "7.10.0": true, "7.1": false, "10": false} {
		if got := v.InSeries(series); got != want {
			t.Errorf("in %q: %v", series, got)
		}
	}
}

func TestParseName(t *testing.T) {
	const sha = "0123456789abcdef0123456789abcdef01234567"
	for in, want := range map[string]Name{
		"therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz":               {"linux", "gfx1151", false, mustVersion(t, "10.2.0a20260930")},
		"therock-dist-linux-gfx110X-all-10.1.0a20260827.tar.gz":           {"linux", "gfx110X-all", false, mustVersion(t, "10.1.0a20260827")},
		"therock-dist-linux-gfx94X-dcgpu-10.0.0rc4.tar.gz":                {"linux", "gfx94X-dcgpu", false, mustVersion(t, "10.0.0rc4")},
		"therock-dist-linux-gfx90a-10.0.0.tar.gz":                         {"linux", "gfx90a", false, mustVersion(t, "10.0.0")},
		"therock-dist-linux-multiarch-10.2.0a20260930.tar.gz":             {"linux", "multiarch", false, mustVersion(t, "10.2.0a20260930")},
		"therock-dist-linux-multiarch-tests-10.2.0a20260930.tar.gz":       {"linux", "multiarch", true, mustVersion(t, "10.2.0a20260930")},
		"therock-dist-linux-gfx1151-tests-10.2.0a20260930.tar.gz":         {"linux", "gfx1151", true, mustVersion(t, "10.2.0a20260930")},
		"therock-dist-linux-gfx110X-all-tests-10.2.0a20260930.tar.gz":     {"linux", "gfx110X-all", true, mustVersion(t, "10.2.0a20260930")},
		"therock-dist-windows-gfx1151-10.2.0a20260930.tar.gz":             {"windows", "gfx1151", false, mustVersion(t, "10.2.0a20260930")},
		"therock-dist-linux-gfx1151-10.2.0a20260930+bkc.20261001.tar.gz":  {"linux", "gfx1151", false, mustVersion(t, "10.2.0a20260930+bkc.20261001")},
		"therock-dist-linux-gfx125X-dcgpu-10.2.0.dev0+" + sha + ".tar.gz": {"linux", "gfx125X-dcgpu", false, mustVersion(t, "10.2.0.dev0+"+sha)},
		"therock-dist-linux-gfx90X-dcgpu-6.5.0rc20250610.tar.gz":          {"linux", "gfx90X-dcgpu", false, mustVersion(t, "6.5.0rc20250610")},
	} {
		got, err := ParseName(in)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if got.String() != in || got.Family != want.Family || got.Tests != want.Tests || got.Platform != want.Platform || got.Version.String() != want.Version.String() {
			t.Errorf("%s: got %+v", in, got)
		}
	}
	for _, in := range []string{
		"", "index.html", "therock-dist-linux-gfx1151-ADHOCBUILD.tar.gz", "therock-dist-linux-gfx1151.tar.gz",
		"therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz.sha256", "therock-dist-linux-gfx1151-10.2.0a20260930.tar.xz",
		"xtherock-dist-linux-gfx1151-10.2.0a20260930.tar.gz", "therock-dist-linux--10.2.0a20260930.tar.gz",
		"therock-dist-linux-gfx1151-asan-10.2.0a20260930.tar.gz", "therock-dist-macos-gfx1151-10.2.0.tar.gz",
		"therock-dist-linux-../gfx1151-10.2.0.tar.gz", "therock-dist-linux-gfx1151-10.2.0.tar.gz\n",
		"therock-dist-linux-gfx110X-all-extra-10.2.0.tar.gz",
	} {
		if n, err := ParseName(in); !errors.Is(err, ErrName) {
			t.Errorf("%q parsed as %+v, error %v", in, n, err)
		}
	}
}

func mustVersion(t *testing.T, s string) Version {
	t.Helper()
	v, err := ParseVersion(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestCompareOrdersDevByTime(t *testing.T) {
	older := Release{Version: mustVersion(t, "10.2.0.dev0+ffffffffffffffffffffffffffffffffffffffff"), MTime: time.Unix(1, 0)}
	newer := Release{Version: mustVersion(t, "10.2.0.dev0+0000000000000000000000000000000000000000"), MTime: time.Unix(2, 0)}
	if Compare(older, newer) >= 0 || Compare(newer, older) <= 0 {
		t.Error("development builds are not ordered by time")
	}
}

func TestDigestForms(t *testing.T) {
	// The four spellings of the digest of the empty string, as sha256sum and
	// nix-hash print them.
	const (
		hexForm = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
		sri     = "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
		nix32   = "0mdqa9w1p6cmli6976v4wi0sw9r4p5prkj7lzfd1877wk11c9c73"
	)
	want := digest.Digest("sha256:" + hexForm)
	for _, in := range []string{hexForm, strings.ToUpper(hexForm), "sha256:" + hexForm, sri, nix32, "sha256:" + nix32, " " + sri + "\n"} {
		got, err := ParseDigest(in)
		if err != nil || got != want {
			t.Errorf("%q: %s, %v", in, got, err)
		}
	}
	if SRI(want) != sri || Nix32(want) != nix32 {
		t.Errorf("SRI %s, Nix32 %s", SRI(want), Nix32(want))
	}
	for _, in := range []string{"", "sha256:", "sha512-" + sri[7:], "md5:" + hexForm, hexForm[1:], sri[:len(sri)-1], nix32[:51] + "e", "z" + nix32[1:], "sha256-" + hexForm} {
		if d, err := ParseDigest(in); !errors.Is(err, ErrDigest) {
			t.Errorf("%q parsed as %s, error %v", in, d, err)
		}
	}
	if SRI("nonsense") != "sha256-" || Nix32("") != "" {
		t.Error("a digest that is none has bytes")
	}
}

func TestVerifiedReaderTurnsEOFIntoMismatch(t *testing.T) {
	body := []byte("a tarball")
	sum := sha256.Sum256(body)
	right := digest.NewDigestFromBytes(digest.SHA256, sum[:])
	v := NewVerifiedReader(bytes.NewReader(body), Expectation{right, "the test"})
	if got, err := io.ReadAll(v); err != nil || !bytes.Equal(got, body) || v.Size() != int64(len(body)) || v.Digest() != right {
		t.Fatalf("%q, %v", got, err)
	}
	wrong := NewVerifiedReader(bytes.NewReader(body), Expectation{right, "a"}, Expectation{"sha256:00", "the ledger"})
	_, err := io.ReadAll(wrong)
	var mismatch *MismatchError
	if !errors.As(err, &mismatch) || mismatch.Want.Source != "the ledger" {
		t.Fatalf("error %v", err)
	}
	if _, err := wrong.Read(make([]byte, 1)); !errors.As(err, &mismatch) {
		t.Error("the error does not last")
	}
}

func FuzzParseName(f *testing.F) {
	f.Add("therock-dist-linux-gfx110X-all-tests-10.2.0a20260930+bkc.20261001.tar.gz")
	f.Add("therock-dist-linux-gfx1151-ADHOCBUILD.tar.gz")
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
	})
}

func FuzzVersionOrder(f *testing.F) {
	for i := range ordered[1:] {
		f.Add(ordered[i], ordered[i+1], "10.0.0")
	}
	f.Fuzz(func(t *testing.T, a, b, c string) {
		v, err1 := ParseVersion(a)
		w, err2 := ParseVersion(b)
		x, err3 := ParseVersion(c)
		if err1 != nil || err2 != nil || err3 != nil {
			return
		}
		if v.Compare(w) != -w.Compare(v) && sign(v.Compare(w)) != -sign(w.Compare(v)) {
			t.Fatalf("%s and %s compare %d and %d", v, w, v.Compare(w), w.Compare(v))
		}
		if v.Compare(w) <= 0 && w.Compare(x) <= 0 && v.Compare(x) > 0 {
			t.Fatalf("%s <= %s <= %s, but not %s <= %s", v, w, x, v, x)
		}
	})
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

func FuzzParseDigest(f *testing.F) {
	f.Add("sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=")
	f.Add("0mdqa9w1p6cmli6976v4wi0sw9r4p5prkj7lzfd1877wk11c9c73")
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDigest(s)
		if err != nil {
			return
		}
		for _, form := range []string{d.String(), SRI(d), Nix32(d), d.Encoded()} {
			if again, err := ParseDigest(form); err != nil || again != d {
				t.Fatalf("%q: form %q reads back as %s, %v", s, form, again, err)
			}
		}
	})
}
