package pinfile

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// Files of a stranger are read in time and without a crash, however they are
// made.
func TestHostileFilesEnd(t *testing.T) {
	const size = 1 << 13
	for _, format := range Formats() {
		o := Options{Format: format, Pattern: fuzzPattern}
		for _, unit := range []string{
			"[", "{", "{\"a\":", "{a: ", "- ", "? ", "a: ", "&a ", "!!a ", "&a\n", "!!a\n", "*a ", "a:\n ", "- - - - - - -\n", "[[a]]\n", "[a.b]\n", "a = [", "a = {b=", "a.", "\"", "'", "\\", "'\\",
			"#", "//", "/*", "a: b\n", "a: |\n b\n", "\"a\": \"b\",", "version=1\n", "--- \n", "%", "\x00", "\xff", "\r", "\t", "$a{b}", "https://${a}", "(", "a(", "ARG a=$a\n", "\n", " ",
		} {
			src := bytes.Repeat([]byte(unit), size/len(unit))
			_, _ = Edit("f", src, map[string]string{"version": "1"}, o)
			_, _ = URLs("f", src, o)
		}
		var stairs strings.Builder
		for i := range 700 {
			stairs.WriteString(strings.Repeat(" ", i) + "a:\n")
		}
		_, _ = URLs("f", []byte(stairs.String()), o)
	}
}

func TestBounds(t *testing.T) {
	for _, tt := range []struct{ name, format, src, err string }{
		{"long", "json", strings.Repeat(" ", MaxLen+1), "larger than 4 MiB"},
		{"deep objects", "json", strings.Repeat(`{"a":`, 100_000), "nested too deep"},
		{"deep lists", "json5", strings.Repeat("[", 100_000), "nested too deep"},
		{"long YAML", "yaml", strings.Repeat("#\n", 300<<10), "too long for YAML"},
		{"many words", "yaml", strings.Repeat("- a\n", 60_000), "too long for YAML"},
		{"deep YAML", "yaml", strings.Repeat("[", 1000), "nested too deep"},
		{"deep YAML line", "yaml", strings.Repeat("- ", 1000), "nested too deep"},
		{"deep TOML", "toml", "a = " + strings.Repeat("[", 1000) + strings.Repeat("]", 1000), "nested too deep"},
		{"deeper TOML", "toml", "a = " + strings.Repeat("[", 100_000), "line 1:"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Edit("f", []byte(tt.src), map[string]string{"a": "1"}, Options{Format: tt.format})
			var syntax *SyntaxError
			if !errors.As(err, &syntax) || syntax.File != "f" || !strings.Contains(strings.ReplaceAll(err.Error(), "f:1:", "line 1:"), tt.err) {
				t.Errorf("got %v, want %q in it", err, tt.err)
			}
		})
	}
}
