package secret

import (
	"encoding/base64"
	"net/url"
	"sort"
	"strings"
)

// shortest is how long a text must be to be hidden: to hide shorter ones would
// spoil the text around, and no token is that short.
const shortest = 4

// Scrub returns s without the secrets, as they are or as URLs and the header of
// basic authentication write them; a word stands in their place. A secret of
// several lines is hidden line by line too.
func Scrub(s string, secrets ...Secret) string {
	var forms []string
	for _, secret := range secrets {
		forms = append(forms, formsOf(secret.Reveal())...)
	}
	// The longest first, so that no form is cut into by a shorter one.
	sort.Slice(forms, func(i, j int) bool { return len(forms[i]) > len(forms[j]) })
	for _, form := range forms {
		if len(form) >= shortest {
			s = strings.ReplaceAll(s, form, redacted)
		}
	}
	return s
}

// formsOf lists how a secret may be written.
func formsOf(text string) []string {
	if len(text) < shortest {
		return nil
	}
	forms := []string{text, url.QueryEscape(text), url.PathEscape(text), url.UserPassword("", text).String()[1:]}
	if strings.Contains(text, "\n") {
		for _, line := range strings.Split(text, "\n") {
			// The frame of a key is no secret, and common.
			if line = strings.TrimSpace(line); len(line) >= 16 && !strings.HasPrefix(line, "-----") {
				forms = append(forms, line)
			}
		}
		forms = append(forms, strings.ReplaceAll(text, "\n", `\n`))
	}
	return append(forms, base64Forms(text)...)
}

// base64Forms lists what the base64 of "user:" and text has in common whatever
// the user: base64 writes three bytes as four letters, so there are three ways
// for a text to lie, and the letters at either end depend on what is beside it.
func base64Forms(text string) []string {
	if len(text) < 12 {
		return nil // what is left of it is too short to be told from other text
	}
	var forms []string
	for before := range 3 {
		encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x00", before) + text))
		from := []int{0, 2, 3}[before]
		to := (before + len(text)) / 3 * 4
		forms = append(forms, encoded[from:to])
		forms = append(forms, strings.NewReplacer("+", "-", "/", "_").Replace(encoded[from:to]))
	}
	return forms
}
