package wrap

import (
	"regexp"
	"strings"
)

// cmakeScope matches where CMAKE_CURRENT_LIST_DIR stops to be this file's
// directory: a function or macro sees its caller's.
var cmakeScope = regexp.MustCompile(`(?i)^\s*(function|macro|endfunction|endmacro)\s*\(`)

// cmakeLines rewrites stage paths through CMAKE_CURRENT_LIST_DIR, at the top
// level of a file only. Comments and bracket arguments stay, where nothing is
// expanded.
func cmakeLines(file string, lines []string, r *leak) []string {
	return cmakeCode(lines, func(code string) string {
		return r.sub(code, func(leaked string) string { return cmakePath(file, leaked, false) })
	})
}

// cmakeDefault matches the code in which /opt/rocm is more than a place to look
// in: a variable set to nothing but that, and a quoted property of an imported
// target. Among the PATHS and HINTS of a search it is one guess of several, and
// harmless.
var cmakeDefault = regexp.MustCompile(`(?i)^\s*set\s*\(\s*[A-Za-z_][A-Za-z0-9_]*\s+(?:"[^"$;\s]*"|[^\s"()$;]+)(?:\s+CACHE\s+(?:PATH|FILEPATH|STRING)\s+"[^"]*"(?:\s+FORCE)?)?\s*\)\s*$` +
	`|\b(?:INTERFACE_(?:SYSTEM_)?INCLUDE_DIRECTORIES|INTERFACE_LINK_(?:DIRECTORIES|LIBRARIES)|IMPORTED_(?:LOCATION|IMPLIB)(?:_[A-Z]+)?)\s+"[^"]*"`)

// cmakeDefaultLines rewrites /opt/rocm where it would be used as it is.
func cmakeDefaultLines(file string, lines []string, r *leak) []string {
	return cmakeCode(lines, func(code string) string {
		return cmakeDefault.ReplaceAllStringFunc(code, func(code string) string {
			return r.sub(code, func(leaked string) string { return cmakePath(file, leaked, true) })
		})
	})
}

// cmakePath is a leaked path relative to the file. Only an installed path may
// stand for the tree itself: what a builder had there is not certain.
func cmakePath(file, leaked string, installed bool) string {
	target, ok := inTree(leaked)
	if !ok || target == "" && !installed {
		return ""
	}
	return under("${CMAKE_CURRENT_LIST_DIR}", relTo(file, target))
}

// cmakeCode edits the code of the lines at the top level of a file.
func cmakeCode(lines []string, edit func(code string) string) []string {
	for _, line := range lines {
		if strings.Contains(line, "[[") || strings.Contains(line, "[=") {
			return lines
		}
	}
	depth := 0
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = line
		if m := cmakeScope.FindStringSubmatch(line); m != nil {
			if depth++; strings.HasPrefix(strings.ToLower(m[1]), "end") {
				depth -= 2
			}
		}
		if depth != 0 {
			continue
		}
		code, comment := line, ""
		if at := strings.IndexByte(line, '#'); at >= 0 {
			code, comment = line[:at], line[at:]
		}
		out[i] = edit(code) + comment
	}
	return out
}
