package aur

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// What a package depends on is what its libraries and compiler want of the host;
// what single programs want beside that is optional.
func TestDepends(t *testing.T) {
	p := made(t, Input{Pin: pin(night), Files: rocm()})
	if want := []string{"gcc-libs", "glibc", "numactl", "zlib", "zstd"}; !slices.Equal(p.depends, want) {
		t.Errorf("depends %q, want %q", p.depends, want)
	}
	want := []string{
		"ncurses: rocgdb-py3.11 and 1 more",
		"openmpi: lib/rocprofiler-systems/libplugin.so",
		"python: rocgdb-py3.11 and 1 more",
	}
	if !slices.Equal(p.optdepends, want) {
		t.Errorf("optdepends %q", p.optdepends)
	}
	if len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "libpapi.so.7.0 is needed by lib/rocprofiler-systems/libplugin.so") {
		t.Errorf("notes %q", p.Notes)
	}
	more := made(t, Input{Pin: pin(night), Files: rocm(), Depends: []string{"papi", "glibc"}})
	if want := []string{"gcc-libs", "glibc", "numactl", "papi", "zlib", "zstd"}; !slices.Equal(more.depends, want) {
		t.Errorf("depends %q, want %q", more.depends, want)
	}
}

// Libraries of AMD's that programs are linked with are provided; those that the
// distribution has too, those without a version and those of plugins are not.
func TestProvides(t *testing.T) {
	p := made(t, Input{Pin: pin(night), Files: rocm()})
	want := []string{
		"comgr=${pkgver}", "hip-runtime-amd=${pkgver}", "hsa-rocr=${pkgver}", "rocm-core=${pkgver}", "rocm-llvm=${pkgver}", "rocminfo=${pkgver}",
		"libamd_comgr.so", "libamdhip64.so", "libhsa-runtime64.so",
	}
	if !slices.Equal(p.provides, want) {
		t.Errorf("provides %q", p.provides)
	}
	if want := []string{"comgr", "hip-runtime-amd", "hsa-rocr", "rocm-core", "rocm-llvm", "rocminfo"}; !slices.Equal(p.conflicts, want) {
		t.Errorf("conflicts %q", p.conflicts)
	}
}

// A bare tree, as a package has it, says the same as a prefix.
func TestBareTree(t *testing.T) {
	var bare []manifest.File
	for _, f := range rocm() {
		if name, in := strings.CutPrefix(f.Path, "opt/rocm/"); in {
			f.Path = name
			bare = append(bare, f)
		}
	}
	a, b := made(t, Input{Pin: pin(night), Files: rocm()}), made(t, Input{Pin: pin(night), Files: bare})
	if string(a.PKGBUILD()) != string(b.PKGBUILD()) {
		t.Errorf("%s\n%s", a.PKGBUILD(), b.PKGBUILD())
	}
}

// A newer night changes pkgver and the digest, and no other line.
func TestNextNightChangesTwoLines(t *testing.T) {
	first, second := Input{Pin: pin(night), Files: rocm()}, Input{Pin: pin("10.2.0a20261001"), Files: rocm()}
	second.Pin.Hex = strings.Repeat("0b", 32)
	a := strings.Split(string(made(t, first).PKGBUILD()), "\n")
	b := strings.Split(string(made(t, second).PKGBUILD()), "\n")
	var changed []string
	for i := range a {
		if a[i] != b[i] {
			changed = append(changed, b[i])
		}
	}
	if want := []string{"pkgver=10.2.0a20261001", "sha256sums_x86_64=(" + strings.Repeat("0b", 32) + ")"}; !slices.Equal(changed, want) {
		t.Errorf("%q", changed)
	}
}

func TestMakeRefuses(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(*Input)
	}{
		{"no digest", "digest is not known", func(in *Input) { in.Pin.Hex = "" }},
		{"a short digest", "digest is not known", func(in *Input) { in.Pin.Hex = "abc" }},
		{"no version", "cannot be a pkgver", func(in *Input) { in.Pin.Version = "" }},
		{"a version with a dash", "cannot be a pkgver", func(in *Input) { in.Pin.Version = "10.2.0-1" }},
		{"a version that is none", "version", func(in *Input) { in.Pin.Version = "nightly" }},
		{"a version that is code", "cannot be a pkgver", func(in *Input) { in.Pin.Version = "1.0$(id)" }},
		{"a family that is code", "no slug", func(in *Input) { in.Pin.Family = "gfx1151;id"; in.Name = "x" }},
		{"a name with capitals", "no name of a package", func(in *Input) { in.Name = "ROCm" }},
		{"a name with a dash in front", "no name of a package", func(in *Input) { in.Name = "-rocm" }},
		{"a name that leads away", "no name of a package", func(in *Input) { in.Name = "../x" }},
		{"a dependency that is code", "to depend on", func(in *Input) { in.Depends = []string{"x) ; id #"} }},
		{"an address that is code", "no address", func(in *Input) { in.Pin.URL = "https://h/$(id)-" + night }},
		{"an address with a password", "no address", func(in *Input) { in.Pin.URL = "https://a:b@h/" + night }},
		{"an address that makepkg reads another way", "no address", func(in *Input) { in.Pin.URL = "https://h/x-" + night + "#branch=y" }},
		{"an address without the version", "does not hold the version", func(in *Input) { in.Pin.URL = "https://h/latest.tar.gz" }},
		{"an address of git", "no address", func(in *Input) { in.Pin.URL = "git+https://h/x-" + night }},
		{"no files", "no program or library", func(in *Input) { in.Files = nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := Input{Pin: pin(night), Files: rocm()}
			c.change(&in)
			if p, err := Make(in); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, %v", p, err)
			}
		})
	}
}

// Names of a tree are somebody else's: none of them becomes a word of the shell.
func TestHostileTree(t *testing.T) {
	const evil = "lib/x';id #\n.so"
	p := made(t, Input{Pin: pin(night), Files: append(rocm(),
		elf(evil, "libevil$(id).so.1", "libnever`id`.so.1", "libpapi.so.7.0\n"),
		elf("lib/libgood.so.1.0", "libgood.so.1\n", "libcurl.so.4"),
		link("lib/loop", "loop"), link("lib/away", "../../../../etc/passwd"),
		file("share/doc/$(id)/LICENSE"))})
	for _, text := range [][]byte{p.PKGBUILD(), p.SRCINFO(), p.Install()} {
		if strings.Contains(string(text), "id") && (strings.Contains(string(text), "evil") || strings.Contains(string(text), "$(id)") || strings.Contains(string(text), "`id`")) {
			t.Errorf("%s", text)
		}
	}
	for _, n := range p.Notes {
		if strings.ContainsAny(n, "\n`$;") {
			t.Errorf("%q", n)
		}
	}
}

// What the shell makes of a word is the value.
func TestWordIsTheValue(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is missing: apt install bash")
	}
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.StringMatching(`([a-z'"$\x60\\ !*~#;()&|<>{}\[\]?=]|\$\{pkgver\}){0,12}`), 1, 40).Draw(t, "values")
		script := "pkgver=1.2\nprintf '%s\\0'"
		var want strings.Builder
		for _, v := range values {
			script += " " + word(v)
			want.WriteString(strings.ReplaceAll(v, version, "1.2") + "\x00")
		}
		out, err := exec.Command(bash, "--norc", "-c", script).CombinedOutput()
		if err != nil || string(out) != want.String() {
			t.Fatalf("%v\n%s\n%q\n%q", err, script, out, want.String())
		}
	})
}

// makepkg prints the same .SRCINFO, byte for byte, and has nothing to say about
// the PKGBUILD.
func TestSRCINFOIsMakepkgs(t *testing.T) {
	if _, err := exec.LookPath("makepkg"); err != nil {
		t.Skip("makepkg is missing: apt install makepkg")
	}
	for name, in := range map[string]Input{
		"whole":          {Pin: pin(night), Files: rocm()},
		"bare":           {Pin: pin("10.2.0"), Files: []manifest.File{elf("bin/x", "", "libc.so.6")}},
		"another format": {Pin: pin("7.0.0.dev0"), Name: "rocm+x@y_z.1", Files: rocm(), Depends: []string{"papi"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, dir := made(t, in), openDir(t)
			if _, err := p.Write(dir, false); err != nil {
				t.Fatal(err)
			}
			want := get(t, dir, ".SRCINFO")
			cmd := exec.Command("makepkg", "--printsrcinfo")
			cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C", "BUILDDIR=" + dir}
			asUser(t, cmd, dir)
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != want {
				t.Errorf("%v: makepkg prints\n%s\nand .SRCINFO is\n%s", err, out, want)
			}
		})
	}
}

func TestShellcheckIsContent(t *testing.T) {
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Skip("shellcheck is missing: apt install shellcheck")
	}
	p, dir := made(t, Input{Pin: pin(night), Files: rocm()}), t.TempDir()
	if _, err := p.Write(dir, false); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("shellcheck", filepath.Join(dir, "PKGBUILD"), filepath.Join(dir, p.installName())).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// pacman calls the functions of the .install file with a shell of its own.
func TestInstallSpeaks(t *testing.T) {
	p, dir := made(t, Input{Pin: pin(night), Files: rocm()}), t.TempDir()
	written(t, p, dir)
	out, err := exec.Command("bash", "--norc", "-euc", `. "$1"; post_install 1; echo --; post_upgrade 2 1`, "bash", filepath.Join(dir, p.installName())).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "usermod -aG render,video USER\n") || !strings.Contains(string(out), "--\n==> Programs that run") {
		t.Errorf("%v\n%s", err, out)
	}
}

// openDir is a directory that another user reaches.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// asUser runs a command as somebody else than root, which makepkg refuses; dir
// becomes theirs.
func asUser(t *testing.T, cmd *exec.Cmd, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Skip("there is no user nobody to run makepkg as")
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, int(uid), -1); err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
}

func ExampleMake() {
	p, err := Make(Input{Pin: pin(night), Files: rocm()})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Name, p.Version)
	for line := range strings.Lines(string(p.PKGBUILD())) {
		if strings.HasPrefix(line, "source") {
			fmt.Print(line)
		}
	}
	// Output:
	// rocm-nightly-gfx1151-bin 10.2.0a20260930
	// source_x86_64=("https://nightly.repo.amd.com/rocm/core/tarball/therock-dist-linux-gfx1151-${pkgver}.tar.gz")
}
