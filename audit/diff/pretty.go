package diff

import "github.com/ianlancetaylor/demangle"

// Bounds of demangling: a short mangled name can stand for a very long one.
const (
	maxMangled = 1000 // bytes that are tried
	prettyPow  = 12   // at most 1<<12 bytes come out
)

// pretty is the C++ or Rust name of a symbol, "" if it has none.
func pretty(name string) (out string) {
	if len(name) > maxMangled || len(name) < 3 || name[0] != '_' {
		return ""
	}
	// The names are anybody's: one that the package trips over has no other form.
	defer func() {
		if recover() != nil {
			out = ""
		}
	}()
	s, err := demangle.ToString(name, demangle.MaxLength(prettyPow))
	if err != nil || s == name {
		return ""
	}
	return s
}
