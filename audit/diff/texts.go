package diff

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// Limits of what is compared as text.
const (
	maxConfig     = 256 << 10 // bytes of a configuration file
	maxConfigs    = 200       // files
	maxScriptHead = 256       // bytes of a first line: the kernel reads no more
	maxInterps    = 200       // different changes of first lines
)

// whyEdits is a configuration file that was published as it was: prefixes at
// different places have their own paths in it.
const whyEdits = "edited otherwise after unpacking"

// isConfig tells whether a file configures something.
func isConfig(p string) bool { return strings.HasSuffix(p, ".cfg") }

// isCompilers tells whether a configuration file is the compiler's.
func isCompilers(p string) bool {
	return strings.HasPrefix(p, "lib/llvm/") || strings.HasPrefix(p, "llvm/") || path.Dir(p) == "bin"
}

// texts compares configuration files line by line, and the first lines of
// scripts.
func (c *comparer) texts(ctx context.Context) error {
	for i := range c.pairs {
		switch p := &c.pairs[i]; {
		case !isConfig(p.b.Path):
		case p.state == changed || p.state == kinds || p.state == target:
			c.config("changed", p.a, p.b)
		case p.state == edits:
			c.config(whyEdits, p.a, p.b)
		}
	}
	for _, f := range c.added {
		if isConfig(f.Path) && f.Kind != manifest.Dir {
			c.config("added", nil, f)
		}
	}
	for _, f := range c.removed {
		if isConfig(f.Path) && f.Kind != manifest.Dir {
			c.config("removed", f, nil)
		}
	}
	slices.SortFunc(c.r.Config, func(x, y TextChange) int { return strings.Compare(x.Path, y.Path) })
	return c.scripts(ctx)
}

// config files what differs in one configuration file.
func (c *comparer) config(why string, a, b *file) {
	f := b
	if f == nil {
		f = a
	}
	ch := TextChange{Path: f.Path, Why: why}
	if len(c.r.Config) >= maxConfigs {
		c.note("configuration files that are too many to show", f.Path, nil)
		return
	}
	was, err := c.lines(c.a, a)
	is, berr := c.lines(c.b, b)
	if err = cmpErr(err, berr); err != nil {
		c.note("configuration files of which no difference can be shown", f.Path, err)
	} else {
		ch.Diff, ch.Cut = unified(was, is)
	}
	c.r.Config = append(c.r.Config, ch)
}

// lines reads a text, nil for no file. Of what is no file it says what it is.
func (c *comparer) lines(s *side, f *file) ([]string, error) {
	switch {
	case f == nil:
		return nil, nil
	case f.Kind == manifest.Symlink:
		return []string{"(link to " + f.Link + ")"}, nil
	case !f.regular():
		return []string{"(" + string(f.Kind) + ")"}, nil
	}
	b, err := s.text(f.Path, maxConfig)
	if err != nil || len(b) == 0 {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n"), nil
}

// scripts counts changed scripts, and those whose first line is another.
func (c *comparer) scripts(ctx context.Context) error {
	var todo []*pair
	for i := range c.pairs {
		p := &c.pairs[i]
		if (p.state == changed || p.state == edits) && p.a.regular() && p.b.regular() && p.b.ELF == nil && p.b.Same == "" && (p.b.Mode|p.a.Mode)&0o111 != 0 {
			todo = append(todo, p)
		}
	}
	heads := make([][2]string, len(todo))
	err := c.each(ctx, len(todo), func(i int) {
		p := todo[i]
		was, err := c.a.head(p.a.Path)
		is, berr := c.b.head(p.b.Path)
		if err = cmpErr(err, berr); err != nil {
			c.note("scripts that cannot be read", p.b.Path, err)
			return
		}
		heads[i] = [2]string{was, is}
	})
	if err != nil {
		return err
	}
	seen := map[[2]string]int{}
	for i, h := range heads {
		if h[0] == "" && h[1] == "" {
			continue
		}
		if c.r.Scripts.Changed++; h[0] == h[1] {
			continue
		}
		if at, ok := seen[h]; ok {
			c.r.Scripts.Interpreters[at].Files++
		} else if len(seen) < maxInterps {
			seen[h] = len(c.r.Scripts.Interpreters)
			c.r.Scripts.Interpreters = append(c.r.Scripts.Interpreters, Interpreter{h[0], h[1], 1, todo[i].b.Path})
		}
	}
	slices.SortFunc(c.r.Scripts.Interpreters, func(x, y Interpreter) int {
		return cmp.Or(cmp.Compare(y.Files, x.Files), strings.Compare(x.Path, y.Path))
	})
	return nil
}

// head is the first line of a script without its #!, "" for any other file.
func (s *side) head(p string) (string, error) {
	f, err := s.openIn(p)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b := make([]byte, maxScriptHead)
	n, err := io.ReadFull(f, b)
	if n == 0 || err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		if err == io.EOF {
			err = nil
		}
		return "", err
	}
	line, ok := bytes.CutPrefix(b[:n], []byte("#!"))
	if !ok {
		return "", nil
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	return strings.TrimSpace(string(line)), nil
}
