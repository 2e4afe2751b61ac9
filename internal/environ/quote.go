package environ

import (
	"fmt"
	"strings"
)

// QuoteSh quotes s for a POSIX shell: in single quotes nothing is special but
// the single quote itself (POSIX.1-2024, shell command language, 2.2.2).
func QuoteSh(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// quoteFish quotes s for fish, whose single quotes know \\ and \'.
func quoteFish(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}

// quoteCsh quotes s for csh, which looks for history (!) inside quotes too.
func quoteCsh(s string) string {
	return "'" + strings.NewReplacer(`'`, `'\''`, `!`, `\!`, "\n", "\\\n").Replace(s) + "'"
}

// quoteC quotes s in double quotes with backslash escapes, as nu and Lua read
// them: Lua 5.1 to 5.4 know \\, \" and \ddd, nu knows \\, \" and \u{…}.
func quoteC(s, control string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(s) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, control, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func quoteLua(s string) string { return quoteC(s, `\%03d`) }

func quoteNu(s string) string { return quoteC(s, `\u{%x}`) }

// quoteTcl quotes s as one word of Tcl: in double quotes these are special, and
// a brace counts where the word is itself in a body in braces.
func quoteTcl(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`).Replace(s) + `"`
}
