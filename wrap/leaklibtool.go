package wrap

import (
	"path"
	"slices"
	"strings"
)

// libtoolLines corrects what a libtool archive says of other libraries. The
// format knows no relative paths, but -lNAME needs none: libtool looks for it in
// the directory of the archive, which it adds to the search itself. So archives
// of the same directory become -lNAME, and the option that names that directory
// goes; so does each run path of a builder, which would end up in programs. All
// else stays, libdir too: libtool says that the library was moved, and takes the
// directory that the archive is in.
func libtoolLines(file string, lines []string, r *leak) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = line
		m := r.found.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		was := strings.Fields(m[2])
		words := libtoolWords(path.Dir(file), was)
		if slices.Equal(words, was) {
			continue
		}
		text := strings.Join(words, " ")
		if text != "" && strings.HasPrefix(m[2], " ") {
			text = " " + text // as libtool writes it
		}
		out[i] = m[1] + text + m[3] + line[len(m[0]):]
	}
	return out
}

// libtoolWords are the dependencies of an archive in dir.
func libtoolWords(dir string, words []string) []string {
	var kept []string
	for _, w := range words {
		option := ""
		for _, o := range []string{"-L", "-R"} {
			if strings.HasPrefix(w, o) {
				option = o
			}
		}
		leaked := w[len(option):]
		target, sure := inTree(leaked)
		name, isArchive := strings.CutSuffix(path.Base(target), ".la")
		name, isLibrary := strings.CutPrefix(name, "lib")
		switch {
		case !isLeaked(leaked):
		case option == "-R":
			continue
		case option == "-L" && sure && target == dir:
			continue
		case option == "" && sure && isArchive && isLibrary && name != "" && path.Dir(target) == dir:
			w = "-l" + name
		}
		kept = append(kept, w)
	}
	return kept
}

// isLeaked reports whether a path is one of a build machine or of an install.
func isLeaked(p string) bool {
	for _, prefix := range []string{"/__w/", "/therock", "/opt/rocm"} {
		if strings.HasPrefix(p, prefix) {
			return true
		}
	}
	return false
}
