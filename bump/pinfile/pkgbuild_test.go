package pinfile

import (
	"strings"
	"testing"
)

func TestShellEdits(t *testing.T) {
	runCodeCases(t, []codeCase{
		{"bare", "shell", "A=1 # A=2\n", map[string]string{"A": "3"}, "A=3 # A=2\n", ""},
		{"bare that needs quotes", "shell", "A=1\n", map[string]string{"A": "a b"}, "A='a b'\n", ""},
		{"nothing", "shell", "A=\nB=2\n", map[string]string{"A": "1"}, "A=1\nB=2\n", ""},
		{"single", "shell", "A='1'\n", map[string]string{"A": "$x"}, "A='$x'\n", ""},
		{"double", "shell", "A=\"1\"\n", map[string]string{"A": "$x`\"\\"}, "A=\"\\$x\\`\\\"\\\\\"\n", ""},
		{"export", "shell", "export A=1 B=2\n", map[string]string{"B": "3"}, "export A=1 B=3\n", ""},
		{"declare", "shell", "declare -r A=\"1\"\nreadonly B='2'\n", map[string]string{"A": "3", "B": "4"}, "declare -r A=\"3\"\nreadonly B='4'\n", ""},
		{"in a function", "shell", "f() { local A=1; }\n", map[string]string{"f.A": "2"}, "f() { local A=2; }\n", ""},
		{"in a condition", "shell", "if x; then A=1; fi\n", map[string]string{"A": "2"}, "if x; then A=2; fi\n", ""},
		{"associative", "shell", "declare -A S=([gfx1151]=a [gfx906]='b')\n", map[string]string{"S.gfx906": "c"}, "declare -A S=([gfx1151]=a [gfx906]='c')\n", ""},
		{"associative with a dash", "shell", "declare -A S=([gfx110X-all]=a ['b-c']=d)\nS[gfx120X-all]=e\n", map[string]string{"S.gfx110X-all": "1", "S.b-c": "2", "S.gfx120X-all": "3"}, "declare -A S=([gfx110X-all]=1 ['b-c']=2)\nS[gfx120X-all]=3\n", ""},
		{"one item", "shell", "S[2]=a\n", map[string]string{"S[2]": "b"}, "S[2]=b\n", ""},
		{"added to", "shell", "S=(a)\nS+=(b)\n", map[string]string{"S[1]": "c"}, "S=(a)\nS+=(c)\n", ""},
		{"not ASCII before", "shell", "é='ü' A=1\n", map[string]string{"x": "2"}, "", "0 match"},
		{"bytes before", "shell", "# ünïcode\nB='ü'; A=1\n", map[string]string{"A": "2"}, "# ünïcode\nB='ü'; A=2\n", ""},
		{"here-document", "shell", "cat <<E\nA=0\nE\nA=1\n", map[string]string{"A": "2"}, "cat <<E\nA=0\nE\nA=2\n", ""},
		{"environment of a command", "shell", "A=0 make\nA=1\n", map[string]string{"A": "2"}, "A=0 make\nA=2\n", ""},
		{"two", "shell", "A=1\nif x; then A=2; fi\n", map[string]string{"A": "3"}, "", "2 match: A[0]; A[1]"},
		{"the second of two", "shell", "A=1\nif x; then A=2; fi\n", map[string]string{"A[1]": "3"}, "A=1\nif x; then A=3; fi\n", ""},
		{"comment only", "shell", "# A=1\n", map[string]string{"A": "2"}, "", "A is found in a comment at line 1"},
		{"other spelling", "shell", "rocm_version=1\n", map[string]string{"ROCM_VERSION": "2"}, "", "similar is rocm_version at line 1"},
		{"a list", "shell", "A=(1 2)\n", map[string]string{"A": "2"}, "", "A is a list of 2 (name one by A[0])"},
		{"computed", "shell", "A=\"$B-1\"\n", map[string]string{"A": "2"}, "", "computed"},
		{"command", "shell", "A=$(date)\n", map[string]string{"A": "2"}, "", "computed"},
		{"mixed", "shell", "A='1'\"2\"\n", map[string]string{"A": "2"}, "", "several quoted parts"},
		{"escapes", "shell", "A=$'1'\n", map[string]string{"A": "2"}, "", "$'…'"},
		{"appended", "shell", "A+=1\n", map[string]string{"A": "2"}, "", "+="},
		{"a quote in quotes", "shell", "A='1'\n", map[string]string{"A": "it's"}, "", "single quote"},
		{"newline", "shell", "A='1'\n", map[string]string{"A": "a\nb"}, "", "no pin does"},
		{"no shell", "shell", "A=(\n", map[string]string{"A": "2"}, "", "1:3"},
		{"after what is not counted", "shell", "A=(1 ${B[@]} 3)\n", map[string]string{"A[2]": "2"}, "", "0 match"},
		{"dotenv", "dotenv", "# A=0\nA=some words\r\nB = \"2\"\r\n", map[string]string{"A": "other words", "B": "3"}, "# A=0\nA=other words\r\nB = \"3\"\r\n", ""},
		{"dotenv variable", "dotenv", "A=$B\n", map[string]string{"A": "1"}, "", "depends on the program"},
	})
}

func TestPkgbuildEdits(t *testing.T) {
	runCodeCases(t, []codeCase{
		{"functions do not count", "pkgbuild", "pkgver=1\npackage() { pkgver=2; }\n", map[string]string{"pkgver": "3"}, "pkgver=3\npackage() { pkgver=2; }\n", ""},
		{"hyphen", "pkgbuild", "pkgver=1\n", map[string]string{"pkgver": "1-2"}, "", "no pkgver"},
		{"pkgrel", "pkgbuild", "pkgrel=1\n", map[string]string{"pkgrel": "x"}, "", "no pkgrel"},
		{"reset", "pkgbuild", "pkgrel='4'\npkgver=1\n", map[string]string{"pkgver": "2"}, "pkgrel='1'\npkgver=2\n", ""},
		{"reset with the name that it is made of", "pkgbuild", "_ver=1\npkgver=${_ver%%a*}\npkgrel=4\n", map[string]string{"_ver": "2a3"}, "_ver=2a3\npkgver=${_ver%%a*}\npkgrel=1\n", ""},
		{"no reset with another name", "pkgbuild", "_ver=1\n_x=1\npkgver=$_ver\npkgrel=4\n", map[string]string{"_x": "2"}, "_ver=1\n_x=2\npkgver=$_ver\npkgrel=4\n", ""},
		{"no reset where the version stays", "pkgbuild", "_ver=1a2\npkgver=${_ver%%a*}\npkgrel=4\n", map[string]string{"_ver": "1a3"}, "_ver=1a3\npkgver=${_ver%%a*}\npkgrel=4\n", ""},
		{"no reset without change", "pkgbuild", "pkgver=1\npkgrel=4\n", map[string]string{"pkgver": "1"}, "pkgver=1\npkgrel=4\n", ""},
		{"computed", "pkgbuild", "_v=1\npkgver=${_v}a\n", map[string]string{"pkgver": "2"}, "", "computed"},
		{"split lists", "pkgbuild", "sha256sums_x86_64=('a'\n  b # c\n  \"d\")\n", map[string]string{"sha256sums_x86_64[2]": "e"}, "sha256sums_x86_64=('a'\n  b # c\n  \"e\")\n", ""},
	})
}

func TestShellURLs(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"v=1.2a3\ncurl https://h/$v/${v%%a*}_${v//./-}_${v^^}_${#v}_${v:0:3}_${v: -2}", "https://h/1.2a3/1.2_1-2a3_1.2A3_5_1.2_a3"},
		{"declare -A s=([gfx110X-all]=a [b]=c)\ncurl https://h/${s[gfx110X-all]}/${s[b]}", "https://h/a/c"},
		{"curl https://h/${V:-x}/${W-y}", "https://h/x/y"},
		{"curl https://h/$(date)/$1", "https://h/${command}/${1} unknown command,1"},
		{"a=(x y)\ncurl https://h/${a[1]}/${a[@]}", "https://h/y/x"},
		{"declare -A m=([k]=v)\ncurl https://h/${m[k]}", "https://h/v"},
		{"v=1\nif x; then v=2; fi\ncurl https://h/$v", "https://h/${v} unknown v"},
		{"v=1\nf() { local v=2; curl https://h/$v; }\n", "https://h/2"},
		{"b=https://h/d\ncurl -o x \"$b/f\"", "https://h/d|https://h/d/f"},
		{"s=(n::https://h/f 'git+https://h/g#tag=1')", "https://h/f|git+https://h/g#tag=1"},
	} {
		if got := strings.Join(urlsOf(t, "shell", []byte(c.src)), "|"); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.src, got, c.want)
		}
	}
}

// The directory of an address that a variable begins may be edited where the
// variable is set; a version in it never.
func TestShellURLPlaces(t *testing.T) {
	src := []byte("b=https://h/d\nv=1\ncurl \"$b/f-$v\"")
	doc, err := parseShell(src, Options{})
	if err != nil {
		t.Fatal(err)
	}
	u := doc.urls()[1]
	if len(u.Pieces) != 3 || string(src[u.Pieces[0].Start:u.Pieces[0].End]) != "https://h/d" || u.Pieces[2].End != 0 {
		t.Fatalf("%+v", u.Pieces)
	}
}

// What would exhaust a parser that recurses, or an expansion, is refused.
func TestShellBounds(t *testing.T) {
	for name, src := range map[string]string{
		"brackets": strings.Repeat("(", 100000),
		"quotes":   strings.Repeat("\"$(", 50000),
		"keywords": strings.Repeat("if ", 10000),
		"minus":    "$((" + strings.Repeat("- ", 20000) + "1))",
		"not":      strings.Repeat("! ", 50000),
		"long":     strings.Repeat("a", maxShell+1),
		"doubling": "a=xxxxxxxx\n" + strings.Repeat("a=$a$a\n", 60) + "curl https://h/$a",
		"replace":  "a=" + strings.Repeat("x", 4000) + "\n" + strings.Repeat("b=${a//x/$a}\n", 2000),
		"braces":   "a=(" + strings.Repeat("{a,b}", 40) + ")\nb=({1..999999999})\n",
		"lists":    "a=(1 2 3 4 5 6 7 8)\n" + strings.Repeat("a+=(\"${a[@]}\")\n", 60),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseShell([]byte(src), Options{}); err != nil {
				t.Log(err)
			}
			if _, err := SrcInfo([]byte(src)); err != nil {
				t.Log(err)
			}
		})
	}
}
