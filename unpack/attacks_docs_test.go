package unpack

import (
	"archive/tar"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var updateAttacks = flag.Bool("update-attacks", false, "write the tables of docs/unpack.md")

// advisories are the holes of other programs, and the attacks by which we know
// that they are not ours too.
var advisories = []struct {
	id, program string
	attacks     []string
}{
	{"CVE-2016-6321", "GNU tar", []string{"dot dot inside"}},
	{"CVE-2006-6097", "GNU tar", []string{"renaming of old GNU tar"}},
	{"CVE-2019-9923", "GNU tar", []string{"sparse file without a map"}},
	{"CVE-2023-39804", "GNU tar", []string{"attribute of a name of a kilobyte"}},
	{"CVE-2022-2879", "Go, archive/tar", []string{"pax header of 2 GiB", "pax header of 2 MiB", "GNU long name of 2 GiB"}},
	{"CVE-2025-58183", "Go, archive/tar", []string{"sparse 1.0 map of a million parts", "sparse 1.0 map of 2^62 parts", "sparse map of old GNU tar that goes on"}},
	{"CVE-2025-22873", "Go, os.Root", []string{"dot dot alone", "dot dot and a slash"}},
	{"CVE-2021-29136", "umoci", []string{"root that is a link", "root that is a link, with a slash"}},
	{"CVE-2019-1002101, CVE-2019-11246, CVE-2019-11249", "kubectl cp", []string{"link, then file through it", "link, then file two levels below"}},
	{"CVE-2016-5418", "libarchive", []string{"hard link with content", "hard link, then file in its place"}},
	{"CVE-2021-23177, CVE-2021-31566", "libarchive", []string{"ACL of a link", "file flags"}},
	{"CVE-2018-20990", "tar of Rust", []string{"hard link, then file in its place"}},
	{"CVE-2021-38511", "tar of Rust", []string{"link, then directory through it"}},
	{"CVE-2025-62518", "tokio-tar of Rust", []string{"pax size over that of the header"}},
	{"CVE-2021-32803, CVE-2021-37701", "tar of Node.js", []string{"directory, then link", "directory and its files replaced by a link"}},
	{"CVE-2021-32804", "tar of Node.js", []string{"absolute name of many slashes"}},
	{"CVE-2021-37712", "tar of Node.js", []string{"link in Unicode's other case", "names that differ in Unicode's form"}},
	{"CVE-2021-37713", "tar of Node.js", []string{"names of Windows"}},
	{"CVE-2026-23745, CVE-2026-24842", "tar of Node.js", []string{"absolute hard link", "hard link out", "absolute link, then file through it"}},
	{"CVE-2026-26960", "tar of Node.js", []string{"hard link out through two links"}},
	{"CVE-2007-4559", "tarfile of Python", []string{"absolute name", "dot dot"}},
	{"CVE-2024-12718", "tarfile of Python", []string{"link, then directory in its place", "link out"}},
	{"CVE-2025-4138, CVE-2025-4330", "tarfile of Python", []string{"link out through two links that stay inside", "hard link to a link that leads out from its other name"}},
	{"CVE-2025-4517", "tarfile of Python", []string{"link out through names longer than PATH_MAX", "link out below names longer than PATH_MAX"}},
	{"CVE-2026-7774", "tarfile of Python", []string{"empty name", "link with the name of a directory"}},
	{"CVE-2021-42574", "editors and terminals", []string{"right-to-left override", "isolate of direction"}},
}

// The documentation lists every attack, and its outcome as the test has it.
func TestAttacksAreDocumented(t *testing.T) {
	const name, begin, end = "../docs/unpack.md", "<!-- what follows is written by go test ./unpack -update-attacks -->\n", "<!-- end -->\n"
	doc, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(doc), begin)
	tables, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place for the tables", name)
	}
	want := attackTables(t)
	if *updateAttacks {
		if err := os.WriteFile(name, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if tables != want {
		t.Errorf("the tables of %s are not those of the test; write them with go test ./unpack -run TestAttacksAreDocumented -update-attacks", name)
	}
}

func attackTables(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	l := Limits{}.withDefaults()
	fmt.Fprintf(&out, "\n### Limits\n\n| what | at most | raised by |\n|---|---|---|\n")
	for _, row := range [][3]string{
		{"content of all files, holes counted", fmt.Sprintf("%d GiB", l.MaxBytes>>30), "`unpack.max_bytes`"},
		{"entries, and names with the directories that they imply", fmt.Sprint(l.MaxEntries), "`unpack.max_entries`"},
		{"bytes out for each byte in, of tar and of content", fmt.Sprintf("%.0f, judged from %d MiB out", l.MaxRatio, l.ratioFrom>>20), "`unpack.max_ratio`"},
		{"bytes of names and link targets in all", fmt.Sprintf("%d for each of max_entries, and %d MiB", textEach, fixedRoom>>20), "`unpack.max_entries`"},
		{"bytes of tar in all, headers counted", fmt.Sprintf("max_bytes, %d KiB for each of max_entries, and %d MiB", headersEach>>10, fixedRoom>>20), "`unpack.max_bytes`"},
		{"name", fmt.Sprintf("%d bytes, %d for each component, %d components", maxPath, maxPart, maxDepth), ""},
		{"link target that is kept", fmt.Sprintf("%d bytes, %d slashes", maxPath, 2*maxDepth-1), ""},
		{"symlinks that a name leads through, hard links in a chain", fmt.Sprint(maxExpand), ""},
		{"components that are followed for the links in all", fmt.Sprintf("%d for each link, and %d", stepsEach, stepsAll), ""},
		{"extended header, long name or sparse map", "1 MiB", ""},
	} {
		fmt.Fprintf(&out, "| %s | %s | %s |\n", row[0], row[1], row[2])
	}
	known := map[string]bool{}
	for _, s := range sections("/beside") {
		fmt.Fprintf(&out, "\n### %s\n\n| attack | outcome | GNU tar |\n|---|---|---|\n", s.title)
		for _, a := range s.attacks {
			if known[a.name] {
				t.Errorf("two attacks are called %q", a.name)
			}
			known[a.name] = true
			fmt.Fprintf(&out, "| %s | %s | %s |\n", a.name, a.outcome(), a.gnuOutcome())
		}
	}
	out.WriteString("\n### Advisories\n\n| advisory | of | attacks |\n|---|---|---|\n")
	for _, ad := range advisories {
		for _, a := range ad.attacks {
			if !known[a] {
				t.Errorf("%s: there is no attack called %q", ad.id, a)
			}
		}
		fmt.Fprintf(&out, "| %s | %s | %s |\n", ad.id, ad.program, strings.Join(ad.attacks, "; "))
	}
	return out.String() + "\n"
}

// outcome says in words what Tree does.
func (a attack) outcome() string {
	switch a.is {
	case nil:
		if a.dropped != "" {
			return inDoc(a.tree) + ", and without " + inDoc(a.dropped)
		}
		return inDoc(a.tree)
	case ErrRefused:
		return "refused: " + a.says
	case tar.ErrHeader:
		return "damaged: invalid header"
	case ErrTruncated:
		return "damaged: it ends too early"
	}
	return "damaged: " + a.says
}

func (a attack) gnuOutcome() string {
	g, ok := gnuOutcomes[a.name]
	if !ok {
		return ""
	}
	said := inDoc(g.tree)
	if g.status != 0 {
		said += ", and complains"
	}
	return said
}

// inDoc writes a tree as code of Markdown, or the beginning of it.
func inDoc(tree string) string {
	if tree == "" {
		return "nothing"
	}
	text := strings.ReplaceAll(tree, "\x00", "␀")
	if runes := []rune(text); len(runes) > 72 {
		text = string(runes[:72]) + "…"
	}
	if strings.Contains(text, "`") {
		return "`` " + text + " ``"
	}
	return "`" + text + "`"
}
