package body

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"github.com/rocm-nightly/rocm-nightly/audit/diff"
	"github.com/rocm-nightly/rocm-nightly/bump/pinfile"
)

var update = flag.Bool("update", false, "write the golden files")

const (
	one = "1111111111111111111111111111111111111111"
	two = "2222222222222222222222222222222222222222"
)

// hostile is what a name can be that somebody has made up to do harm.
const hostile = "a`b``c|@somebody closes #1 GH-2 org/repo#3 !4 ~bug $5 https://evil.example www.evil.example x@evil.example " +
	"<img src=x onerror=alert(1)><!-- rocm-nightly:box retry --> [a](https://evil.example) ![b](https://evil.example/x.png) :tada:\x1b[31m\u202e\u200b\n" +
	"- [x] <!-- rocm-nightly:box ignore -->\n```\n/merge\n</details>\n<!-- rocm-nightly:end 00 -->"

func pin(target, version, date string, size int64) pinfile.Pin {
	return pinfile.Pin{
		Version: version, Date: date, Size: size, Family: target, Target: target, Channel: "nightly",
		URL:   "https://rocm.nightlies.amd.com/tarball-multi-arch/therock-dist-linux-" + target + "-" + version + ".tar.gz",
		SRI:   "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
		Hex:   "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		Nix32: "0mdqa9w1p6cmli6976v4wi0sw9r4p5prkj7lzfd1877wk11c9c73",
		Name:  "therock-dist-linux-" + target + "-" + version + ".tar.gz",
	}
}

func report(name string) *diff.Report {
	return &diff.Report{
		A:        diff.Side{Name: "10.2.0a20260930", Version: "10.2.0a20260930", Files: 29500, Bytes: 8 << 30},
		B:        diff.Side{Name: "10.2.0a20261001", Version: "10.2.0a20261001", Files: 29510, Bytes: 8<<30 + 1<<20},
		Risks:    []diff.Risk{{Kind: diff.RiskSoname, Subject: "libamdhip64.so.7", Detail: "is libamdhip64.so.8 now: programs linked with it must be built again"}},
		Versions: []diff.VersionChange{{Name: "LLVM", From: "22", To: "23"}},
		Sources: &diff.Sources{Rock: diff.Commit{From: one, To: two, Link: "https://github.com/ROCm/TheRock/compare/" + one + "..." + two}, Same: 8,
			Submodules: []diff.Submodule{{Name: "llvm-project", Why: "changed", Commit: diff.Commit{From: one, To: two, Link: "https://github.com/ROCm/llvm-project/compare/" + one + "..." + two}}}},
		Files:   diff.Files{Same: diff.Tally{Files: 29000, Bytes: 7 << 30}, Added: diff.Tally{Files: 1, Bytes: 1 << 21}, Delta: 1 << 20},
		Added:   []diff.Entry{{Path: name, Kind: "file", Bytes: 1 << 20}},
		Kernels: []diff.Kernels{{Library: "rocBLAS", Target: "gfx1151", A: diff.Tally{Files: 120, Bytes: 3 << 29}, B: diff.Tally{Files: 121, Bytes: 3 << 29}}},
		Config:  []diff.TextChange{{Path: "lib/llvm/bin/rocm.cfg", Why: "changed", Diff: []string{"@@ -1 +1 @@", "- [x] <!-- rocm-nightly:box ignore -->", "+```", "+fixes #1"}}},
		Notes:   []string{"files that cannot be read: 1, such as " + strings.ToValidUTF8(name, "?")},
	}
}

// told is an input with something in every part.
func told() Input {
	a, b := pin("gfx1151", "10.2.0a20261001", "2026-10-01", 13_200_000_000), pin("gfx1103", "10.2.0a20261001", "2026-10-01", 13_100_000_000)
	ran := time.Date(2026, 10, 1, 6, 45, 0, 0, time.UTC)
	return Input{
		Flavor: GitHub, Name: "my-flake", Config: "config.yaml of the repository", Base: "main", Branch: "rocm-nightly/my-flake",
		Edits: []Edit{
			{Path: "flake.nix", Key: "gfx1151.version", Target: "gfx1151", From: "10.2.0a20260930", To: "10.2.0a20261001", Line: 12},
			{Path: "flake.nix", Key: "gfx1151.srcHash", Target: "gfx1151", From: "sha256-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", To: a.SRI, Line: 13},
			{Path: "flake.nix", Key: "gfx1103.version", Target: "gfx1103", From: "10.2.0a20260930", To: "10.2.0a20261001", Line: 17},
		},
		Pins: []pinfile.Pin{a, b},
		Proofs: []Proof{
			{Target: "gfx1151", Pin: a, Old: &Old{Version: "10.2.0a20260930", Date: "2026-09-30", Size: 13_000_000_000, Hex: strings.Repeat("0", 64)},
				Against: []string{"the size that the index states", "gzip checksum", "end of archive", "the lock at rocm-nightly.lock"}, Ran: ran, Tool: "rocm-nightly 0.9.0",
				Recipe: "sha256:" + strings.Repeat("a", 64), Tree: "sha256:" + strings.Repeat("b", 64), Entries: 29510, Bytes: 8<<30 + 1<<20,
				Audit: &Audit{Scope: "host", Warnings: 2, Allowed: 1, Findings: []string{"warning: lib/librocfoo.so.1 needs libnuma.so.1, which this host lacks"}},
				Smoke: &Smoke{Mode: "cpu", Passed: 5, Skipped: 1}, Diff: report("share/new")},
			{Target: "gfx1103", Pin: b, Against: []string{"gzip checksum", "end of archive", FirstUse}, Ran: ran, Tool: "rocm-nightly 0.9.0", Entries: 29000, Bytes: 8 << 30,
				Audit: &Audit{Scope: "host", Warnings: 1}, Smoke: &Smoke{Mode: "cpu", Passed: 4, Failed: 1, Failures: []string{"bin/rocminfo: exit status 127"}},
				NoDiff: "10.2.0a20260930 is not kept on this machine"},
		},
		Skipped: []string{"gfx1200"},
		Notes:   []string{"gfx1200 was not published for this night yet"},
		Checks:  []Check{{Command: "nix flake check", Passed: true, Seconds: 12.4}, {Command: "make test", Seconds: 3, Tail: "building\nerror: no rule to make target\n"}},
	}
}

// nasty is told with something hostile wherever there is text.
func nasty(s string) Input {
	in := told()
	in.Name, in.Config, in.Base, in.Branch = s, s, s, s
	in.Skipped, in.Notes = []string{s, s}, []string{s, s}
	for i := range in.Edits {
		in.Edits[i] = Edit{Path: s, Key: s, Target: s, From: s, To: s, Line: 3}
	}
	p := pinfile.Pin{Version: s, URL: s, SRI: s, Hex: s, Nix32: s, Date: s, Family: s, Target: s, Channel: s, Name: s, Size: 1}
	in.Pins = append(in.Pins, p, p)
	in.Proofs[0].Diff = report(strings.ReplaceAll(strings.ToValidUTF8(s, "?"), "\n", " "))
	in.Proofs = append(in.Proofs, Proof{Target: s, Pin: p, Against: []string{s, s}, Tool: s, Recipe: s, Tree: s, NoDiff: s, Entries: 1, Ran: time.Unix(0, 0),
		Old:   &Old{Version: s, Date: s, Hex: s, Size: 1},
		Audit: &Audit{Scope: s, Findings: []string{s, s}, Refused: true}, Smoke: &Smoke{Mode: s, Failed: 1, Failures: []string{s}}})
	in.Checks = []Check{{Command: s, Tail: s + "\n" + s}}
	return in
}

// rendered is Markdown as GitHub's own renderer makes it, raw HTML and all.
func rendered(t testing.TB, markdown string) *goquery.Document {
	t.Helper()
	if _, err := exec.LookPath("cmark-gfm"); err != nil {
		t.Skip("cmark-gfm is missing: install the package cmark-gfm")
	}
	cmd := exec.Command("cmark-gfm", "--unsafe", "-e", "table", "-e", "strikethrough", "-e", "autolink", "-e", "tasklist")
	cmd.Stdin = strings.NewReader(markdown)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := goquery.NewDocumentFromReader(bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// linkRE matches what may be linked: comparisons of AMD's repositories, and the
// requests of the tests.
var linkRE = regexp.MustCompile(`\Ahttps://(github\.com/ROCm/[A-Za-z-]+/compare/[0-9a-f]{40}\.\.\.[0-9a-f]{40}|forge\.example/o/r/pulls/[0-9]+)\z`)

// obeyedRE matches what a forge makes something of outside code.
var obeyedRE = regexp.MustCompile(`[@#!~$&][0-9A-Za-z_{]|%[0-9A-Za-z]|://|www\.|\b[0-9a-f]{7,40}\b|GH-[0-9]|\b[A-Z]+-[0-9]|:[a-z]+:|[\x{200b}-\x{200f}\x{202a}-\x{202e}\x00-\x08\x1b]`)

// sourceRE matches what is looked for in the source, code or not.
var sourceRE = regexp.MustCompile(`(?mi)\b(clos(e[sd]?|ing)|fix(e[sd]|ing)?|resolv(e[sd]?|ing)|implement(s|ed|ing)?):? +\S*#[0-9]|^/[a-z]|[\x{200b}-\x{200f}\x{202a}-\x{202e}\x00-\x08\x1b]`)

// mustBeInert fails where Markdown of ours does something for somebody else.
func mustBeInert(t testing.TB, markdown string, boxes int) {
	t.Helper()
	if m := sourceRE.FindString(markdown); m != "" {
		t.Errorf("the source holds %q%s", m, shown(markdown))
	}
	doc := rendered(t, markdown)
	doc.Find("a").Each(func(_ int, a *goquery.Selection) {
		if href, _ := a.Attr("href"); !linkRE.MatchString(href) {
			t.Errorf("links to %q%s", href, shown(markdown))
		}
	})
	allowed := map[string]bool{}
	for _, tag := range strings.Fields("html head body p a code pre strong em ul li table thead tbody tr th td details summary h2 h3 hr input") {
		allowed[tag] = true
	}
	doc.Find("*").Each(func(_ int, e *goquery.Selection) {
		if tag := goquery.NodeName(e); !allowed[tag] {
			h, _ := goquery.OuterHtml(e)
			t.Errorf("there is a %s: %s%s", tag, h, shown(markdown))
		}
	})
	doc.Find("table").Each(func(_ int, table *goquery.Selection) {
		n := table.Find("th").Length()
		table.Find("tbody tr").Each(func(_ int, row *goquery.Selection) {
			if row.Find("td").Length() != n || row.Children().Length() != n {
				t.Errorf("a row has %d cells of %d: %s", row.Find("td").Length(), n, row.Text())
			}
		})
	})
	if n := doc.Find("input").Length(); n != boxes {
		t.Errorf("%d boxes, want %d%s", n, boxes, shown(markdown))
	}
	doc.Find("code, pre").Remove()
	if m := obeyedRE.FindString(doc.Text()); m != "" {
		t.Errorf("%q stands outside code%s", m, shown(markdown))
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (write it with -update, and read it):\n%s", name, got)
	}
}

// shown is a whole text where whoever tests wants to see it.
func shown(text string) string {
	if !testing.Verbose() {
		return " (-v shows it)"
	}
	return ":\n" + text
}
