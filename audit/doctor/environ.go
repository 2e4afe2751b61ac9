package doctor

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
)

// checkEnvironment looks for variables that lead ROCm astray, in this process
// and in what logins read.
func checkEnvironment(_ context.Context, x *exam) error {
	var rest []string
	names := make([]string, 0, len(x.env))
	for name := range x.env {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !concerns(name) || x.env[name] == "" {
			continue
		}
		if !x.variable(name, x.env[name], name+"="+x.env[name], x.unset(name)) && !x.entered(name) {
			rest = append(rest, name+"="+x.env[name])
		}
	}
	for _, s := range x.settings() {
		if _, set := x.env[s.name]; set || x.started || strings.ContainsAny(s.value, "$`") {
			continue // judged above, or not known before a shell expands it
		}
		before := len(x.sec.Findings)
		subject := s.name + "=" + s.value + " (line " + s.where() + ")"
		if !x.variable(s.name, s.value, subject, []string{"delete line " + s.where()}) {
			rest = append(rest, subject)
		}
		for i := range x.sec.Findings[before:] {
			// Not in this process: the line may depend on something.
			if f := &x.sec.Findings[before+i]; f.Severity == Broken {
				f.Severity = Warning
			}
		}
	}
	if len(rest) > 0 {
		x.find(Finding{Check: "variable-left", Severity: Note, Subject: strings.Join(rest, ", "), Detail: "set, and not known to be wrong",
			Why:    "what helped with one release does harm with another",
			Remedy: []string{"try without: env" + unsetAll(rest) + " COMMAND"}})
	}
	x.comgrCache()
	return nil
}

// entered reports whether env.sh of an install has set a variable to what it is:
// the config or the target asks for it. ROCM_NIGHTLY_UNDO is what env.sh notes.
func (x *exam) entered(name string) bool {
	return slices.Contains(strings.Split(x.env["ROCM_NIGHTLY_UNDO"], "\t"), "set "+name+" "+x.env[name])
}

func unsetAll(assignments []string) string {
	var b strings.Builder
	for _, a := range assignments {
		name, _, _ := strings.Cut(a, "=")
		b.WriteString(" -u " + quote(name))
	}
	return b.String()
}

// variable judges one variable; false where nothing is known of it. subject names
// it, with where it is set.
func (x *exam) variable(name, value, subject string, remedy []string) bool {
	f := Finding{Subject: subject, Remedy: remedy}
	switch name {
	case "HSA_OVERRIDE_GFX_VERSION":
		x.override(value, f)
	case "LD_LIBRARY_PATH":
		x.libraryPath(value, f)
	case "LD_PRELOAD":
		x.preload(value, f)
	case "LLVM_PATH":
		f.Check, f.Severity, f.Detail = "variable-llvm", Warning, "hipcc and comgr take their compiler and device libraries from there"
		f.Why = "those of another LLVM do not fit: links fail on __ockl_… or __amd_streamOps…, which HIP reports as hipErrorOutOfMemory"
		x.find(f)
	case "ROCM_KPACK_DISABLE":
		f.Check, f.Severity, f.Detail = "variable-kpack", Broken, "the archives in .kpack are not read"
		f.Why = "GPU code is in them: every kernel of rocBLAS, MIOpen and the like fails with hipErrorInvalidKernelFile"
		x.find(f)
	case "HIP_PLATFORM":
		if value != "amd" {
			f.Check, f.Severity, f.Detail = "variable-platform", Warning, "hipcc compiles for "+value
			if x.hasGPU() {
				f.Severity = Broken
			}
			f.Why = "AMD's GPUs need HIP_PLATFORM=amd, or none"
			x.find(f)
		}
	case "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL":
		// With the GPUs, where it can be said what they hide.
	default:
		if !strings.HasPrefix(value, "/") || name == "AMD_COMGR_CACHE_DIR" || strings.HasPrefix(name, "MIOPEN_USER") || strings.HasPrefix(name, "MIOPEN_CUSTOM") {
			return name == "AMD_COMGR_CACHE_DIR"
		}
		x.place(name, value, f)
	}
	return true
}

// place judges a variable that holds a path.
func (x *exam) place(name, value string, f Finding) {
	value, _, _ = strings.Cut(value, ":")
	f.Check = "variable-path"
	kernels := strings.Contains(name, "TENSILE") || name == "ROCM_KPACK_PATH"
	real := x.real(value)
	if real == "" && !x.gone(value) {
		return
	}
	if real == "" {
		f.Severity, f.Detail = Warning, "there is nothing"
		f.Why = "programs that believe it do not find what they look for, or fall back to something else"
		if kernels {
			f.Severity, f.Why = Broken, "the library finds none of its kernels"
		}
		x.find(f)
		return
	}
	ours, other := x.activeCopy(), x.copyOf(real)
	if other == nil || ours == nil || other.Root == ours.Root {
		x.fact("%s=%s", name, value)
		return
	}
	f.Severity, f.Detail = Warning, "leads to "+other.describe()+", and in use is "+ours.describe()
	f.Why = "one ROCm with parts of another fails in ways that name neither"
	x.find(f)
}

// override judges HSA_OVERRIDE_GFX_VERSION against each GPU.
func (x *exam) override(value string, f Finding) {
	target := overridden(value)
	if target == "" {
		f.Check, f.Severity, f.Detail = "override-format", Broken, "that is not a version: 11.0.0 is gfx1100"
		f.Why = "the HSA runtime does not start with it: programs see no GPU"
		x.find(f)
		return
	}
	for _, own := range x.gpus.Taken {
		g := f
		_, served := x.o.Table.Resolve(own, x.o.Families)
		_, runs := x.o.Table.Nearest(own, []string{target})
		switch {
		case own == target:
			x.fact("HSA_OVERRIDE_GFX_VERSION=%s is what %s is", value, own)
			continue
		case !runs && !sameGeneration(own, target):
			g.Check, g.Severity, g.Detail = "override-wrong", Broken, "code for "+target+" does not run on "+own
			g.Why = "instructions and registers differ: programs crash, hang or compute wrong results"
		case !runs:
			g.Check, g.Severity, g.Detail = "override-wrong", Warning, "code for "+target+" is not known to run right on "+own
			g.Why = "its instructions, registers or workarounds for bugs of the silicon are not those of " + own + ": some kernels crash, hang or compute wrong results"
		case served == nil:
			g.Check, g.Severity, g.Detail = "override-needless", Warning, own+" is served by a tarball of its own; "+target+" was a substitute"
			g.Why = "kernels for another GPU are slower, and a tarball for " + own + " holds none of them: \"invalid device function\""
		default:
			x.fact("HSA_OVERRIDE_GFX_VERSION=%s: %s runs code for %s", value, own, target)
			continue
		}
		x.find(g)
	}
}

// sameGeneration compares the major numbers of two targets, in which the digits
// but the last two are.
func sameGeneration(a, b string) bool {
	return len(a) == len(b) && len(a) > 2 && a[:len(a)-2] == b[:len(b)-2]
}

// overridden is the target that a value of the variable makes of a GPU, "" if it
// is not major.minor.stepping in decimal.
func overridden(value string) string {
	parts := strings.Split(value, ".")
	if len(parts) != 3 {
		return ""
	}
	var n [3]int
	for i, p := range parts {
		v, err := strconv.Atoi(p)
		if err != nil || v < 0 || v > 99 || i > 0 && v > 15 {
			return ""
		}
		n[i] = v
	}
	t := fmt.Sprintf("gfx%d%x%x", n[0], n[1], n[2])
	if !gfx.IsTarget(t) {
		return ""
	}
	return t
}

// libraryPath looks for ROCm's libraries in LD_LIBRARY_PATH, which goes before
// the run path of everything that has DT_RUNPATH.
func (x *exam) libraryPath(value string, f Finding) {
	var found []*Copy
	partial := ""
	for dir := range strings.SplitSeq(strings.ReplaceAll(value, ";", ":"), ":") {
		real := x.real(dir)
		if real == "" || !path.IsAbs(dir) || below(real, "/nix/store") || len(x.mainLibraries(real)) == 0 {
			continue // in Nix each library has a directory of its own
		}
		if c := x.copyOf(real); c != nil && !slices.Contains(found, c) {
			found = append(found, c)
		}
		if x.comgrAlone(real) {
			partial = dir
		}
	}
	ours := x.activeCopy()
	f.Check, f.Severity = "library-path", Warning
	f.Why = "a program takes libamd_comgr or libamdhip64 of one ROCm and the rest of another: hipErrorOutOfMemory at the first stream, or wrong code in silence"
	switch {
	case len(found) > 1 && found[0].Version != found[1].Version:
		f.Severity, f.Detail = Broken, "holds two ROCms: "+found[0].describe()+", then "+found[1].describe()
	case partial != "":
		f.Severity, f.Detail = Broken, partial+" has libamd_comgr and no libamdhip64: it is put under the HIP of another ROCm"
	case len(found) == 1 && x.stable(found[0].Root) != found[0].Root:
		x.fact("LD_LIBRARY_PATH leads to %s, which is active", found[0].describe())
		return
	case len(found) == 1 && ours != nil && found[0].Root != ours.Root:
		f.Severity, f.Detail = Broken, "puts "+found[0].describe()+" before "+ours.describe()+", which is in use"
	case len(found) == 1 && len(x.r.Copies) > 1:
		f.Detail = "puts " + found[0].describe() + " before all other ROCms of this machine"
	case len(found) == 1:
		x.fact("LD_LIBRARY_PATH leads to %s", found[0].describe())
		return
	default:
		return
	}
	x.find(f)
}

// comgrAlone reports whether a directory has a comgr without its HIP, under the
// name that another ROCm's HIP asks for.
func (x *exam) comgrAlone(dir string) bool {
	libs := x.mainLibraries(dir)
	if hasPrefix(libs, "libamdhip64.so") {
		return false
	}
	return slices.ContainsFunc(x.r.Copies, func(c Copy) bool {
		theirs := x.mainLibraries(c.lib)
		return hasPrefix(theirs, "libamdhip64.so") && slices.ContainsFunc(theirs, func(name string) bool {
			return strings.HasPrefix(name, "libamd_comgr.so.") && slices.Contains(libs, name)
		})
	})
}

func hasPrefix(names []string, prefix string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, prefix) })
}

// preload judges LD_PRELOAD.
func (x *exam) preload(value string, f Finding) {
	for _, name := range strings.FieldsFunc(value, func(r rune) bool { return r == ':' || r == ' ' }) {
		g := f
		g.Check, g.Severity = "preload", Warning
		switch {
		case strings.HasPrefix(name, "/") && x.gone(name) && !strings.Contains(name, "$"):
			g.Detail, g.Why = name+" does not exist", "each program that starts complains, and what it was for does not happen"
		case mainLibrary(path.Base(name)):
			g.Detail, g.Why = name+" is loaded into every program", "a program built for another ROCm gets this one's"
		default:
			continue
		}
		x.find(g)
	}
}

// comgrCache is the cache that all releases share unless it is keyed.
func (x *exam) comgrCache() {
	dir := x.env["AMD_COMGR_CACHE_DIR"]
	if dir == "" {
		switch base := x.env["XDG_CACHE_HOME"]; {
		case path.IsAbs(base):
			dir = path.Join(base, "comgr")
		case x.home() != "":
			dir = path.Join(x.home(), ".cache/comgr")
		}
	}
	names := x.list(dir)
	if dir == "" || len(names) == 0 || strings.Contains(dir, "/rocm-nightly/") {
		return
	}
	x.find(Finding{Check: "comgr-cache", Severity: Note, Subject: dir, Detail: fmt.Sprintf("it holds %d compiled objects, of whichever releases filled it", len(names)),
		Why:    "those of an older release have failed to link under a newer one, with the message of displaced libraries; the wrappers of an install keep one cache for each release",
		Remedy: []string{"rm -rf " + quote(dir)}})
}
