package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// released is a release for this test run: made once, by the script that makes them
// all, of the sources as they are.
type released struct {
	dir    string // what was published
	tree   string // what is in the tarball
	public string // the key that SHA256SUMS was signed with
	err    error
}

var once sync.Once
var made released

// TestMain is the program itself, too, for tests that want it in a process of its own.
func TestMain(m *testing.M) {
	if os.Getenv("PACKAGING_TEST_PROGRAM") != "" {
		main()
		return
	}
	code := m.Run()
	if made.dir != "" {
		os.RemoveAll(filepath.Dir(made.dir))
	}
	os.Exit(code)
}

const testVersion = "v1.2.3-rc.1"

func release(t *testing.T) released {
	t.Helper()
	need(t, "minisign")
	once.Do(func() { made.err = makeRelease(&made) })
	if made.err != nil {
		t.Fatal(made.err)
	}
	return made
}

func makeRelease(r *released) error {
	tmp, err := os.MkdirTemp("", "release-test-")
	if err != nil {
		return err
	}
	r.dir, r.public = filepath.Join(tmp, "dist"), filepath.Join(tmp, "test.pub")
	key := filepath.Join(tmp, "test.key")
	if out, err := exec.Command("minisign", "-G", "-W", "-p", r.public, "-s", key).CombinedOutput(); err != nil {
		return fmt.Errorf("make a key: %v\n%s", err, out)
	}
	cmd := exec.Command("../scripts/release.sh", "--version", testVersion, "--arch", "amd64", "--out", r.dir)
	cmd.Env = append(os.Environ(), "MINISIGN_KEY="+key, "MINISIGN_PASSWORD_FILE=/dev/null", "COMMIT=c0ffee", "SOURCE_DATE_EPOCH=1790749800")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("release.sh: %v\n%s", err, out)
	}
	r.tree = filepath.Join(tmp, strings.TrimSuffix(filepath.Base(r.path(".tar.gz")), ".tar.gz"))
	if out, err := exec.Command("tar", "-xzf", r.path(".tar.gz"), "-C", tmp).CombinedOutput(); err != nil {
		return fmt.Errorf("unpack: %v\n%s", err, out)
	}
	return nil
}

func (r released) path(suffix string) string {
	return filepath.Join(r.dir, "rocm-nightly_"+strings.TrimPrefix(testVersion, "v")+"_linux_amd64"+suffix)
}

// output runs a command and returns what it prints.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, errs.String())
	}
	return string(out)
}

func TestReleaseIsWhole(t *testing.T) {
	r := release(t)
	sums, err := os.ReadFile(filepath.Join(r.dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{".deb", ".rpm", ".pkg.tar.zst", ".tar.gz", ".spdx.json"} {
		if !strings.Contains(string(sums), "  "+filepath.Base(r.path(suffix))+"\n") {
			t.Errorf("SHA256SUMS has no %s:\n%s", suffix, sums)
		}
	}
	output(t, "sh", "-c", `cd "$1" && sha256sum --check --strict --quiet SHA256SUMS`, "sh", r.dir)
	// What docs/install.md tells people to type.
	verify := []string{"-V", "-p", r.public, "-m", filepath.Join(r.dir, "SHA256SUMS")}
	if out := output(t, "minisign", verify...); !strings.Contains(out, "rocm-nightly "+testVersion) {
		t.Errorf("the signature says\n%s", out)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "SHA256SUMS"), append(sums, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("minisign", verify...).CombinedOutput(); err == nil {
		t.Errorf("a list that was changed is taken: %s", out)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "SHA256SUMS"), sums, 0o644); err != nil {
		t.Fatal(err)
	}
}

// The tarball is in order, has one time, and nobody's name in it.
func TestTarballIsNobodys(t *testing.T) {
	t.Parallel()
	r := release(t)
	f, err := os.Open(r.path(".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if !z.ModTime.IsZero() || z.Name != "" {
		t.Errorf("gzip has %v %q", z.ModTime, z.Name)
	}
	last := ""
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		// Directories first: as WalkDir goes.
		if key := strings.ReplaceAll(h.Name, "/", "\x00"); key < last {
			t.Errorf("%s is out of order", h.Name)
		} else {
			last = key
		}
		if h.Uid != 0 || h.Gid != 0 || h.ModTime.Unix() != 1790749800 || h.Mode != 0o644 && h.Mode != 0o755 {
			t.Errorf("%s: %d:%d %v %o", h.Name, h.Uid, h.Gid, h.ModTime, h.Mode)
		}
	}
}

func TestBinaryKnowsWhatItIs(t *testing.T) {
	t.Parallel()
	dir := release(t).tree
	binary := filepath.Join(dir, "rocm-nightly")
	var v struct{ Version, Commit, Date, Go string }
	if err := json.Unmarshal([]byte(output(t, binary, "version", "--json")), &v); err != nil {
		t.Fatal(err)
	}
	if v.Version != testVersion || v.Commit != "c0ffee" || v.Date != "2026-09-30T06:30:00Z" || !strings.HasPrefix(v.Go, "go1.") {
		t.Errorf("%+v", v)
	}
	if out, _ := exec.Command("ldd", binary).CombinedOutput(); !strings.Contains(string(out), "not a dynamic executable") {
		t.Errorf("it is not static: %s", out)
	}
	text, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	top, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte(top+"/")) {
		t.Errorf("%s is in the binary", top)
	}
	third, err := os.ReadFile(filepath.Join(dir, "THIRD-PARTY"))
	if err != nil || !strings.Contains(string(third), "github.com/spf13/cobra v") || !strings.Contains(string(third), "The Go standard library: LICENSE") {
		t.Errorf("THIRD-PARTY: %v, %d bytes", err, len(third))
	}
}

func TestSBOMListsWhatIsLinked(t *testing.T) {
	t.Parallel()
	r := release(t)
	text, err := os.ReadFile(r.path(".spdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc spdxDocument
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	_, deps, err := linked(filepath.Join(r.tree, "rocm-nightly"))
	if err != nil {
		t.Fatal(err)
	}
	if len(deps) < 20 || len(doc.Packages) != len(deps)+2 || len(doc.Relationships) != len(deps)+2 {
		t.Errorf("%d modules, %d packages, %d relationships", len(deps), len(doc.Packages), len(doc.Relationships))
	}
	ids := map[string]bool{}
	for _, p := range doc.Packages {
		if ids[p.ID] || p.Version == "" || len(p.Refs) != 1 {
			t.Errorf("%+v", p)
		}
		ids[p.ID] = true
	}
	if doc.CreationInfo.Created != "2026-09-30T06:30:00Z" || !strings.HasSuffix(doc.DocumentNamespace, doc.Packages[0].Checksums[0].Value) {
		t.Errorf("%+v", doc.CreationInfo)
	}
}

// tree lists what is below dir: "mode path", and " -> target" of links.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		line := fmt.Sprintf("%v %s", info.Mode(), strings.TrimPrefix(p, dir))
		if to, err := os.Readlink(p); err == nil {
			line += " -> " + to
		}
		all = append(all, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// without returns a without what b has.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

// install.sh of the tarball installs as for a distribution and takes all of it away
// again, but for the config.
func TestInstallScriptLeavesTheConfigAlone(t *testing.T) {
	t.Parallel()
	dir, root := release(t).tree, t.TempDir()
	script := func(args ...string) {
		cmd := exec.Command(filepath.Join(dir, "install.sh"), args...)
		cmd.Env = append(os.Environ(), "DESTDIR="+root)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("install.sh: %v\n%s", err, out)
		}
	}
	script()
	unit, err := os.ReadFile(filepath.Join(root, "usr/local/lib/systemd/system/rocm-nightly.service"))
	if err != nil || !strings.Contains(string(unit), "ExecStart=/usr/local/bin/rocm-nightly ") {
		t.Errorf("the unit: %v\n%s", err, unit)
	}
	config := filepath.Join(root, "etc/rocm-nightly/config.yaml")
	if err := os.WriteFile(config, []byte("root: /srv\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	script()
	script("--uninstall")
	if text, err := os.ReadFile(config); err != nil || string(text) != "root: /srv\n" {
		t.Errorf("the config is %q: %v", text, err)
	}
	for _, line := range tree(t, root) {
		if !strings.HasPrefix(line, "d") && !strings.HasSuffix(line, "/etc/rocm-nightly/config.yaml") {
			t.Errorf("left: %s", line)
		}
	}
}

// The same files packed by another user, elsewhere, in another place of the world,
// are the same packages.
func TestPackagesAreTheSameTwice(t *testing.T) {
	t.Parallel()
	r := release(t)
	dir := r.tree
	pack, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	cmd := exec.Command("sh", "-ec", `umask 077
		export PACKAGING_TEST_PROGRAM=1 SOURCE_DATE_EPOCH=1790749800 TZ=Asia/Tokyo LC_ALL=C.UTF-8
		DESTDIR=$2/stage PREFIX=/usr "$1/install.sh"
		find "$2/stage" -exec touch -h -d 1999-09-09 {} +
		"$3" packages -version "$4" -scripts . -o "$2" "$2/stage"
		"$3" tarball -o "$2/again.tar.gz" "$1"
		"$3" sbom -version "$4" -commit c0ffee -o "$2/again.spdx.json" "$1/rocm-nightly"`, "sh", dir, out, pack, testVersion)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("pack again: %v\n%s", err, text)
	}
	for suffix, file := range map[string]string{
		".deb": filepath.Base(r.path(".deb")), ".rpm": filepath.Base(r.path(".rpm")), ".pkg.tar.zst": filepath.Base(r.path(".pkg.tar.zst")),
		".tar.gz": "again.tar.gz", ".spdx.json": "again.spdx.json",
	} {
		a, errA := sha256Of(r.path(suffix))
		b, errB := sha256Of(filepath.Join(out, file))
		if errA != nil || errB != nil || a != b {
			t.Errorf("%s: %s and %s (%v, %v)", suffix, a, b, errA, errB)
		}
	}
}

// listing is what a package holds: files and their own directories, with modes.
func listing(lines []string) map[string]string {
	all := map[string]string{}
	for _, line := range lines {
		if mode, path, ok := strings.Cut(line, " "); ok && path != "/" {
			all[strings.TrimSuffix(path, "/")] = mode
		}
	}
	return all
}

// sameEverywhere takes out what each kind of package has for itself, and renames what
// has another place.
func sameEverywhere(m map[string]string) map[string]string {
	for path, mode := range maps.Clone(m) {
		delete(m, path)
		switch {
		case strings.HasPrefix(mode, "d"), strings.Contains(path, "/licenses/"), strings.Contains(path, "lintian"), strings.HasSuffix(path, "copyright"),
			strings.HasSuffix(path, "changelog.gz"):
		default:
			m[strings.Replace(path, "vendor-completions", "site-functions", 1)] = mode
		}
	}
	return m
}

func TestPackagesHoldWhatIsInstalled(t *testing.T) {
	t.Parallel()
	need(t, "dpkg-deb", "rpm", "bsdtar")
	r := release(t)
	fields := func(text string, mode, path int) (lines []string) {
		for line := range strings.Lines(text) {
			if f := strings.Fields(line); len(f) > path {
				lines = append(lines, f[mode]+" "+strings.TrimPrefix(f[path], "."))
			}
		}
		return lines
	}
	deb := output(t, "dpkg-deb", "-c", r.path(".deb"))
	for line := range strings.Lines(deb) {
		if f := strings.Fields(line); f[1] != "root/root" {
			t.Errorf("not root's: %s", line)
		}
	}
	rpm := output(t, "rpm", "-qp", "--nosignature", "--qf", `[%{FILEMODES:perms} %{FILENAMES} %{FILEUSERNAME}\n]`, r.path(".rpm"))
	arch := output(t, "bsdtar", "-tvf", r.path(".pkg.tar.zst"))
	of := map[string]map[string]string{
		"deb": sameEverywhere(listing(fields(deb, 0, 5))), "rpm": sameEverywhere(listing(fields(rpm, 0, 1))), "arch": map[string]string{},
	}
	for _, line := range fields(arch, 0, 8) {
		mode, path, _ := strings.Cut(line, " ")
		if !strings.Contains(path, "/") {
			continue // .PKGINFO, .MTREE and .INSTALL
		}
		of["arch"]["/"+strings.TrimPrefix(path, "/")] = mode
	}
	of["arch"] = sameEverywhere(of["arch"])
	for kind, files := range of {
		if !maps.Equal(files, of["deb"]) {
			t.Errorf("%s and deb differ:\n%v", kind, difference(files, of["deb"]))
		}
	}
	for _, path := range wanted(t) {
		if mode := of["deb"][path]; mode == "" {
			t.Errorf("no package has %s", path)
		}
	}
	if of["deb"]["/usr/bin/rocm-nightly"] != "-rwxr-xr-x" {
		t.Errorf("the program is %s", of["deb"]["/usr/bin/rocm-nightly"])
	}
}

func difference(a, b map[string]string) (lines []string) {
	for path, mode := range a {
		if b[path] != mode {
			lines = append(lines, "+"+mode+" "+path)
		}
	}
	for path, mode := range b {
		if a[path] != mode {
			lines = append(lines, "-"+mode+" "+path)
		}
	}
	slices.Sort(lines)
	return lines
}

// wanted are files that every package has: each file of systemd/ among them.
func wanted(t *testing.T) []string {
	t.Helper()
	all := []string{
		"/usr/bin/rocm-nightly", "/etc/rocm-nightly/config.yaml", "/usr/share/doc/rocm-nightly/README.md", "/usr/share/doc/rocm-nightly/THIRD-PARTY",
		"/usr/share/doc/rocm-nightly/docs/install.md", "/usr/share/man/man1/rocm-nightly.1.gz", "/usr/share/man/man1/rocm-nightly-init-aur.1.gz",
		"/usr/share/man/man5/rocm-nightly-config.5.gz", "/usr/share/bash-completion/completions/rocm-nightly",
		"/usr/share/zsh/site-functions/_rocm-nightly", "/usr/share/fish/vendor_completions.d/rocm-nightly.fish",
	}
	err := filepath.WalkDir("../systemd", func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasSuffix(p, ".go") || strings.HasSuffix(p, ".md") || strings.Contains(p, "testdata") {
			return err
		}
		rel := strings.TrimPrefix(filepath.ToSlash(p), "../systemd/")
		dir, _, below := strings.Cut(rel, "/")
		switch {
		case !below:
			rel = "lib/systemd/system/" + rel
		case dir == "user":
			rel = "lib/systemd/" + rel
		case dir == "sysusers.d" || dir == "tmpfiles.d":
			rel = "lib/" + rel
		default:
			rel = "share/rocm-nightly/" + rel
		}
		all = append(all, "/usr/"+rel)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
