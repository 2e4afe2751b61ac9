package wrap

import (
	"path"
	"regexp"
	"strings"
)

// rootNames are the variables that name a ROCm tree: what a script takes for
// one of them when it is not set is the tree that the script came with.
const rootNames = `(?:ROCM_(?:PATH|HOME|DIR|ROOT|INSTALL_DIR)|HIP_PATH)`

// climb is the path from a file's directory to the tree; "." for a file at the
// top.
func climb(file string) string { return relTo(file, "") }

// within joins an expression for the tree and a path in it.
func within(tree, rel string) string {
	if rel == "" {
		return tree
	}
	return tree + "/" + rel
}

// assign may stand before an assignment.
const assign = `(?:(?:export|local|readonly|declare)\s+)?`

// shellDefault matches a line that is an assignment of such a variable, or of
// any from it: A=${ROCM_PATH:-/opt/rocm}, : "${ROCM_PATH:=/opt/rocm}" and
// ROCM_PATH=/opt/rocm.
var shellDefault = regexp.MustCompile(`^(\s*(?:` + assign + `[A-Za-z_][A-Za-z0-9_]*="?\$\{` + rootNames + `:?-|:\s+"?\$\{` + rootNames + `:?=|` + assign + rootNames + `="?))(` + installed + `)(\}?"?\s*)$`)

// innerQuotes matches such a line whose path is quoted by itself, as in
// A=${ROCM_PATH:-"/opt/rocm"}. What it says without these quotes is the same.
var innerQuotes = regexp.MustCompile(`^(\s*(?:(?::\s+|` + assign + `[A-Za-z_][A-Za-z0-9_]*=)\$\{` + rootNames + `:?[-=]|` + assign + rootNames + `=))(?:"(` + installed + `)"|'(` + installed + `)')(\}?\s*)$`)

// quotedWord matches such a line with its value, which is to be quoted: what
// comes into it may hold blanks.
var quotedWord = regexp.MustCompile(`^(\s*(?::\s+|` + assign + `[A-Za-z_][A-Za-z0-9_]*=))"?(.*?)"?(\s*)$`)

// shellDefaultLines makes the default of a shell script that is run the tree
// that it is in. A line that may be text stays: in a script with a here-document,
// or behind a quote that is open, as far as counting them tells.
func shellDefaultLines(file string, lines []string, r *leak) []string {
	for _, line := range lines {
		if strings.Contains(line, "<<") {
			return lines
		}
	}
	tree := `$(CDPATH= cd -P -- "$(dirname -- "$(readlink -f -- "$0")")/` + climb(file) + `" && pwd -P)`
	out := make([]string, len(lines))
	single, double := 0, 0
	for i, line := range lines {
		out[i] = line
		open := single%2 != 0 || double%2 != 0
		if !r.skip.MatchString(line) {
			single += strings.Count(line, "'")
			double += strings.Count(line, `"`) - strings.Count(line, `\"`)
		}
		line := innerQuotes.ReplaceAllString(line, "${1}${2}${3}${4}")
		m := r.found.FindStringSubmatch(line)
		if m == nil || open || strings.Contains(m[1], "{") != strings.Contains(m[3], "}") || strings.Contains(m[1], `"`) != strings.Contains(m[3], `"`) {
			continue
		}
		edited := r.sub(line, func(leaked string) string {
			if rel, ok := inTree(leaked); ok {
				return within(tree, rel)
			}
			return ""
		})
		if edited != line {
			out[i] = quotedWord.ReplaceAllString(edited, `${1}"${2}"${3}`)
		}
	}
	return out
}

// pythonDefault matches the default of a variable of the environment.
var pythonDefault = regexp.MustCompile(`((?:^|[^.\w])os\.(?:environ\.get|getenv)\(\s*["']` + rootNames + `["']\s*,\s*)["'](` + installedPath + `)["'](\s*\))`)

// pythonDefaultLines makes the default of a Python program or module the tree
// that it is in. Who writes os.environ has os.path. Text in triple quotes stays.
func pythonDefaultLines(file string, lines []string, r *leak) []string {
	tree := "os.path.realpath(__file__)"
	for range strings.Count(file, "/") + 1 {
		tree = "os.path.dirname(" + tree + ")"
	}
	quotes := 0
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = line
		n := strings.Count(line, `"""`) + strings.Count(line, "'''")
		if quotes += n; n > 0 || quotes%2 != 0 {
			continue
		}
		out[i] = r.sub(line, func(leaked string) string {
			rel, ok := inTree(leaked)
			switch {
			case !ok:
				return ""
			case rel == "":
				return tree
			}
			return "os.path.join(" + tree + `, "` + rel + `")`
		})
	}
	return out
}

// perlDefault matches the default of a variable of the environment, up to the
// end of its statement.
var perlDefault = regexp.MustCompile(`(\$ENV\{\s*["']?` + rootNames + `["']?\s*\}\s*(?://|\|\|)\s*)["'](` + installedPath + `)["'](\s*;\s*)$`)

// perlDefaultLines makes the default of a Perl program or module the tree that
// it is in. A file with documentation may have the line as text, below "=".
func perlDefaultLines(file string, lines []string, r *leak) []string {
	tree := `Cwd::abs_path(File::Basename::dirname(Cwd::abs_path(__FILE__)) . "/` + climb(file) + `")`
	out := make([]string, len(lines))
	text := false
	for i, line := range lines {
		if out[i] = line; len(line) > 1 && line[0] == '=' && 'a' <= line[1]|0x20 && line[1]|0x20 <= 'z' {
			text = !strings.HasPrefix(line, "=cut")
		}
		if text {
			continue
		}
		out[i] = r.sub(line, func(leaked string) string {
			rel, ok := inTree(leaked)
			if !ok {
				return ""
			}
			if rel = path.Clean("/" + rel); rel != "/" {
				return `do { require Cwd; require File::Basename; ` + tree + ` . "` + rel + `" }`
			}
			return `do { require Cwd; require File::Basename; ` + tree + ` }`
		})
	}
	return out
}
