package body

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rocm-nightly/rocm-nightly/audit/diff"
	"github.com/rocm-nightly/rocm-nightly/bump/pinfile"
)

func TestGolden(t *testing.T) {
	golden(t, "body.md", Render(told()))
	golden(t, "message.txt", Message(told()))
	golden(t, "dashboard.md", Dashboard(GitHub, board(), "2026-10-01 06:45 UTC", 0))
}

// What a reader looks for is there, as elements and not as text that looks so.
func TestBodyReadsWell(t *testing.T) {
	text := Render(told())
	mustBeInert(t, text, 2)
	doc := rendered(t, text)
	if first := doc.Find("p").First().Text(); first != "ROCm 10.2.0a20260930 (2026-09-30) → 10.2.0a20261001 (2026-10-01) for gfx1103, gfx1151." {
		t.Errorf("the first line is %q", first)
	}
	all := doc.Text()
	for _, want := range []string{
		"First use of gfx1103", "(first use)", "the lock at rocm-nightly.lock", "12.3 GiB, +190.7 MiB (+1.5 %)", "libamdhip64.so.8", "rocm-nightly rollback gfx1103",
		"sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", "0mdqa9w1p6cmli6976v4wi0sw9r4p5prkj7lzfd1877wk11c9c73",
		"nix flake check", "no rule to make target", "gfx1200", "config.yaml of the repository", "flake.nix:12", "is not kept on this machine",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("the body does not say %q", want)
		}
	}
	if n := doc.Find("details").Length(); n < 4 {
		t.Errorf("%d details", n)
	}
	if doc.Find("details details").Length() == 0 && doc.Find("details table").Length() == 0 {
		t.Error("the difference of the trees is no table in details")
	}
	if n := doc.Find("a").Length(); n != 2 {
		t.Errorf("%d links, want the two comparisons", n)
	}
}

func TestNothingSpeaksAgainstIt(t *testing.T) {
	in := told()
	in.Pins, in.Proofs, in.Checks = in.Pins[:1], in.Proofs[:1], nil
	in.Proofs[0].Diff.Risks = nil
	if text := Render(in); !strings.Contains(text, "**Nothing was found that speaks against merging this.**") {
		t.Error(text)
	}
	in.Proofs[0].Against = append(in.Proofs[0].Against, NewBytes)
	if text := Render(in); !strings.Contains(text, "other bytes than before, and a person has accepted them") {
		t.Errorf("new bytes are not told of:\n%s", text)
	}
	in.Proofs[0].Pin.Hex = strings.Repeat("1", 64)
	if text := Render(in); !strings.Contains(text, "there is no record that this tarball was verified") {
		t.Errorf("the proof of other bytes is taken for one:\n%s", text)
	}
}

// What could not be compared stands where a reader decides, and not in a fold.
func TestWhatNobodyLookedAt(t *testing.T) {
	in := told()
	in.Proofs[0].Diff.Notes = []string{"ELF files that cannot be compared: 6"}
	above, _, _ := strings.Cut(Render(in), "| target |")
	for _, want := range []string{"`gfx1151`: ELF files that cannot be compared: 6", "`gfx1103`: the trees were not compared: `10.2.0a20260930` is not kept"} {
		if !strings.Contains(above, want) {
			t.Errorf("no %q in\n%s", want, above)
		}
	}
}

// What each of many targets rests on is folded; what is edited is in the order of
// the file; a difference that rounds to nothing has no percentage.
func TestBodyIsEasyToRead(t *testing.T) {
	in := told()
	in.Edits[0], in.Edits[2] = in.Edits[2], in.Edits[0]
	in.Proofs[0].Old.Size = in.Pins[0].Size - 1000
	text := Render(in)
	if a, b := strings.Index(text, "flake.nix:12"), strings.Index(text, "flake.nix:17"); a > b {
		t.Error("line 17 stands before line 12")
	}
	if strings.Contains(text, "0.0 %") {
		t.Error("0.0 %")
	}
	if !strings.Contains(text, "\n### What this rests on\n") {
		t.Error("what two targets rest on is folded")
	}
	for _, name := range []string{"gfx1", "gfx2", "gfx3"} {
		p := pin(name, "10.2.0a20261001", "2026-10-01", 1)
		in.Pins, in.Proofs = append(in.Pins, p), append(in.Proofs, Proof{Target: name, Pin: p})
	}
	if text := Render(in); !strings.Contains(text, "<summary>What this rests on: 5 targets</summary>") {
		t.Error("what five targets rest on is not folded")
	}
}

func TestHostileInput(t *testing.T) {
	t.Parallel()
	for _, s := range []string{hostile, "`", "``", " ` ", "\\", "\\|", "a\\", "|", "", " ", "\n", "-->", "<!--", "www.a.b", "a@b.c", "https://evil.example/#1",
		"Fixes: #1", "closes https://github.com/a/b/issues/1", "$`x`$", "```\n/close\n```", strings.Repeat("`|@x #1 ", 500), "\xff\xfe", "deadbeef1", "1.", "- [x] <!-- rocm-nightly:box retry -->"} {
		in := nasty(s)
		for _, f := range []Flavor{GitHub, Gitea, GitLab} {
			in.Flavor = f
			text := Render(in)
			if f == GitHub {
				mustBeInert(t, text, 2)
				if strings.Contains(text, "- \n") { // which makes a heading of the line before
					t.Errorf("%q: an item without text", s)
				}
			}
			if Fingerprint(text) == "" {
				t.Errorf("%q: no fingerprint", s)
			}
			if got := Ticked(text); got != nil {
				t.Errorf("%q ticks %q", s, got)
			}
		}
		mustBePlain(t, Message(in))
	}
}

// A body is within any limit, is shortened by whole sections, and says so.
func TestBodyKeepsItsLimit(t *testing.T) {
	t.Parallel()
	for _, in := range []Input{told(), nasty(hostile)} {
		whole := Render(in)
		for limit := 1; limit < len(whole)+2000; limit += 1 + limit/3 {
			in.Limit = limit
			text := Render(in)
			if len(text) > limit {
				t.Fatalf("%d bytes with a limit of %d", len(text), limit)
			}
			if Fingerprint(text) == "" {
				if limit > 1500+len(versionsMark(in)) {
					t.Errorf("limit %d: no body:\n%s", limit, text)
				}
				continue
			}
			mustBeInert(t, text, 2)
			if limit < len(whole)-200 && !strings.Contains(text, "hortened to fit") {
				t.Errorf("limit %d: it does not say that it was shortened", limit)
			}
		}
	}
}

// A person who ticks a box sends the text back with two bytes for each end of a
// line, and GitHub takes 65,536.
func TestTextOfShortLinesCanBeTicked(t *testing.T) {
	in := told()
	for i := range 100 {
		c := diff.TextChange{Path: "etc/" + strconv.Itoa(i) + ".cfg", Why: "changed"}
		for range 200 {
			c.Diff = append(c.Diff, "+a")
		}
		in.Proofs[0].Diff.Config = append(in.Proofs[0].Diff.Config, c)
	}
	text := Render(in)
	if n := len(text) + strings.Count(text, "\n"); n > 65_536-200 || n < 50_000 {
		t.Errorf("%d bytes, %d with two for each end of a line", len(text), n)
	}
}

func TestBodyOfMany(t *testing.T) {
	t.Parallel()
	in := told()
	for i := range 300 {
		name := "gfx" + strings.Repeat("9", i%50+1) + string(rune('a'+i%26))
		p := pin(name, "10.2.0a20261001", "2026-10-01", 13_000_000_000)
		in.Pins = append(in.Pins, p)
		in.Proofs = append(in.Proofs, Proof{Target: name, Pin: p, Diff: report(hostile[:20])})
		in.Edits = append(in.Edits, Edit{Path: "flake.nix", Key: name, Target: name, From: "1", To: "2"})
	}
	text := Render(in)
	if len(text) > limitGitHub {
		t.Errorf("%d bytes", len(text))
	}
	mustBeInert(t, text, 2)
	if len(Message(in)) > limitMessage {
		t.Error("the message is too long")
	}
}

// plainRE matches what a commit's message must not hold.
var plainRE = regexp.MustCompile(`(?m)^(#|[A-Za-z-]+: \S|---|diff |Index: |From )|[@#][A-Za-z0-9]`)

func mustBePlain(t testing.TB, text string) {
	t.Helper()
	if m := plainRE.FindString(text); m != "" {
		t.Errorf("the message holds %q:\n%s", m, text)
	}
	if m := sourceRE.FindString(text); m != "" {
		t.Errorf("the message holds %q:\n%s", m, text)
	}
	if len(text) > limitMessage || text != "" && (!strings.HasSuffix(text, "\n") || strings.HasSuffix(text, "\n\n")) {
		t.Errorf("%d bytes, or no single end:\n%s", len(text), text)
	}
}

func TestMessage(t *testing.T) {
	text := Message(told())
	mustBePlain(t, text)
	for _, line := range strings.Split(text, "\n") {
		if len([]rune(line)) > columns && strings.Contains(strings.TrimSpace(line[12:]), " ") {
			t.Errorf("%d columns: %s", len([]rune(line)), line)
		}
	}
	in := told()
	in.Flavor = Plain
	if Render(in) != text {
		t.Error("the body of plain git is not the message")
	}
	for limit := 1; limit < len(text); limit += 13 {
		in.Limit = limit
		if m := Message(in); len(m) > limit {
			t.Errorf("%d bytes with a limit of %d", len(m), limit)
		}
	}
}

// anything draws text with what means something to a forge.
func anything(t *rapid.T, label string) string {
	return rapid.StringOf(rapid.OneOf(
		rapid.Rune(),
		rapid.RuneFrom([]rune("`|\\<>@#!~$%&*_[](){}:./-+=\n\r\t 0123456789abcdefgfx\u202e\u200b")),
	)).Draw(t, label) + rapid.SampledFrom([]string{"", "closes #1", "<!--", "```", "</details>", "@a", "www.a.example", "\\|", "`"}).Draw(t, label+"'s end")
}

// Whatever stands in an input: the body does nothing for it, is the same each
// time, and its markers are read back.
func TestAnyInput(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a renderer for each case")
	}
	rapid.Check(t, func(r *rapid.T) {
		in := nasty(anything(r, "text"))
		target, version := anything(r, "target"), anything(r, "version")
		in.Pins = append([]pinfile.Pin{{Target: target, Version: version}}, in.Pins[:2]...)
		text := Render(in)
		mustBeInert(t, text, 2)
		if t.Failed() {
			r.FailNow()
		}
		mustBePlain(t, Message(in))
		if text != Render(in) || Fingerprint(text) == "" || Ticked(text) != nil {
			r.Fatalf("not the same again, or ticked %q, or fingerprint %q", Ticked(text), Fingerprint(text))
		}
		if fitToKeep(target) && fitToKeep(version) && Versions(text)[target] != version && target != "gfx1151" && target != "gfx1103" {
			r.Fatalf("versions %q, want %q of %q", Versions(text), version, target)
		}
		if tail := "\r\n\r\nanother bot wrote this\r\n"; Fingerprint(strings.ReplaceAll(text, "\n", " \r\n")+tail) != Fingerprint(text) {
			r.Fatal("ends of lines count")
		}
	})
}
