package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Every page is as groff and mandoc, which between them are what reads manuals on
// Linux, want it.
func TestManualIsClean(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	a := &app{stdout: &out, stderr: &out, getenv: func(string) string { return "" }}
	if code := a.run(t.Context(), []string{"man", dir, "--config-text", "../../config.yaml"}); code != 0 {
		t.Fatalf("exit %d: %s", code, out.String())
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.[15]"))
	if err != nil || len(pages) < 40 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	for tool, args := range map[string][]string{
		"mandoc": {"-T", "lint", "-W", "warning"},
		"groff":  {"-man", "-ww", "-z", "-Tutf8"},
	} {
		t.Run(tool, func(t *testing.T) {
			if _, err := exec.LookPath(tool); err != nil {
				t.Skipf("%s is not installed", tool)
			}
			said, err := exec.Command(tool, append(args, pages...)...).CombinedOutput()
			if err != nil || len(said) > 0 {
				t.Errorf("%s: %v\n%s", tool, err, said)
			}
		})
	}
}

// Nothing that is said is lost or becomes a request, whatever it begins with.
func TestRoffKeepsTheText(t *testing.T) {
	const text = ".SH not a heading\n'quoted' `back` \\fBnot bold\\fR - a·b…\n\n  --flag  ~/.config ^\n    deeper\nand on\n\n"
	p := newManPage("test", 7, time.Unix(0, 0), "v1")
	p.named("test", "text that has dots, quotes and dashes")
	p.section("DESCRIPTION")
	p.text(text)
	file := filepath.Join(t.TempDir(), "test.7")
	if err := os.WriteFile(file, []byte(p.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("mandoc"); err != nil {
		t.Skip("mandoc is not installed")
	}
	out, err := exec.Command("sh", "-c", `mandoc -T utf8 "$1" | sed 's/.\x08//g'`, "sh", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{".SH not a heading", `'quoted' ` + "`back`" + ` \fBnot bold\fR - a·b…`, "\n         --flag  ~/.config ^\n           deeper\n", "and on"} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}
