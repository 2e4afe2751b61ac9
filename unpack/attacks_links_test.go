package unpack

import (
	"fmt"
	"strings"
)

const leaves = "would leave the prefix"

// linkAttacks lead out of the tree, by one link or by several.
func linkAttacks(beside string) []attack {
	return []attack{
		refused("link out", leaves, aSym("a", "../beside/victim")),
		refused("link to the directory above", leaves, aSym("a", "..")),
		refused("link out from below", leaves, aSym("a/b/c", "../../../victim")),
		refused("link out by its middle", leaves, aSym("a", "x/../../beside/../root/x"), aFile("x/y", "x")),
		refused("link out and in again", leaves, aSym("a", "../root-000/b"), aFile("b", "x")),
		refused("link out through a link", leaves, aDir("a/b/"), aSym("a/b/up", "../.."), aSym("victim", "a/b/up/../beside")),
		refused("link out through a link that comes later", leaves, aSym("victim", "a/b/up/../beside"), aDir("a/b/"), aSym("a/b/up", "../..")),
		refused("link out through a link to here", leaves, aSym("d", "."), aSym("e", "d/../beside")),
		refused("link out through two links that stay inside", leaves, aDir("d/"), aSym("d/x", ".."), aSym("y", "d/x"), aSym("z", "y/../beside")),
		refused("link out through a hard link to a link", leaves, aDir("d/e/"), aSym("d/e/l", "../.."), aHard("d/m", "d/e/l"), aSym("z", "d/e/l/..")),
		refused("link out through an absolute link", leaves, aDir("a/b/"), aSym("a/b/up", "/build/lib"), aFile("lib/x", "x"), aSym("z", "a/b/up/../../beside")),
		refused("link out through what is missing", leaves, aSym("a", "nothing/../../beside")),
		refused("link out through a gap and a link", leaves, aSym("up", "."), aSym("a", "nothing/../up/../beside")),
		refused("link out through a dropped link", leaves, aSym("a", "/nothing"), aSym("up", "."), aSym("b", "a/../up/../beside")),
		refused("link out behind a loop", leaves, aSym("a", "b"), aSym("b", "a"), aSym("c", "a/../../beside")),
		refused("link out behind more links than the kernel follows", leaves, append(chainOf(45, "."), aSym("victim", "c00/../beside"))...),
		refused("link out below names longer than PATH_MAX", leaves, longWay(11, "k")...),
		refused("link out through names longer than PATH_MAX", "is not a directory", longWay(11, "")...),
		refused("hard link out through two links", "which is no regular file", aDir("a/b/c/"), aSym("a/b/c/up", "../.."), aSym("a/b/escape", "c/up/../.."), aHard("exfil", "a/b/escape/beside/victim")),

		refused("hard link out", `".." in the name`, aHard("a", "../beside/victim")),
		refused("absolute hard link", "absolute name", aHard("a", beside+"/victim")),
		refused("hard link through a link out", "which is no regular file", aSym("a", "../beside"), aHard("b", "a/victim")),
		refused("hard link through an absolute link", "which is no regular file", aSym("a", beside), aHard("b", "a/victim")),
		refused("hard link to a link out", leaves, aSym("a", "../beside/victim"), aHard("b", "a")),
		refused("hard link to a link that leads out from its other name", leaves, aFile("x", "x"), aSym("d/l", "../x"), aHard("l", "d/l")),
		refused("hard link to nothing", "which is no regular file", aHard("a", "b")),
		refused("hard link to a directory", "which is no regular file", aDir("d/"), aHard("a", "d")),
		refused("hard link to the root", "which is no regular file", aHard("a", ".")),
		refused("hard link to itself", "which is no regular file", aHard("a", "a")),
		refused("hard links to each other", "which is no regular file", aHard("a", "b"), aHard("b", "a")),
		refused("hard link with an empty target", "empty name", aHard("a", "")),
		taken("hard link before its target", "a: x; b = a", aHard("a", "b"), aFile("b", "x")),
		taken("hard link below a directory to come", "d/; d/a: x; e = d/a", aHard("e", "d/a"), aDir("d/"), aFile("d/a", "x")),
		taken("hard links in a chain", "a: x; b = a; c = a", aHard("a", "b"), aHard("b", "c"), aFile("c", "x")),
		refused("hard links in a chain of fifty", "which is no regular file", hardChain(50, false)...),
		refused("hard links in a chain of fifty, backwards", "which is no regular file", hardChain(50, true)...),
		taken("hard link to a link in the tree", "a: x; b -> a; c -> a", aFile("a", "x"), aSym("b", "a"), aHard("c", "b")),
		{name: "hard link to an absolute link", tree: "a: x", dropped: "b; c", tar: tarball(aFile("a", "x"), aSym("b", beside), aHard("c", "b"))},
		{name: "absolute link", dropped: "a", tar: tarball(aSym("a", beside+"/victim"))},
		{name: "absolute link to what the tree has too", tree: "l -> victim; victim: x", tar: tarball(aSym("l", beside+"/victim"), aFile("victim", "x"))},
		{name: "absolute links into the machine", tree: "null: x", dropped: "a; b; c; d; e; f; g",
			tar: tarball(aSym("a", "/proc/self/root/etc"), aSym("b", "/dev/null"), aSym("c", "/proc/self/fd/3"), aSym("d", "/"), aSym("e", "//"), aSym("f", "/.."), aSym("g", "/sys/null"), aFile("null", "x"))},
		{name: "link of the compiler's configuration", tree: "bin/", dropped: "bin/rocm.cfg", tar: tarball(aSym("bin/rocm.cfg", "/etc/passwd"))},
	}
}

// linkTextAttacks are links whose text is odd, and that lead nowhere or around.
func linkTextAttacks(beside string) []attack {
	return []attack{
		refused("link to an empty name", "link to nothing", aSym("a", "")),
		taken("links to here", "a -> .; b -> ./; d/; d/c -> ..; d/e -> ../", aSym("a", "."), aSym("b", "./"), aSym("d/c", ".."), aSym("d/e", "../")),
		taken("link to itself", "a -> a", aSym("a", "a")),
		taken("links to each other", "a -> b; b -> a", aSym("a", "b"), aSym("b", "a")),
		taken("link that grows", "a -> a/a/a", aSym("a", "a/a/a")),
		taken("link to nothing in the tree", "a -> lib/nothing", aSym("a", "lib/nothing")),
		taken("links of more than the kernel follows", describeChain(45, "c99"), chainOf(45, "c99")...),
		refused("links that multiply", "lead through too many others", multiplied(300)),
		refused("link of more text than Linux takes", "link target of 4400 bytes", aSym("a", strings.Repeat("long/name/", 440))),
		refused("link of many steps up", "and 299 slashes", aSym("a", strings.TrimSuffix(strings.Repeat("../", 300), "/"))),
		refused("link with a newline", "control character", aSym("a", "b\nc")),
		refused("link with a terminal escape", "control character", aSym("a", "b\x1b]0;x\a")),
		refused("link with a right-to-left override", "control character", aSym("a", "b\u202ec")),
		refused("link that is not UTF-8", "not UTF-8", aSym("a", "b\xff")),
		{name: "absolute link that is not UTF-8", dropped: "a", tar: tarball(aSym("a", "/build/b\xff\n"))},
		refused("hard link to a megabyte", "name of 1048000 bytes", aHard("a", strings.Repeat("n", 1048000))),
		taken("pax link target", "a -> c", pax('x', "linkpath=c"), aSym("a", "b")),
		refused("pax link target that leads out", leaves, pax('x', "linkpath=../beside"), aSym("a", "b")),
		refused("pax hard link target that leads out", "absolute name", pax('x', "linkpath="+beside+"/victim"), aHard("a", "b")),
		damaged("NUL in a pax link target", pax('x', "linkpath=b\x00../beside"), aSym("a", "b")),
		refused("GNU link target that leads out", leaves, long('K', "../beside"), aSym("a", "b")),
	}
}

// chainOf is n links c00, c01 … of which each leads to the next, and the last to end.
func chainOf(n int, end string) []string {
	var parts []string
	for i := range n {
		to := fmt.Sprintf("c%02d", i+1)
		if i == n-1 {
			to = end
		}
		parts = append(parts, aSym(fmt.Sprintf("c%02d", i), to))
	}
	return parts
}

func describeChain(n int, end string) string {
	var lines []string
	for i := range n - 1 {
		lines = append(lines, fmt.Sprintf("c%02d -> c%02d", i, i+1))
	}
	return strings.Join(append(lines, fmt.Sprintf("c%02d -> %s", n-1, end)), "; ")
}

// hardChain is n hard links of which each names the next, and then a file.
func hardChain(n int, backwards bool) []string {
	parts := []string{aFile(fmt.Sprintf("h%02d", n), "x")}
	for i := range n {
		j := i
		if backwards {
			j = n - 1 - i
		}
		parts = append(parts, aHard(fmt.Sprintf("h%02d", j), fmt.Sprintf("h%02d", j+1)))
	}
	return parts
}

// longWay is n directories of long names in each other, and in each a link with
// a short name to the next, so that a short text stands for a path longer than
// PATH_MAX, where realpath(3) gives up. From its end a link goes up and out,
// by the links, or, where up is given, as a name of its own through the last.
func longWay(n int, up string) []string {
	var parts []string
	d, at, short := strings.Repeat("d", 247), "", ""
	for i := range n {
		letter := string(rune('a' + i))
		parts = append(parts, aDir(at+d+"/"), aSym(at+letter, d))
		at, short = at+d+"/", short+letter+"/"
	}
	ups := strings.Repeat("../", n)
	if up == "" {
		return append(parts, aSym(short+strings.Repeat("l", 254), ups), aSym("escape", short+strings.Repeat("l", 254)+"/../beside"))
	}
	return append(parts, aSym(at+up, ups), aSym("escape", short+up+"/../beside"))
}

// multiplied is n links of which each goes through the first a hundred times.
func multiplied(n int) string {
	var parts strings.Builder
	for i := range n {
		parts.WriteString(aSym(fmt.Sprintf("k%04d", i), strings.Repeat("k0000/", 125)+strings.Repeat("./", 125)))
	}
	return parts.String()
}
