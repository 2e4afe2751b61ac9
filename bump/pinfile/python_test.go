package pinfile

import (
	"strings"
	"testing"
)

func TestStarlarkEdits(t *testing.T) {
	runCodeCases(t, []codeCase{
		{"single quotes", "starlark", "A = 'x'\n", map[string]string{"A": "it's \\ \"q\""}, "A = 'it\\'s \\\\ \"q\"'\n", ""},
		{"raw", "starlark", "A = r\"x\"\n", map[string]string{"A": "y"}, "A = r\"y\"\n", ""},
		{"raw that cannot", "starlark", "A = r\"x\"\n", map[string]string{"A": `\`}, "", "raw string cannot"},
		{"escapes", "starlark", `A = "\x41\n"` + "\n", map[string]string{"A": "b"}, "A = \"b\"\n", ""},
		{"not ASCII before", "starlark", "# ünï\nB = 'üü'; A = 'x'\n", map[string]string{"A": "é"}, "# ünï\nB = 'üü'; A = 'é'\n", ""},
		{"CRLF", "starlark", "f(\r\n  a = \"x\",\r\n)\r\n", map[string]string{"f.a": "y"}, "f(\r\n  a = \"y\",\r\n)\r\n", ""},
		{"lists", "starlark", "A = [\"x\", (\"y\", \"z\")]\n", map[string]string{"A[1][0]": "w"}, "A = [\"x\", (\"w\", \"z\")]\n", ""},
		{"list of calls", "starlark", "A = [r(n = \"x\", v = \"1\"), r(n = \"y\", v = \"1\")]\n", map[string]string{"A[n=y].v": "2"}, "A = [r(n = \"x\", v = \"1\"), r(n = \"y\", v = \"2\")]\n", ""},
		{"sums of lists", "starlark", "A = [\"x\"] + [\"y\"]\n", map[string]string{"A[1]": "z"}, "A = [\"x\"] + [\"z\"]\n", ""},
		{"item of a dictionary", "starlark", "A = {}\nA[\"k.l\"] = \"x\"\n", map[string]string{`A."k.l"`: "y"}, "A = {}\nA[\"k.l\"] = \"y\"\n", ""},
		{"annotated", "starlark", "A: str = \"x\"\n", map[string]string{"A": "y"}, "A: str = \"y\"\n", ""},
		{"continued", "starlark", "A = \\\n  \"x\"\n", map[string]string{"A": "y"}, "A = \\\n  \"y\"\n", ""},
		{"the call of that index", "starlark", "dep(v = \"1\")\ndep(v = \"2\")\n", map[string]string{"dep[1].v": "3"}, "dep(v = \"1\")\ndep(v = \"3\")\n", ""},
		{"a number", "starlark", "f(size = 12)\n", map[string]string{"f.size": "x"}, "", "no whole number"},
		{"in a docstring", "starlark", "\"\"\"\nA = \"x\"\n\"\"\"\n", map[string]string{"A": "y"}, "", "A is found in a comment at line 2"},
		{"two calls", "starlark", "dep(name = \"a\", v = \"1\")\ndep(name = \"b\", v = \"1\")\n", map[string]string{"dep.v": "3"}, "", "2 match: dep[name=a].v; dep[name=b].v"},
		{"adjacent", "starlark", "A = \"x\" \"y\"\n", map[string]string{"A": "z"}, "", "several strings"},
		{"sum", "starlark", "A = \"x\" + B\n", map[string]string{"A": "z"}, "", "computed"},
		{"percent", "starlark", "A = \"x%s\" % B\n", map[string]string{"A": "z"}, "", "computed"},
		{"format", "starlark", "A = \"x{}\".format(B)\n", map[string]string{"A": "z"}, "", "computed"},
		{"triple", "starlark", "A = \"\"\"x\"\"\"\n", map[string]string{"A": "z"}, "", "triple"},
		{"name", "starlark", "A = B\n", map[string]string{"A": "z"}, "", "not a string"},
		{"a name gives way to a string", "starlark", "A = B\nf(A = \"x\")\n", map[string]string{"A": "z"}, "A = B\nf(A = \"z\")\n", ""},
		{"if else", "starlark", "A = \"x\" if B else \"y\"\n", map[string]string{"A": "z"}, "", "not a string"},
		{"unclosed", "starlark", "f(\n", map[string]string{"A": "z"}, "", "never closed"},
		{"half a string", "starlark", "A = \"x\n", map[string]string{"A": "z"}, "", "1:5"},
	})
}

func TestSpackEdits(t *testing.T) {
	const head = "class A(Package):\n    version(\"2\", sha256=\"a\")\n    version(\"1\", sha256='b')\n"
	runCodeCases(t, []codeCase{
		{"by hash", "spack", head, map[string]string{"version[sha256=b]": "1.5"}, strings.Replace(head, `"1"`, `"1.5"`, 1), ""},
		{"hash of the second", "spack", head, map[string]string{"version[1].sha256": "c"}, strings.Replace(head, `'b'`, `'c'`, 1), ""},
		{"which of two", "spack", head, map[string]string{"version": "3"}, "", "2 match: A.version[0]; A.version[1]"},
		{"methods do not count", "spack", "class A(P):\n    url = \"u\"\n    def f(self):\n        url = \"v\"\n", map[string]string{"url": "w"}, "class A(P):\n    url = \"w\"\n    def f(self):\n        url = \"v\"\n", ""},
	})
}

func TestStarlarkURLs(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"V = \"1\"\nf(url = \"https://h/%s-%d%%\" % (V, 2))", "https://h/1-2%"},
		{"V = \"1\"\nf(url = \"https://h/{0}{0}/{v}/{{}}\".format(V, v = \"x\"))", "https://h/11/x/{}"},
		{"f(url = \"https://h/\" + get() + \"/x\")", "https://h/${get()}/x unknown get()"},
		{"D = {\"k\": struct(v = \"1\")}\nf(url = \"https://h/\" + D[\"k\"].v)", "https://h/1"},
		{"A = B\nB = A\nf(url = \"https://h/\" + A)", "https://h/${A} unknown A"},
		{"f(version = \"1\", url = \"https://h/{version}/{other}\")", "https://h/1/${other} unknown other"},
		{"V = \"1\"\nV = \"2\"\nf(url = \"https://h/\" + V)", "https://h/${V} unknown V"},
		{"V = \"1\"\nx(f\"https://h/{V}/{V.y}\")", "https://h/1/${format} unknown format"},
	} {
		if got := strings.Join(urlsOf(t, "starlark", []byte(c.src)), "|"); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.src, got, c.want)
		}
	}
}

// What would exhaust a reader that recurses is refused or read in time.
func TestPythonBounds(t *testing.T) {
	for name, src := range map[string]string{
		"brackets": strings.Repeat("[", 100000),
		"sum":      "a = " + strings.Repeat("b + ", 20000) + "b",
		"dots":     "a" + strings.Repeat(".b", 20000) + " = \"x\"",
		"indexes":  "a" + strings.Repeat("[\"b\"]", 20000) + " = \"x\"",
		"blocks":   strings.Repeat("def f():\n ", 10000),
		"doubling": "a = \"xxxxxxxx\"\n" + strings.Repeat("b = a + a\na = b + b\n", 1000) + "f(\"https://h/\" + a)",
		"chain":    chain(3000),
		"format":   "a = " + strings.Repeat("\"{0}{0}\".format(", 90) + "\"x\"" + strings.Repeat(")", 90),
		"same":     "f(" + strings.Repeat("a=\"1\",", 10000) + ")",
		"lambda":   "a = " + strings.Repeat("lambda: ", 10000),
	} {
		t.Run(name, func(t *testing.T) {
			doc, err := parseStarlark([]byte(src), Options{})
			if err == nil {
				_, _, err = doc.find("f[a=2].a")
			}
			t.Log(err)
		})
	}
}

func chain(n int) string {
	var b strings.Builder
	for i := range n {
		c := strings.Repeat("x", i%7+1)
		b.WriteString("v" + c + " = \"https://h/\" + v" + c + "x + \"y\"\n")
	}
	return b.String()
}
