package wrap

import (
	"bytes"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// leak is one rule about builder paths in text files. The rules are data: what
// they are called, which files they read, what they look for and how the path
// found is written relative to the file.
type leak struct {
	name    string         // in the manifest
	globs   []string       // on the path in the tree (with a slash) or the file's name
	script  *regexp.Regexp // on the first line; nil: the name alone decides
	run     bool           // only files that can be executed
	found   *regexp.Regexp // group 1: what stands before, group 2: the path; further groups what stands behind
	skip    *regexp.Regexp // lines that are not the rule's business
	replace func(file string, lines []string, r *leak) []string
}

// Where AMD's builders keep their trees. A stage directory is laid out like the
// tree itself: what follows it is a path in the tree.
const (
	pathBytes = `[A-Za-z0-9._+@/-]*`
	builder   = `/(?:__w/|therock)` + pathBytes
	installed = `/opt/rocm` + pathBytes
	// installedPath ends with no slash.
	installedPath = `/opt/rocm(?:` + pathBytes + `[A-Za-z0-9._+@-])?`
)

var leaks = []*leak{
	{
		name:    "leaked-path-pkg-config",
		globs:   []string{"*.pc"},
		found:   regexp.MustCompile(`(^|[=\s"':;,]|-[LI])(` + builder + `|` + installed + `)`),
		skip:    regexp.MustCompile(`^\s*(#|Name:|Description:|URL:)`),
		replace: pkgConfigLines,
	},
	{
		name:    "leaked-path-cmake",
		globs:   []string{"*.cmake"},
		found:   regexp.MustCompile(`(^|[\s"(;])(` + builder + `)`),
		skip:    hashComment,
		replace: cmakeLines,
	},
	{
		name:    "leaked-path-cmake-default",
		globs:   []string{"*.cmake"},
		found:   regexp.MustCompile(`([\s"(;:])(` + installed + `)`),
		skip:    hashComment,
		replace: cmakeDefaultLines,
	},
	{
		name:    "leaked-path-libtool",
		globs:   []string{"*.la"},
		found:   regexp.MustCompile(`^(dependency_libs=')([^']*)(')`),
		skip:    hashComment,
		replace: libtoolLines,
	},
	{
		name:    "leaked-path-clang-config",
		globs:   []string{"lib/llvm/bin/*.cfg", "lib/llvm/alt/bin/*.cfg", "llvm/bin/*.cfg", "llvm/alt/bin/*.cfg"},
		found:   regexp.MustCompile(`(^|[=\s"',]|-[LIB])(` + builder + `|` + installed + `)`),
		skip:    hashComment,
		replace: clangConfigLines,
	},
	{
		name:    "leaked-path-config-script",
		globs:   []string{"bin/*-config", "lib/llvm/bin/*-config", "lib/rocm_sysdeps/bin/*-config"},
		found:   regexp.MustCompile(`^(prefix=["']?)(` + builder + `|` + installed + `)(["']?\s*)$`),
		skip:    hashComment,
		replace: configScriptLines,
	},
	{
		name:    "leaked-path-shell-default",
		script:  shellScript,
		run:     true,
		found:   shellDefault,
		skip:    hashComment,
		replace: shellDefaultLines,
	},
	{
		name:    "leaked-path-python-default",
		globs:   []string{"*.py"},
		script:  regexp.MustCompile(`^#!.*\bpython`),
		found:   pythonDefault,
		skip:    hashComment,
		replace: pythonDefaultLines,
	},
	{
		name:    "leaked-path-perl-default",
		globs:   []string{"*.pl", "*.pm"},
		script:  regexp.MustCompile(`^#!.*\bperl\b`),
		found:   perlDefault,
		skip:    hashComment,
		replace: perlDefaultLines,
	},
}

var hashComment = regexp.MustCompile(`^\s*#`)

// versionedRoot is what may follow /opt/rocm in the name of an install.
var versionedRoot = regexp.MustCompile(`^(?:-[0-9][0-9.]*)?(?:/(.*))?$`)

// treeDirs are the first elements of the paths in a tree: what follows a stage
// directory must start with one, or the guess is not certain.
var treeDirs = map[string]bool{
	"bin": true, "include": true, "lib": true, "lib64": true, "libexec": true, "share": true, "llvm": true, "amdgcn": true,
}

// rulesFor lists the rules that read a file of that path and that beginning.
func rulesFor(file string, head []byte) []*leak {
	first, _ := firstLine(head)
	var rules []*leak
	for _, r := range leaks {
		if r.named(file) || r.script != nil && r.script.MatchString(first) {
			rules = append(rules, r)
		}
	}
	return rules
}

// named reports whether a rule reads a file for its path alone.
func (r *leak) named(file string) bool {
	for _, g := range r.globs {
		name := file
		if !strings.Contains(g, "/") {
			name = path.Base(file)
		}
		if ok, err := path.Match(g, name); ok && err == nil {
			return true
		}
	}
	return false
}

// apply returns data as the rule wants it; the same slice when it does not fire.
func (r *leak) apply(file string, mode fs.FileMode, data []byte) ([]byte, error) {
	if r.run && mode&0o111 == 0 {
		return data, nil
	}
	if bytes.IndexByte(data, 0) >= 0 || !bytes.Contains(data, []byte("/__w")) &&
		!bytes.Contains(data, []byte("/therock")) && !bytes.Contains(data, []byte("/opt/rocm")) {
		return data, nil
	}
	lines := strings.SplitAfter(string(data), "\n")
	edited := strings.Join(r.replace(file, lines, r), "")
	if edited == string(data) {
		return data, nil
	}
	return []byte(edited), nil
}

// sub rewrites each builder path of a line by write, which gets it without
// trailing slashes and returns "" for one that it is not certain about.
func (r *leak) sub(line string, write func(leaked string) string) string {
	if r.skip.MatchString(line) {
		return line
	}
	return r.found.ReplaceAllStringFunc(line, func(hit string) string {
		m := r.found.FindStringSubmatch(hit)
		if m == nil {
			return hit
		}
		leaked := strings.TrimRight(m[2], "/")
		if text := write(leaked); text != "" {
			return m[1] + text + m[2][len(leaked):] + strings.Join(m[3:], "")
		}
		return hit
	})
}

// inTree turns a builder path into the path in the tree that it stood for; ""
// with true is the tree itself. False when that is not certain: a builder path
// outside every stage directory could have meant anything.
func inTree(leaked string) (string, bool) {
	leaked = path.Clean(leaked)
	rel := ""
	if rest, ok := strings.CutPrefix(leaked, "/opt/rocm"); ok {
		m := versionedRoot.FindStringSubmatch(rest)
		if m == nil {
			return "", false
		}
		rel = m[1]
	} else {
		i := strings.LastIndex(leaked+"/", "/stage/")
		if i < 0 {
			return "", false
		}
		rel = strings.Trim(strings.TrimPrefix(leaked[i:], "/stage"), "/")
	}
	first, _, _ := strings.Cut(rel, "/")
	return rel, rel == "" || treeDirs[first]
}

// relTo is the path from the directory of file to a path, both in the tree; "."
// is that directory itself.
func relTo(file, target string) string { return relDir(path.Dir(file), target) }

// relDir is the path from one directory to another, both slash-separated,
// relative to one root and free of "..".
func relDir(from, to string) string {
	a, b := splitPath(from), splitPath(to)
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	out := strings.Repeat("../", len(a)-n) + strings.Join(b[n:], "/")
	if out = strings.TrimSuffix(out, "/"); out == "" {
		return "."
	}
	return out
}

// splitPath is the elements of a relative path; none for "" and ".".
func splitPath(p string) []string {
	p = strings.Trim(path.Clean("/"+p), "/")
	if p == "" {
		return nil
	}
	return strings.Split(p, "/")
}

// under joins a variable that names the file's directory and a relative path.
func under(variable, rel string) string {
	if rel == "." {
		return variable
	}
	return variable + "/" + rel
}
