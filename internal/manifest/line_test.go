package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

// byHand reports whether a line is read without encoding/json.
func byHand(b []byte) bool {
	l := line{rest: bytes.TrimSuffix(b, []byte{'\r'}), text: string(b)}
	return l.file(new(File))
}

// sameAsJSON fails unless parseLine and encoding/json agree about a line.
func sameAsJSON(t *testing.T, b []byte) {
	t.Helper()
	var want File
	werr := json.Unmarshal(b, &want)
	got, err := parseLine(b)
	if (err == nil) != (werr == nil) || err == nil && !reflect.DeepEqual(*got, want) {
		t.Errorf("%q:\n%+v, %v, but encoding/json says\n%+v, %v", b, got, err, want, werr)
	}
}

// Every line of a real listing is read by hand, as encoding/json would.
func TestLinesAreReadByHand(t *testing.T) {
	b, err := os.ReadFile("testdata/schema1/files.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	full := File{Path: "a <b> & ü", Kind: Regular, Mode: 0o4755, Size: 1 << 50, MTime: 1, SHA256: "aa", Before: "bb", Link: "l", Same: "s", Edits: []string{"x", "y]"},
		ELF: &ELF{64, "x86_64", "dyn", true, "so", []string{"n", "m"}, "r", "u", "/lib/ld.so"}}
	var more bytes.Buffer
	if err := WriteFiles(&more, []File{full}); err != nil {
		t.Fatal(err)
	}
	n := 0
	for l := range strings.Lines(string(b) + more.String()) {
		if n++; !byHand([]byte(strings.TrimSuffix(l, "\n"))) {
			t.Errorf("not read by hand: %s", l)
		}
		sameAsJSON(t, []byte(strings.TrimSuffix(l, "\n")))
		sameAsJSON(t, []byte(strings.TrimSuffix(l, "\n")+"\r"))
	}
	if n < 50 {
		t.Errorf("only %d lines", n)
	}
}

// A field that is added to File is read by hand too, or this fails.
func TestEveryFieldIsReadByHand(t *testing.T) {
	if n, m := reflect.TypeFor[File]().NumField(), reflect.TypeFor[ELF]().NumField(); n != 11 || m != 9 {
		t.Errorf("File has %d fields and ELF %d: parseLine knows 11 and 9", n, m)
	}
}

func TestOtherLinesAreEncodingJSONs(t *testing.T) {
	for _, in := range []string{
		``, `{`, `{}`, `null`, `[]`, `{"path":"a"}`, `{"kind":"dir","path":"a"}`, `{"path":"a","kind":"dir"} `, ` {"path":"a","kind":"dir"}`,
		`{"path":"a","kind":"dir"}x`, `{"path":"a\u0041","kind":"dir"}`, `{"path":"a\\","kind":"dir"}`, "{\"path\":\"a\xff\",\"kind\":\"dir\"}", "{\"path\":\"a\tb\",\"kind\":\"dir\"}",
		`{"path":"a","kind":"fifo"}`, `{"path":"a","kind":"dir","mode":"755"}`, `{"path":"a","kind":"dir","mode":"0855"}`, `{"path":"a","kind":"dir","mode":"17777"}`,
		`{"path":"a","kind":"file","size":01}`, `{"path":"a","kind":"file","size":0}`, `{"path":"a","kind":"file","size":-1}`, `{"path":"a","kind":"file","size":1e3}`,
		`{"path":"a","kind":"file","size":999999999999999999999}`, `{"path":"a","kind":"file","size":9223372036854775807}`, `{"path":"a","kind":"file","edits":[]}`, `{"path":"a","kind":"file","edits":["x",]}`,
		`{"path":"a","kind":"file","edits":null}`, `{"path":"a","kind":"file","elf":null}`, `{"path":"a","kind":"file","elf":{}}`, `{"path":"a","kind":"file","elf":{"class":64,"machine":"m","type":"t","dynamic":false}}`,
		`{"path":"a","kind":"file","new":1}`, `{"path":"a","kind":"file","size":1,"size":2}`, `{"path":"a","kind":"file","Size":1}`,
	} {
		sameAsJSON(t, []byte(in))
	}
}

func FuzzParseLine(f *testing.F) {
	b, err := os.ReadFile("testdata/schema1/files.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for l := range strings.Lines(string(b)) {
		f.Add([]byte(l))
	}
	f.Fuzz(func(t *testing.T, b []byte) { sameAsJSON(t, b) })
}

// listing is a files.jsonl of n lines, shaped like a real one's.
func listing(b *testing.B, n int) []byte {
	raw, err := os.ReadFile("testdata/schema1/files.jsonl")
	if err != nil {
		b.Fatal(err)
	}
	all, err := ReadFiles(bytes.NewReader(raw))
	if err != nil {
		b.Fatal(err)
	}
	files := make([]File, n)
	for i := range files {
		files[i] = all[i%len(all)]
		files[i].Path = fmt.Sprintf("opt/rocm/lib/of/%d/%s", i, files[i].Path)
	}
	var out bytes.Buffer
	if err := WriteFiles(&out, files); err != nil {
		b.Fatal(err)
	}
	return out.Bytes()
}

func BenchmarkReadFiles(b *testing.B) {
	text := listing(b, 30_000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ReadFiles(bytes.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReadFilesJSON is what ReadFiles would take with encoding/json alone.
func BenchmarkReadFilesJSON(b *testing.B) {
	text := listing(b, 30_000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		for l := range bytes.Lines(text) {
			var f File
			if err := json.Unmarshal(l, &f); err != nil {
				b.Fatal(err)
			}
		}
	}
}
