package bump

import (
	"errors"
	"fmt"
	"strings"
	"text/template"
)

// maxValue bounds what a template may expand to, in bytes.
const maxValue = 64 << 10

// errTooLong stops a template that writes without end.
var errTooLong = fmt.Errorf("the value is longer than %d bytes", maxValue)

// boundedText is a strings.Builder that refuses to grow past maxValue.
type boundedText struct{ strings.Builder }

func (b *boundedText) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxValue {
		return 0, errTooLong
	}
	return b.Builder.Write(p)
}

// expand returns the value of one template over pin. An empty value is an
// error: it would blank the pin.
func expand(path, key, text string, pin Pin) (string, error) {
	t, err := template.New(key).Option("missingkey=error").Parse(text)
	if err != nil {
		return "", fmt.Errorf("read template of %s for %s: %w", key, path, err)
	}
	var b boundedText
	if err := t.Execute(&b, pin); err != nil {
		if errors.Is(err, errTooLong) {
			err = errTooLong
		}
		return "", fmt.Errorf("expand template of %s for %s: %w (fields are Version, URL, SRI, Hex, Nix32, Size, Date, Family, Target, Channel, Name)", key, path, err)
	}
	if b.Len() == 0 {
		return "", fmt.Errorf("expand template of %s for %s: %q gives an empty value", key, path, text)
	}
	return b.String(), nil
}
