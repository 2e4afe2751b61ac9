package pinfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pkgbuilds are what people write, and what trips a reader that is not bash.
var pkgbuilds = map[string]string{
	"split": `pkgbase=rocm
pkgname=(rocm-core "rocm-dev" 'rocm-docs')
pkgver=1.2.3a4
pkgrel=1
pkgdesc='ROCm'
arch=(x86_64 aarch64)
url="https://example.org/${pkgbase}"
license=(MIT)
depends=(glibc)
makedepends=('cmake>=3' "python-${pkgver%%a*}")
source=("a-$pkgver.tar::https://example.org/{a,b}/$pkgver.tar" {x,y}.patch)
source_x86_64=(x64.bin)
source_aarch64=(arm.bin)
sha256sums=(SKIP SKIP SKIP SKIP)
sha256sums_x86_64=(SKIP)
sha256sums_aarch64=(SKIP)
package_rocm-core() {
  pkgdesc="core of   $pkgname $pkgver"
  depends+=(bash "x=$pkgver")
  provides=("$pkgname-any=$pkgver")
  local conflicts=(not-this)
  true
}
package_rocm-dev() {
  depends=()
  optdepends_x86_64=('a: b')
  arch=(any)
  pkgdesc+=" for people"
  install=dev.install
}
package_rocm-docs() { :; }
`,
	"variables": `_a=10.2.0a20260930
_list=(one two)
_list+=(three)
pkgname=v-${_a:0:4}
pkgver=${_a/a/_a}
pkgrel=2
epoch=0
pkgdesc=" a
	b   'c' \"d\" \$e \\ "
arch=(any)
url=https://example.org/'quo'"ted"
license=()
groups=('')
depends=("${_list[@]}" "n${#_list[@]}" "${_list[1]}" ${_list[0]} x"$pkgver"y)
backup=(etc/a\ b)
source=(
  # comment
  file:///x
  'git+https://example.org/r.git#tag=$pkgver'
)
md5sums=(SKIP
SKIP)
b2sums=('SKIP' 'SKIP')
options=(!strip '!debug')
build() {
  depends=(not-this)
}
package() {
  license=(custom)
  echo hi
}
`,
	"little": "pkgname=a\npkgver=1\npkgrel=1\narch=(any)\n",
}

// runMakepkg prints a PKGBUILD's .SRCINFO with the real tool, which refuses
// to run as root.
func runMakepkg(t *testing.T, pkgbuild []byte) string {
	t.Helper()
	if _, err := exec.LookPath("makepkg"); err != nil {
		t.Skip("makepkg is missing")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "PKGBUILD"), pkgbuild, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dev.install", "rocm.install"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "makepkg", "--printsrcinfo")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C.UTF-8", "PKGDEST=" + dir, "SRCDEST=" + dir, "BUILDDIR=" + dir, "LOGDEST=" + dir, "SRCPKGDEST=" + dir}
	cmd.WaitDelay = 10 * time.Second
	if os.Getuid() == 0 {
		openUp(t, dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("makepkg: %v\n%s", err, errs.String())
	}
	return out.String()
}

// openUp lets another user into a test's directory.
func openUp(t *testing.T, dir string) {
	t.Helper()
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	for d := filepath.Dir(dir); strings.HasPrefix(d, os.TempDir()); d = filepath.Dir(d) {
		info, err := os.Stat(d)
		if err == nil && info.Mode()&0o5 != 0o5 {
			err = os.Chmod(d, info.Mode()|0o5)
		}
		if err != nil {
			t.Fatal(err)
		}
		if d == os.TempDir() {
			break
		}
	}
}

func TestSrcInfoIsMakepkgs(t *testing.T) {
	pkgbuilds := maps.Clone(pkgbuilds)
	pkgbuilds["file"] = string(codeFixture(t, "PKGBUILD"))
	for name, src := range pkgbuilds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := SrcInfo([]byte(src))
			if err != nil {
				t.Fatal(err)
			}
			if want := runMakepkg(t, []byte(src)); string(got) != want {
				t.Fatalf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestSrcInfoRefuses(t *testing.T) {
	const head = "pkgname=a\npkgver=1\npkgrel=1\narch=(x86_64)\n"
	for _, c := range []struct{ src, want string }{
		{head + "url=$(curl x)\n", "5:5: a command would have to be run"},
		{head + "url=`x`\n", "5:5: a command"},
		{head + "if true; then url=x; fi\n", "5:1: this runs as the file is read"},
		{head + "[[ $CARCH ]] && depends=(x)\n", "5:1: this runs"},
		{head + "source lib.sh\n", "5:1: this runs"},
		{head + "url=$CARCH\n", "5:5: $CARCH is not told"},
		{head + "depends=($CARCH)\n", "5:10: "},
		{head + "depends=(*.txt)\n", "5:10: it is not known how many words"},
		{head + "package() { if x; then depends=(y); fi; }\n", "5:24: whether this assignment happens"},
		{head + "package() { depends=($(x)); }\n", "5:22: a command"},
		{head + "package() { echo '\n  depends=(trap)'; }\n", "makepkg takes a line"},
		{"pkgver=1\n", "no pkgname"},
		{"pkgname=(\n", "1:9"},
		{head + "url=$((1+1))\n", "5:5: arithmetic"},
	} {
		if out, err := SrcInfo([]byte(c.src)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\ngot %s %v\nwant %s", c.src, out, err, c.want)
		}
	}
}

func TestFollow(t *testing.T) {
	files := map[string]string{
		"aur/.SRCINFO": "pkgbase = a\n\tpkgver = 1.0\n\tpkgrel = 2\n\tsource = https://h/1.0.tar\n\tsha256sums = x\n\npkgname = a\n",
	}
	read := func(path string) ([]byte, error) {
		if s, ok := files[path]; ok {
			return []byte(s), nil
		}
		return nil, fmt.Errorf("open %s: %w", path, fs.ErrNotExist)
	}
	const static = "pkgname=a\npkgver=2\npkgrel=1\narch=(any)\nsource=(https://h/$pkgver.tar)\nsha256sums=(y)\n"
	want, err := SrcInfo([]byte(static))
	if err != nil {
		t.Fatal(err)
	}
	const patched = "pkgbase = a\n\tpkgver = 2\n\tpkgrel = 1\n\tsource = https://h/2.tar\n\tsha256sums = y\n\npkgname = a\n"
	for _, c := range []struct{ name, path, src, want, err string }{
		{"whole", "aur/PKGBUILD", static, string(want), ""},
		{"in place", "aur/PKGBUILD", static + "depends=($(x))\n", patched, ""},
		{"none beside", "PKGBUILD", static, "", ""},
		{"another file", "aur/flake.nix", static, "", ""},
		{"more sources", "aur/PKGBUILD", strings.Replace(static, "tar)", "tar x)", 1) + "true\n", "", "makepkg --printsrcinfo"},
		{"computed version", "aur/PKGBUILD", strings.Replace(static, "pkgver=2", "pkgver=$(x)", 1), "", "makepkg --printsrcinfo"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Follow(c.path, []byte(c.src), Options{}, read)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("got %v, want %s", err, c.err)
				}
				return
			}
			if err != nil || string(got["aur/.SRCINFO"]) != c.want {
				t.Fatalf("got %q, %v", got, err)
			}
		})
	}
	if _, err := Follow("PKGBUILD", []byte(static), Options{}, func(string) ([]byte, error) { return nil, errors.New("no") }); err == nil {
		t.Fatal("an error of read is lost")
	}
}

func ExampleSrcInfo() {
	out, err := SrcInfo([]byte("pkgname=rocm-nightly-bin\npkgver=10.2.0a20260930\npkgrel=1\narch=(x86_64)\n" +
		"source_x86_64=(\"https://example.org/rocm-$pkgver.tar.gz\")\n"))
	fmt.Printf("%s%v\n", strings.ReplaceAll(string(out), "\t", "  "), err)
	// Output:
	// pkgbase = rocm-nightly-bin
	//   pkgver = 10.2.0a20260930
	//   pkgrel = 1
	//   arch = x86_64
	//   source_x86_64 = https://example.org/rocm-10.2.0a20260930.tar.gz
	//
	// pkgname = rocm-nightly-bin
	// <nil>
}
