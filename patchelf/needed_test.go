package patchelf

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// versioned builds a library with versions, and a library and a program that
// need it by them. All are in one directory.
func versioned(tb testing.TB) (dir, lib, prog string) {
	tb.Helper()
	script := filepath.Join(shop.dir, "versions.map")
	if err := os.WriteFile(script, []byte("DEP_1 { global: dep; };\nDEP_2 { global: dep_value; } DEP_1;\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	dep := shop.build(tb, "versioned/libdep.so", depSource, "-shared", "-fPIC", "-Wl,-soname,libdep.so", "-Wl,--version-script="+script)
	dir = filepath.Dir(dep)
	paths := []string{"-L" + dir, "-ldep", "-Wl,-rpath," + dir, "-Wl,--enable-new-dtags"}
	lib = shop.build(tb, "versioned-user.so", userSource, append([]string{"-shared", "-fPIC", "-Wl,-soname,libuser.so.1"}, paths...)...)
	return dir, lib, shop.build(tb, "versioned-prog", progSource, append([]string{"-fPIE", "-pie"}, paths...)...)
}

func parsedAt(tb testing.TB, path string) *File {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	f, err := Parse(byteFile(b), int64(len(b)))
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// idempotent checks that the same edit again writes nothing.
func idempotent(t *testing.T, path string, e Edit) {
	t.Helper()
	before, _ := os.Stat(path)
	if res := mustEdit(t, path, e); res.Changed || res.Written != 0 {
		t.Errorf("the same edit again: %+v", res)
	}
	if after, _ := os.Stat(path); !after.ModTime().Equal(before.ModTime()) || after.Size() != before.Size() {
		t.Error("the same edit again touched the file")
	}
}

// TestReplaceNeededWithVersions: libraries get longer and shorter names, in the
// versions that are needed too, and the loader finds them.
func TestReplaceNeededWithVersions(t *testing.T) {
	dir, lib, prog := versioned(t)
	const short, long = "d", "a-rather-long-name-for-a-library/../libdep-with-a-long-name.so.1.2.3.4.5.6.7.8.9"
	for _, path := range []string{lib, prog} {
		path := copyOf(t, path)
		own := filepath.Dir(path)
		if err := os.MkdirAll(filepath.Join(own, "a-rather-long-name-for-a-library"), 0o755); err != nil {
			t.Fatal(err)
		}
		mustEdit(t, path, Edit{RunPath: ptr(own)})
		was, size := "libdep.so", int64(0)
		for i, now := range []string{short, "libdep.so", filepath.Base(long), short, filepath.Base(long), short, "libdep.so"} {
			_ = os.Remove(filepath.Join(own, was))
			if err := os.Symlink(filepath.Join(dir, "libdep.so"), filepath.Join(own, now)); err != nil {
				t.Fatal(err)
			}
			e := Edit{ReplaceNeeded: map[string]string{was: now, "absent": "other"}}
			res := mustEdit(t, path, e)
			if !slices.Contains(res.After.Needed, now) || slices.Contains(res.After.Needed, was) {
				t.Fatalf("%v", res.After.Needed)
			}
			if code, out := runs(t, path, strings.HasSuffix(path, ".so")); code != 46 {
				t.Fatalf("%s to %s (%s): exit %d: %s", was, now, res.How, code, out)
			}
			if out, _ := exec.Command("readelf", "-VW", path).CombinedOutput(); strings.Contains(string(out), "File: "+was) || !strings.Contains(string(out), "File: "+now) {
				t.Errorf("%s to %s: %s", was, now, out)
			}
			clean(t, path)
			idempotent(t, path, e)
			info, _ := os.Stat(path)
			if i > 2 && info.Size() != size {
				t.Errorf("%s to %s: grew again, %s", was, now, res.How)
			}
			was, size = now, info.Size()
		}
	}
}

// TestRemoveNeededWithVersions: the versions of a library that is no longer
// needed go too, or the loader would stop.
func TestRemoveNeededWithVersions(t *testing.T) {
	_, lib, prog := versioned(t)
	for _, path := range []string{lib, prog} {
		path := copyOf(t, path)
		e := Edit{RemoveNeeded: []string{"libdep.so"}}
		res := mustEdit(t, path, e)
		if slices.Contains(res.After.Needed, "libdep.so") || res.Growth != 0 {
			t.Fatalf("%+v", res)
		}
		out, _ := exec.Command("/lib64/ld-linux-x86-64.so.2", "--list", path).CombinedOutput()
		if strings.Contains(string(out), "Inconsistency") || strings.Contains(string(out), "libdep") {
			t.Errorf("%s: %s", res.How, out)
		}
		clean(t, path)
		idempotent(t, path, e)
		// Another library of the same name, without versions, serves as well.
		deps := shop.deps(t)
		res = mustEdit(t, path, Edit{AddNeeded: []string{"libdep.so"}, RunPath: &deps})
		if code, out := runs(t, path, strings.HasSuffix(path, ".so")); code != 46 || res.After.Needed[0] != "libdep.so" {
			t.Errorf("%s: exit %d: %s", res.How, code, out)
		}
	}
}

// TestManyEditsAtOnce makes every edit in one pass on every linker's output.
func TestManyEditsAtOnce(t *testing.T) {
	yes, no := true, false
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			path := copyOf(t, v.make(t))
			deps := shop.deps(t)
			alias := filepath.Join(filepath.Dir(path), "libdep-by-another-name.so.1")
			if err := os.Symlink(filepath.Join(deps, "libdep.so"), alias); err != nil {
				t.Fatal(err)
			}
			before := lint(path)
			needed := parsedAt(t, path).Needed
			many := Edit{
				RunPath: ptr(longPath + ":" + filepath.Dir(path)), Tag: RPath, Soname: ptr("libwith-a-longer-soname.so.3"),
				AddNeeded: []string{"libm.so.6", "libpthread.so.0", "libm.so.6"}, ReplaceNeeded: map[string]string{"libdep.so": filepath.Base(alias)},
				NoDefaultLib: v.lib, ExecStack: &no, DebugTag: true,
			}
			res := mustEdit(t, path, many)
			want := append([]string{"libm.so.6", "libpthread.so.0"}, needed...)
			want[slices.Index(want, "libdep.so")] = filepath.Base(alias)
			if !slices.Equal(res.After.Needed, want) || res.After.Soname != *many.Soname {
				t.Errorf("%+v", res.After)
			}
			if code, out := runs(t, path, v.lib); code != 46 && !v.lib {
				t.Fatalf("%s: exit %d: %s", res.How, code, out)
			}
			clean(t, path)
			idempotent(t, path, many)
			back := Edit{
				RunPath: ptr(deps), Tag: RunPath, Soname: ptr(""), RemoveNeeded: []string{"libm.so.6", "libpthread.so.0"},
				ReplaceNeeded: map[string]string{filepath.Base(alias): "libdep.so"}, ExecStack: &yes,
			}
			res = mustEdit(t, path, back)
			if !slices.Equal(res.After.Needed, needed) || res.After.Soname != "" {
				t.Errorf("%+v", res.After)
			}
			mustEdit(t, path, Edit{ExecStack: &no})
			if code, out := runs(t, path, v.lib); code != 46 && !v.lib {
				t.Fatalf("%s: exit %d: %s", res.How, code, out)
			}
			clean(t, path)
			if after := lint(path); len(after) > len(before) {
				t.Errorf("eu-elflint: %s\nbefore: %s", strings.Join(after, "\n"), strings.Join(before, "\n"))
			}
			grow := mustEdit(t, path, many)
			if grow.Growth != 0 {
				t.Errorf("the first edit grew the file once more: %+v", grow)
			}
		})
	}
}

// TestOrderOfNames: names are removed, replaced and added, in this order, and
// each once.
func TestOrderOfNames(t *testing.T) {
	path := copyOf(t, variantOf(t, "bfd-pie-0").make(t))
	for _, c := range []struct {
		e    Edit
		want string
	}{
		{Edit{AddNeeded: []string{"b", "a"}}, "b a libdep.so libc.so.6"},
		{Edit{AddNeeded: []string{"a", "b"}}, "b a libdep.so libc.so.6"},
		{Edit{ReplaceNeeded: map[string]string{"a": "b", "b": "a"}}, "a b libdep.so libc.so.6"},
		{Edit{RemoveNeeded: []string{"a"}, ReplaceNeeded: map[string]string{"a": "x", "b": "c"}, AddNeeded: []string{"a"}}, "a c libdep.so libc.so.6"},
		{Edit{RemoveNeeded: []string{"nothing"}}, "a c libdep.so libc.so.6"},
		{Edit{RemoveNeeded: []string{"a", "c"}, AddNeeded: []string{"dep.so"}}, "dep.so libdep.so libc.so.6"},
		{Edit{RemoveNeeded: []string{"dep.so"}}, "libdep.so libc.so.6"},
	} {
		if res := mustEdit(t, path, c.e); strings.Join(res.After.Needed, " ") != c.want {
			t.Errorf("%+v: %v (%s)", c.e, res.After.Needed, res.How)
		}
	}
}

// TestNamesRefused: names that no loader could read.
func TestNamesRefused(t *testing.T) {
	f := parsedAt(t, variantOf(t, "bfd-pie-0").make(t))
	for _, e := range []Edit{
		{AddNeeded: []string{""}}, {AddNeeded: []string{"a\x00b"}}, {Soname: ptr("a\x00")}, {ReplaceNeeded: map[string]string{"libdep.so": ""}},
		{AddNeeded: slices.Sorted(maps.Keys(manyNames(maxNames + 1)))}, {Soname: ptr(strings.Repeat("x", maxString))},
	} {
		if p, err := f.Plan(e); err == nil {
			t.Errorf("%v", p)
		}
	}
	p, err := f.Plan(Edit{AddNeeded: slices.Sorted(maps.Keys(manyNames(200)))})
	if err != nil || len(p.After().Needed) != 202 {
		t.Errorf("%v, %v", p, err)
	}
}

func manyNames(n int) map[string]bool {
	out := map[string]bool{}
	for i := range n {
		out["lib"+strings.Repeat("x", i%50)+string(rune('a'+i%26))+string(rune('a'+i/26%26))+string(rune('a'+i/676))] = true
	}
	return out
}
