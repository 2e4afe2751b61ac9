package pinfile

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

const (
	guessSRI   = "sha256-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	guessHex   = "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"
	guessNix32 = "0000000000000000000000000000000000000000000000000000"
)

// told is a Guess in one line, without what it was known by.
func told(g Guess) string {
	var set []string
	for _, k := range slices.Sorted(maps.Keys(g.Set)) {
		set = append(set, k+"="+strings.Trim(g.Set[k], "{}."))
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", g.Old, strings.Join(set, " "), g.Target))
}

func fill(s string) []byte {
	return []byte(strings.NewReplacer("SRI", guessSRI, "HEX", guessHex, "N32", guessNix32).Replace(s))
}

var guessCases = []struct {
	name, path, src string
	want            []string
}{
	{"a flake with names in let", "flake.nix", `let
  gpuarch = "gfx1151"; version = "10.2.0a20260928"; srcHash = "SRI";
in fetchurl { url = "https://h/therock-dist-linux-${gpuarch}-${version}.tar.gz"; hash = srcHash; }`,
		[]string{"10.2.0a20260928 srcHash=SRI version=Version gfx1151"}},
	{"a hash in fetchurl", "default.nix", `stdenv.mkDerivation rec { pname = "rocm"; version = "10.2.0a20260928";
  src = fetchurl { url = "https://h/therock-dist-linux-gfx110X-all-${version}.tar.gz"; sha256 = "N32"; }; }`,
		[]string{"10.2.0a20260928 sha256=Nix32 version=Version gfx110X-all"}},
	{"one version, hashes by target", "pins.nix", `{ rocm = { version = "10.2.0a20260928"; hashes = { gfx1151 = "SRI"; "gfx110X-all" = "SRI"; }; }; }`,
		[]string{"10.2.0a20260928 gfx1151=SRI version=Version gfx1151", `10.2.0a20260928 gfx110X-all=SRI version=Version gfx110X-all`}},
	{"two hashes beside a version", "x.nix", `{ rocm = 1; version = "10.2.0a20260928"; srcHash = "SRI"; vendorHash = "SRI"; }`,
		[]string{"10.2.0a20260928 srcHash=SRI version=Version", "10.2.0a20260928 vendorHash=SRI version=Version"}},
	{"another package's version", "x.nix", `{ rocm = 1; version = "1.2.3"; hash = "SRI"; }`, nil},
	{"a stable version by its name", "x.nix", `{ rocm.version = "7.14.0"; rocm.hash = "SRI"; zlib.version = "1.3.1"; zlib.hash = "SRI"; }`,
		[]string{"7.14.0 rocm.hash=SRI rocm.version=Version"}},
	{"no key tells them apart", "x.nix", `{ rocm = 1; x = f { version = "10.2.0a20260928"; } { version = "10.2.0a20260928"; }; }`, nil},
	{"nothing of AMD's", "x.nix", `{ version = "10.2.0a20260928"; hash = "SRI"; }`, nil},
	{"JSON by target", "pins.json", `{"rocm": {"gfx1151": {"version": "10.2.0a20260928", "hash": "SRI", "size": 12345678,
  "date": "2026-09-28", "url": "https://h/t/therock-dist-linux-gfx1151-10.2.0a20260928.tar.gz"},
  "gfx942": {"version": "10.2.0a20260901", "sha256": "HEX"}}}`,
		[]string{
			"10.2.0a20260928 date=Date gfx1151.version=Version hash=SRI size=Size url=URL gfx1151",
			"10.2.0a20260901 gfx942.version=Version sha256=Hex gfx942",
		}},
	{"JSON of addresses", "sources.json", `{"rocm": [{"url": "https://h/t/therock-dist-linux-gfx1151-10.2.0a20260928.tar.gz", "sha256": "HEX"},
  {"url": "https://h/t/therock-dist-linux-gfx942-10.2.0a20260928.tar.gz", "sha256": "HEX"}]}`,
		[]string{"10.2.0a20260928 rocm[0].sha256=Hex rocm[0].url=URL gfx1151", "10.2.0a20260928 rocm[1].sha256=Hex rocm[1].url=URL gfx942"}},
	{"YAML of a matrix", "ci.yaml", `# rocm
jobs:
  matrix:
    - target: gfx1151 # strix halo
      version: "10.2.0a20260928"
      sha256: 'HEX'
    - target: gfx942
      version: 10.2.0a20260928
      sha256: HEX
`,
		[]string{
			"10.2.0a20260928 matrix[0].sha256=Hex matrix[0].version=Version gfx1151",
			"10.2.0a20260928 matrix[1].sha256=Hex matrix[1].version=Version gfx942",
		}},
	{"TOML", "pins.toml", "[rocm.gfx1151]\nversion = \"10.2.0a20260928\" # rocm\nhash = 'sha256:HEX'\n[other]\nhash = \"SRI\"\n",
		[]string{"10.2.0a20260928 gfx1151.hash=sha256:{{.Hex version=Version gfx1151"}},
	{"TOML of a list", "pins.toml", "[[rocm]]\nfamily = \"gfx1151\"\nversion = \"10.2.0a20260928\"\n[[rocm]]\nfamily = \"gfx942\"\nversion = \"10.2.0a20260928\"\n",
		[]string{"10.2.0a20260928 rocm[0].version=Version gfx1151", "10.2.0a20260928 rocm[1].version=Version gfx942"}},
	{"a PKGBUILD", "rocm/PKGBUILD", `pkgname=rocm-gfx1151-bin
pkgver=10.2.0a20260928
pkgrel=3
source=(rocm.sh)
source_x86_64=("https://h/therock-dist-linux-gfx1151-${pkgver}.tar.gz"
  "local.patch") # two
sha256sums=(HEX)
sha256sums_x86_64=('HEX' # the first
  'HEX')
`,
		[]string{"10.2.0a20260928 pkgver=Version sha256sums_x86_64[0]=Hex gfx1151"}},
	{"a Dockerfile", "docker/Dockerfile", "FROM debian\nARG ROCM_VERSION=10.2.0a20260928\nARG ROCM_SHA256=\"HEX\"\nARG GFX=gfx1151\nRUN curl -f https://h/therock-dist-linux-${GFX}-${ROCM_VERSION}.tar.gz\n",
		[]string{"10.2.0a20260928 ROCM_SHA256=Hex ROCM_VERSION=Version gfx1151"}},
	{"variables by target", "rocm.env", "# rocm\nGFX1151_VERSION=10.2.0a20260928\nGFX1151_SHA256=HEX\nGFX110X_ALL_VERSION=10.2.0a20260927\nexport GFX110X_ALL_SHA256='HEX'\n",
		[]string{"10.2.0a20260928 GFX1151_SHA256=Hex GFX1151_VERSION=Version gfx1151", "10.2.0a20260927 GFX110X_ALL_SHA256=Hex GFX110X_ALL_VERSION=Version gfx110X-all"}},
	{"Bazel's struct", "rocm_redist.bzl", `# rocm
REDIST = {
    "gfx1151": struct(url = "https://h/therock-dist-linux-gfx1151-10.2.0a20260928.tar.gz", sha256 = "HEX"),
    "gfx942": struct(url = "https://h/therock-dist-linux-gfx942-10.2.0a20260928.tar.gz", sha256 = "HEX"),
}
`,
		[]string{"10.2.0a20260928 gfx1151.sha256=Hex gfx1151.url=URL gfx1151", "10.2.0a20260928 gfx942.sha256=Hex gfx942.url=URL gfx942"}},
	{"Bazel's archives", "MODULE.bazel", `V = "10.2.0a20260928"
http_archive(name = "rocm", url = "https://h/therock-dist-linux-gfx1151-{}.tar.gz".format(V), sha256 = "HEX")
http_archive(name = "zlib", urls = ["https://z/zlib-1.3.tar.gz"], sha256 = "HEX")
`,
		[]string{"10.2.0a20260928 V=Version http_archive[name=rocm].sha256=Hex gfx1151"}},
	{"CMake", "rocm.cmake", "set(ROCM_VERSION \"10.2.0a20260928\")\nFetchContent_Declare(rocm URL \"https://h/therock-dist-linux-gfx1151-${ROCM_VERSION}.tar.gz\" URL_HASH SHA256=HEX)\n",
		[]string{"10.2.0a20260928 ROCM_VERSION=Version URL_HASH=Hex gfx1151"}},
	{"Spack", "package.py", "class Rocm(Package):\n    version(\"10.2.0a20260928\", sha256=\"HEX\", url=\"https://h/therock-dist-linux-gfx1151-10.2.0a20260928.tar.gz\")\n",
		[]string{"10.2.0a20260928 sha256=Hex url=URL version=Version gfx1151"}},
	{"JSON with comments", "rocm.jsonc", "{// rocm\n version: '10.2.0a20260928', hash: 'SRI', target: 'gfx1151',}", []string{"10.2.0a20260928 hash=SRI version=Version gfx1151"}},
	{"a hash elsewhere", "recipe.yaml", "context:\n  version: 10.2.0a20260928\npackage:\n  name: rocm\n  version: ${{ version }}\nsource:\n- url: https://h/therock-dist-linux-gfx1151-${{ version }}.tar.gz\n  sha256: HEX\n- url: https://h/other.tar.gz\n  sha256: HEX\n",
		[]string{"10.2.0a20260928 context.version=Version source[0].sha256=Hex gfx1151"}},
	{"a hash that belongs to nothing", "rocm.json", `{"a": {"rocm": "10.2.0a20260928"}, "b": {"hash": "SRI"}}`, nil},
	{"an empty hash", "rocm.json", `{"rocm": {"version": "10.2.0a20260928", "target": "gfx1151", "hash": ""}}`, nil},
	{"an empty hash of Nix", "rocm.nix", `{ rocm = { version = "10.2.0a20260928"; family = "gfx1151"; hash = ""; }; }`,
		[]string{"10.2.0a20260928 hash=SRI version=Version gfx1151"}},
	{"the name of a source", "PKGBUILD", "pkgver=10.2.0a20260928\nsource=('rocm-10.2.0a20260928.tar.gz::https://h/therock-dist-linux-gfx1151-10.2.0a20260928.tar.gz')\nsha256sums=(HEX)\n",
		[]string{"10.2.0a20260928 pkgver=Version sha256sums[0]=Hex source[0]=rocm-{{.Version}}.tar.gz::{{.URL gfx1151"}},
	{"another format", "README.md", "rocm version = \"10.2.0a20260928\"", nil},
	{"broken Nix", "x.nix", `{ rocm = "`, nil},
	{"broken JSON", "x.json", `{"rocm": `, nil},
	{"broken Starlark", "x.bzl", `rocm = (`, nil},
}

func TestGuessPins(t *testing.T) {
	for _, c := range guessCases {
		t.Run(c.name, func(t *testing.T) {
			src := fill(c.src)
			var got []string
			for _, g := range GuessPins(c.path, src) {
				got = append(got, told(g))
				if g.Why == "" || g.Path != c.path || g.Format == "" {
					t.Errorf("%+v", g)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// Files of the shapes that people have, whole.
func TestGuessPinsOfTestdata(t *testing.T) {
	for name, want := range map[string][]string{
		"flake.nix": {"10.2.0a20260928 srcHash=SRI version=Version gfx1151"},
		"pins.nix": {
			"10.2.0a20260928 gfx1151.sha256=Nix32 gfx1151.version=Version gfx1151",
			`10.2.0a20260927 gfx110X-all.sha256=Hex gfx110X-all.version=Version gfx110X-all`,
			"10.2.0a20260901 gfx942.version=Version hash=sha256:{{.Hex gfx942",
		},
	} {
		src, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		src = append([]byte("# rocm\n"), src...)
		var got []string
		for _, g := range GuessPins(name, src) {
			got = append(got, told(g))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got\n%s", name, strings.Join(got, "\n"))
		}
	}
}

func TestGuessSaysWhatIsAmbiguous(t *testing.T) {
	all := GuessPins("x.nix", fill(`{ rocm = 1; version = "10.2.0a20260928"; srcHash = "SRI"; vendorHash = "SRI"; }`))
	if len(all) != 2 || !strings.Contains(all[0].Why, "ambiguous: 1 more hashes") {
		t.Errorf("%+v", all)
	}
}

// What a document lists gives the same facts as what it was made of.
func TestFactsOfSites(t *testing.T) {
	for _, path := range [][]string{{"version"}, {"a b", "c.d", "e"}, {"rocm", "[0]", "sha256"}, {"http_archive", "[name=x]", "url"}, {`q"u`, "x"}} {
		got := siteFacts([]Site{{Path: joinKey(path), Value: "v", Start: 7}, {Path: `"open`}, {Path: "open["}})
		if len(got) != 1 || !slices.Equal(got[0].path, path) || got[0].value != "v" || got[0].at != 7 {
			t.Errorf("%q: %+v", path, got)
		}
	}
}

// A file of all that there ever was, or one that somebody made to take long, is
// no file of pins.
func TestGuessIsBounded(t *testing.T) {
	for name, src := range map[string]string{
		"x.json":  `{"rocm": [` + strings.TrimSuffix(strings.Repeat(`{"version": "10.2.0a20260928", "sha256": "HEX"},`, 3000), ",") + `]}`,
		"y.json":  `{"rocm": ` + strings.Repeat(`{"a":`, 100_000),
		"x.env":   "ROCM_X=1\n" + strings.Repeat("V=10.2.0a20260928\nH=HEX\n", 2400),
		"x.yaml":  "rocm:\n" + strings.Repeat("- ", 20_000) + "x\n",
		"x.bzl":   "rocm = " + strings.Repeat("(", 100_000),
		"z.bzl":   "rocm = " + strings.Repeat("-", 100_000) + "1",
		"x.toml":  "# rocm\n" + strings.Repeat("[[", 100_000),
		"big.nix": "# rocm\n" + strings.Repeat(" ", maxGuessed),
	} {
		if got := GuessPins(name, fill(src)); len(got) > 0 {
			t.Errorf("%s: %d guesses", name, len(got))
		}
	}
}

// FuzzGuessPins: any file is read in bounded time, and what is guessed of one
// that can be edited can be.
func FuzzGuessPins(f *testing.F) {
	for _, c := range guessCases {
		f.Add(c.path, fill(c.src))
	}
	f.Fuzz(func(t *testing.T, path string, src []byte) {
		if len(src) > 16<<10 {
			return
		}
		for _, g := range GuessPins(path, src) {
			if len(g.Set) == 0 || g.Old == "" || g.Why == "" {
				t.Errorf("%+v", g)
			}
		}
	})
}

func ExampleGuessPins() {
	src := []byte(`{ rocm = { version = "10.2.0a20260928"; srcHash = "sha256-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="; target = "gfx1151"; }; }`)
	for _, g := range GuessPins("pins.nix", src) {
		fmt.Println(g.Target, g.Set)
		fmt.Println(g.Why)
	}
	// Output:
	// gfx1151 map[srcHash:{{.SRI}} version:{{.Version}}]
	// version 10.2.0a20260928 at line 1 with an SRI hash (sha256-…) at line 1, for gfx1151 by what stands beside it
}
