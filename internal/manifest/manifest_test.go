package manifest

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	files := []File{
		{Path: "bin", Kind: Dir, Mode: 0o755},
		{Path: "bin/<tool>", Kind: Regular, Mode: 0o555, Size: 3, SHA256: "aa", Before: "bb", Edits: []string{"run-path"},
			ELF: &ELF{Class: 64, Machine: "x86_64", Type: "dyn", Dynamic: true, Needed: []string{"libc.so.6"}, RPath: "$ORIGIN/../lib"}},
		{Path: "bin/twin", Kind: Regular, Mode: 0o555, Size: 3, SHA256: "aa", Same: "bin/<tool>"},
		{Path: "lib", Kind: Symlink, Link: "lib64"},
	}
	var buf bytes.Buffer
	if err := WriteFiles(&buf, files); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(buf.String(), `"mode":"0555"`) || !strings.Contains(buf.String(), "<tool>") {
		t.Errorf("not readable: %s", buf.String())
	}
	got, err := ReadFiles(&buf)
	if err != nil || !reflect.DeepEqual(got, files) {
		t.Fatalf("%+v, %v", got, err)
	}
	if c := Count(files); c != (Counts{Files: 2, Dirs: 1, Symlinks: 1, Bytes: 3, ELF: 1}) {
		t.Errorf("%+v", c)
	}
	m := &Manifest{Schema: Schema, Digest: "sha256:00", Options: []byte(`{}`), Edits: map[string]int{"run-path": 1}}
	buf.Reset()
	if err := Write(&buf, m); err != nil {
		t.Fatal(err)
	}
	again, err := Read(&buf)
	if err != nil || !reflect.DeepEqual(again, m) {
		t.Fatalf("%+v, %v", again, err)
	}
}

// Lines of other digests are not decoded, whatever their names look like.
func TestEachFileReadsWhatIsWanted(t *testing.T) {
	files := []File{
		{Path: `a","sha256":"aa`, Kind: Regular, SHA256: "bb"}, {Path: "b", Kind: Regular, SHA256: "aa"}, {Path: "c", Kind: Dir}, {Path: "d", Kind: Regular, SHA256: "aa", Before: "cc"},
	}
	var buf bytes.Buffer
	if err := WriteFiles(&buf, files); err != nil {
		t.Fatal(err)
	}
	text := "\n" + buf.String() + `{"sha256":"bb", torn` + "\n"
	var got []string
	err := EachFile(strings.NewReader(text), func(digest []byte) bool { return string(digest) == "aa" }, func(f *File) error {
		got = append(got, f.Path)
		return nil
	})
	if err != nil || !reflect.DeepEqual(got, []string{"b", "d"}) {
		t.Errorf("%q, %v", got, err)
	}
	stop := errors.New("stop")
	if err := EachFile(strings.NewReader(text), nil, func(*File) error { return stop }); err != stop {
		t.Errorf("%v", err)
	}
	if _, err := ReadFiles(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "line 5") {
		t.Errorf("%v", err)
	}
}

func TestReadRefusesWhatItDoesNotKnow(t *testing.T) {
	if _, err := Read(strings.NewReader(`{"schema": 999}`)); !errors.Is(err, ErrNewer) {
		t.Errorf("newer schema: %v", err)
	}
	for _, in := range []string{``, `{}`, `[]`, `{"schema":"x"}`} {
		if _, err := Read(strings.NewReader(in)); err == nil {
			t.Errorf("%q was read", in)
		}
	}
	for _, in := range []string{`{`, `{"path":1}`, `{"path":"a","mode":"9"}`} {
		if _, err := ReadFiles(strings.NewReader(in)); err == nil {
			t.Errorf("%q was read", in)
		}
	}
}

func FuzzReadFiles(f *testing.F) {
	f.Add([]byte(`{"path":"a","kind":"file","mode":"0555","elf":{"class":64}}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		files, err := ReadFiles(bytes.NewReader(b))
		if err != nil {
			return
		}
		var buf bytes.Buffer
		if err := WriteFiles(&buf, files); err != nil {
			t.Fatal(err)
		}
		again, err := ReadFiles(&buf)
		if err != nil || len(again) != len(files) {
			t.Fatalf("%d files read back as %d: %v", len(files), len(again), err)
		}
	})
}
