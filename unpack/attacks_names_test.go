package unpack

import "strings"

// nameAttacks are those by an entry's name.
func nameAttacks(beside string) []attack {
	n := func(k int) string { return strings.Repeat("n", k) }
	deep := func(k int) string { return strings.Repeat("d/", k) }
	return []attack{
		refused("absolute name", "absolute name", aFile(beside+"/victim", "x")),
		refused("absolute name of many slashes", "absolute name", aFile("//"+beside+"/victim", "x")),
		refused("absolute directory", "absolute name", aDir(beside+"/")),
		refused("dot dot", `".." in the name`, aFile("../victim", "x")),
		refused("dot dot twice", `".." in the name`, aFile("./../../victim", "x")),
		refused("dot dot inside", `".." in the name`, aFile("a/../../victim", "x")),
		refused("dot dot that would stay inside", `".." in the name`, aFile("a/../b", "x")),
		refused("dot dot at the end", `".." in the name`, aDir("a/..")),
		refused("dot dot alone", `".." in the name`, aDir("..")),
		refused("dot dot and a slash", `".." in the name`, aDir("../")),
		refused("dot dot into a sibling", `".." in the name`, aFile("../beside/victim", "x")),
		taken("names of dots", ".../; .../a: x; ..a: x; a..: x", aFile(".../a", "x"), aFile("..a", "x"), aFile("a..", "x")),
		taken("names of Windows", `..\..\victim: x; C:../; C:../victim: x; C:\a: x; NUL: x; con.txt: x`,
			aFile(`..\..\victim`, "x"), aFile("C:../victim", "x"), aFile(`C:\a`, "x"), aFile("NUL", "x"), aFile("con.txt", "x")),
		refused("empty name", "empty name", aFile("", "x")),
		taken("dots and slashes to be cleaned", "a/; a/b: x; a/c: x", aFile(".//a//b", "x"), aFile("././a/./c", "x")),
		refused("root that is a file", "root of the archive is not a directory", aFile(".", "x")),
		refused("root that is a link", "root of the archive is not a directory", aSym(".", "../beside"), aFile("victim", "x")),
		refused("root that is a link, with a slash", "name is that of a directory", aSym("./", beside), aFile("./victim", "x")),
		refused("root that is a hard link", "root of the archive is not a directory", aFile("a", "x"), aHard(".", "a")),

		refused("file with the name of a directory", "name is that of a directory", aFile("a/", "")),
		refused("file with a dot behind its name", "name is that of a directory", aFile("a/.", "x")),
		refused("link with the name of a directory", "name is that of a directory", aSym("a/", "b")),
		taken("directory of old tar", "a/; a/b: x", head{name: "a/", kind: oldKind}.String(), aFile("a/b", "x")),

		taken("NUL in the name", "safe: x", aFile("safe\x00/../../victim", "x")),
		taken("NUL in a GNU long name", "safe: x", long('L', "safe\x00/../../victim")+aFile("a", "x")),
		damaged("NUL in a pax name", pax('x', "path=safe\x00/../../victim"), aFile("a", "x")),
		refused("newline", "control character", aFile("a\nvictim", "x")),
		refused("carriage return", "control character", aFile("a\rb", "x")),
		refused("terminal escape", "control character", aFile("a\x1b[2J", "x")),
		refused("delete character", "control character", aFile("a\x7f", "x")),
		refused("control character above ASCII", "control character", aFile("a\u0085b", "x")),
		refused("right-to-left override", "control character", aFile("a\u202etxt.sh", "x")),
		refused("isolate of direction", "control character", aFile("a\u2066b", "x")),
		refused("character without width", "control character", aFile("lib\u200b/a", "x")),
		refused("byte order mark", "control character", aFile("\ufeffa", "x")),
		refused("line separator", "control character", aFile("a\u2028b", "x")),
		refused("name that is not UTF-8", "not UTF-8", aFile("victim\xff", "x")),
		refused("overlong slash", "not UTF-8", aFile("..\xc0\xafvictim", "x")),
		refused("half of a surrogate pair", "not UTF-8", aFile("a\xed\xa0\x80", "x")),
		refused("pax name in binary", "not UTF-8", pax('x', "hdrcharset=BINARY", "path=a\xff"), aFile("a", "x")),
		taken("words of a shell", "  : x; $(id): x; %s%n: x; *: x; -rf: x; @a: x; `id`: x; a b: x; ~: x",
			aFile("  ", "x"), aFile("$(id)", "x"), aFile("%s%n", "x"), aFile("*", "x"), aFile("-rf", "x"), aFile("@a", "x"), aFile("`id`", "x"), aFile("a b", "x"), aFile("~", "x")),
		taken("names that differ in case", "LIB/; LIB/a: 1; README: x; lib/; lib/a: 2; readme: y", aFile("README", "x"), aFile("readme", "y"), aFile("LIB/a", "1"), aFile("lib/a", "2")),
		taken("names that differ in Unicode's form", "e\u0301: 1; \u00e9: 2; \u212a: 3; \ufb01: 4", aFile("e\u0301", "1"), aFile("\u00e9", "2"), aFile("\u212a", "3"), aFile("\ufb01", "4")),
		refused("link in Unicode's other case", `its parent "s" is not a directory`, aSym("s", "../beside"), aDir("\u017f"), aFile("s/victim", "x")),

		taken("part of 255 bytes", n(255)+": x", aFile(n(255), "x")),
		refused("part of 256 bytes", "a part of the name has 256 bytes", aFile(n(256), "x")),
		refused("directory of 256 bytes", "a part of the name has 256 bytes", aFile(n(256)+"/a", "x")),
		taken("name of 100 bytes without a NUL", n(100)+": x", aFile(n(100), "x")),
		taken("name as long as is allowed", describedDeep(n(230), 12), aFile(strings.Repeat(n(230)+"/", 12)+"a", "x")),
		refused("name longer than PATH_MAX", "name of 4620 bytes", aFile(strings.Repeat(n(230)+"/", 20), "x")),
		refused("name of a megabyte", "(a name of 1048000 bytes)", aFile(n(1048000), "x")),
		refused("name too deep", "more than 127 directories deep", aFile(deep(128)+"a", "x")),
		refused("directory too deep", "more than 127 directories deep", aDir(deep(129))),
		taken("file of the compiler's configuration", "bin/; bin/@rocm.cfg: x; bin/rocm.cfg: --sysroot=/etc", aFile("bin/@rocm.cfg", "x"), aFile("bin/rocm.cfg", "--sysroot=/etc")),
	}
}

// describedDeep is the description of a file "a" below k directories of a name.
func describedDeep(name string, k int) string {
	var lines []string
	for i := range k {
		lines = append(lines, strings.Repeat(name+"/", i+1))
	}
	return strings.Join(append(lines, lines[k-1]+"a: x"), "; ")
}

// twiceAttacks list a name more than once, or as what it cannot be.
func twiceAttacks() []attack {
	return []attack{
		refused("file twice", "already a file: listed twice", aFile("a", "x"), aFile("./a", "y")),
		refused("file, then directory", "already a file", aFile("a", "x"), aDir("a/")),
		refused("file, then file below it", "not a directory", aFile("a", "x"), aFile("a/b", "x")),
		refused("file, then link", "already a file", aFile("a", "x"), aSym("a", "b")),
		refused("directory, then file", "already a dir", aDir("a/"), aFile("a", "x")),
		refused("directory, then link", "already a dir", aDir("a/"), aSym("a", "../beside")),
		refused("implied directory, then file", "already a dir", aFile("a/b", "x"), aFile("a", "x")),
		refused("directory and its files replaced by a link", "already a dir", aDir("a/"), aFile("a/victim", "x"), aSym("a", "../beside"), aFile("a/victim", "y")),
		taken("directory twice", "a/; a/b: x", head{name: "a/", kind: '5', mode: "0000700"}.String(), aFile("a/b", "x"), head{name: "a", kind: '5', mode: "0007777"}.String()),
		refused("link, then file in its place", "already a symlink", aSym("victim", "../victim"), aFile("victim", "x")),
		refused("link, then directory in its place", "already a symlink", aSym("a", "../beside"), aDir("a/")),
		refused("link, then file through it", `its parent "a" is not a directory`, aSym("a", "../beside"), aFile("a/victim", "x")),
		refused("absolute link, then file through it", `its parent "a" is not a directory`, aSym("a", "/etc"), aFile("a/victim", "x")),
		refused("link, then directory through it", `its parent "a" is not a directory`, aSym("a", "../beside"), aDir("a/d/")),
		refused("link, then file two levels below", `its parent "a" is not a directory`, aSym("a", ".."), aFile("a/beside/victim", "x")),
		refused("link in the tree, then file through it", `its parent "a" is not a directory`, aDir("d/"), aSym("a", "d"), aFile("a/b", "x")),
		refused("hard link, then file through it", `its parent "a" is not a directory`, aSym("l", "../beside"), aHard("a", "l"), aFile("a/victim", "x")),
		refused("hard link, then file in its place", "listed twice", aFile("b", "x"), aHard("a", "b"), aFile("a", "y")),
		refused("link twice", "already a symlink", aSym("a", "b"), aSym("a", "c")),
	}
}
