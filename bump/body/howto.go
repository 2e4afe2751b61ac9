package body

import (
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
)

// argRE matches what may stand in a command that people copy, unquoted. Nothing
// else is written into one.
var argRE = regexp.MustCompile(`\A[A-Za-z0-9][A-Za-z0-9._+/-]{0,199}\z`)

// trial is how people try an edited file, by its name. FILE in command is that
// name. It is run in the directory of the file, in that above it, or at the top of
// the repository.
type trial struct {
	match   string // of path.Match, on the base name
	command string
	above   bool
	top     bool
}

var trials = []trial{
	{match: "flake.nix", command: "nix flake check"},
	{match: "default.nix", command: "nix-build"},
	{match: "*.nix", command: "nix-instantiate --parse FILE >/dev/null"},
	{match: "PKGBUILD", command: "makepkg --verifysource && makepkg --nobuild"},
	{match: "*.bzl", command: "bazel fetch //..."},
	{match: "*.bazel", command: "bazel fetch //..."},
	{match: "WORKSPACE", command: "bazel fetch //..."},
	{match: "Dockerfile", command: "docker build ."},
	{match: "Dockerfile*", command: "docker build -f FILE ."},
	{match: "*.Dockerfile", command: "docker build -f FILE ."},
	{match: "Containerfile", command: "podman build ."},
	{match: "Containerfile*", command: "podman build -f FILE ."},
	{match: "CMakeLists.txt", command: "cmake -S . -B build"},
	{match: "*.cmake", command: "cmake -S . -B build", top: true},
	{match: "changelog", command: "dpkg-buildpackage --unsigned-source --unsigned-changes", above: true},
}

// trialOf returns the command for a file, to be run at the top of the repository;
// "" if there is none, or a name in it would have to be quoted.
func trialOf(file string) string {
	dir, name := path.Split(path.Clean(file))
	dir = path.Clean(dir)
	for _, t := range trials {
		if ok, err := path.Match(t.match, name); !ok || err != nil {
			continue
		}
		switch {
		case t.above:
			dir = path.Dir(dir)
		case t.top:
			dir = "."
		}
		if strings.Contains(t.command, "FILE") && !argRE.MatchString(name) {
			return ""
		}
		command := strings.ReplaceAll(t.command, "FILE", name)
		switch {
		case dir == ".":
			return command
		case argRE.MatchString(dir) && filepath.IsLocal(dir):
			return "(cd " + dir + " && " + command + ")"
		}
		return ""
	}
	return ""
}

// maxTried is how many targets the commands are written out for.
const maxTried = 3

func (s story) howToTest() string {
	var lines []string
	from := "origin"
	if s.in.Forked {
		from = s.in.Fork
	}
	if argRE.MatchString(s.in.Branch) && !strings.Contains(s.in.Branch, "..") && (!s.in.Forked || pageRE.MatchString(from)) {
		lines = append(lines, "git fetch "+from+" "+s.in.Branch+" && git switch --detach FETCH_HEAD")
	}
	for _, e := range s.in.Edits {
		if c := trialOf(e.Path); c != "" && !slices.Contains(lines, c) {
			lines = append(lines, c)
		}
	}
	tried := 0
	for _, r := range s.rows {
		if p := r.pin; argRE.MatchString(p.Target) && argRE.MatchString(p.Version) && hexRE.MatchString(p.Hex) && tried < maxTried {
			tried++
			dir, channel := "rocm-"+strings.ReplaceAll(p.Target, "/", "-"), ""
			if argRE.MatchString(p.Channel) && p.Channel != "nightly" {
				channel = " --channel " + p.Channel
			}
			lines = append(lines,
				"rocm-nightly fetch "+p.Target+channel+" --version "+p.Version+" --digest sha256:"+p.Hex+" -o "+dir+".tar.gz",
				"rocm-nightly repack "+dir+".tar.gz --prefix "+dir+" --arch "+p.Target+" --digest sha256:"+p.Hex,
				"rocm-nightly audit "+dir+" --smoke")
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return fold("How to test", "```sh\n"+strings.Join(lines, "\n")+"\n```\n\n")
}

var hexRE = regexp.MustCompile(`\A[0-9a-f]{64}\z`)

func (s story) rollback() string {
	out := "Before it is merged: close this. After: `git revert` the commit; the next version is offered as before."
	if len(s.rows) > 0 && argRE.MatchString(s.rows[0].pin.Target) {
		out += " On a machine that has installed it, `rocm-nightly rollback " + s.rows[0].pin.Target + "` goes back to the generation before, at once."
	}
	return fold("How to roll back", out+"\n\n")
}

// cleanURL is an address without what could be a secret: no user, no query.
func cleanURL(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return plain.Cut(s, maxName)
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return plain.Cut(u.String(), 1000)
}
