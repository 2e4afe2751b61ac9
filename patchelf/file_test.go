package patchelf

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestKeepsInodeModeAndTime: what is beside the content stays.
func TestKeepsInodeModeAndTime(t *testing.T) {
	path := copyOf(t, variantOf(t, "bfd-pie-0").make(t))
	twin := path + "-twin"
	if err := os.Link(path, twin); err != nil {
		t.Fatal(err)
	}
	when := time.Unix(1700000000, 123456789)
	if err := errors.Join(os.Chtimes(path, when, when), os.Chmod(path, 0o555)); err != nil {
		t.Fatal(err)
	}
	before, _ := os.Stat(path)
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for i, edit := range []func() (Result, error){
		func() (Result, error) { return EditPath(path, Edit{RunPath: ptr(longPath), Sync: true}) },
		func() (Result, error) {
			return EditIn(root, filepath.Base(path), Edit{RunPath: ptr("/x"), Tag: RPath})
		},
	} {
		if res, err := edit(); err != nil || !res.Changed {
			t.Fatalf("%d: %+v, %v", i, res, err)
		}
		after, _ := os.Stat(twin)
		if !os.SameFile(before, after) || after.Mode() != before.Mode() || !after.ModTime().Equal(when) {
			t.Errorf("%d: %v %v, before %v %v", i, after.Mode(), after.ModTime(), before.Mode(), before.ModTime())
		}
	}
}

// TestReadOnlyForItsOwner: a user who is not root edits read-only files too.
func TestReadOnlyForItsOwner(t *testing.T) {
	path := copyOf(t, variantOf(t, "bfd-pie-0").make(t))
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	denied := false
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, _, err := planFile(f, Edit{RunPath: ptr(longPath)})
	if err != nil {
		t.Fatal(err)
	}
	err = applyWritable(f, p, func(flag int) (*os.File, error) {
		if info, _ := f.Stat(); info.Mode()&0o200 == 0 {
			denied = true
			return nil, os.ErrPermission // as root is never told
		}
		return os.OpenFile(path, flag, 0)
	}, 0)
	info, _ := os.Stat(path)
	if err != nil || !denied || info.Mode().Perm() != 0o444 {
		t.Errorf("%v, denied %v, mode %v", err, denied, info.Mode())
	}
	checkPath(t, path, longPath, RunPath)
}

// TestRefusedUntouched: what cannot be edited safely stays as it was.
func TestRefusedUntouched(t *testing.T) {
	exe := variantOf(t, "bfd-pie-0").make(t)
	whole, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	gpu := append([]byte{}, whole...)
	gpu[18], gpu[19] = 224, 0
	source := "int main(void) { return 46; }"
	tooLong := longPath + strings.Repeat("/and/on", 1000)
	for _, c := range []struct {
		name, path, says string
		edit             Edit
	}{
		{"static", shop.build(t, "static", source, "-static"), "static", Edit{}},
		{"static-pie", shop.build(t, "static-pie", source, "-static-pie"), "static", Edit{}},
		{"relocatable", shop.build(t, "part.o", source, "-c"), "ET_REL", Edit{}},
		{"GPU code", put(t, "gpu", gpu), "EM_AMDGPU", Edit{}},
		{"truncated", put(t, "cut", whole[:len(whole)-100]), "truncated", Edit{}},
		{"payload", put(t, "payload", append(append([]byte{}, whole...), "PAYLOAD"...)), "payload", Edit{RunPath: &tooLong}},
		{"interpreter of a library", variantOf(t, "bfd-lib-0").make(t), "interpreter", Edit{Interp: "/x"}},
		{"NUL", exe, "NUL", Edit{RunPath: ptr("a\x00b")}},
		{"bad tag", exe, "tag", Edit{RunPath: ptr("a"), Tag: 7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := copyOf(t, c.path)
			if c.edit.RunPath == nil && c.edit.Interp == "" {
				c.edit.RunPath = ptr(longPath)
			}
			before, _ := os.ReadFile(path)
			_, err := EditPath(path, c.edit)
			var refused *RefusedError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Error("the file changed")
			}
		})
	}
}

// TestNotRegularFiles: only regular files are opened for an edit.
func TestNotRegularFiles(t *testing.T) {
	dir := t.TempDir()
	link, fifo := filepath.Join(dir, "link"), filepath.Join(dir, "fifo")
	if err := errors.Join(os.Symlink(copyOf(t, variantOf(t, "bfd-pie-0").make(t)), link), unix.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, fifo, dir} {
		var refused *RefusedError
		if _, err := EditPath(path, Edit{RunPath: ptr("x")}); !errors.As(err, &refused) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := EditPath(put(t, "script", []byte("#!/bin/sh\n")), Edit{}); !errors.Is(err, ErrNotELF) {
		t.Error(err)
	}
	if _, err := EditPath(filepath.Join(dir, "missing"), Edit{}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestPayloadStays: a file with something appended is edited where nothing
// needs to grow.
func TestPayloadStays(t *testing.T) {
	b, err := os.ReadFile(variantOf(t, "bfd-exec-36").make(t))
	if err != nil {
		t.Fatal(err)
	}
	path := put(t, "payload", append(b, "PAYLOAD"...))
	res := mustEdit(t, path, Edit{RunPath: ptr("/short"), Tag: RPath})
	after, _ := os.ReadFile(path)
	if res.Growth != 0 || !strings.HasSuffix(string(after), "PAYLOAD") {
		t.Errorf("%+v", res)
	}
}

// TestSharedStringsStay: a run path that shares bytes with the name of a
// symbol, or of anything else, is not overwritten.
func TestSharedStringsStay(t *testing.T) {
	deps := shop.deps(t)
	object := shop.object(t, "user", userSource, nil)
	for name, args := range map[string][]string{
		"symbol":    {"-Wl,-rpath,rpath"}, // the tail of user_rpath
		"whole":     {"-Wl,-rpath,user_name"},
		"soname":    {"-Wl,-rpath,/some/where", "-Wl,-soname,/some/where"},
		"needed":    {"-Wl,-rpath,dep.so"},
		"filter":    {"-Wl,-rpath,/some/where", "-Wl,-f,/some/where"},
		"auxiliary": {"-Wl,-rpath,where", "-Wl,-f,/some/where"},
		"audit":     {"-Wl,-rpath,/some/where", "-Wl,--audit=/some/where"},
		"depaudit":  {"-Wl,-rpath,/some/where", "-Wl,--depaudit=/some/where"},
	} {
		for _, hash := range []string{"gnu", "sysv", "both"} {
			lib := shop.build(t, "shared-"+name+hash, "", append([]string{object, "-shared", "-L" + deps, "-ldep", "-Wl,--hash-style=" + hash}, args...)...)
			for _, p := range []string{"x", "", longPath} {
				path := copyOf(t, lib)
				before := names(t, path)
				mustEdit(t, path, Edit{RunPath: &p, Tag: RPath})
				if after := names(t, path); after != before {
					t.Errorf("%s, %s, %q: names were\n%s\nand are\n%s", name, hash, p, before, after)
				}
			}
		}
	}
}

// names is every name that readelf finds but the run path.
func names(t *testing.T, path string) string {
	if _, err := exec.LookPath("readelf"); err != nil {
		t.Skip("readelf is missing (Debian: binutils)")
	}
	out, err := exec.Command("readelf", "-dW", "--dyn-syms", path).CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	var keep []string
	for line := range strings.Lines(string(out)) {
		if i := strings.IndexByte(line, '['); i >= 0 && !strings.Contains(line, "path: [") || strings.Contains(line, "GLOBAL") {
			keep = append(keep, line)
		}
	}
	return strings.Join(keep, "")
}

// TestSeparateDebugFile: headers without content are nothing to edit, and
// nothing that fails.
func TestSeparateDebugFile(t *testing.T) {
	if _, err := exec.LookPath("objcopy"); err != nil {
		t.Skip("objcopy is missing (Debian: binutils)")
	}
	for _, tool := range [][]string{{"objcopy", "--only-keep-debug", "IN", "OUT"}, {"eu-strip", "-f", "OUT", "IN"}} {
		if _, err := exec.LookPath(tool[0]); err != nil {
			continue
		}
		for _, v := range variants()[:3] {
			in, out := copyOf(t, v.make(t)), filepath.Join(t.TempDir(), "x.debug")
			args := strings.Split(strings.NewReplacer("IN", in, "OUT", out).Replace(strings.Join(tool[1:], "\t")), "\t")
			if b, err := exec.Command(tool[0], args...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, b)
			}
			if res, err := EditPath(out, Edit{}); err != nil || res.Before.Dynamic {
				t.Errorf("%v %s: %+v, %v", tool, v.name, res.Before, err)
			}
			var refused *RefusedError
			if _, err := EditPath(out, Edit{RunPath: ptr("x")}); !errors.As(err, &refused) {
				t.Errorf("%v %s: %v", tool, v.name, err)
			}
		}
	}
}

// TestWithoutSectionHeaders: loaders do not need them, and neither do edits.
func TestWithoutSectionHeaders(t *testing.T) {
	for _, v := range variants() {
		b, err := os.ReadFile(v.make(t))
		if err != nil {
			t.Fatal(err)
		}
		clear(b[40:48]) // e_shoff
		clear(b[60:64]) // e_shnum, e_shstrndx
		end := uint64(0)
		f, err := Parse(byteFile(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range f.phdrs {
			end = max(end, p.end())
		}
		path := put(t, "bare", b[:end])
		res, err := EditPath(path, Edit{RunPath: ptr(longPath + ":" + shop.deps(t)), Tag: RPath})
		var refused *RefusedError
		if errors.As(err, &refused) {
			t.Logf("%s: %v", v.name, err)
			continue
		}
		if code, out := runs(t, path, v.lib); err != nil || code != 46 {
			t.Errorf("%s: %v, %s: exit %d: %s", v.name, err, res.How, code, out)
		}
	}
}

func ExampleEditPath() {
	runPath := "$ORIGIN/../lib"
	_, err := EditPath("/dev/null", Edit{RunPath: &runPath, Tag: RPath})
	fmt.Println(err)
	// Output: edit /dev/null: edit refused: it is not a regular file
}
