package patchelf

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const longPath = "$ORIGIN/../lib:$ORIGIN/../lib/llvm/lib:$ORIGIN/../lib/rocm_sysdeps/lib:$ORIGIN/../lib/host-math/lib:/a/rather/long/directory/of/the/host"

// TestEveryLinkersOutput is the matrix: however a file was linked, a run path
// can be set, made longer and shorter, converted and removed, and it runs.
func TestEveryLinkersOutput(t *testing.T) {
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			path := copyOf(t, v.make(t))
			deps := shop.deps(t)
			before := lint(path)
			for _, step := range []struct {
				path string
				tag  Tag
				code int
			}{
				{longPath + ":" + deps, RunPath, 46}, {longPath + ":" + deps, RPath, 46}, {deps, RPath, 46}, {longPath, RPath, 0}, {"", 0, 0},
				{"x", RunPath, 0}, {longPath + ":" + deps, RPath, 46}, {deps, RunPath, 46},
			} {
				res, err := EditPath(path, Edit{RunPath: ptr(step.path), Tag: step.tag})
				if err != nil {
					t.Fatalf("%q: %v", step.path, err)
				}
				t.Logf("%d bytes: %s: %d written, +%d", len(step.path), res.How, res.Written, res.Growth)
				checkPath(t, path, step.path, step.tag)
				if code, out := runs(t, path, v.lib); (code == 46) != (step.code == 46) {
					t.Fatalf("%q: exit %d: %s", step.path, code, out)
				}
				clean(t, path)
			}
			if after := lint(path); len(after) > len(before) {
				t.Errorf("eu-elflint: %s\nbefore: %s", strings.Join(after, "\n"), strings.Join(before, "\n"))
			}
		})
	}
}

func checkPath(t *testing.T, path, want string, tag Tag) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, _ := f.Stat()
	g, err := Parse(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	if want == "" {
		tag = 0
	}
	if got, is := g.Path(); got != want || is != tag || (g.RPath != nil && g.RunPath != nil) {
		t.Fatalf("run path is %q (%v), want %q (%v)", got, is, want, tag)
	}
}

// TestNoOpWritesNothing: asking for what is there opens nothing for writing.
func TestNoOpWritesNothing(t *testing.T) {
	path := copyOf(t, variantOf(t, "bfd-pie-4").make(t))
	mustEdit(t, path, Edit{RunPath: ptr(longPath), Tag: RPath})
	first, _ := os.ReadFile(path)
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	for _, e := range []Edit{{}, {RunPath: ptr(longPath)}, {Tag: RPath}, {RunPath: ptr(longPath), Tag: RPath}, {Interp: "/lib64/ld-linux-x86-64.so.2"}} {
		if res := mustEdit(t, path, e); res.Changed || res.Written != 0 {
			t.Errorf("%+v: %+v", e, res)
		}
	}
	if again, _ := os.ReadFile(path); !bytes.Equal(first, again) {
		t.Error("bytes changed")
	}
}

// TestTagAloneIsEightBytes: a conversion writes one word.
func TestTagAloneIsEightBytes(t *testing.T) {
	for _, v := range variants() {
		if v.path == "" {
			continue
		}
		path := copyOf(t, v.make(t))
		if res := mustEdit(t, path, Edit{Tag: RPath}); res.Written != 8 || res.Growth != 0 {
			t.Errorf("%s: %+v", v.name, res)
		}
		checkPath(t, path, v.path, RPath)
	}
}

// TestSixtyEditsGrowOnce: alternating long and short paths do not pile up.
func TestSixtyEditsGrowOnce(t *testing.T) {
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			path := copyOf(t, v.make(t))
			var size int64
			for i := range 60 {
				e := Edit{RunPath: ptr("/s"), Tag: RunPath}
				switch i % 4 {
				case 0:
					e.RunPath = ptr(longPath)
				case 2:
					e.RunPath = ptr(longPath[20:]) // the tail of what was there
				}
				mustEdit(t, path, e)
				info, _ := os.Stat(path)
				if i > 0 && info.Size() != size {
					t.Fatalf("edit %d: %d bytes, %d before", i, info.Size(), size)
				}
				size = info.Size()
			}
			if v.lib {
				return
			}
			mustEdit(t, path, Edit{RunPath: ptr(shop.deps(t))})
			if code, out := runs(t, path, false); code != 46 {
				t.Fatalf("exit %d: %s", code, out)
			}
		})
	}
}

// TestDeterministic: equal bytes and an equal edit give equal bytes.
func TestDeterministic(t *testing.T) {
	for _, v := range variants() {
		var last []byte
		for range 2 {
			path := copyOf(t, v.make(t))
			mustEdit(t, path, Edit{RunPath: ptr(longPath), Tag: RPath})
			b, _ := os.ReadFile(path)
			if last != nil && !bytes.Equal(b, last) {
				t.Errorf("%s: two results", v.name)
			}
			last = b
		}
	}
}

// TestInterpreter: longer and shorter, with and without a run path.
func TestInterpreter(t *testing.T) {
	const usual = "/lib64/ld-linux-x86-64.so.2"
	if _, err := os.Stat(usual); err != nil {
		t.Skip("no " + usual + " (Debian: libc6 on amd64)")
	}
	long := t.TempDir() + "/an/interpreter/with/a/rather/long/name/for/a/test"
	if err := os.MkdirAll(long, 0o755); err != nil {
		t.Fatal(err)
	}
	long += "/ld.so"
	short, err := os.MkdirTemp("/tmp", "l")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(short)
	short += "/l"
	for _, link := range []string{long, short} {
		if err := os.Symlink(usual, link); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range variants() {
		if v.lib {
			continue
		}
		t.Run(v.name, func(t *testing.T) {
			path := copyOf(t, v.make(t))
			before := lint(path)
			for i, interp := range []string{long, short, usual, long, usual} {
				e := Edit{Interp: interp}
				if i == 0 {
					e.RunPath = ptr(longPath + ":" + shop.deps(t))
				}
				res := mustEdit(t, path, e)
				if res.After.Interp != interp {
					t.Errorf("%+v", res.After)
				}
				if i >= 3 && res.Growth > 0 {
					t.Errorf("%s: grew again by %d (%s)", interp, res.Growth, res.How)
				}
				if code, out := runs(t, path, false); code != 46 {
					t.Fatalf("%s (%s): exit %d: %s", interp, res.How, code, out)
				}
			}
			clean(t, path)
			if after := lint(path); len(after) > len(before) {
				t.Errorf("eu-elflint: %s", strings.Join(after, "\n"))
			}
		})
	}
}

// TestStripKeepsItRunning: what is edited survives the usual strippers.
func TestStripKeepsItRunning(t *testing.T) {
	for _, tool := range [][]string{{"strip"}, {"strip", "--strip-debug"}, {"objcopy", "--strip-unneeded"}, {"eu-strip"}, {"llvm-strip-16"}} {
		if _, err := exec.LookPath(tool[0]); err != nil {
			continue
		}
		for _, v := range variants() {
			if v.path != "" && tool[0] != "strip" {
				continue
			}
			path := copyOf(t, v.make(t))
			res := mustEdit(t, path, Edit{RunPath: ptr(longPath + ":" + shop.deps(t)), Tag: RPath})
			if out, err := exec.Command(tool[0], append(slices.Clone(tool[1:]), path)...).CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%v %s: %v %s", tool, v.name, err, out)
			}
			if code, out := runs(t, path, v.lib); code != 46 {
				t.Errorf("%v %s (%s): exit %d: %s", tool, v.name, res.How, code, out)
			}
		}
	}
}
