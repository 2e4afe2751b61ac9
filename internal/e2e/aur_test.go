package e2e

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/demo"
)

// packager is somebody with an account of their own, as makepkg wants it.
type packager struct {
	t   *testing.T
	dir string // theirs
	who *syscall.Credential
}

func newPackager(t *testing.T) *packager {
	t.Helper()
	for _, tool := range []string{"makepkg", "fakeroot", "bsdtar", "readelf"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is missing: apt install makepkg fakeroot libarchive-tools binutils", tool)
		}
	}
	p := &packager{t: t, dir: t.TempDir()}
	if err := os.Chmod(filepath.Dir(p.dir), 0o755); err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(binary) // which lies where only this user looks
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(p.dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, "bin", "rocm-nightly"), program, 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		u, err := user.Lookup("nobody")
		if err != nil {
			t.Skip("there is no user nobody to run makepkg as")
		}
		id, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		p.who = &syscall.Credential{Uid: uint32(id), Gid: uint32(id)}
	}
	return p
}

// command runs a program as the packager, in the directory called name.
func (p *packager) command(name string, argv ...string) string {
	p.t.Helper()
	dir := filepath.Join(p.dir, name)
	if p.who != nil {
		for _, d := range []string{p.dir, dir} {
			if err := os.Chown(d, int(p.who.Uid), int(p.who.Gid)); err != nil {
				p.t.Fatal(err)
			}
		}
	}
	cmd := exec.CommandContext(p.t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Credential: p.who}
	cmd.Env = []string{
		"PATH=" + filepath.Join(p.dir, "bin") + ":/usr/bin:/bin", "HOME=" + dir, "LC_ALL=C.UTF-8",
		"BUILDDIR=" + filepath.Join(dir, "build"), "PKGEXT=.pkg.tar.gz", "SOURCE_DATE_EPOCH=1790000000",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return string(out)
}

// makepkg makes of what `init aur` writes a package that works where it is
// installed, and the same one each time.
func TestPackageOfTheAUR(t *testing.T) {
	p, dir := newPackager(t), t.TempDir()
	amd := filepath.Join(dir, "amd")
	if err := os.Mkdir(amd, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := demo.Night(t.Context(), amd, demo.NightOptions{Version: "10.2.0a20260930", Family: "gfx1151", Date: time.Date(2026, 9, 30, 0, 0, 0, 0, time.UTC)}); err != nil {
		t.Fatal(err)
	}
	base, stop, err := demo.Serve(t.Context(), amd)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	cfg := filepath.Join(dir, "config.yaml")
	text := "root: " + filepath.Join(dir, "root") + "\nchannels: {nightly: {indexes: [{url: \"" + base + "\"}]}}\ninstalls: [{target: gfx1151}]\npolicy: {settle: 0s, stale_after: 0s}\n"
	if err := os.WriteFile(cfg, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	run(t, env, "--config", cfg, "update").want(t, 0, "", "")
	var made []string
	for _, name := range []string{"one", "two"} {
		run(t, env, "--config", cfg, "init", "aur", filepath.Join(p.dir, name)).want(t, 0, "PKGBUILD", "")
		out := p.command(name, "makepkg", "--nodeps")
		for _, bad := range []string{"reference to $srcdir", "reference to $pkgdir", "Cannot find library", "not versioned"} {
			if strings.Contains(out, bad) {
				t.Errorf("makepkg says %q:\n%s", bad, out)
			}
		}
		made = append(made, filepath.Join(p.dir, name, "rocm-nightly-gfx1151-bin-10.2.0a20260930-1-x86_64.pkg.tar.gz"))
	}
	p.holds(made[0])
	roots := p.installed(made...)
	runCommand(t, nil, "diff", "-r", "--no-dereference", filepath.Join(roots[0], "opt"), filepath.Join(roots[1], "opt")).want(t, 0, "", "")
	if out := runCommand(t, nil, "grep", "-rlF", "--exclude=.BUILDINFO", p.dir, roots[0]); out.code != 1 {
		t.Errorf("where it was built is in %s", out.stdout)
	}
	p.starts(roots[0])
	p.satisfies(made[0])
}

// satisfies installs a package with pacman into a root of its own, and asks for
// what others would ask for.
func (p *packager) satisfies(pkg string) {
	p.t.Helper()
	if _, err := exec.LookPath("pacman"); err != nil {
		p.t.Skip("pacman is missing: apt install pacman-package-manager")
	}
	root := filepath.Join(p.dir, "root")
	for name, text := range map[string]string{
		"var/lib/pacman/.keep": "", "pacman.conf": "[options]\nArchitecture = x86_64\nSigLevel = Never\nLocalFileSigLevel = Never\n",
		".PKGINFO": "pkgname = rocm-core\npkgver = 7.2.0-1\npkgdesc = the distribution's\narch = any\nsize = 0\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			p.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
	if p.who != nil {
		runCommand(p.t, nil, "chown", "-R", "nobody", root).want(p.t, 0, "", "")
	}
	pacman := `pacman --config pacman.conf --root "$PWD" --dbpath var/lib/pacman --cachedir cache --hookdir none --logfile log "$@"`
	do := func(script string, args ...string) string {
		return p.command("root", append([]string{"fakeroot", "sh", "-c", script, "sh"}, args...)...)
	}
	do(pacman, "-U", "--noconfirm", "--noscriptlet", "--assume-installed", "glibc=2.40", pkg)
	do(pacman, "-T", "libhello.so=1-64", "libdemo_blas.so", "rocm-core>=10.2.0a20260929", "rocm-llvm")
	out := do(`bsdtar -czf rocm-core-7.2.0-1-any.pkg.tar.gz .PKGINFO; ! `+pacman, "-U", "--noconfirm", "rocm-core-7.2.0-1-any.pkg.tar.gz")
	if !strings.Contains(out, "are in conflict") {
		p.t.Errorf("pacman installs the distribution's package over ours:\n%s", out)
	}
}

// holds looks at what pacman is told.
func (p *packager) holds(pkg string) {
	p.t.Helper()
	info := runCommand(p.t, []string{"LC_ALL=C.UTF-8"}, "bsdtar", "-xOf", pkg, ".PKGINFO").want(p.t, 0, "", "").stdout
	for _, want := range []string{
		"pkgver = 10.2.0a20260930-1\n", "builddate = 1790000000\n", "provides = libhello.so=1-64\n", "provides = rocm-core=10.2.0a20260930\n",
		"conflict = rocm-core\n", "depend = glibc\n", "license = LicenseRef-ROCm\n",
	} {
		if !strings.Contains(info, want) {
			p.t.Errorf(".PKGINFO lacks %q:\n%s", want, info)
		}
	}
	list := runCommand(p.t, []string{"LC_ALL=C.UTF-8"}, "bsdtar", "-tvf", pkg).want(p.t, 0, "", "").stdout
	for _, want := range []string{"opt/rocm/bin/rocm-hello", "etc/profile.d/rocm-nightly.sh", "etc/ld.so.conf.d/rocm-nightly.conf", ".INSTALL", "usr/share/licenses/rocm-nightly-gfx1151-bin/doc -> /opt/rocm/share/doc"} {
		if !strings.Contains(list, want) {
			p.t.Errorf("the package lacks %s", want)
		}
	}
	for line := range strings.Lines(list) {
		if f := strings.Fields(line); len(f) < 4 || f[2] != "root" && f[2] != "0" {
			p.t.Errorf("not root's: %s", line)
		}
	}
}

// installed unpacks packages.
func (p *packager) installed(pkgs ...string) (roots []string) {
	p.t.Helper()
	for _, pkg := range pkgs {
		root := p.t.TempDir()
		runCommand(p.t, []string{"LC_ALL=C.UTF-8"}, "bsdtar", "-xf", pkg, "-C", root).want(p.t, 0, "", "")
		roots = append(roots, root)
	}
	return roots
}

// starts runs the program of the tree where the package has it: at /opt/rocm, in
// a mount namespace of its own.
func (p *packager) starts(root string) {
	p.t.Helper()
	flags := "-m"
	if os.Geteuid() != 0 {
		flags = "-rm"
	}
	script := `mount -t tmpfs none /opt && mkdir /opt/rocm && mount --bind "$1/opt/rocm" /opt/rocm && . "$1/etc/profile.d/rocm-nightly.sh" && echo "at $(command -v rocm-hello)" && exec rocm-hello --version`
	if runCommand(p.t, nil, "unshare", flags, "mount", "-t", "tmpfs", "none", "/opt").code != 0 {
		p.t.Skip("no file system can be mounted in a namespace of one's own here")
	}
	runCommand(p.t, []string{"PATH=/usr/bin:/bin"}, "unshare", flags, "sh", "-c", script, "sh", root).want(p.t, 0, "at /opt/rocm/bin/rocm-hello\nhello from ROCm 10.2.0a20260930", "")
}
