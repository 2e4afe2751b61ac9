package audit

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	"github.com/rocm-nightly/rocm-nightly/internal/omit"
)

// kernelHome is a library that finds its kernels as files, by the name of the
// GPU, in a directory.
type kernelHome struct {
	project string
	library string   // lib/NAME or lib/NAME.*
	dir     string   // somewhere below lib
	built   []string // targets that AMD builds it for
}

// targets are those that AMD builds nightlies for; kernels of the projects below
// are built for all of them but those that EXCLUDE_TARGET_PROJECTS names
// (TheRock, cmake/therock_amdgpu_targets.cmake, August 2026).
var targets = []string{
	"gfx900", "gfx90c", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950",
	"gfx1010", "gfx1011", "gfx1012", "gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036",
	"gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153", "gfx1200", "gfx1201", "gfx1250",
}

// kernelHomes are the libraries that fail at their first call without.
var kernelHomes = []kernelHome{
	{"rocBLAS", "librocblas.so", "rocblas/library", targets},
	{"hipBLASLt", "libhipblaslt.so", "hipblaslt/library", []string{ // TheRock#1062
		"gfx908", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153",
		"gfx1200", "gfx1201", "gfx1250"}},
	{"hipSPARSELt", "libhipsparselt.so", "hipsparselt/library", []string{"gfx942", "gfx950", "gfx1250"}}, // TheRock#2042
}

// databaseTargets are GPUs that MIOpen has shipped measurements for since
// ROCm 5 (MIOpen, src/kernels); on others it measures when it first runs.
var databaseTargets = []string{"gfx906", "gfx908", "gfx90a", "gfx942", "gfx1030"}

// kernels checks that a GPU of the target finds what the libraries run on it.
func kernels(_ context.Context, a *auditor) error {
	if a.target == "" {
		return nil
	}
	omitted := a.omittedIn()
	for _, h := range kernelHomes {
		if a.hasLibrary(h.library) && !a.tree.hides(a.tree.inROCm("lib/"+h.dir)) {
			a.kernelsOf(h, omitted)
		}
	}
	if a.hasLibrary("libMIOpen.so") && slices.Contains(databaseTargets, a.target) && !a.tree.hides(a.tree.inROCm("share/miopen/db")) {
		a.databases(omitted)
	}
	return nil
}

// hasLibrary tells whether the tree has a library, under any version.
func (a *auditor) hasLibrary(name string) bool {
	t := a.tree
	for _, e := range t.in[t.inROCm("lib")] {
		base := path.Base(e.path)
		if base != name && !strings.HasPrefix(base, name+".") {
			continue
		}
		if to := t.follow(".", e.path).entry; to != nil && to.isFile() {
			return true
		}
	}
	return false
}

// kernelFiles is what a directory of kernels holds.
type kernelFiles struct {
	code, index   bool     // some for the target
	others        []string // GPUs that there is code for
	othersIndexed bool     // there is an index by GPU at all
}

// kernelsIn looks at every file below a directory of that name.
func (a *auditor) kernelsIn(dir string) kernelFiles {
	var k kernelFiles
	in := "/" + dir + "/"
	for _, e := range a.tree.all {
		i := strings.Index("/"+e.path, in)
		if i < 0 || !e.isFile() || e.size == 0 {
			continue
		}
		gpus := omit.KernelGPUs(("/" + e.path)[i+len(in):])
		if len(gpus) == 0 {
			continue
		}
		a.checked["kernels"]++
		serves := slices.ContainsFunc(gpus, a.runs)
		switch base := path.Base(e.path); {
		case isCode(base):
			if k.code = k.code || serves; !serves && len(k.others) < maxOthers && !slices.Contains(k.others, gpus[0]) {
				k.others = append(k.others, gpus[0])
			}
		case strings.HasSuffix(base, ".dat") && (strings.Contains(base, "_lazy_") || strings.HasPrefix(base, "TensileLibrary_gfx")):
			k.index, k.othersIndexed = k.index || serves, true
		}
	}
	return k
}

// maxOthers bounds the GPUs that a message names.
const maxOthers = 6

// isCode matches the endings of GPU code: code objects and archives of such.
func isCode(base string) bool {
	base = strings.TrimSuffix(strings.TrimSuffix(base, ".zst"), ".xz")
	return slices.Contains([]string{".co", ".hsaco", ".kpack"}, path.Ext(base))
}

// kernelsOf judges one library.
func (a *auditor) kernelsOf(h kernelHome, omitted omission) {
	k := a.kernelsIn(h.dir)
	f := Finding{Rule: RuleKernels, Severity: Required, Path: a.tree.inROCm("lib/" + h.dir), Subject: a.target}
	switch {
	case k.code && (k.index || !k.othersIndexed):
		return
	case k.code:
		if f.Severity = Warning; h.project == "rocBLAS" {
			f.Severity = Required // it reads that of each GPU that it runs on
		}
		f.Detail = fmt.Sprintf("has kernels of %s for %s, but no table that lists them (*.dat)", h.project, a.target)
	case len(k.others) > 0:
		f.Detail = fmt.Sprintf("has no kernels of %s for %s, only for %s", h.project, a.target, strings.Join(k.others, ", "))
	default:
		f.Detail = fmt.Sprintf("has no kernels of %s for any GPU", h.project)
	}
	f.Hint = "it fails at its first call on this GPU: unpack the release again, or take the tarball of this target"
	switch {
	case slices.Contains(h.built, a.target):
	case slices.Contains(targets, a.target):
		return // AMD builds it without
	default:
		f.Severity, f.Hint = Warning, "it may not be built for this GPU"
	}
	if omitted.kernels(h.dir, a.target) {
		f.Severity, f.Hint = Warning, "they were left out on purpose"
	}
	a.file(f)
}

// databases checks that MIOpen has what it was shipped with.
func (a *auditor) databases(omitted omission) {
	const dir = "share/miopen/db"
	for _, e := range a.tree.in[a.tree.inROCm(dir)] {
		if gpu := omit.DatabaseGPU(path.Base(e.path)); gpu != "" && a.runs(gpu) {
			return
		}
	}
	f := Finding{Rule: RuleKernels, Severity: Warning, Path: a.tree.inROCm(dir), Subject: a.target,
		Detail: "has no databases of MIOpen for " + a.target,
		Hint:   "the first run of each network is slow; unpack the release again"}
	if omitted.kernels("miopen/db", a.target) {
		f.Hint = "they were left out on purpose: the first run of each network is slow"
	}
	a.file(f)
}

// kernels tells whether files for a target were left out of a directory.
func (o omission) kernels(dir, target string) bool {
	for in, names := range o {
		if !strings.Contains("/"+in+"/", "/"+dir+"/") {
			continue
		}
		for _, n := range names {
			gpus := omit.KernelGPUs(n)
			if g := omit.DatabaseGPU(n); g != "" {
				gpus = []string{g}
			}
			if slices.ContainsFunc(gpus, func(g string) bool { return gfx.MayRun(g, target) }) {
				return true
			}
		}
	}
	return false
}
