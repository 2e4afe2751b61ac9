package diff

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// told is a report with something in every part, and names that would do harm.
func told() *Report {
	hostile := "lib/`x`|@somebody #1 <img src=x onerror=alert(1)> [a](https://evil.example)\x1b[31m\u202e\nEOF"
	r := &Report{
		Schema: Schema,
		A:      Side{Name: "10.2.0a20260930", Version: "10.2.0a20260930", Layout: "root", Listed: true, Files: 29500, Links: 900, Bytes: 8 << 30},
		B:      Side{Name: "10.2.0a20261001", Version: "10.2.0a20261001", Layout: "root", Listed: true, Files: 29510, Links: 900, Bytes: 8<<30 + 1<<20},
		Risks: []Risk{
			{RiskKernels, "gfx1151", "rocBLAS has nothing for it any more, and had 120 files, 1.5 GiB"},
			{RiskSoname, "libamdhip64.so.7", "is libamdhip64.so.8 now: programs linked with it must be built again"},
			{RiskSymbols, "lib/libfoo.so.1.2", "lost 2 symbols of 40: ns::operator||(int), bar@V1"},
			{RiskPrograms, hostile, "is gone"},
		},
		Versions: []VersionChange{{"ROCm", "10.2.0a20260930", "10.2.0a20261001", ""}, {"HIP", "7.15.1", "8.0.0", ""}, {"LLVM", "22", "23", ""}, {"new (CMake)", "", "1.0", "x"}},
		Sources: &Sources{Rock: Commit{one, two, "https://github.com/ROCm/TheRock/compare/" + one + "..." + two}, Same: 8,
			Submodules: []Submodule{
				{Name: "llvm-project", Why: "changed", Commit: Commit{one, two, "https://github.com/ROCm/llvm-project/compare/" + one + "..." + two}, PatchesFrom: 1, PatchesTo: 2, PatchesAdded: []string{"patches/a.patch"}},
				{Name: hostile, Why: "added", URL: "javascript:alert(1)", Commit: Commit{To: "](javascript:alert(1))"}},
			}, Flags: []Flag{{"KPACK_SPLIT_ARTIFACTS", "true", "false"}}},
		Files:     Files{Same: Tally{29000, 7 << 30}, Added: Tally{30, 1 << 21}, Removed: Tally{20, 1 << 20}, Changed: Tally{400, 1 << 30}, Renamed: Tally{50, 1 << 20}, Edits: Tally{5, 100}, Kind: 1, Mode: 2, Retargeted: 3, Unknown: 4, Delta: 1 << 20},
		Groups:    []Group{{"lib/rocblas", 1, 2, 3, 4, 1 << 30, 2 << 30}, {hostile, 1, 0, 0, 0, 0, 5}},
		Renamed:   []Rename{{"lib/clang/22", "lib/clang/23", 312, true, 300}, {"lib/libfoo.so.1.2", "lib/libfoo.so.1.3", 1, false, 0}},
		Added:     []Entry{{"share/new", "file", 1 << 20}, {hostile, "file", 5}},
		Removed:   []Entry{{"share/old", "file", 1 << 20}},
		Changed:   []Change{{Path: "libexec/helper", Why: "mode", Known: "0755, now 4755"}},
		Grown:     []Change{{Path: "share/big", Why: "content", From: 1 << 20, To: 3 << 20}},
		GrownMost: []Change{{Path: "share/big", Why: "content", From: 1 << 20, To: 3 << 20}},
		Libraries: []Library{
			{Path: "lib/libamdhip64.so.7.1", To: "lib/libamdhip64.so.8.0", Public: true, Soname: "libamdhip64.so.7", Now: "libamdhip64.so.8"},
			{Path: "lib/libfoo.so.1.2", Public: true, Soname: "libfoo.so.1", Versions: []string{"V1", "V2"}, Lost: 2, Weak: 7, Exports: 40, Symbols: []Symbol{{Name: "_ZN2nsooEi", Pretty: "ns::operator||(int)"}, {Name: "bar", Version: "V1"}}},
			{Path: hostile, Soname: hostile, Gone: true},
		},
		Host: Host{
			Floors:    []Floor{{"GLIBC", "GLIBC_2.28", "GLIBC_2.34", "lib/libfoo.so.1.3", 3}},
			Versions:  []NewNeed{{"libc.so.6", "GLIBC_2.34", false, "lib/libfoo.so.1.3", 3}},
			Libraries: []NewNeeded{{"libnuma.so.1", "bin/tool", 1}},
		},
		Programs: []string{"bin/tool", hostile},
		Config:   []TextChange{{Path: "lib/llvm/bin/rocm.cfg", Why: "changed", Diff: []string{"@@ -1 +1 @@", "-```", "+</details>`````` @somebody"}, Cut: 3}},
		Scripts:  Scripts{3, []Interpreter{{"/usr/bin/env python3", "/opt/python/bin/python3", 3, "bin/tool"}}},
		Wrapping: &Wrapping{1, 2, 3},
		Kernels:  []Kernels{{"rocBLAS", "gfx1151", Tally{120, 3 << 29}, Tally{}}, {"rocBLAS", "gfx1200", Tally{}, Tally{5, 100}}, {"MIOpen", "gfx1100", Tally{5, 100}, Tally{5, 300}}},
		Notes:    []string{"files that cannot be read: 1, such as " + hostile},
	}
	r.settle()
	return r
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (write it with -update, and read it):\n%s", name, got)
	}
}

func TestGolden(t *testing.T) {
	var text, markdown bytes.Buffer
	if err := told().Text(&text); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.txt", text.Bytes())
	if err := told().Markdown(&markdown, 0); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.md", markdown.Bytes())
}

var (
	dangerous = regexp.MustCompile(`@somebody|#1\b|<img|javascript:|evil\.example|\x1b|\x{202e}|[0-9a-f]{12}`)
)

// outside is Markdown without its fenced blocks, code spans and our own links.
func outside(md string) string {
	md = regexp.MustCompile("(?ms)^(`{3,})diff\n.*?\n`{3,}$").ReplaceAllString(md, "")
	md = regexp.MustCompile(`\[compare\]\(https://github\.com/[A-Za-z0-9/._-]+\)`).ReplaceAllString(md, "")
	var out strings.Builder
	for i := 0; i < len(md); {
		if md[i] != '`' {
			out.WriteByte(md[i])
			i++
			continue
		}
		n := 0
		for i+n < len(md) && md[i+n] == '`' {
			n++
		}
		end := closing(md[i+n:], n)
		if end < 0 {
			return "unclosed code span: " + md[i:min(len(md), i+80)]
		}
		i += n + end + n
	}
	return out.String()
}

// closing finds a run of exactly n backticks (CommonMark, 6.1).
func closing(s string, n int) int {
	for i := 0; i < len(s); {
		if s[i] != '`' {
			i++
			continue
		}
		k := i
		for k < len(s) && s[k] == '`' {
			k++
		}
		if k-i == n {
			return i
		}
		i = k
	}
	return -1
}

// No name does anything in a pull request, however little room there is.
func TestMarkdownIsHarmlessAndFits(t *testing.T) {
	r := told()
	for limit := 0; limit < 9000; limit += 97 {
		var b bytes.Buffer
		if err := r.Markdown(&b, limit); err != nil {
			t.Fatal(err)
		}
		if limit > 0 && b.Len() > limit {
			t.Fatalf("%d bytes, at most %d were asked for", b.Len(), limit)
		}
		out := outside(b.String())
		if bad := dangerous.FindString(out); bad != "" || strings.HasPrefix(out, "unclosed") {
			t.Fatalf("limit %d: %q in\n%s", limit, bad, out)
		}
		if strings.Count(b.String(), "<details>") != strings.Count(out, "</details>") {
			t.Fatalf("limit %d: details are not closed:\n%s", limit, b.String())
		}
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "| ") && strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") > 9 {
				t.Fatalf("a name made a cell: %q", line)
			}
		}
	}
}

// A report of tens of thousands of files is no longer than a pull request may be.
func TestMarkdownOfManyFiles(t *testing.T) {
	r := told()
	for i := range 5000 {
		p := fmt.Sprintf("lib/%s/%d", strings.Repeat("long", 200), i)
		r.Risks = append(r.Risks, Risk{RiskPrograms, p, "is gone"})
		r.Config = append(r.Config, TextChange{Path: p, Why: "changed", Diff: []string{"+" + p}})
	}
	var b bytes.Buffer
	if err := r.Markdown(&b, 0); err != nil {
		t.Fatal(err)
	}
	if b.Len() > MarkdownLimit || b.Len() < MarkdownLimit/2 || !strings.Contains(b.String(), "Shortened") {
		t.Errorf("%d bytes", b.Len())
	}
}

func TestCodeSpans(t *testing.T) {
	for in, want := range map[string]string{"a": "`a`", "a`b": "``a`b``", "`a": "`` `a ``", "``": "``` `` ```", "": "`\"\"`", "  ": "`\"\"`", "a\\": "`a\\`"} {
		if got := code(in); got != want {
			t.Errorf("%q: %q, not %q", in, got, want)
		}
	}
	for in, want := range map[string]string{
		"is gone": "is gone", "lost foo_bar of 3": "lost `foo_bar` of 3", "a|b": "`a\\|b`", `a\|b`: "`a\\\\x7cb`", "1.5 GiB": "1.5 GiB", "@x": "`@x`", "see #12": "see `#12`", "x  y": "x `\"\"` y",
		"abcdef0123 www.evil.example": "`abcdef0123 www.evil.example`", ":smile:": "`:smile:`", "GH-1": "`GH-1`", "1. x": "`1.` x",
	} {
		if got := words(in); got != want {
			t.Errorf("%q: %q, not %q", in, got, want)
		}
	}
}

// Nothing in JSON is null where there is a list, and nothing moves a terminal.
func TestJSONIsSettled(t *testing.T) {
	r := &Report{Risks: []Risk{{Subject: "\x7f\u009b\u202e\xff" + strings.Repeat("x", 5000)}}}
	r.settle()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "null") || strings.ContainsAny(string(b), "\x7f\u009b\u202e\ufffd") || len(r.Risks[0].Subject) > maxShown+20 {
		t.Errorf("%.300s", b)
	}
}

// FuzzPretty: any symbol has a name of bounded length, soon.
func FuzzPretty(f *testing.F) {
	for _, s := range []string{"_ZN2nsooEi", "_Z3fooILi1EEvv", "_RNvC6_123foo3bar", "_Z" + strings.Repeat("N", 900), "_ZN" + strings.Repeat("S_I", 300), "_Z1fI" + strings.Repeat("J", 400)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := pretty(s); len(got) > 2<<prettyPow {
			t.Fatalf("%d bytes of %q", len(got), s)
		}
	})
}
