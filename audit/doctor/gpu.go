package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
)

// checkGPUs says which GPUs there are, what serves them, and which of them
// programs do not see.
func checkGPUs(_ context.Context, x *exam) error {
	for _, g := range x.gpus.GPUs {
		x.gpu(g)
	}
	for _, l := range x.gpus.LeftOut {
		x.fact("left out by auto: %s", l.Reason)
	}
	if len(x.gpus.GPUs) == 0 {
		x.noGPU()
		return nil
	}
	x.undriven()
	x.hidden()
	x.displayBeside()
	return nil
}

// gpu lists one GPU.
func (x *exam) gpu(g gfx.GPU) {
	out := GPU{Target: g.Target, Name: g.Name, Node: g.Node, CUs: g.CUs, Integrated: g.Integrated, VRAM: g.Memory}
	if c := x.cardOf(g); c != nil {
		if out.PCI, out.GTT = c.pci, c.gtt; c.vram > 0 {
			out.VRAM = c.vram // of an APU, KFD shows what it could have
		}
		if c.render != "" {
			out.Render = "/dev/dri/" + c.render
		}
	}
	what := g.Target
	if g.Name != "" {
		what += ", " + g.Name
	}
	if g.CUs > 0 {
		what += fmt.Sprintf(", %d compute units", g.CUs)
	}
	if out.VRAM > 0 {
		what += ", " + size(out.VRAM)
	}
	res, err := x.o.Table.Resolve(g.Target, x.o.Families)
	near, ok := x.o.Table.Nearest(g.Target, x.o.Families)
	switch {
	case err == nil:
		out.Family = res.Family
		x.fact("%s: served by %s", what, res.Family)
	case ok:
		out.Nearest = near.Target
		x.find(Finding{Check: "gpu-unserved", Severity: Warning, Subject: what, Detail: "no tarball serves it; the nearest target is " + near.Target,
			Why: "a tarball for other targets has no kernels for it: programs end with \"invalid device function\"",
			Remedy: []string{"rocm-nightly update --arch " + near.Target,
				"export HSA_OVERRIDE_GFX_VERSION=" + near.Override}})
	default:
		x.find(Finding{Check: "gpu-unserved", Severity: Warning, Subject: what, Detail: "no tarball serves it, and no other target's code runs on it",
			Why:    "there are no kernels for it in any family",
			Remedy: []string{"rocm-nightly list --all   # another channel, or an older release, may have it"}})
	}
	x.r.GPUs = append(x.r.GPUs, out)
}

// noGPU says what is known where KFD knows none.
func (x *exam) noGPU() {
	if len(x.cards) == 0 {
		detail := "there is no GPU of AMD's on the PCI bus"
		if x.container != "" {
			detail += " that this container is shown"
		}
		if !x.isDir(pciDevices) {
			detail = "it is not there to be looked at: a machine without PCI, or a sandbox without /sys"
		}
		x.find(Finding{Check: "gpu-none", Severity: Note, Subject: pciDevices, Detail: detail,
			Why:    "compilers and hipconfig work here, programs that use a GPU do not",
			Remedy: []string{"name the target of the machine that will run it: rocm-nightly update --arch gfx1100"}})
		return
	}
	for _, c := range x.cards {
		x.fact("%s: %s, driver %s", c.pci, c.id, orNone(c.driver))
	}
	x.undriven()
}

// undriven finds cards that another driver has, or none.
func (x *exam) undriven() {
	for _, c := range x.cards {
		switch c.driver {
		case "amdgpu":
		case "":
			if x.exists("/sys/module/amdgpu") {
				severity := Broken
				if x.driven() {
					severity = Warning // there is another
				}
				x.find(Finding{Check: "gpu-undriven", Severity: severity, Subject: c.pci + " (" + c.id + ")", Detail: "amdgpu is loaded and does not drive it",
					Why:    "the driver gave it up: it is newer than the kernel, or its firmware is missing",
					Remedy: []string{"sudo dmesg | grep -i amdgpu   # says which", x.firmware()}})
			}
		default:
			remedy := "unbind it from " + c.driver + ", and bind it to amdgpu"
			if c.driver == "vfio-pci" {
				remedy = "remove its id (" + c.id + ") from vfio-pci.ids= of the kernel command line or of /etc/modprobe.d, and start again; or leave it to the virtual machine"
			}
			x.find(Finding{Check: "gpu-undriven", Severity: Warning, Subject: c.pci + " (" + c.id + ")", Detail: "its driver is " + c.driver,
				Why: "ROCm uses GPUs that amdgpu drives, and no others", Remedy: []string{remedy}})
		}
	}
}

// visibility are the variables that hide GPUs, in the order in which they apply,
// with what reads them.
var visibility = []struct{ name, reader string }{
	{"ROCR_VISIBLE_DEVICES", "the HSA runtime, for all programs"},
	{"HIP_VISIBLE_DEVICES", "HIP"},
	{"CUDA_VISIBLE_DEVICES", "HIP too, which takes it where HIP_VISIBLE_DEVICES is not set"},
	{"GPU_DEVICE_ORDINAL", "HIP and OpenCL"},
}

// hidden judges those variables.
func (x *exam) hidden() {
	for _, v := range visibility {
		value, set := x.env[v.name]
		// HIP takes an empty one for one that is not set; the runtime hides all.
		if !set || value == "" && v.name != "ROCR_VISIBLE_DEVICES" {
			continue
		}
		shown, odd := visible(value, len(x.gpus.GPUs))
		f := Finding{Check: "gpu-hidden", Subject: v.name + "=" + value, Remedy: x.unset(v.name), Why: "it is read by " + v.reader}
		switch {
		case len(shown) == 0:
			f.Severity, f.Detail = Broken, "it hides every GPU"
		case odd != "":
			f.Severity, f.Detail = Warning, fmt.Sprintf("it names %s, and there are %d GPUs: what stands behind it is not seen", odd, len(x.gpus.GPUs))
		case x.onlyDisplays(shown):
			x.fact("%s=%s hides what lights a desktop", v.name, value)
			continue
		case len(shown) < len(x.gpus.GPUs):
			f.Severity, f.Detail = Note, fmt.Sprintf("%d of %d GPUs are seen", len(shown), len(x.gpus.GPUs))
		default:
			continue
		}
		x.find(f)
	}
}

// onlyDisplays reports whether all that is hidden is there to light a desktop.
func (x *exam) onlyDisplays(shown map[string]bool) bool {
	hidden := 0
	for i, g := range x.gpus.GPUs {
		if !shown[strconv.Itoa(i)] {
			if hidden++; !g.DisplayOnly {
				return false
			}
		}
	}
	return hidden > 0
}

// visible lists the GPUs that a list of indexes and of UUIDs (GPU-…) shows. odd
// is the first that there is none of: the list ends there.
func visible(value string, gpus int) (shown map[string]bool, odd string) {
	shown = map[string]bool{}
	for item := range strings.SplitSeq(value, ",") {
		item = strings.TrimSpace(item)
		n, err := strconv.Atoi(item)
		switch {
		case err == nil && n >= 0 && n < gpus:
			shown[strconv.Itoa(n)] = true
		case strings.HasPrefix(item, "GPU-"):
			shown[item] = true
		case item == "":
			return shown, ""
		default:
			return shown, item
		}
	}
	return shown, ""
}

// displayBeside warns of the small GPU of a desktop processor beside a real one.
func (x *exam) displayBeside() {
	var keep []string
	var small gfx.GPU
	for i, g := range x.gpus.GPUs {
		if g.DisplayOnly {
			small = g
		} else {
			keep = append(keep, strconv.Itoa(i))
		}
	}
	_, set := x.env["ROCR_VISIBLE_DEVICES"]
	if small.Target == "" || len(keep) == 0 || set || x.env["HIP_VISIBLE_DEVICES"] != "" {
		return
	}
	x.find(Finding{Check: "gpu-display", Severity: Note, Subject: small.Target + ", " + small.Name, Detail: "programs see it beside the GPU that computes",
		Why:    "those that use every GPU end with \"invalid device function\", or run as fast as it does",
		Remedy: []string{"export ROCR_VISIBLE_DEVICES=" + strings.Join(keep, ",")}})
}

// targets are those of all GPUs, each once.
func (x *exam) targets() []string {
	var all []string
	for _, g := range x.gpus.GPUs {
		if !slices.Contains(all, g.Target) {
			all = append(all, g.Target)
		}
	}
	return all
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
