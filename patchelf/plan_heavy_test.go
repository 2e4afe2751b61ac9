//go:build heavy

package patchelf

import (
	"debug/elf"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestWholeSystemEveryEdit makes edits of everything on a copy of every
// dynamic ELF of this machine: the C library gets another name, which the
// loader has to find with all its versions, there is one library more, and the
// dynamic section moves. PATCHELF_ROOTS names other directories.
func TestWholeSystemEveryEdit(t *testing.T) {
	roots := "/usr/bin:/usr/sbin:/usr/lib/x86_64-linux-gnu:/usr/libexec:/usr/lib/llvm-16"
	if s := os.Getenv("PATCHELF_ROOTS"); s != "" {
		roots = s
	}
	dir := t.TempDir()
	if err := os.Symlink("/lib/x86_64-linux-gnu/libc.so.6", filepath.Join(dir, "libc-by-another-name.so.6")); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	edited, refused, grown := 0, 0, int64(0)
	jobs, wait := make(chan string), sync.WaitGroup{}
	for w := range 2 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for path := range jobs {
				says, growth, ok := everyEdit(path, filepath.Join(dir, string(rune('a'+w))), dir)
				mu.Lock()
				switch {
				case !ok:
				case strings.HasPrefix(says, "refused"):
					refused++
					t.Log(path, says)
				case says != "":
					t.Errorf("%s: %s", path, says)
				default:
					edited++
					grown += growth
				}
				mu.Unlock()
			}
		}()
	}
	for _, root := range strings.Split(roots, ":") {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				jobs <- path
			}
			return nil
		})
	}
	close(jobs)
	wait.Wait()
	t.Logf("%d edited, %d refused, %d bytes more", edited, refused, grown)
}

// everyEdit edits a copy of the file at path. It says what is wrong, and
// whether the file is one to be edited.
func everyEdit(path, at, dir string) (says string, growth int64, ok bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", 0, false
	}
	f, err := Parse(byteFile(b), int64(len(b)))
	if err != nil || !f.Dynamic || f.Machine != elf.EM_X86_64 || f.Class != 64 || len(f.Needed) == 0 {
		return "", 0, false
	}
	before := resolves(path)
	at += filepath.Ext(path)
	if err := os.WriteFile(at, b, 0o755); err != nil {
		return err.Error(), 0, true
	}
	defer os.Remove(at)
	old, _ := f.Path()
	want := dir + ":" + strings.ReplaceAll(old, "$ORIGIN", filepath.Dir(path))
	e := Edit{
		RunPath: &want, Tag: RPath, ReplaceNeeded: map[string]string{"libc.so.6": "libc-by-another-name.so.6"},
		AddNeeded: []string{"libm.so.6", "libutil.so.1", "libanl.so.1", "librt.so.1", "libdl.so.2"}, DebugTag: true,
	}
	res, err := EditPath(at, e)
	var refused *RefusedError
	if errors.As(err, &refused) {
		return "refused: " + refused.Reason, 0, true
	}
	if err != nil {
		return err.Error(), 0, true
	}
	if again, err := EditPath(at, e); err != nil || again.Changed {
		return "the second edit is not a no-op", 0, true
	}
	back := Edit{ReplaceNeeded: map[string]string{"libc-by-another-name.so.6": "libc.so.6"}}
	for _, step := range []string{"edited", "stripped", "and back"} {
		after := resolves(at)
		for _, word := range []string{"not found", "Inconsistency", "cannot"} {
			if strings.Count(after, word) > strings.Count(before, word) {
				return step + ": " + res.How + "\n" + before + "\n" + after, 0, true
			}
		}
		switch step {
		case "edited":
			if out, err := exec.Command("readelf", "-lWdSV", at).CombinedOutput(); err != nil || strings.Contains(string(out), "readelf: ") {
				return "readelf: " + res.How + string(out[:min(len(out), 500)]), 0, true
			}
			if strings.Contains(res.How, "last resort") {
				continue
			}
			if out, err := exec.Command("strip", "--strip-debug", at).CombinedOutput(); err != nil || len(out) > 0 {
				return "strip: " + res.How + string(out), 0, true
			}
		case "stripped":
			if res, err := EditPath(at, back); err != nil || res.After.Needed[0] != "libm.so.6" && !strings.Contains(before, "libm") {
				return "back: " + res.How, 0, true
			}
		}
	}
	return "", res.Growth, true
}
