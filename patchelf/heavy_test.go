//go:build heavy

package patchelf

import (
	"debug/elf"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
)

// TestWholeSystem edits a copy of every dynamic ELF of this machine's /usr and
// compares what ld.so resolves with what it did before. PATCHELF_ROOTS names
// other directories (colon-separated), PATCHELF_LIST a file for refusals.
func TestWholeSystem(t *testing.T) {
	roots := "/usr/bin:/usr/sbin:/usr/lib/x86_64-linux-gnu:/usr/libexec:/usr/lib/llvm-16"
	if s := os.Getenv("PATCHELF_ROOTS"); s != "" {
		roots = s
	}
	dir := t.TempDir()
	var mu sync.Mutex
	count := map[string]int{}
	var grown int64
	var refusals []string
	jobs, wait := make(chan string), sync.WaitGroup{}
	for w := range 2 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for path := range jobs {
				verdict, detail, growth := systemFile(path, filepath.Join(dir, string(rune('a'+w))))
				mu.Lock()
				count[verdict]++
				grown += growth
				switch verdict {
				case "broken":
					t.Errorf("%s: %s", path, detail)
				case "refused":
					refusals = append(refusals, path+": "+detail)
				}
				if verdict == "edited" {
					count["how: "+detail]++
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
	sort.Strings(refusals)
	for _, r := range refusals {
		t.Log(r)
	}
	keys := []string{}
	for k := range count {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		t.Logf("%6d %s", count[k], k)
	}
	t.Logf("grown by %d bytes", grown)
}

func systemFile(path, copyTo string) (verdict, detail string, growth int64) {
	f, err := os.Open(path)
	if err != nil {
		return "unreadable", err.Error(), 0
	}
	defer f.Close()
	info, _ := f.Stat()
	g, err := Parse(f, info.Size())
	switch {
	case errors.Is(err, ErrNotELF):
		return "not ELF", "", 0
	case err != nil:
		return "malformed", err.Error(), 0
	case !g.Dynamic || g.Machine != elf.EM_X86_64:
		return "not dynamic", "", 0
	}
	before := resolves(path)
	copyTo += filepath.Ext(path)
	b, err := os.ReadFile(path)
	if err != nil || os.WriteFile(copyTo, b, 0o755) != nil {
		return "unreadable", "copy", 0
	}
	defer os.Remove(copyTo)
	old, _ := g.Path()
	want := "/patchelf-heavy/" + strings.Repeat("long/", 30) + ":" + strings.ReplaceAll(old, "$ORIGIN", filepath.Dir(path))
	res, err := EditPath(copyTo, Edit{RunPath: &want, Tag: RPath})
	var refused *RefusedError
	if errors.As(err, &refused) {
		return "refused", refused.Reason, 0
	}
	if err != nil {
		return "broken", err.Error(), 0
	}
	if after := resolves(copyTo); after != before {
		return "broken", res.How + "\n" + before + "\n" + after, 0
	}
	how := res.How
	if again, err := EditPath(copyTo, Edit{RunPath: &want, Tag: RPath}); err != nil || again.Changed {
		return "broken", "the second edit is not a no-op", 0
	}
	if out, err := exec.Command("readelf", "-lWdS", copyTo).CombinedOutput(); err != nil || strings.Contains(string(out), "readelf: ") {
		return "broken", "readelf: " + res.How + string(out[:min(len(out), 500)]), 0
	}
	return "edited", how, res.Growth
}

// resolves is what ld.so --list says, without addresses.
func resolves(path string) string {
	cmd := exec.Command("/lib64/ld-linux-x86-64.so.2", "--list", path)
	cmd.Env = []string{"LD_BIND_NOW=1"}
	out, _ := cmd.CombinedOutput()
	var keep []string
	for _, line := range strings.Split(string(out), "\n") {
		line, _, _ = strings.Cut(line, " (0x")
		keep = append(keep, strings.ReplaceAll(line, path, "FILE"))
	}
	return strings.Join(keep, "\n")
}

// TestGoProgram: Go's own linker puts the section headers behind the program
// headers, where they make way.
func TestGoProgram(t *testing.T) {
	dir := t.TempDir()
	source, path := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	if err := os.WriteFile(source, []byte("package main\nimport \"os\"\nfunc main() { os.Exit(46) }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-buildmode=pie", "-o", path, source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GO111MODULE=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, p := range []string{longPath, "/x", longPath + longPath} {
		res := mustEdit(t, path, Edit{RunPath: &p, Tag: RPath})
		if code, out := runs(t, path, false); code != 46 {
			t.Fatalf("%s: exit %d: %s", res.How, code, out)
		}
		clean(t, path)
		t.Log(res.How)
	}
}
