package audit

import (
	"context"
	"fmt"
	"path"
	"strings"
)

// gfxMark stands for the name of a GPU in the name of an archive.
const gfxMark = "@GFXARCH@"

// kpackDir is where AMD keeps the archives, in the ROCm tree. It is hidden, and
// lost by whoever copies a tree with *.
const kpackDir = ".kpack"

// kpack checks that each library that has its GPU code elsewhere finds it.
// Without it the library loads, lists devices, and fails at the first kernel.
func kpack(ctx context.Context, a *auditor) error {
	t := a.tree
	noDir := t.entries[t.inROCm(kpackDir)] == nil
	omitted := a.omittedIn()
	lost, example := 0, ""
	for _, e := range t.all {
		if err := ctx.Err(); err != nil {
			return err
		}
		if e.kpack == nil {
			continue
		}
		a.checked["kpack"]++
		switch {
		case len(e.kpack.paths) == 0:
			a.file(Finding{Rule: RuleKpack, Severity: Warning, Path: e.path, Subject: kpackSection,
				Detail: fmt.Sprintf("where its GPU code is cannot be read: %v", e.kpack.err),
				Hint:   "the format may be newer than this program"})
		case a.hasArchive(e):
		case omitted.archive(e):
			a.file(Finding{Rule: RuleKpack, Severity: Warning, Path: e.path, Subject: e.kpack.paths[0],
				Detail: "all its GPU code was left out",
				Hint:   "that is for other targets, on which this is not to run, or for tests, of which this is one: it fails at its first kernel"})
		case noDir && strings.Contains(e.kpack.paths[0], kpackDir+"/"):
			if lost++; example == "" {
				example = e.path
			}
		default:
			a.file(Finding{Rule: RuleKpack, Severity: Fatal, Path: e.path, Subject: e.kpack.paths[0],
				Detail: "its GPU code is missing: nothing matches " + strings.Join(e.kpack.paths, ", "),
				Hint:   "the tree holds no archive for any GPU; unpack the release again, hidden files included"})
		}
	}
	if lost > 0 {
		a.file(Finding{Rule: RuleKpack, Severity: Fatal, Path: t.inROCm(kpackDir), Subject: kpackDir,
			Detail: fmt.Sprintf("the directory with all GPU code is missing; %d files need it, such as %s", lost, example),
			Hint:   "it is hidden, and cp * or mv * leaves it behind; unpack the release again"})
	}
	return nil
}

// hasArchive tells whether one archive that e names is in the tree.
func (a *auditor) hasArchive(e *entry) bool {
	for _, p := range e.kpack.paths {
		if a.tree.matchArchive(path.Dir(e.path), p) {
			return true
		}
	}
	return false
}

// matchArchive looks for the name, with any GPU in place of the mark. Both the
// directory and the name of the archive may hold it; AMD marks the name.
func (t *tree) matchArchive(from, pattern string) bool {
	dir, base := path.Split(pattern)
	if base == "" || strings.Contains(dir, gfxMark) && strings.Count(pattern, gfxMark) > maxKpackDepth {
		return false
	}
	before, after, marked := strings.Cut(base, gfxMark)
	if strings.Contains(dir, gfxMark) {
		return t.matchDeep(from, pattern)
	}
	d := t.follow(from, dir+".")
	if !d.found() {
		return false
	}
	if !marked {
		return t.archive(d.path, base)
	}
	for _, e := range t.in[d.path] {
		name := path.Base(e.path)
		rest, ok := strings.CutPrefix(name, before)
		gfx, ok2 := strings.CutSuffix(rest, after)
		if ok && ok2 && isGFX(gfx) && t.archive(d.path, name) {
			return true
		}
	}
	return false
}

// matchDeep is for a mark in the directory: each GPU that the directory above
// knows is tried in all places at once.
func (t *tree) matchDeep(from, pattern string) bool {
	i := strings.Index(pattern, gfxMark)
	above := pattern[:strings.LastIndex(pattern[:i], "/")+1]
	part, _, _ := strings.Cut(pattern[len(above):], "/")
	before, after, _ := strings.Cut(part, gfxMark)
	d := t.follow(from, above+".")
	if !d.found() {
		return false
	}
	for _, e := range t.in[d.path] {
		rest, ok := strings.CutPrefix(path.Base(e.path), before)
		gfx, ok2 := strings.CutSuffix(rest, after)
		if ok && ok2 && isGFX(gfx) && t.archive(from, strings.ReplaceAll(pattern, gfxMark, gfx)) {
			return true
		}
	}
	return false
}

// archive tells whether there is a file with something in it.
func (t *tree) archive(dir, name string) bool {
	e := t.follow(dir, name).entry
	return e != nil && e.isFile() && e.size > 0
}

// isGFX matches gfx1151, gfx90a, gfx9-4-generic, gfx90a:xnack+.
func isGFX(s string) bool {
	rest, ok := strings.CutPrefix(s, "gfx")
	if !ok || rest == "" {
		return false
	}
	for _, c := range rest {
		if !strings.ContainsRune("0123456789abcdefghijklmnopqrstuvwxyz-_:+.X", c) {
			return false
		}
	}
	return true
}
