package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// needRoot: package managers own what they install.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("not root")
	}
}

// write makes a file with its directories.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// used leaves in root what the service makes in its life.
func used(t *testing.T, root string) {
	t.Helper()
	write(t, root+"/var/lib/rocm-nightly/slots/nightly-gfx1151/current/etc/rocm.conf", "/opt/rocm/lib\n")
	write(t, root+"/var/lib/rocm-nightly/ledger.jsonl", "{}\n")
	write(t, root+"/var/cache/rocm-nightly/amd.json", "{}\n")
	write(t, root+"/etc/rocm-nightly/config.d/10-site.yaml", "keep: {last: 2}\n")
	write(t, root+"/opt/other/file", "not ours\n")
	for link, to := range map[string]string{
		"/opt/rocm":                       "/var/lib/rocm-nightly/slots/nightly-gfx1151/current",
		"/opt/theirs":                     "/opt/other",
		"/etc/ld.so.conf.d/rocm.conf":     "/var/lib/rocm-nightly/slots/nightly-gfx1151/current/etc/rocm.conf",
		"/etc/systemd/system/x.wants/a.b": "/usr/lib/systemd/system/other.service",
		"/etc/systemd/system/timers.target.wants/rocm-nightly-update.timer": "/usr/lib/systemd/system/rocm-nightly-update.timer",
	} {
		if err := os.MkdirAll(filepath.Dir(root+link), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, root+link); err != nil {
			t.Fatal(err)
		}
	}
}

// files of a tree that are not the package manager's own.
func filesOf(t *testing.T, root string) []string {
	t.Helper()
	return slices.DeleteFunc(tree(t, root), func(line string) bool {
		return strings.HasPrefix(line, "d") || strings.Contains(line, " /var/lib/dpkg") || strings.Contains(line, " /var/log/") ||
			strings.Contains(line, " /var/lib/pacman") || strings.Contains(line, " /rpmdb") || strings.Contains(line, " /etc/ld.so.cache")
	})
}

// The deb in a root of its own: installed, configured, upgraded with the admin's
// config kept, removed, purged; and then nothing of it is left, and all of others' is.
func TestDebIsPurgedWhole(t *testing.T) {
	t.Parallel()
	need(t, "dpkg")
	needRoot(t)
	deb := release(t).path(".deb")
	root := t.TempDir()
	for _, dir := range []string{"info", "updates", "triggers"} {
		if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, root+"/var/lib/dpkg/status", "")
	dpkg := func(args ...string) {
		t.Helper()
		// Scripts run outside of the root, with DPKG_ROOT: dpkg(1), script-chrootless.
		output(t, "dpkg", append([]string{"--root=" + root, "--log=/dev/null", "--force-script-chrootless", "--force-confold", "--no-triggers"}, args...)...)
	}
	write(t, root+"/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n")
	write(t, root+"/etc/group", "root:x:0:\n")
	dpkg("--install", deb)
	enabled := filesOf(t, root+"/etc")
	if slices.ContainsFunc(enabled, func(s string) bool { return strings.Contains(s, ".wants/") }) {
		t.Errorf("installing it has enabled something: %v", enabled)
	}
	if err := os.WriteFile(root+"/etc/rocm-nightly/config.yaml", []byte("dedup: off\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	used(t, root)
	dpkg("--install", deb)
	if text, err := os.ReadFile(root + "/etc/rocm-nightly/config.yaml"); err != nil || string(text) != "dedup: off\n" {
		t.Errorf("after an upgrade the config is %q: %v", text, err)
	}
	dpkg("--remove", "rocm-nightly")
	for _, kept := range []string{"/etc/rocm-nightly/config.yaml", "/var/lib/rocm-nightly/ledger.jsonl", "/opt/rocm"} {
		if _, err := os.Lstat(root + kept); err != nil {
			t.Errorf("remove, which is no purge, takes %s", kept)
		}
	}
	dpkg("--purge", "rocm-nightly")
	left := filesOf(t, root)
	for _, line := range left {
		if strings.Contains(line, "rocm") {
			t.Errorf("left: %s", line)
		}
	}
	for _, theirs := range []string{"/opt/other/file", "/opt/theirs", "/etc/systemd/system/x.wants/a.b"} {
		if _, err := os.Lstat(root + theirs); err != nil {
			t.Errorf("what is not ours is gone: %s", theirs)
		}
	}
	for _, dir := range []string{"/var/lib/rocm-nightly", "/var/cache/rocm-nightly", "/etc/rocm-nightly", "/usr/share/doc/rocm-nightly", "/usr/share/rocm-nightly"} {
		if _, err := os.Stat(root + dir); err == nil {
			t.Errorf("left: %s", dir)
		}
	}
}

// smallRoot is a root in which scripts of packages run: busybox and what it is linked
// with.
func smallRoot(t *testing.T) string {
	t.Helper()
	need(t, "busybox", "ldd")
	root := t.TempDir()
	busybox := strings.TrimSpace(output(t, "sh", "-c", "readlink -f $(command -v busybox)"))
	libs, _ := exec.Command("ldd", busybox).Output() // it fails for a static one
	copies := []string{busybox}
	for word := range strings.FieldsSeq(string(libs)) {
		if strings.HasPrefix(word, "/") {
			copies = append(copies, word)
		}
	}
	for _, from := range copies {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		to := root + from
		if from == busybox {
			to = root + "/bin/busybox"
		}
		write(t, to, string(text))
		if err := os.Chmod(to, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, applet := range []string{"sh", "rm", "find", "ln", "cat", "bash"} {
		if err := os.Symlink("busybox", root+"/bin/"+applet); err != nil {
			t.Fatal(err)
		}
	}
	write(t, root+"/dev/null", "") // rpm and pacman make one where there is none
	for _, dir := range []string{"/tmp", "/var/tmp", "/etc", "/usr/bin"} {
		if err := os.MkdirAll(root+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// A systemd that only writes down what it is asked for.
	write(t, root+"/usr/bin/systemctl", "#!/bin/sh\necho systemctl \"$@\" >>/asked\n")
	write(t, root+"/usr/bin/systemd-sysusers", "#!/bin/sh\necho sysusers \"$@\" >>/asked\n")
	write(t, root+"/usr/bin/systemd-tmpfiles", "#!/bin/sh\necho tmpfiles \"$@\" >>/asked\n")
	for _, tool := range []string{"systemctl", "systemd-sysusers", "systemd-tmpfiles"} {
		if err := os.Chmod(root+"/usr/bin/"+tool, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(root+"/run/systemd/system", 0o755); err != nil {
		t.Fatal(err)
	}
	return root
}

// asked is what scripts have asked systemd for since the last time.
func asked(t *testing.T, root string) string {
	t.Helper()
	text, err := os.ReadFile(root + "/asked")
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	os.Remove(root + "/asked")
	return string(text)
}

// lives goes through the life of a package in a small root.
func lives(t *testing.T, root string, install, upgrade, remove func()) {
	t.Helper()
	before := filesOf(t, root)
	install()
	said := asked(t, root)
	if !strings.Contains(said, "sysusers rocm-nightly.conf") || !strings.Contains(said, "tmpfiles --create rocm-nightly.conf") {
		t.Errorf("installing it asks for\n%s", said)
	}
	if strings.Contains(said, "enable") || strings.Contains(said, "start") {
		t.Errorf("installing it starts something:\n%s", said)
	}
	if out := output(t, "chroot", root, "/usr/bin/rocm-nightly", "config", "check"); !strings.Contains(out, "/etc/rocm-nightly/config.yaml") {
		t.Errorf("in its root it says %q", out)
	}
	upgrade()
	if said := asked(t, root); !strings.Contains(said, "try-restart rocm-nightly.service") || strings.Contains(said, "disable") {
		t.Errorf("an upgrade asks for\n%s", said)
	}
	remove()
	if said := asked(t, root); !strings.Contains(said, "disable") || !strings.Contains(said, "rocm-nightly-update.timer") {
		t.Errorf("removing it asks for\n%s", said)
	}
	for _, line := range without(filesOf(t, root), before) {
		t.Errorf("left: %s", line)
	}
	for _, line := range without(before, filesOf(t, root)) {
		t.Errorf("gone: %s", line)
	}
}

func TestRPMIsErasedWhole(t *testing.T) {
	t.Parallel()
	need(t, "rpm")
	needRoot(t)
	file := release(t).path(".rpm")
	root := smallRoot(t)
	rpm := func(args ...string) func() {
		return func() {
			t.Helper()
			output(t, "rpm", append([]string{"--root", root, "--dbpath", "/rpmdb", "--nosignature"}, args...)...)
		}
	}
	lives(t, root, rpm("-i", "--nodeps", file), rpm("-U", "--nodeps", "--replacepkgs", "--force", file), rpm("-e", "rocm-nightly"))
}

func TestArchPackageIsRemovedWhole(t *testing.T) {
	t.Parallel()
	need(t, "pacman")
	needRoot(t)
	file := release(t).path(".pkg.tar.zst")
	root := smallRoot(t)
	for _, dir := range []string{"/var/lib/pacman/local", "/var/lib/pacman/sync", "/var/cache"} {
		if err := os.MkdirAll(root+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	conf := filepath.Join(t.TempDir(), "pacman.conf")
	write(t, conf, "[options]\nArchitecture = x86_64\nSigLevel = Never\nLocalFileSigLevel = Never\n")
	pacman := func(args ...string) func() {
		return func() {
			t.Helper()
			output(t, "pacman", append([]string{"--root", root, "--config", conf, "--dbpath", root + "/var/lib/pacman", "--cachedir", root + "/var/cache",
				"--logfile", "/dev/null", "--hookdir", root + "/none", "--noconfirm"}, args...)...)
		}
	}
	lives(t, root, pacman("-U", file), pacman("-U", file), pacman("-Rn", "rocm-nightly"))
}

func TestScriptsAreClean(t *testing.T) {
	t.Parallel()
	need(t, "shellcheck")
	files := []string{"install.sh", "../scripts/release.sh", "../scripts/build-release.sh", "../scripts/release-version.sh", "../scripts/layout.sh"}
	for _, pattern := range []string{"deb/*", "rpm/*", "arch/p*"} {
		more, err := filepath.Glob(pattern)
		if err != nil || len(more) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		files = append(files, more...)
	}
	if out, err := exec.Command("shellcheck", files...).CombinedOutput(); err != nil {
		t.Errorf("shellcheck: %v\n%s", err, out)
	}
}

// .SRCINFO is what makepkg makes of PKGBUILD.
func TestPKGBUILDHasItsSrcInfo(t *testing.T) {
	t.Parallel()
	need(t, "makepkg")
	dir := t.TempDir()
	for _, file := range []string{"PKGBUILD", "rocm-nightly.install"} {
		text, err := os.ReadFile(filepath.Join("arch", file))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, file), string(text))
	}
	cmd := exec.Command("makepkg", "--printsrcinfo")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C.UTF-8", "PKGDEST=" + dir, "SRCDEST=" + dir, "BUILDDIR=" + dir, "LOGDEST=" + dir, "SRCPKGDEST=" + dir}
	if os.Getuid() == 0 { // makepkg refuses to run as root
		for d := dir; d != os.TempDir() && len(d) > 1; d = filepath.Dir(d) {
			if err := os.Chmod(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chown(dir, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	got, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("makepkg: %v\n%s", err, got)
	}
	want, err := os.ReadFile("arch/.SRCINFO")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("arch/.SRCINFO is not what makepkg says:\n%s", got)
	}
}
