package audit

import (
	"context"
	"path"
	"slices"
	"strings"
)

// bitcodeDirs are where clang of ROCm looks for its device libraries, in the
// ROCm tree (clang, RocmInstallationDetector); * is a version.
var bitcodeDirs = []string{
	"amdgcn/bitcode", "lib/llvm/amdgcn/bitcode", "lib/llvm/lib/clang/*/lib/amdgcn/bitcode", "lib/llvm/lib/clang/*/amdgcn/bitcode",
	"lib/clang/*/lib/amdgcn/bitcode", "lib/clang/*/amdgcn/bitcode", "lib/llvm/lib/clang/*/lib/amdgcn-amd-amdhsa",
}

// deviceLibraries checks that the compiler, where there is one, has what it
// links into every kernel: the mathematics (ocml), the rest of the language
// (ockl), and what the GPU can do (oclc_isa_version_NNN).
func deviceLibraries(_ context.Context, a *auditor) error {
	compiler := a.compiler()
	if compiler == "" || a.tree.hides(a.tree.inROCm("lib/llvm")) {
		return nil
	}
	have := map[string]bool{}
	at := a.tree.inROCm("lib/llvm/amdgcn/bitcode")
	for _, dir := range a.bitcode() {
		for _, e := range a.tree.in[dir] {
			if name, ok := strings.CutSuffix(path.Base(e.path), ".bc"); ok && a.whole(e) {
				have[strings.TrimSuffix(name, ".amdgcn")] = true // clang takes either name
				at = dir
			}
		}
	}
	a.checked["bitcode"] = len(have)
	var missing []string
	for _, name := range []string{"ocml", "ockl"} {
		if !have[name] {
			missing = append(missing, name+".bc")
		}
	}
	isa := "oclc_isa_version_" + strings.TrimPrefix(a.target, "gfx")
	if a.target != "" && !have[isa] {
		missing = append(missing, isa+".bc")
	}
	switch {
	case len(have) == 0:
		a.file(Finding{Rule: RuleDeviceLibs, Severity: Required, Path: at, Subject: "*.bc",
			Detail: "holds no device libraries, and " + compiler + " is there: it compiles nothing for a GPU",
			Hint:   "it was lost on the way; unpack the release again"})
	case len(missing) > 0:
		a.file(Finding{Rule: RuleDeviceLibs, Severity: Required, Path: at, Subject: strings.Join(missing, " "),
			Detail: "lacks " + strings.Join(missing, ", ") + ", and " + compiler + " is there: it compiles nothing for " + a.gpu(),
			Hint:   "they were lost on the way, or the compiler is too old for the GPU; unpack the release again"})
	}
	return nil
}

// gpu names the target for a message.
func (a *auditor) gpu() string {
	if a.target == "" {
		return "a GPU"
	}
	return a.target
}

// whole tells whether a name leads to a file with something in it.
func (a *auditor) whole(e *entry) bool {
	to := a.tree.follow(".", e.path).entry
	return to != nil && to.isFile() && to.size > 0
}

// compiler is the path of clang in the tree, "" when there is none.
func (a *auditor) compiler() string {
	t := a.tree
	for _, name := range []string{"lib/llvm/bin/clang", "lib/llvm/bin/amdclang", "llvm/bin/clang", "bin/amdclang"} {
		p := t.inROCm(name)
		if to := t.follow(".", p).entry; to != nil && to.executable() {
			return p
		}
	}
	return ""
}

// bitcode lists the directories of device libraries, each once.
func (a *auditor) bitcode() []string {
	var dirs []string
	for _, pattern := range bitcodeDirs {
		for _, name := range a.versionsOf(pattern) {
			p := a.tree.follow(".", a.tree.inROCm(name))
			if p.entry != nil && p.entry.isDir() && !slices.Contains(dirs, p.path) {
				dirs = append(dirs, p.path)
			}
		}
	}
	return dirs
}

// versionsOf puts what is there in place of a *.
func (a *auditor) versionsOf(pattern string) []string {
	before, after, any := strings.Cut(pattern, "*")
	if !any {
		return []string{pattern}
	}
	var out []string
	for _, e := range a.tree.in[a.tree.inROCm(strings.TrimSuffix(before, "/"))] {
		out = append(out, before+path.Base(e.path)+after)
	}
	return out
}
