package bump

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/bump/forge"
)

// TestPinThatNothingFetchesIsRefused: what a file would fetch is what was
// verified, or there is no push.
func TestPinThatNothingFetchesIsRefused(t *testing.T) {
	t.Parallel()
	pin := night(n30)["gfx1151"]
	for _, tt := range []struct {
		name    string
		fetches string
		set     map[string]string
		err     string
	}{
		{"said", fetches, map[string]string{"version": "{{.Version}}"}, ""},
		{"set", "", map[string]string{"version": "{{.URL}}"}, ""},
		{"nobody tells", "", map[string]string{"version": "{{.Version}}"}, `write fetches: "https://nightly.repo.amd.com/rocm/core/tarball/therock-dist-linux-{{.Family}}-{{.Version}}.tar.gz"`},
		{"another host", "https://rocm.nightlies.example/{{.Name}}", map[string]string{"version": "{{.Version}}"}, "it would fetch https://rocm.nightlies.example/therock-dist-linux-gfx1151-" + n30 + ".tar.gz for gfx1151, and " + pin.URL + " was verified"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := planFiles([]File{{Path: "x.nix", Target: "gfx1151", Set: tt.set, Fetches: tt.fetches}}, night(n30))
			if err != nil {
				t.Fatal(err)
			}
			read := func(context.Context, string) (forge.File, error) {
				return forge.File{Path: "x.nix", Mode: "100644", Text: []byte("{ version = \"1\"; }\n")}, nil
			}
			c, err := makeChange(t.Context(), p, read, false)
			var bad *URLError
			if tt.err == "" && (err != nil || len(c.files) != 1) || tt.err != "" && (!errors.As(err, &bad) || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("got %v, want %q in it", err, tt.err)
			}
		})
	}
}

func TestSameURL(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"https://h/a+b.tar.gz", "https://H/a%2Bb.tar.gz", true},
		{"https://h/a", "http://h/a", false},
		{"https://h/a", "https://h/a?x", false},
		{"https://u@h/a", "https://h/a", false},
		{"https://h/a", "https://h.evil/a", false},
		{"https://h/%zz", "https://h/a", false},
	} {
		if sameURL(tt.a, tt.b) != tt.same {
			t.Errorf("%s and %s: %v", tt.a, tt.b, !tt.same)
		}
	}
}

// TestUnifiedIsWhatPatchTakes has the program patch make the new text of the
// old one.
func TestUnifiedIsWhatPatchTakes(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is missing: apt install git")
	}
	var long []string
	for i := range 60 {
		long = append(long, fmt.Sprint("line ", i))
	}
	base := strings.Join(long, "\n") + "\n"
	for i, tt := range [][2]string{
		{base, strings.Replace(base, "line 7\n", "seven\nand more\n", 1)},
		{base, strings.Replace(strings.Replace(base, "line 3\n", "", 1), "line 50\n", "x\n", 1)},
		{base, strings.Replace(strings.Replace(base, "line 20\n", "", 1), "line 24\n", "x\ny\n", 1)},
		{base, "first\n" + base + "last"},
		{base, ""},
		{"a", "a\n"},
		{"\r\n1\r\n", "\r\n2\r\n"},
	} {
		dir := t.TempDir()
		u := &upstream{t: t}
		u.work = dir
		u.write("f", []byte(tt[0]))
		u.write("p", []byte(unified("f", []byte(tt[0]), []byte(tt[1]))))
		cmd := exec.Command(git, "apply", "--whitespace=nowarn", "p")
		cmd.Dir, cmd.Env = dir, gitEnvironment()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%d: %v %s\n%s", i, err, out, unified("f", []byte(tt[0]), []byte(tt[1])))
		}
		if got := readText(t, filepath.Join(dir, "f")); got != tt[1] {
			t.Errorf("%d: got %q", i, got)
		}
	}
	if unified("f", []byte("a"), []byte("a")) != "" {
		t.Error("a diff of the same")
	}
}
