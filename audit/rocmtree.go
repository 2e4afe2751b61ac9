package audit

import (
	"context"
	"fmt"
	"path"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
)

// rocmTree checks that there is a ROCm tree at all. Nothing else would be found
// in an empty one, or in a tarball that has everything below one more directory.
func rocmTree(_ context.Context, a *auditor) error {
	t := a.tree
	dir := path.Join(".", t.rocm)
	if t.looksRight(dir) {
		return nil
	}
	f := Finding{Rule: RuleTree, Severity: Fatal, Path: dir, Detail: "holds neither bin nor lib: this is not a ROCm tree",
		Hint: "the tarball may be empty, cut or of something else: a ROCm tree has bin and lib at its top"}
	if only := t.onlyDir(dir); only != "" {
		f.Subject = path.Base(only)
		f.Detail += "; the tarball has one top-level directory " + f.Subject
		f.Hint = "repack the content of " + t.inner(only) + ": a tarball with bin and lib at its top"
	}
	a.file(f)
	return nil
}

// notTree is the error for a directory that has not even the names.
func (t *tree) notTree() error {
	hint := "a ROCm tree, or a tarball of one, has them at its top"
	if only := t.onlyDir("."); only != "" {
		hint += "; try the content of the directory " + plain.Text(t.inner(only)) + " in it"
	}
	return fmt.Errorf("%w: it holds none of bin, lib and opt/rocm; %s", ErrNotTree, hint)
}

// looksRight tells whether a directory has one of the two without which there is
// nothing to use.
func (t *tree) looksRight(dir string) bool { return t.holds(dir, "bin") || t.holds(dir, "lib") }

// holds tells whether a directory has a directory of that name that is not
// empty. One that cannot be read is a finding of its own.
func (t *tree) holds(dir, name string) bool {
	p := t.follow(dir, name)
	return p.entry != nil && p.entry.isDir() && (len(t.in[p.path]) > 0 || p.entry.err != nil)
}

// onlyDir is the path of the one directory in a directory, "" when it has none
// or several. Files beside it do not count.
func (t *tree) onlyDir(dir string) string {
	only := ""
	for _, e := range t.in[dir] {
		switch {
		case !e.isDir():
		case only != "":
			return ""
		default:
			only = e.path
		}
	}
	return only
}

// inner is where the ROCm tree seems to be, by path relative to where it should
// be: in the directory only, or further down as long as there is one way to go.
func (t *tree) inner(only string) string {
	for d := only; d != ""; d = t.onlyDir(d) {
		if t.looksRight(d) {
			only = d
			break
		}
	}
	rel, _ := t.ofROCm(only)
	return rel
}
