package audit

import "context"

// rootNames are what programs look for beside bin, at the root that they think
// ROCm has: dirname of dirname of hipcc.
var rootNames = []string{".info", ".kpack", "amdgcn", "include", "lib", "lib64", "libexec", "llvm"}

// rootShape checks that the compiler finds its device libraries and that the
// prefix looks like the tree.
func rootShape(_ context.Context, a *auditor) error {
	t := a.tree
	if t.follow(".", t.inROCm("lib/llvm")).found() {
		a.shape("llvm", Required, "compilers are looked for in it")
		if t.follow(".", t.inROCm("lib/llvm/amdgcn")).found() {
			a.shape("amdgcn", Required, "the compiler looks for its device libraries in it")
		}
	}
	a.shape(".info", Warning, "it says which ROCm this is")
	if t.rocm == "" {
		return nil
	}
	for _, name := range rootNames {
		if t.entries[t.inROCm(name)] != nil && t.entries[name] == nil {
			a.file(Finding{Rule: RuleRootShape, Severity: Required, Path: name,
				Detail: "is missing: programs take the prefix for a ROCm root, and " + t.inROCm(name) + " is there",
				Hint:   "link it to " + t.inROCm(name)})
		}
	}
	return nil
}

func (a *auditor) shape(name, severity, why string) {
	p := a.tree.inROCm(name)
	if a.tree.entries[p] == nil {
		a.file(Finding{Rule: RuleRootShape, Severity: severity, Path: p, Detail: "is missing: " + why,
			Hint: "it was lost on the way; unpack the release again"})
	}
}
