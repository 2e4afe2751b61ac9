package repack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/audit"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// never has the audit refuse nothing.
var never = AuditOptions{Refuse: audit.RefuseNever}

// isUnfit tests that from cannot be cloned with o, for a reason in these words,
// and that the directory is as empty as before.
func isUnfit(t *testing.T, from string, o Options, words string) {
	t.Helper()
	dir := t.TempDir()
	res, err := Clone(context.Background(), from, dir, o)
	if !errors.Is(err, ErrNotClonable) || res != nil || !strings.Contains(err.Error(), words) {
		t.Errorf("error %v, want one about %q", err, words)
	}
	nothingLeft(t, dir)
}

func TestCloneNeedsTheSameOptions(t *testing.T) {
	name, err := release.ParseName("therock-dist-linux-gfx103X-all-" + version + ".tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	from, _ := into(t, nightly(t), Options{Target: "gfx1030", Audit: never, Release: release.Release{Name: name.String(), Version: name.Version}})
	for words, o := range map[string]Options{
		"another profile":          {Profile: "nix"},
		"another run path":         {RunPath: "runpath"},
		"another interpreter":      {Interpreter: "/lib/ld.so"},
		"another interpreter path": {InterpreterPath: []string{"/x"}},
		"another add rpath":        {AddRPath: []string{"/x"}},
		"another layout":           {Layout: LayoutTree},
		"but the ledger says":      {Expect: []release.Expectation{{Digest: "sha256:00", Source: "the ledger"}}},
		"it was made of therock":   {Release: release.Release{Name: "another.tar.gz"}},
	} {
		o.Audit = never
		isUnfit(t, from, o, words)
	}
	if _, err := Clone(context.Background(), from, t.TempDir(), Options{Target: "gfx1036", FinalPrefix: "/y"}); err != nil {
		t.Error(err)
	}
	if _, err := Clone(context.Background(), from, t.TempDir(), Options{Dedup: "x"}); err == nil || errors.Is(err, ErrNotClonable) {
		t.Errorf("error %v", err)
	}
}

func TestCloneNeedsAnEmptyDirectoryElsewhere(t *testing.T) {
	from, _ := into(t, nightly(t), Options{Audit: never})
	inside := filepath.Join(from, "inside")
	if err := os.Mkdir(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "precious"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{from, inside, full} {
		before := snapshot(t, dir)
		if _, err := Clone(context.Background(), from, dir, Options{Audit: never}); !errors.Is(err, ErrOccupied) {
			t.Errorf("error %v", err)
		}
		if !slices.Equal(before, snapshot(t, dir)) {
			t.Error("something has changed there")
		}
	}
}

// Whatever is not as the manifest says, the tarball is needed.
func TestCloneNeedsAWholePrefix(t *testing.T) {
	whole, _ := into(t, trapped(t), Options{Target: "gfx1030", Audit: never})
	rocm := func(name string) string { return "opt/rocm/" + name }
	keepTime := func(path string, change func() error) error {
		fi, err := os.Stat(path)
		return errors.Join(err, os.Chmod(path, 0o644), change(), os.Chmod(path, fi.Mode()), os.Chtimes(path, fi.ModTime(), fi.ModTime()))
	}
	replace := func(path string, by func() error) error { return errors.Join(os.RemoveAll(path), by()) }
	for _, c := range []struct {
		what, name string
		words      string
		damage     func(path string) error
	}{
		{"removed", rocm("share/empty"), "no such file", os.Remove},
		{"cut", rocm("share/holes"), "bytes", func(p string) error {
			return keepTime(p, func() error { return os.Truncate(p, 7) })
		}},
		{"mode", rocm("share/empty"), "mode", func(p string) error { return os.Chmod(p, 0o644) }},
		{"set-id", rocm("bin/template"), "mode", func(p string) error { return os.Chmod(p, 0o555|os.ModeSetuid) }},
		{"time", rocm("share/empty"), "written to", func(p string) error { return os.Chtimes(p, time.Now(), time.Now()) }},
		{"content", rocm("share/odd & <name>"), "changed", func(p string) error {
			return keepTime(p, func() error { return os.WriteFile(p, []byte("y"), 0o644) })
		}},
		{"link to a file", rocm("share/empty"), "no regular file", func(p string) error { return replace(p, func() error { return os.Symlink("odd & <name>", p) }) }},
		{"link out", rocm("share/empty"), "no regular file", func(p string) error { return replace(p, func() error { return os.Symlink("/etc/hostname", p) }) }},
		{"pipe", rocm("share/empty"), "no regular file", func(p string) error { return replace(p, func() error { return unix.Mkfifo(p, 0o444) }) }},
		{"directory", rocm("share/empty"), "no regular file", func(p string) error { return replace(p, func() error { return os.Mkdir(p, 0o755) }) }},
		{"a link of ours", rocm("amdgcn"), "leads to", func(p string) error { return replace(p, func() error { return os.Symlink("/etc", p) }) }},
		{"another link", rocm("bin/amdclang"), "leads to", func(p string) error { return replace(p, func() error { return os.Symlink("x", p) }) }},
		{"file for a link", rocm("bin/amdclang"), "invalid argument", func(p string) error { return replace(p, func() error { return os.WriteFile(p, nil, 0o444) }) }},
		{"open directory", rocm("share"), "mode", func(p string) error { return os.Chmod(p, 0o777) }},
		{"link for a directory", rocm("share"), "no dir", func(p string) error {
			return errors.Join(os.Rename(p, p+"2"), os.Symlink("share2", p))
		}},
		{"twin of its own", rocm("zz/twin"), "another file", func(p string) error {
			body, err := os.ReadFile(p)
			fi, serr := os.Stat(p)
			return errors.Join(err, serr, replace(p, func() error {
				return errors.Join(os.WriteFile(p, body, 0o644), os.Chmod(p, fi.Mode()), os.Chtimes(p, fi.ModTime(), fi.ModTime()))
			}))
		}},
		{"wrapper removed", "bin/rocm-version", "no such file", os.Remove},
		{"hook changed", "nix-support/setup-hook", "written to", func(p string) error { return os.Chtimes(p, time.Now(), time.Now()) }},
		{"no manifest", manifest.Name, "no such file", os.Remove},
		{"no list", manifest.FilesName, "no such file", os.Remove},
		{"a shorter list", manifest.FilesName, "contradict", func(p string) error {
			line := regexp.MustCompile(`(?m)^{"path":"opt/rocm/share/empty".*\n`)
			return rewrite(p, func(s string) string { return line.ReplaceAllString(s, "") })
		}},
		{"a longer list", manifest.FilesName, "not as this version", func(p string) error {
			return rewrite(p, func(s string) string { return s + "\n" })
		}},
		{"an unknown field", manifest.FilesName, "not as this version", func(p string) error {
			return rewrite(p, func(s string) string { return strings.Replace(s, `"kind"`, `"new":1,"kind"`, 1) })
		}},
		{"a link that leads out", manifest.FilesName, "no prefix has", func(p string) error {
			return rewrite(p, func(s string) string { return strings.Replace(s, `"link":"`, `"link":"/`, 1) })
		}},
		{"ruleset", manifest.Name, "ruleset 999", changeManifest("ruleset", 999)},
		{"older schema", manifest.Name, "no schema", changeManifest("schema", 0)},
		{"newer schema", manifest.Name, "newer", changeManifest("schema", manifest.Schema+1)},
		{"digest", manifest.Name, "contradicts itself", changeManifest("digest", "sha256:"+strings.Repeat("0", 64))},
		{"recipe", manifest.Name, "contradicts itself", changeManifest("recipe", "sha256:"+strings.Repeat("0", 64))},
		{"unknown option", manifest.Name, "another new option", changeManifest("options", json.RawMessage(`{"layout":"root","profile":"fhs","run_path":"rpath","target":"gfx1030","new_option":true}`))},
		{"counts", manifest.Name, "contradict", changeManifest("counts", manifest.Counts{Files: 1})},
		{"edits", manifest.Name, "contradict", changeManifest("edits", map[string]int{"x": 1})},
	} {
		t.Run(c.what, func(t *testing.T) {
			from := filepath.Join(t.TempDir(), "copy")
			if text, err := exec.Command("cp", "-a", whole, from).CombinedOutput(); err != nil {
				t.Fatalf("%s", text)
			}
			if err := c.damage(filepath.Join(from, c.name)); err != nil {
				t.Fatal(err)
			}
			isUnfit(t, from, Options{Audit: never}, c.words)
		})
	}
	isUnfit(t, filepath.Join(whole, "absent"), Options{Audit: never}, "no such file")
	isUnfit(t, filepath.Join(whole, manifest.Name), Options{Audit: never}, "not a directory")
	isUnfit(t, t.TempDir(), Options{Audit: never}, manifest.Name)
}

func rewrite(path string, change func(string) string) error {
	body, err := os.ReadFile(path)
	return errors.Join(err, os.Chmod(path, 0o644), os.WriteFile(path, []byte(change(string(body))), 0o644))
}

// changeManifest writes another value into manifest.json, in its own form.
func changeManifest(field string, value any) func(string) error {
	return func(path string) error {
		body, err := os.ReadFile(path)
		var all map[string]any
		if err := errors.Join(err, json.Unmarshal(body, &all)); err != nil {
			return err
		}
		all[field] = value
		text, err := json.Marshal(all)
		var m manifest.Manifest
		var out bytes.Buffer
		err = errors.Join(err, json.Unmarshal(text, &m), manifest.Write(&out, &m), os.Chmod(path, 0o644))
		return errors.Join(err, os.WriteFile(path, out.Bytes(), 0o644))
	}
}

// What the budget does not reach is hashed when that is asked for, and always
// when it is copied.
func TestCloneHashes(t *testing.T) {
	from, _ := into(t, trapped(t), Options{Audit: never})
	large := filepath.Join(from, "opt/rocm/share/holes")
	fi, err := os.Stat(large)
	f, ferr := os.OpenFile(large, os.O_WRONLY, 0) // as root, or as its owner after the next line
	if ferr != nil {
		ferr = os.Chmod(large, 0o644)
		if f, err = os.OpenFile(large, os.O_WRONLY, 0); err != nil {
			t.Fatal(err)
		}
	}
	_, werr := f.WriteAt([]byte("!"), 5)
	if err := errors.Join(err, ferr, werr, f.Close(), os.Chmod(large, fi.Mode()), os.Chtimes(large, fi.ModTime(), fi.ModTime())); err != nil {
		t.Fatal(err)
	}
	isUnfit(t, from, Options{Audit: never, Verify: true}, "changed")
	isUnfit(t, from, Options{Audit: never, Dedup: DedupOff}, "changed")
	files := []manifest.File{
		{Kind: manifest.Regular, Size: 10}, {Kind: manifest.Regular, Size: 30}, {Kind: manifest.Regular, Size: 10},
		{Kind: manifest.Dir}, {Kind: manifest.Regular, Size: 99, Same: "x"}, {Kind: manifest.Regular, Size: 40},
	}
	for budget, want := range map[int64]int64{0: -1, 19: -1, 20: 10, 49: 10, 50: 30, 90: 40, 1000: 40} {
		if got := withinBudget(files, budget, false); got != want {
			t.Errorf("%d bytes reach to %d, not %d", budget, got, want)
		}
	}
	if got := withinBudget(files, 0, true); got != 40 {
		t.Errorf("all reaches to %d", got)
	}
}

// In the nix profile the rules ask the host; when it answers differently by
// now, the tarball is needed.
func TestCloneAsksForInterpretersAgain(t *testing.T) {
	bin, early := t.TempDir(), t.TempDir()
	for _, name := range []string{"sh", "bash", "python3", "perl", "env", "readlink"} {
		if err := os.Symlink("/bin/sh", filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Profile: "nix", InterpreterPath: []string{early, bin}, Audit: never}
	from, _ := into(t, trapped(t), o)
	if _, err := Clone(context.Background(), from, t.TempDir(), o); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/bin/sh", filepath.Join(early, "python3")); err != nil {
		t.Fatal(err)
	}
	isUnfit(t, from, o, "would edit")
	if err := errors.Join(os.Remove(filepath.Join(early, "python3")), os.Remove(filepath.Join(bin, "python3"))); err != nil {
		t.Fatal(err)
	}
	isUnfit(t, from, o, "is gone")
}

// What the manifest does not list is not taken over.
func TestCloneLeavesStrangers(t *testing.T) {
	from, _ := into(t, nightly(t), Options{Audit: never, FinalPrefix: "/x"})
	want := t.TempDir()
	if _, err := Clone(context.Background(), from, want, Options{Audit: never, FinalPrefix: "/x"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"opt/rocm/lib/__pycache__", "strange"} {
		if err := os.Mkdir(filepath.Join(from, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	if _, err := Clone(context.Background(), from, dir, Options{Audit: never, FinalPrefix: "/x"}); err != nil {
		t.Fatal(err)
	}
	same(t, want, dir)
}

// A file that differs from prefix to prefix is never shared.
func TestClonePerPrefixFileIsItsOwn(t *testing.T) {
	from, _ := into(t, nightly(t), Options{Audit: never})
	dir := t.TempDir()
	by := linux
	by.perPrefix = func(path string) bool { return path == "bin/rocm-version" }
	if _, err := clone(context.Background(), from, dir, Options{Audit: never}, by); err != nil {
		t.Fatal(err)
	}
	for name, shared := range map[string]bool{"bin/rocm-version": false, ".info/version": true} {
		one, err := os.Stat(filepath.Join(from, "opt/rocm", name))
		two, terr := os.Stat(filepath.Join(dir, "opt/rocm", name))
		if err := errors.Join(err, terr); err != nil {
			t.Fatal(err)
		}
		if os.SameFile(one, two) && !shared {
			t.Errorf("%s is shared", name)
		}
	}
}

// A file of another user is not linked to: that user could change it.
func TestCloneLinksNobodyElsesFile(t *testing.T) {
	if os.Geteuid() != 0 {
		return // only root can give files away
	}
	from, _ := into(t, nightly(t), Options{Audit: never})
	foreign := filepath.Join(from, "opt/rocm/.info/version")
	if err := os.Chown(foreign, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	res, err := Clone(context.Background(), from, dir, Options{Audit: never, Dedup: DedupHardLink})
	if err != nil || res.Shared.Copied != 1+perPrefix {
		t.Fatalf("%+v, %v", res, err)
	}
}

func TestCloneStopsAndRefuses(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	bad, _ := into(t, withoutKpack(t, nightly(t)), Options{Audit: never})
	_, err := Clone(ctx, bad, t.TempDir(), Options{Audit: never, Event: func(e Event) {
		if e.Stage == "clone" {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrNotClonable) {
		t.Errorf("error %v", err)
	}
	res, err := Clone(context.Background(), bad, t.TempDir(), Options{})
	var refused *RefusedError
	if !errors.As(err, &refused) || res == nil || !res.Audit.Refused {
		t.Errorf("error %v", err)
	}
}

func TestListingIsJudged(t *testing.T) {
	sum := strings.Repeat("a", 64)
	file := func(path string, change func(*manifest.File)) manifest.File {
		f := manifest.File{Path: path, Kind: manifest.Regular, Mode: 0o444, SHA256: sum, MTime: 1}
		if change != nil {
			change(&f)
		}
		return f
	}
	dir := func(path string) manifest.File {
		return manifest.File{Path: path, Kind: manifest.Dir, Mode: 0o755, MTime: 1}
	}
	with := func(files ...manifest.File) []manifest.File {
		return append([]manifest.File{dir("opt"), dir("opt/rocm")}, files...)
	}
	if err := checkList(with(file("opt/rocm/a", nil), file("opt/rocm/b", func(f *manifest.File) { f.Same = "opt/rocm/a" })), 9, 0); err != nil {
		t.Error(err)
	}
	link := manifest.File{Path: "opt/rocm/l", Kind: manifest.Symlink, Link: "x", MTime: 1}
	for what, files := range map[string][]manifest.File{
		"no tree":         {dir("opt")},
		"a file for tree": {dir("opt"), file("opt/rocm", nil)},
		"up":              append([]manifest.File{file("../x", nil)}, with()...),
		"up inside":       with(file("opt/rocm/../../../x", nil)),
		"absolute":        append([]manifest.File{file("/x", nil)}, with()...),
		"NUL":             with(file("opt/rocm/a\x00", nil)),
		"dot":             append([]manifest.File{dir(".")}, with()...),
		"twice":           with(file("opt/rocm/a", nil), file("opt/rocm/a", nil)),
		"unsorted":        with(file("opt/rocm/b", nil), file("opt/rocm/a", nil)),
		"no parent":       with(file("opt/rocm/a/b", nil)),
		"in a file":       with(file("opt/rocm/a", nil), file("opt/rocm/a/b", nil)),
		"in a link":       with(link, file("opt/rocm/l/b", nil)),
		"absolute link":   with(manifest.File{Path: "opt/rocm/l", Kind: manifest.Symlink, Link: "/etc"}),
		"writable":        with(file("opt/rocm/a", func(f *manifest.File) { f.Mode = 0o666 })),
		"set-id":          with(file("opt/rocm/a", func(f *manifest.File) { f.Mode = 0o4555 })),
		"negative":        with(file("opt/rocm/a", func(f *manifest.File) { f.Size = -1 })),
		"huge":            with(file("opt/rocm/a", func(f *manifest.File) { f.Size = 1 << 62 }), file("opt/rocm/b", func(f *manifest.File) { f.Size = 1 << 62 })),
		"no digest":       with(file("opt/rocm/a", func(f *manifest.File) { f.SHA256 = "" })),
		"pipe":            with(manifest.File{Path: "opt/rocm/p", Kind: "pipe"}),
		"twin of nothing": with(file("opt/rocm/a", func(f *manifest.File) { f.Same = "opt/rocm/b" })),
		"twin of itself":  with(file("opt/rocm/a", func(f *manifest.File) { f.Same = "opt/rocm/a" })),
		"twin outside":    append([]manifest.File{file("o", nil)}, with(file("opt/rocm/a", func(f *manifest.File) { f.Same = "o" }))...),
		"other twin":      with(file("opt/rocm/a", nil), file("opt/rocm/b", func(f *manifest.File) { f.Same, f.Size = "opt/rocm/a", 1 })),
		"the manifest":    append([]manifest.File{file(manifest.Name, nil)}, with()...),
		"too many":        with(file("opt/rocm/1", nil), file("opt/rocm/2", nil), file("opt/rocm/3", nil)),
	} {
		if err := checkList(files, 2, 0); err == nil {
			t.Errorf("%s was taken", what)
		}
	}
	if err := checkList(with(file("opt/rocm/a", func(f *manifest.File) { f.Size = 8 })), 9, 7); err == nil {
		t.Error("more bytes than allowed were taken")
	}
	many := &lines{r: strings.NewReader(strings.Repeat("{}\n", 100)), left: 50}
	if _, err := manifest.ReadFiles(many); err == nil {
		t.Error("more lines than allowed were read")
	}
}

// Whatever a manifest says, nothing is written elsewhere, nothing panics, and a
// clone that is made is one that can be cloned.
func FuzzOrigin(f *testing.F) {
	prefix := f.TempDir()
	in, err := os.Open(nightly(f))
	if err != nil {
		f.Fatal(err)
	}
	defer in.Close()
	o := Options{FinalPrefix: "/x", Audit: never}
	if _, err := Into(context.Background(), in, prefix, o); err != nil {
		f.Fatal(err)
	}
	var texts [2][]byte
	for i, name := range []string{manifest.Name, manifest.FilesName} {
		if texts[i], err = os.ReadFile(filepath.Join(prefix, name)); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(texts[0], texts[1])
	f.Add(texts[0], bytes.Replace(texts[1], []byte("opt/rocm/bin"), []byte("opt/../../bin"), -1))
	f.Add([]byte("{}"), []byte("{}"))
	f.Fuzz(func(t *testing.T, manifestText, list []byte) {
		from := t.TempDir()
		err := errors.Join(os.WriteFile(filepath.Join(from, manifest.Name), manifestText, 0o444),
			os.WriteFile(filepath.Join(from, manifest.FilesName), list, 0o444))
		if err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(from)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		w, err := readOrigin(root, Options{}.withDefaults())
		if err != nil {
			if !errors.Is(err, ErrNotClonable) {
				t.Fatalf("error %v", err)
			}
			return
		}
		for _, f := range w.files {
			if !fs.ValidPath(f.Path) || strings.HasPrefix(f.Link, "/") {
				t.Errorf("%+v was taken", f)
			}
		}
	})
}
