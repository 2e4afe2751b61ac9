package notify

import (
	"errors"
	"fmt"
	"strings"
	"text/template"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
)

// Bounds of what is sent, in bytes: no service cuts it, and no template fills memory.
const (
	maxTitle    = 200
	maxText     = 3000
	maxTemplate = 64 << 10
)

// texts are the templates of a sink; nil ones leave the event's own words.
type texts struct{ title, text *template.Template }

// CheckTemplates says what is wrong with the templates of a sink: each is tried on an
// example of every kind of event.
func CheckTemplates(title, text string) error {
	_, err := parseTexts(title, text)
	return err
}

func parseTexts(title, text string) (*texts, error) {
	t := &texts{}
	for _, p := range []struct {
		name, source string
		to           **template.Template
	}{{"title", title, &t.title}, {"text", text, &t.text}} {
		if p.source == "" {
			continue
		}
		parsed, err := template.New(p.name).Option("missingkey=error").Parse(p.source)
		if err != nil {
			return nil, fmt.Errorf("the template of the %s: %w", p.name, err)
		}
		*p.to = parsed
	}
	for _, kind := range Kinds() {
		e, _ := Sample(kind, "host", time.Unix(1790000000, 0).UTC())
		if _, err := t.apply(e); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// apply is an event in the words of a sink, which are plain and bounded.
func (t *texts) apply(e Event) (Event, error) {
	title, text := e.Title, e.Text
	for _, p := range []struct {
		of *template.Template
		to *string
	}{{t.title, &title}, {t.text, &text}} {
		if p.of == nil {
			continue
		}
		out, err := execute(p.of, e)
		if err != nil {
			return e, err
		}
		*p.to = out
	}
	e.Title, e.Text = plain.Cut(strings.Join(strings.Fields(title), " "), maxTitle), plainLines(text, maxText)
	if e.Title == "" {
		e.Title = e.Kind
	}
	if e.Text == "" {
		e.Text = e.Title // services refuse an empty message
	}
	return e, nil
}

// plainLines is a text of lines without anything that is not plain, cut to about
// limit bytes.
func plainLines(text string, limit int) string {
	var lines []string
	left := limit
	for line := range strings.Lines(strings.TrimSpace(text)) {
		if left <= 0 {
			lines = append(lines, "…")
			break
		}
		line = plain.Cut(strings.ReplaceAll(strings.TrimRight(line, "\r\n \t"), "\t", "  "), left)
		left -= len(line) + 1
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

var errTooMuch = errors.New("it writes too much")

// bounded is a text that does not grow over its bound.
type bounded struct{ strings.Builder }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxTemplate {
		return 0, errTooMuch
	}
	return b.Builder.Write(p)
}

func execute(t *template.Template, e Event) (string, error) {
	var out bounded
	if err := t.Execute(&out, e); err != nil {
		return "", fmt.Errorf("the template of the %s: %w", t.Name(), err)
	}
	return out.String(), nil
}
