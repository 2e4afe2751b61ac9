package actions

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// read parses a file of outputs as the runner does (FileCommandManager).
func read(t testing.TB, text string) map[string]string {
	t.Helper()
	out := map[string]string{}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		name, word, ok := strings.Cut(lines[i], "<<")
		if !ok {
			t.Fatalf("line %d is no output: %q", i+1, lines[i])
		}
		var value []string
		for i++; i < len(lines) && lines[i] != word; i++ {
			value = append(value, lines[i])
		}
		if i == len(lines) {
			t.Fatalf("%s has no end", name)
		}
		out[name] = strings.Join(value, "\n")
	}
	return out
}

func written(t testing.TB, outcomes []Outcome) (map[string]string, string) {
	t.Helper()
	dir := t.TempDir()
	f := Files{Output: filepath.Join(dir, "output"), Summary: filepath.Join(dir, "summary")}
	if err := os.WriteFile(f.Output, []byte("of=before\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Write(f, outcomes, nil); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(f.Output)
	if err != nil {
		t.Fatal(err)
	}
	rest, ok := strings.CutPrefix(string(b), "of=before\n")
	if !ok {
		t.Error("what another step has written is gone")
	}
	s, err := os.ReadFile(f.Summary)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return read(t, rest), string(s)
}

func TestOutputs(t *testing.T) {
	waits := Outcome{Repo: "a", Operation: None, Message: "waits", Summary: "### a\n"}
	made := Outcome{Repo: "b", Operation: Created, Number: 12, URL: "https://github.com/o/r/pull/12", Branch: "rocm-nightly/b", HeadSHA: strings.Repeat("1", 40),
		Version: "10.2.0a20260930", Changed: true, Verified: true, Message: "opened", Summary: "### b\n"}
	got, summary := written(t, []Outcome{waits, made})
	for name, want := range map[string]string{"operation": "created", "number": "12", "url": made.URL, "branch": made.Branch, "head-sha": made.HeadSHA,
		"version": made.Version, "changed": "true", "verified": "true", "message": "opened"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	var all []Outcome
	if err := json.Unmarshal([]byte(got["results"]), &all); err != nil || len(all) != 2 || all[1].Number != 12 {
		t.Errorf("results %s: %v", got["results"], err)
	}
	if summary != "### a\n\n### b\n\n" {
		t.Errorf("summary %q", summary)
	}
	if got, _ := written(t, nil); got["operation"] != None || got["number"] != "" || got["changed"] != "false" || got["results"] != "[]" {
		t.Errorf("of nothing: %v", got)
	}
	if err := Write(FromEnv(func(string) string { return "" }), []Outcome{made}, nil); err != nil {
		t.Errorf("outside of a runner: %v", err)
	}
}

// No value sets an output other than its own.
func TestAnyValue(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := rapid.SampledFrom([]string{"", "x\nurl=https://evil.example\n", "x\nend_\nurl<<e\nhttps://evil.example\ne\n", "\n", "\r\n<<\n"}).Draw(r, "value") + rapid.String().Draw(r, "more")
		text, err := outputs([]Outcome{{Operation: Created, URL: "u", Message: s, Version: s, Branch: s}}, bytes.NewReader(bytes.Repeat([]byte("0123456789abcdef"), 20)))
		if err != nil {
			r.Fatal(err)
		}
		got := read(t, text)
		if len(got) != 10 || got["url"] != "u" || got["message"] != s || got["version"] != s || got["branch"] != s {
			r.Fatalf("%q gives %q", s, got)
		}
	})
}

func TestDelimiter(t *testing.T) {
	if _, err := delimiter("end_"+strings.Repeat("30", 16), bytes.NewReader(bytes.Repeat([]byte("0"), 1000))); err == nil {
		t.Error("a value holds the word that ends it")
	}
	if err := Write(Files{Output: filepath.Join(t.TempDir(), "o")}, nil, iotest.ErrReader(errors.New("no entropy"))); err == nil {
		t.Error("no entropy is no error")
	}
	if err := Write(Files{Output: filepath.Join(t.TempDir(), "no", "dir")}, nil, nil); err == nil {
		t.Error("no directory is no error")
	}
}

func TestSummaryIsBounded(t *testing.T) {
	big := Outcome{Summary: strings.Repeat("x", 500<<10)}
	if s := summary([]Outcome{big, big, big}); len(s) > 1<<20 || !strings.Contains(s, "… and 2 more") {
		t.Errorf("%d bytes", len(s))
	}
}

func TestOperation(t *testing.T) {
	for action, want := range map[string]string{"opened": Created, "updated": Updated, "pushed": Updated, "closed": Closed, "merged": Closed, "waits": None, "ignored": None, "none": None, "": None} {
		if got := Operation(action); got != want {
			t.Errorf("%q is %q, want %q", action, got, want)
		}
	}
}
