package audit

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	"github.com/rocm-nightly/rocm-nightly/internal/omit"
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
	dir := t.entries[t.inROCm(kpackDir)]
	noDir := dir == nil || dir.isDir() && len(t.in[dir.path]) == 0
	omitted := a.omittedIn()
	lost, example := 0, ""
	if t.hides(t.inROCm(kpackDir)) {
		return nil // which is said of the directory
	}
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
		case a.hasArchive(e, archiveOf{a.runs, false}):
		case a.hasArchive(e, archiveOf{anyGPU, true}):
			a.otherArchives(e)
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
	if a.kpackLost = lost > 0; a.kpackLost {
		a.file(Finding{Rule: RuleKpack, Severity: Fatal, Path: t.inROCm(kpackDir), Subject: kpackDir,
			Detail: fmt.Sprintf("the directory with all GPU code is missing or empty; %d files need it, such as %s", lost, example),
			Hint:   "it is hidden, and cp * or mv * leaves it behind; unpack the release again"})
	}
	a.damagedArchives()
	return nil
}

// runs tells whether GPU code of that name may run on the target.
func (a *auditor) runs(gpu string) bool { return a.target == "" || gfx.MayRun(gpu, a.target) }

func anyGPU(string) bool { return true }

// archiveOf says which archives count: those of some GPUs, and whether damaged
// ones do, of which something else is said.
type archiveOf struct {
	gpu   func(gpu string) bool
	whole bool
}

// archivesOfAll begin the names of the archives that AMD makes for every target.
var archivesOfAll = []string{"blas_lib_", "fft_lib_", "rand_lib_"}

// otherArchives is for a library that has code for GPUs other than the target.
// Some projects are not built for some targets, and then that is all right.
func (a *auditor) otherArchives(e *entry) {
	f := Finding{Rule: RuleKpack, Severity: Warning, Path: e.path, Subject: e.kpack.paths[0],
		Detail: "has GPU code for other targets, and none for " + a.target,
		Hint:   "it fails at its first kernel on this GPU; AMD may not build it for this one"}
	base := path.Base(e.kpack.paths[0])
	if slices.Contains(targets, a.target) && slices.ContainsFunc(archivesOfAll, func(p string) bool { return strings.HasPrefix(base, p) }) {
		f.Severity = Required
		f.Hint = "it fails at its first kernel on this GPU; unpack the release again, or take the tarball of this target"
	}
	a.file(f)
}

// damagedArchives reports archives that are not whole.
func (a *auditor) damagedArchives() {
	for _, e := range a.tree.all {
		if e.badKpack == "" {
			continue
		}
		f := Finding{Rule: RuleKpack, Severity: Fatal, Path: e.path, Detail: "is a damaged archive of GPU code: " + e.badKpack,
			Hint: "a transfer broke it; unpack the release again"}
		if gpus := omit.KernelGPUs(path.Base(e.path)); len(gpus) > 0 && !slices.ContainsFunc(gpus, a.runs) {
			f.Severity = Warning
		}
		a.file(f)
	}
}

// checkKpack says what is wrong with an archive of size bytes that begins with
// head: a header of 16 bytes, KPAK, the version of the format and where the table
// of contents is, which comes last (ROCm/rocm-kpack, python/rocm_kpack/kpack.py).
func checkKpack(head []byte, size int64) string {
	const header, version = 16, 1
	switch {
	case size == 0:
		return "it is empty"
	case len(head) < header:
		return "it ends before its header does"
	case !bytes.HasPrefix(head, []byte("KPAK")):
		return "it does not begin with KPAK"
	case binary.LittleEndian.Uint32(head[4:]) != version:
		return "" // whatever it says
	}
	if toc := binary.LittleEndian.Uint64(head[8:]); toc < header || toc >= uint64(size) {
		return fmt.Sprintf("it has %d bytes, and its table of contents is at %d", size, toc)
	}
	return ""
}

// hasArchive tells whether one archive that e names is in the tree.
func (a *auditor) hasArchive(e *entry, of archiveOf) bool {
	for _, p := range e.kpack.paths {
		if a.tree.matchArchive(path.Dir(e.path), p, of) {
			return true
		}
	}
	return false
}

// matchArchive looks for the name, with any GPU in place of the mark. Both the
// directory and the name of the archive may hold it; AMD marks the name.
func (t *tree) matchArchive(from, pattern string, of archiveOf) bool {
	dir, base := path.Split(pattern)
	if base == "" || strings.Contains(dir, gfxMark) && strings.Count(pattern, gfxMark) > maxKpackDepth {
		return false
	}
	before, after, marked := strings.Cut(base, gfxMark)
	if strings.Contains(dir, gfxMark) {
		return t.matchDeep(from, pattern, of)
	}
	d := t.follow(from, dir+".")
	if !d.found() {
		return false
	}
	if !marked {
		return t.archive(d.path, base, of)
	}
	for _, e := range t.in[d.path] {
		name := path.Base(e.path)
		rest, ok := strings.CutPrefix(name, before)
		gpu, ok2 := strings.CutSuffix(rest, after)
		if ok && ok2 && isGFX(gpu) && of.gpu(gpu) && t.archive(d.path, name, of) {
			return true
		}
	}
	return false
}

// matchDeep is for a mark in the directory: each GPU that the directory above
// knows is tried in all places at once.
func (t *tree) matchDeep(from, pattern string, of archiveOf) bool {
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
		gpu, ok2 := strings.CutSuffix(rest, after)
		if ok && ok2 && isGFX(gpu) && of.gpu(gpu) && t.archive(from, strings.ReplaceAll(pattern, gfxMark, gpu), of) {
			return true
		}
	}
	return false
}

// archive tells whether there is such a file.
func (t *tree) archive(dir, name string, of archiveOf) bool {
	e := t.follow(dir, name).entry
	return e != nil && e.isFile() && (e.badKpack == "" || !of.whole)
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
