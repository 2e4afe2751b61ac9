package wrap

import (
	"path"
	"regexp"
	"strings"
)

// pcPrefix is the line of a .pc file that everything else of it hangs on.
var pcPrefix = regexp.MustCompile(`^(\s*prefix\s*=\s*)(/[^\s"'$]*?)/*(\s*)$`)

// pcDefinition is any definition of the prefix. A file with two is in error, and
// which one counts is not certain.
var pcDefinition = regexp.MustCompile(`^\s*prefix\s*=`)

func countMatches(lines []string, re *regexp.Regexp) int {
	n := 0
	for _, line := range lines {
		if re.MatchString(line) {
			n++
		}
	}
	return n
}

// pkgConfigLines makes a .pc file relocatable through ${pcfiledir}, which both
// pkg-config (0.24, 2010) and pkgconf define. The prefix is the directory that
// holds lib/pkgconfig, wherever the build had it; other values that start with
// the old prefix go through ${prefix}.
func pkgConfigLines(file string, lines []string, r *leak) []string {
	if countMatches(lines, pcDefinition) > 1 {
		return lines
	}
	prefix := ""
	out := make([]string, len(lines))
	for i, line := range lines {
		m := pcPrefix.FindStringSubmatch(line)
		if prefix == "" && m != nil && r.found.FindString(m[2]) == m[2] {
			if text := pcPrefixValue(file, m[2]); text != "" {
				prefix = m[2]
				out[i] = m[1] + text + m[3]
				continue
			}
		}
		out[i] = r.sub(line, func(leaked string) string {
			if rest, ok := cutDir(leaked, prefix); prefix != "" && ok {
				return "${prefix}" + rest
			}
			if target, ok := inTree(leaked); ok {
				return under("${pcfiledir}", relTo(file, target))
			}
			return ""
		})
	}
	return out
}

// pcPrefixValue is the relocatable form of a .pc file's prefix: the path in the
// tree that it stood for, else the directory that holds the file's lib/pkgconfig.
func pcPrefixValue(file, leaked string) string {
	if target, ok := inTree(leaked); ok && (target != "" || strings.HasPrefix(leaked, "/opt/rocm")) {
		return under("${pcfiledir}", relTo(file, target))
	}
	dir := path.Dir(file)
	if path.Base(dir) != "pkgconfig" {
		return ""
	}
	for d := path.Dir(dir); d != "."; d = path.Dir(d) {
		switch path.Base(d) {
		case "lib", "lib64", "share":
			return under("${pcfiledir}", relTo(file, path.Dir(d)))
		}
	}
	return ""
}

// cutDir cuts a directory from the front of a path, at an element's end.
func cutDir(p, dir string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(p, dir)
	return rest, ok && (rest == "" || rest[0] == '/')
}

// clangConfigLines rewrites paths in clang's configuration files through
// <CFGDIR>, which clang replaces by the directory of the file. What the rule for
// the compiler's path wrote is meant as it is.
func clangConfigLines(file string, lines []string, r *leak) []string {
	return outsideBlocks(lines, func(line string) string {
		return r.sub(line, func(leaked string) string {
			target, ok := inTree(leaked)
			if !ok {
				return ""
			}
			return under("<CFGDIR>", relTo(file, target))
		})
	})
}

// shellScript is the first line of a shell script.
var shellScript = regexp.MustCompile(`^#!.*\b(sh|bash|dash)\b`)

// selfPrefix is the directory above the one that a shell script is in.
const selfPrefix = `$(CDPATH= cd -P -- "$(dirname -- "$(readlink -f -- "$0")")/.." && pwd -P)`

// configScriptLines makes the prefix of a shell script the directory above its
// bin/, and the assignments that repeat the old one follow from it. A script
// that was installed elsewhere than it lies is left alone.
func configScriptLines(file string, lines []string, r *leak) []string {
	if !shellScript.MatchString(lines[0]) || countMatches(lines, r.found) != 1 {
		return lines
	}
	prefix := ""
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = line
		if m := r.found.FindStringSubmatch(line); m != nil {
			leaked := strings.TrimRight(m[2], "/")
			if target, ok := inTree(leaked); ok && under("", relTo(file, target)) != "/.." {
				return lines
			}
			prefix = leaked
			out[i] = "prefix=" + selfPrefix + strings.TrimLeft(m[3], `"'`)
		} else if prefix != "" && !r.skip.MatchString(line) {
			out[i] = configScriptRest(line, prefix)
		}
	}
	return out
}

// shellAssignment is a plain or doubly quoted value, the forms in which the
// shell expands a variable, of which nothing else is to be expanded.
var shellAssignment = regexp.MustCompile("^([A-Za-z_][A-Za-z0-9_]*=\"?)(/[^'`$ ;#\\\\]*)$")

// singleQuoted is an assignment in which nothing is expanded, and in double quotes
// nothing would be either.
var singleQuoted = regexp.MustCompile("^([A-Za-z_][A-Za-z0-9_]*=)'(/[^'\"`$\\\\]*)'(\\s*)$")

// configScriptRest puts ${prefix} for the old prefix in an assignment.
func configScriptRest(line, prefix string) string {
	m := shellAssignment.FindStringSubmatch(singleQuoted.ReplaceAllString(line, `${1}"${2}"${3}`))
	if m == nil {
		return line
	}
	rest, ok := strings.CutPrefix(m[2], prefix)
	if !ok || rest != "" && !strings.ContainsRune("/\"\r\n", rune(rest[0])) {
		return line
	}
	return m[1] + "${prefix}" + rest
}
