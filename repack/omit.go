package repack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/unpack"
	"github.com/rocm-nightly/rocm-nightly/wrap"
)

// OmitError says that the tarball cannot be made into a prefix without what
// Options.Omit names. There is nothing wrong with the tarball.
type OmitError struct{ Err error }

func (e *OmitError) Error() string { return "leave out parts of the tarball: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *OmitError) Unwrap() error { return e.Err }

// omitError marks the errors of unpack that are due to what was left out.
func omitError(err error) error {
	if errors.Is(err, unpack.ErrOmitted) {
		return &OmitError{err}
	}
	return err
}

// omit is what drops entries while they stream by; nil for nothing.
func (m *maker) omit() func(name string, kind manifest.Kind, size int64) string {
	if m.set == nil {
		return nil
	}
	return func(name string, kind manifest.Kind, size int64) string {
		rule, sure := m.set.Hit(name, kind)
		if !sure {
			return ""
		}
		m.omitted = append(m.omitted, manifest.Omission{Path: path.Join(m.tree, name), Kind: kind, Rule: rule, Size: size})
		return rule
	}
}

// edit is the editor of text files, which takes note of how large they were in
// the tarball: whether one is left out is known later, for what is there yet
// may be wanted under another name.
func (m *maker) edit(scripts *wrap.Scripts) func(name string, mode fs.FileMode, data []byte) ([]byte, []string, error) {
	if m.set == nil {
		return scripts.Edit
	}
	m.came = map[string]int64{}
	return func(name string, mode fs.FileMode, data []byte) ([]byte, []string, error) {
		size := int64(len(data))
		out, rules, err := scripts.Edit(name, mode, data)
		if len(rules) > 0 {
			m.came[path.Join(m.tree, name)] = size
		}
		return out, rules, err
	}
}

// inTree is a path of the prefix as one of the ROCm tree, and whether it is in
// there.
func (m *maker) inTree(p string) (string, bool) {
	if m.tree == "" {
		return p, true
	}
	return strings.CutPrefix(p, m.tree+"/")
}

// leaveOut removes what the rules hit and no file of the rest needs, now that
// the headers of all are known. It comes before anything is planned from the
// whole tree.
func (m *maker) leaveOut(ctx context.Context) error {
	if m.set == nil {
		return nil
	}
	if err := m.set.Mismatch(); err != nil {
		return &OmitError{err}
	}
	l := &leaver{m: m, gone: map[string]string{}, folders: map[string]bool{}, heirs: map[string]string{}}
	l.streamed()
	l.unwanted()
	l.skips()
	if err := l.emptied(ctx); err != nil {
		return err
	}
	if err := l.remove(ctx); err != nil {
		return err
	}
	m.recount()
	return nil
}

// recount counts the tree again, without what was left out.
func (m *maker) recount() {
	m.res.Files, m.res.Links, m.res.Scripts, m.res.ELF.Seen = 0, 0, 0, 0
	for i := range m.files {
		f := &m.files[i]
		if _, in := m.inTree(f.Path); !in {
			continue
		}
		m.tally(f)
		if f.ELF != nil && f.Same == "" {
			m.res.ELF.Seen++
		}
	}
	slices.SortFunc(m.omitted, func(a, b manifest.Omission) int { return cmp.Compare(a.Path, b.Path) })
	m.summarise()
}

// summarise puts what was left out into the result.
func (m *maker) summarise() {
	m.res.Omitted = manifest.CountOmitted(m.omitted)
	for _, o := range m.omitted {
		if o.Needs != "" {
			m.res.Kept = append(m.res.Kept, o)
		}
	}
}

// absent lists the paths of what was left out; never nil.
func (m *maker) absent() []string {
	paths := []string{}
	for i := range m.omitted {
		if m.omitted[i].Needs == "" {
			paths = append(paths, m.omitted[i].Path)
		}
	}
	return paths
}

// leaver takes entries out of the list of files.
type leaver struct {
	m       *maker
	gone    map[string]string // paths that are left out, and the rules
	folders map[string]bool   // those of them that are directories
	heirs   map[string]string // the first names that are left of inodes, by those that were first
	doomed  []string          // those of them that are on disk
}

// streamed takes note of what was dropped as it streamed by. Directories that
// nothing else implies are not there either.
func (l *leaver) streamed() {
	there := map[string]bool{}
	for i := range l.m.files {
		if f := &l.m.files[i]; f.Kind == manifest.Dir {
			there[f.Path] = true
		}
	}
	for i := range l.m.omitted {
		o := &l.m.omitted[i]
		l.gone[o.Path] = o.Rule
		l.m.res.Bytes -= o.Size
		for d := path.Dir(o.Path); d != "." && !there[d] && l.gone[d] == ""; d = path.Dir(d) {
			l.gone[d], l.folders[d] = o.Rule, true
		}
	}
}

// unwanted takes out the files that the rules hit and that nobody needs.
func (l *leaver) unwanted() {
	m := l.m
	hit := map[int]string{}
	for i := range m.files {
		if p, in := m.inTree(m.files[i].Path); in {
			if rule, _ := m.set.Hit(p, m.files[i].Kind); rule != "" {
				hit[i] = rule
			}
		}
	}
	kept := wrap.Needed(m.files, m.tree, func(i int) bool { return hit[i] != "" })
	out := map[int]string{}
	alive := map[string]bool{} // first names of the inodes that keep a name
	for i := range m.files {
		f := &m.files[i]
		by, needed := kept[i]
		switch {
		case hit[i] != "" && !needed:
			out[i] = hit[i]
			continue
		case needed:
			m.omitted = append(m.omitted, manifest.Omission{Path: f.Path, Kind: f.Kind, Rule: hit[i], Size: f.Size, Needs: by})
		}
		alive[cmp.Or(f.Same, f.Path)] = true
	}
	l.take(out, alive)
	l.inherit()
}

// take takes entries out, by index, for their rules.
func (l *leaver) take(out map[int]string, alive map[string]bool) {
	m := l.m
	rest := m.files[:0]
	for i := range m.files {
		f := m.files[i]
		rule, gone := out[i]
		if !gone {
			rest = append(rest, f)
			continue
		}
		o := manifest.Omission{Path: f.Path, Kind: f.Kind, Rule: rule}
		if f.Kind == manifest.Regular && f.Same == "" && !alive[f.Path] {
			o.Size = cmp.Or(m.came[f.Path], f.Size)
			m.res.Bytes -= o.Size
		}
		m.omitted = append(m.omitted, o)
		l.gone[f.Path], l.folders[f.Path] = rule, f.Kind == manifest.Dir
		l.doomed = append(l.doomed, f.Path)
	}
	clear(m.files[len(rest):])
	m.files = rest
}

// inherit makes the first name that is left of an inode the one that the others
// refer to.
func (l *leaver) inherit() {
	for i := range l.m.files {
		f := &l.m.files[i]
		if _, gone := l.gone[f.Same]; f.Same == "" || !gone {
			continue
		}
		if first, ok := l.heirs[f.Same]; ok {
			f.Same = first
		} else {
			l.heirs[f.Same], f.Same = f.Path, ""
		}
	}
}

// skips takes back what was said of files that are gone: a script that is not
// there has no interpreter to miss, unless it has another name.
func (l *leaver) skips() {
	var left []Skip
	for _, s := range l.m.res.Skips {
		if heir := l.heirs[s.Path]; heir != "" {
			s.Path = heir
		}
		if _, gone := l.gone[s.Path]; !gone {
			left = append(left, s)
		}
	}
	l.m.res.Skips = left
}

// maxRounds bounds how often directories and links are looked at again: a link
// that is gone empties a directory, which another link led to. What an archive
// that is made for it has left after that does no harm.
const maxRounds = 8

// emptied takes out the directories that nothing is left in, and the links that
// lead nowhere any more.
func (l *leaver) emptied(ctx context.Context) error {
	for range maxRounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.dirs()
		stranded := map[int]string{}
		for i, missing := range wrap.Stranded(l.m.files, l.m.tree, l.lost) {
			stranded[i] = l.gone[missing]
		}
		if len(stranded) == 0 {
			return nil
		}
		l.take(stranded, nil)
	}
	return nil
}

// lost reports whether a name is gone, and with it what was to follow it. What
// followed a link is not known, and gone with it.
func (l *leaver) lost(p, rest string) bool {
	if l.gone[p] == "" {
		return false
	}
	for part := range strings.SplitSeq(rest, "/") {
		if l.gone[p] != "" && !l.folders[p] {
			return true
		}
		p = path.Join(p, part)
	}
	return l.gone[p] != ""
}

// dirs takes out the directories that are empty for what was left out.
func (l *leaver) dirs() {
	m := l.m
	cause := map[string]string{}
	for p, rule := range l.gone {
		if d := path.Dir(p); cause[d] == "" || rule < cause[d] {
			cause[d] = rule
		}
	}
	names := map[string]int{}
	for i := range m.files {
		names[path.Dir(m.files[i].Path)]++
	}
	out := map[int]string{}
	for i, f := range slices.Backward(m.files) { // children sort after parents
		if _, in := m.inTree(f.Path); !in || f.Kind != manifest.Dir || cause[f.Path] == "" || names[f.Path] > 0 {
			continue
		}
		out[i] = cause[f.Path]
		d := path.Dir(f.Path)
		if names[d]--; cause[d] == "" {
			cause[d] = out[i]
		}
	}
	l.take(out, nil)
}

// remove removes from disk what was taken out: what is in a directory first.
func (l *leaver) remove(ctx context.Context) error {
	slices.SortFunc(l.doomed, func(a, b string) int { return cmp.Compare(b, a) })
	for _, name := range l.doomed {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := l.m.root.Remove(name); err != nil {
			return fmt.Errorf("leave out %s: %w", name, err)
		}
	}
	return nil
}
