package patchelf

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// said is what a reader says of a file, sorted.
type said []string

func (s *said) add(what, value string) { *s = append(*s, what+" "+value) }

func (s said) sorted() string {
	slices.Sort(s)
	return strings.Join(s, "\n")
}

// saidHere is what File says, in the words of the others.
func saidHere(f *File) string {
	var s said
	for _, n := range f.Needed {
		s.add("NEEDED", n)
	}
	if _, ok := f.dynValue(elf.DT_SONAME); ok {
		s.add("SONAME", f.Soname)
	}
	if f.RPath != nil {
		s.add("RPATH", *f.RPath)
	}
	if f.RunPath != nil {
		s.add("RUNPATH", *f.RunPath)
	}
	for _, d := range f.Strings {
		s.add(strings.TrimPrefix(d.Tag.String(), "DT_"), d.Value)
	}
	if f.Interp != "" {
		s.add("INTERP", f.Interp)
	}
	return s.sorted()
}

// saidByReadelf is what readelf says.
func saidByReadelf(path string) (string, error) {
	var errs bytes.Buffer
	cmd := exec.Command("readelf", "-ldW", path)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil || errs.Len() > 0 {
		return "", fmt.Errorf("%w %s", err, errs.String())
	}
	var s said
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "[Requesting program interpreter: "); ok {
			s.add("INTERP", strings.TrimSuffix(name, "]"))
			continue
		}
		_, tag, ok := strings.Cut(line, " (")
		tag, value, ok2 := strings.Cut(tag, ")")
		_, value, ok3 := strings.Cut(value, ": [")
		if strings.HasPrefix(line, "0x") && ok && ok2 && ok3 {
			s.add(tag, strings.TrimSuffix(value, "]"))
		}
	}
	return s.sorted(), nil
}

// saidByGo is what debug/elf says, which goes by sections.
func saidByGo(r io.ReaderAt) (string, error) {
	g, err := elf.NewFile(r)
	if err != nil {
		return "", err
	}
	if g.SectionByType(elf.SHT_DYNAMIC) == nil {
		return "", errors.New("no section to go by")
	}
	var s said
	for _, tag := range []elf.DynTag{elf.DT_NEEDED, elf.DT_SONAME, elf.DT_RPATH, elf.DT_RUNPATH} {
		names, err := g.DynString(tag)
		if err != nil {
			return "", err
		}
		for _, n := range names {
			s.add(strings.TrimPrefix(tag.String(), "DT_"), n)
		}
	}
	return s.sorted(), nil
}

// only keeps what debug/elf knows of.
func only(s string) string {
	var out said
	for line := range strings.Lines(s) {
		switch what, _, _ := strings.Cut(line, " "); what {
		case "NEEDED", "SONAME", "RPATH", "RUNPATH":
			out = append(out, strings.TrimSuffix(line, "\n"))
		}
	}
	return out.sorted()
}

// compare tells where the others disagree with File on a file that they can
// read. byGo and byReadelf tell whether they could.
func compare(f *File, path string) (differs string, byGo, byReadelf bool) {
	here := saidHere(f)
	file, err := os.Open(path)
	if err != nil {
		return err.Error(), false, false
	}
	defer file.Close()
	if theirs, err := saidByGo(file); err == nil {
		if byGo = true; only(here) != theirs {
			return fmt.Sprintf("File:\n%s\ndebug/elf:\n%s", only(here), theirs), true, false
		}
	}
	if theirs, err := saidByReadelf(path); err == nil {
		if byReadelf = true; here != theirs {
			return fmt.Sprintf("File:\n%s\nreadelf:\n%s", here, theirs), byGo, true
		}
	}
	return "", byGo, byReadelf
}

// TestReadsLikeOthers: readelf and debug/elf find the same.
func TestReadsLikeOthers(t *testing.T) {
	if _, err := exec.LookPath("readelf"); err != nil {
		t.Skip("readelf is missing (Debian: binutils)")
	}
	dir, paths := t.TempDir(), []string{}
	for name, o := range oddFiles() {
		if !o.hollow {
			paths = append(paths, filepath.Join(dir, name))
			if err := os.WriteFile(paths[len(paths)-1], o.bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, v := range variants() {
		paths = append(paths, v.make(t))
	}
	golike, readelf := 0, 0
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		differs, byGo, byReadelf := compare(mustParse(t, b), path)
		if differs != "" {
			t.Errorf("%s: %s", filepath.Base(path), differs)
		}
		golike, readelf = golike+b2i(byGo), readelf+b2i(byReadelf)
		if !byReadelf {
			_, err := saidByReadelf(path)
			t.Logf("%s: readelf: %v", filepath.Base(path), err)
		}
	}
	t.Logf("%d files, debug/elf read %d, readelf %d", len(paths), golike, readelf)
	if 2*golike < len(paths) || 2*readelf < len(paths) {
		t.Error("too few to tell")
	}
}
