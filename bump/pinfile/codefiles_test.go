package pinfile

import (
	"os/exec"
	"strings"
	"testing"
)

func TestDockerfileEdits(t *testing.T) {
	runCodeCases(t, []codeCase{
		{"several", "dockerfile", "ARG A=1 B=\"2\"\n", map[string]string{"A": "3", "B": "4"}, "ARG A=3 B=\"4\"\n", ""},
		{"case and CRLF", "dockerfile", "arg A=1\r\nenv B 2\r\n", map[string]string{"A": "3", "B": "4"}, "arg A=3\r\nenv B 4\r\n", ""},
		{"words", "dockerfile", "ENV A b c\n", map[string]string{"A": "d e"}, "ENV A \"d e\"\n", ""},
		{"bare that needs quotes", "dockerfile", "ARG A=1\n", map[string]string{"A": "b c"}, "ARG A=\"b c\"\n", ""},
		{"other escape", "dockerfile", "# escape=`\nENV A=1 `\n  B=2\n", map[string]string{"B": "3"}, "# escape=`\nENV A=1 `\n  B=3\n", ""},
		{"comment within", "dockerfile", "ENV A=1 \\\n# A=2\n  B=2\n", map[string]string{"A": "3"}, "ENV A=3 \\\n# A=2\n  B=2\n", ""},
		{"here-document", "dockerfile", "RUN <<E\nARG A=0\nE\nARG A=1\n", map[string]string{"A": "2"}, "RUN <<E\nARG A=0\nE\nARG A=2\n", ""},
		{"no here-document", "dockerfile", "RUN echo $((1<<2)) <<< x\nARG A=1\n", map[string]string{"A": "2"}, "RUN echo $((1<<2)) <<< x\nARG A=2\n", ""},
		{"ENV of an ARG", "dockerfile", "ARG A=1\nENV A=${A}\n", map[string]string{"A": "2"}, "ARG A=2\nENV A=${A}\n", ""},
		{"stages", "dockerfile", "FROM a AS x\nARG A=1\nFROM b\nARG A=1\n", map[string]string{"A": "2"}, "", "2 match: x.A; 1.A"},
		{"a stage without a name", "dockerfile", "FROM a AS x\nARG A=1\nFROM b\nARG A=1\n", map[string]string{"1.A": "2"}, "FROM a AS x\nARG A=1\nFROM b\nARG A=2\n", ""},
		{"a variable", "dockerfile", "ARG A=$B\n", map[string]string{"A": "2"}, "", "a variable"},
		{"over a line's end", "dockerfile", "ENV A=1\\\n2\n", map[string]string{"A": "2"}, "", "line's end"},
		{"quotes", "dockerfile", "ARG A='1'\n", map[string]string{"A": "'"}, "", "holds a quote"},
	})
}

func TestCMakeEdits(t *testing.T) {
	runCodeCases(t, []codeCase{
		{"bare", "cmake", "set(A 1)\n", map[string]string{"A": "2"}, "set(A 2)\n", ""},
		{"bare that needs quotes", "cmake", "set(A 1)\n", map[string]string{"A": "URL"}, "set(A \"URL\")\n", ""},
		{"quoted", "cmake", "SET(A \"1\" PARENT_SCOPE)\n", map[string]string{"A": "$x\\\""}, "SET(A \"\\$x\\\\\\\"\" PARENT_SCOPE)\n", ""},
		{"bracket", "cmake", "set(A [==[1]==])\n", map[string]string{"A": "${x}"}, "set(A [==[${x}]==])\n", ""},
		{"declared", "cmake", "ExternalProject_Add(r\n  URL https://h/1 # u\n  URL_HASH SHA256=aa)\n", map[string]string{"r.URL_HASH": "bb"}, "ExternalProject_Add(r\n  URL https://h/1 # u\n  URL_HASH SHA256=bb)\n", ""},
		{"by field", "cmake", "CPMAddPackage(NAME a VERSION 1)\nCPMAddPackage(NAME b VERSION 1)\n", map[string]string{"CPMAddPackage[NAME=b].VERSION": "2"}, "CPMAddPackage(NAME a VERSION 1)\nCPMAddPackage(NAME b VERSION 2)\n", ""},
		{"project", "cmake", "project(x VERSION 1.2 LANGUAGES C)\n", map[string]string{"project.VERSION": "1.3"}, "project(x VERSION 1.3 LANGUAGES C)\n", ""},
		{"a comment", "cmake", "#[=[ set(A 1) ]] ]=]\n", map[string]string{"A": "2"}, "", "A is found in a comment at line 1"},
		{"a variable", "cmake", "set(A \"${B}\")\n", map[string]string{"A": "2"}, "", "a variable"},
		{"another hash", "cmake", "f(H MD5=aa)\n", map[string]string{"f.H": "2"}, "", "not SHA-256"},
		{"a list", "cmake", "set(A \"1;2\")\n", map[string]string{"A": "2"}, "", "made of several"},
		{"semicolon", "cmake", "set(A \"1\")\n", map[string]string{"A": "1;2"}, "", "semicolon"},
		{"unclosed", "cmake", "set(A \"1\"\n", map[string]string{"A": "2"}, "", "never closed"},
	})
}

const debianNew = `rocm-nightly (10.2.0~a20261001-1) unstable; urgency=medium

  * New upstream version 10.2.0~a20261001.

 -- Ada Packager <ada@example.org>  Thu, 01 Oct 2026 00:00:00 +0000

`

func TestDebianChangelog(t *testing.T) {
	old := string(codeFixture(t, "changelog"))
	next := map[string]string{"version": "10.2.0~a20261001-1", "date": "2026-10-01"}
	with := func(key, value string) map[string]string {
		return map[string]string{"version": next["version"], "date": next["date"], key: value}
	}
	runCodeCases(t, []codeCase{
		{"new", "debian-changelog", old, next, debianNew + old, ""},
		{"same version", "debian-changelog", old, map[string]string{"version": "10.2.0~a20260930-1", "change": "x"}, old, ""},
		{"change", "debian-changelog", old, with("change", "Follow the night."), strings.Replace(debianNew, "New upstream version 10.2.0~a20261001.", "Follow the night.", 1) + old, ""},
		{"maintainer", "debian-changelog", old, with("maintainer", "Bot <bot@example.org>"), strings.Replace(debianNew, "Ada Packager <ada", "Bot <bot", 1) + old, ""},
		{"no date", "debian-changelog", old, map[string]string{"version": "2"}, "", `set date: "{{.Date}}"`},
		{"no version", "debian-changelog", old, map[string]string{"change": "x"}, "", "only a new version"},
		{"epoch lost", "debian-changelog", strings.Replace(old, "(10.2.0", "(1:10.2.0", 1), next, "", "the epoch is 1"},
		{"epoch kept", "debian-changelog", strings.Replace(old, "(10.2.0", "(1:10.2.0", 1), with("version", "1:10.2.0~a20261001-1"), strings.Replace(debianNew, "(10.2.0", "(1:10.2.0", 1) + strings.Replace(old, "(10.2.0", "(1:10.2.0", 1), ""},
		{"bad version", "debian-changelog", old, with("version", "1_2"), "", "no version of Debian"},
		{"bad maintainer", "debian-changelog", old, with("maintainer", "x"), "", "Name <address>"},
		{"injection", "debian-changelog", old, with("change", "x\n -- y"), "", "no pin does"},
		{"another key", "debian-changelog", old, with("package", "x"), "", "package"},
		{"cut off", "debian-changelog", "a (1) b; urgency=low\n\n  * x\n", next, "", "does not end"},
	})
}

// The versions that are written sort as they should, and are ones that dpkg
// takes; what is refused, dpkg refuses too.
func TestDebianVersionsAreDpkgs(t *testing.T) {
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("dpkg is missing")
	}
	dpkg := func(args ...string) bool { return exec.CommandContext(t.Context(), "dpkg", args...).Run() == nil }
	for _, v := range []string{"10.2.0~a20261001-1", "1:2", "10.2.0a20261001", "2-1~bpo1", "1_2", "a1", "1 2", "", "1:", "x:1"} {
		if ours, theirs := debianVersion.MatchString(v), dpkg("--validate-version", v); ours != theirs {
			t.Errorf("%q: we say %v, dpkg %v", v, ours, theirs)
		}
	}
	if !dpkg("--compare-versions", "10.2.0~a20261001-1", "gt", "10.2.0~a20260930-1") || !dpkg("--compare-versions", "10.2.0~a20261001-1", "lt", "10.2.0-1") {
		t.Error("the night does not sort between the one before and the release")
	}
}

func TestDebianWatchEdits(t *testing.T) {
	runCodeCases(t, []codeCase{
		{"two entries", "debian-watch", "version=4\nhttps://h/a x-(.*)\nhttps://h/b y-(.*)\n", map[string]string{"url[1]": "https://i/b"}, "version=4\nhttps://h/a x-(.*)\nhttps://i/b y-(.*)\n", ""},
		{"fields", "debian-watch", "Version: 5\n\nSource: https://h/a\nMatching-Pattern: x\n", map[string]string{"Source": "https://i/a"}, "Version: 5\n\nSource: https://i/a\nMatching-Pattern: x\n", ""},
		{"blanks", "debian-watch", "version=4\nhttps://h/a x\n", map[string]string{"url": "a b"}, "", "cannot say"},
		{"which", "debian-watch", "https://h/a x\nhttps://h/b y\n", map[string]string{"url": "z"}, "", "2 match: url[0]; url[1]"},
	})
}

func TestSrcinfoEdits(t *testing.T) {
	const src = "# pkgver = 0\npkgbase = a\n\tpkgver = 1\n\tdepends = x\n\tdepends = y\n\npkgname = b\n\tdepends = z\n"
	runCodeCases(t, []codeCase{
		{"item", "srcinfo", src, map[string]string{"pkgbase.depends[1]": "w"}, strings.Replace(src, "= y", "= w", 1), ""},
		{"of a package", "srcinfo", src, map[string]string{"b.depends": "w"}, strings.Replace(src, "= z", "= w", 1), ""},
		{"which", "srcinfo", src, map[string]string{"depends[0]": "w"}, "", "2 match: pkgbase.depends[0]; b.depends"},
		{"pkgver", "srcinfo", src, map[string]string{"pkgver": "1-2"}, "", "no pkgver"},
		{"no pair", "srcinfo", "x\n", map[string]string{"pkgver": "1"}, "", "1:1"},
	})
}

func TestCodeKeys(t *testing.T) {
	for key, want := range map[string]string{
		"":        "is not a name",
		"a..b":    "is not a name",
		"a[":      "is not a name",
		"a[x]":    "selects nothing",
		"a[0":     "never closed",
		`"a`:      "never closed",
		"a b":     "is not a name",
		"a\xff":   "UTF-8",
		"a[0]b":   "a dot must follow",
		"a[-1]":   "selects nothing",
		`a[b="c]`: "never closed",
	} {
		if _, err := parseCodeKey(key); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", key, err, want)
		}
	}
	for _, key := range []string{"a", ".a", "a.b[0][1].c", `a[b="c]d"]."e.f"`, "7zip", "http_archive[name=a.b]"} {
		if _, err := parseCodeKey(key); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
}
