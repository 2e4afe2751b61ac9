package doctor

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	"github.com/rocm-nightly/rocm-nightly/internal/hostpkg"
)

// checkDriver looks at the amdgpu module and at KFD, its part for computing.
func checkDriver(_ context.Context, x *exam) error {
	if !x.hasGPU() {
		return nil
	}
	if !x.exists("/sys/module/amdgpu") {
		x.notLoaded()
		return nil
	}
	// Only the module that AMD ships for DKMS has a version of its own.
	if v := x.line("/sys/module/amdgpu/version"); v != "" {
		x.fact("amdgpu %s (DKMS) is loaded", v)
	} else {
		x.fact("amdgpu of Linux %s is loaded", x.Kernel)
	}
	for _, t := range x.targets() {
		x.kernel(t)
	}
	if len(x.gpus.GPUs) == 0 && x.driven() {
		x.noKFD()
	}
	return nil
}

// driven reports whether amdgpu has a card.
func (x *exam) driven() bool {
	for _, c := range x.cards {
		if c.driver == "amdgpu" {
			return true
		}
	}
	return false
}

// enterpriseKernel matches the kernels of RHEL and its kin, which keep a number
// for years and take in newer drivers.
var enterpriseKernel = regexp.MustCompile(`\.el[0-9]+`)

// kernel compares with what a target needs. A DKMS module does not depend on
// the kernel's number.
func (x *exam) kernel(target string) {
	want := x.o.Table.Kernel(target)
	if want == "" || x.exists("/sys/module/amdgpu/version") {
		return
	}
	switch {
	case !gfx.OlderKernel(x.Kernel, want):
		x.fact("%s needs Linux %s, and this is %s", target, want, x.Kernel)
		return
	case enterpriseKernel.MatchString(x.Kernel):
		x.fact("%s needs Linux %s: whether %s, whose drivers are newer than its number, has as much is not known", target, want, x.Kernel)
		return
	}
	x.find(Finding{Check: "kernel-old", Severity: Warning, Subject: "Linux " + x.Kernel, Detail: fmt.Sprintf("it may be too old for %s, which Linux %s is the first to drive", target, want),
		Why:    "an older driver hangs, resets the GPU or does not show it",
		Remedy: []string{x.newKernel(), "sudo reboot"}})
}

// noKFD is a GPU that lights screens and does not compute.
func (x *exam) noKFD() {
	f := Finding{Check: "kfd-none", Severity: Broken, Subject: "/sys/class/kfd", Detail: "amdgpu drives the GPU, and KFD does not know it",
		Why: "ROCm reaches GPUs through KFD, the driver's part for computing"}
	switch {
	case x.container != "" && !x.exists("/sys/class/kfd"):
		f.Detail = "it is not visible in this container"
		f.Remedy = []string{containerRun(x, nil)}
	case !x.exists("/sys/class/kfd"):
		f.Detail = "it is not there, and amdgpu drives the GPU: this kernel has the driver without KFD"
		f.Remedy = []string{"grep CONFIG_HSA_AMD= " + path.Join("/boot", "config-"+x.Kernel) + "   # must be y", x.newKernel()}
	default:
		f.Remedy = []string{"sudo dmesg | grep -iE 'kfd|atomics'   # says why: PCIe atomics, firmware, an unknown GPU", x.newKernel()}
	}
	x.find(f)
}

// notLoaded finds out why the module is not there.
func (x *exam) notLoaded() {
	f := Finding{Check: "driver-unloaded", Severity: Broken, Subject: "/sys/module/amdgpu", Detail: "the amdgpu module is not loaded",
		Why: "without it there is no /dev/kfd, and ROCm sees no GPU"}
	for _, why := range []func(*Finding) bool{x.inContainer, x.blacklisted, x.kernelReplaced, x.noModule, x.unsigned} {
		if why(&f) {
			x.find(f)
			return
		}
	}
	f.Remedy = []string{"sudo modprobe amdgpu", "sudo dmesg | grep -i amdgpu   # where that fails"}
	x.find(f)
}

func (x *exam) inContainer(f *Finding) bool {
	if x.container != "" {
		f.Remedy = []string{"on the host: sudo modprobe amdgpu"}
	}
	return x.container != ""
}

// blacklisted looks for who forbids the module: the command line, or modprobe.d.
func (x *exam) blacklisted(f *Finding) bool {
	for _, word := range strings.Fields(x.text("/proc/cmdline")) {
		name, value, _ := strings.Cut(word, "=")
		list := name == "modprobe.blacklist" || name == "module_blacklist" || name == "rd.driver.blacklist"
		if word == "nomodeset" || word == "amdgpu.modeset=0" || list && hasWord(value, "amdgpu") {
			f.Detail += ": the kernel command line says " + word
			f.Remedy = []string{"take " + word + " out of the kernel command line, in the configuration of the boot loader", "sudo reboot"}
			return true
		}
	}
	for _, dir := range []string{"/etc/modprobe.d", "/run/modprobe.d", "/usr/local/lib/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d"} {
		for _, name := range x.list(dir) {
			file := path.Join(dir, name)
			if n := blacklistLine(x.text(file)); n > 0 && strings.HasSuffix(name, ".conf") {
				f.Detail += fmt.Sprintf(": %s:%d forbids it", file, n)
				f.Remedy = []string{fmt.Sprintf("sudo sed -i '%ds/^/#/' %s", n, quote(file)), x.initramfs(), "sudo reboot"}
				return true
			}
		}
	}
	return false
}

func hasWord(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// blacklistLine is the line of a modprobe.d(5) file that forbids amdgpu, 0 for none.
func blacklistLine(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		n++
		w := strings.Fields(line)
		if len(w) >= 2 && w[1] == "amdgpu" && (w[0] == "blacklist" || w[0] == "install" && len(w) > 2 && (strings.HasSuffix(w[2], "/false") || strings.HasSuffix(w[2], "/true"))) {
			return n
		}
	}
	return 0
}

// modules is where this kernel's modules are.
func (x *exam) modules() string {
	for _, dir := range []string{"/lib/modules", "/usr/lib/modules", "/run/booted-system/kernel-modules/lib/modules"} {
		if x.isDir(path.Join(dir, x.Kernel)) {
			return path.Join(dir, x.Kernel)
		}
	}
	return ""
}

// kernelReplaced is what an upgrade leaves until the next start: a kernel whose
// modules are gone.
func (x *exam) kernelReplaced(f *Finding) bool {
	if x.modules() != "" || x.Kernel == "" || len(x.list("/lib/modules")) == 0 {
		return false
	}
	f.Detail += ": the modules of the running kernel, " + x.Kernel + ", are gone, since another was installed"
	f.Remedy = []string{"sudo reboot"}
	return true
}

// dkmsModules are where DKMS puts them, by distribution.
var dkmsModules = []string{"updates/dkms/amdgpu.ko*", "extra/amdgpu.ko*", "updates/amdgpu.ko*"}

func (x *exam) dkms() bool {
	for _, p := range dkmsModules {
		if len(x.glob(path.Join(x.modules(), p))) > 0 {
			return true
		}
	}
	return false
}

// noModule is a kernel without the driver, as those made for virtual machines.
func (x *exam) noModule(f *Finding) bool {
	dir := x.modules()
	if dir == "" || x.dkms() || len(x.glob(path.Join(dir, "kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko*"))) > 0 ||
		strings.Contains(x.text(path.Join(dir, "modules.builtin")), "/amdgpu.ko") || !x.exists(path.Join(dir, "modules.dep")) {
		return false
	}
	f.Detail += ": this kernel has no such module"
	switch {
	case x.distro.ID == "debian" && strings.Contains(x.Kernel, "cloud"):
		f.Remedy = []string{"sudo apt install linux-image-amd64", "sudo reboot"}
	case x.distro.ID == "ubuntu":
		f.Remedy = []string{"sudo apt install linux-modules-extra-" + quote(x.Kernel), "sudo modprobe amdgpu"}
	case x.distro.Family == hostpkg.Fedora:
		f.Remedy = []string{"sudo dnf install kernel-modules-" + quote(x.Kernel), "sudo modprobe amdgpu"}
	default:
		f.Remedy = []string{x.newKernel(), "sudo reboot"}
	}
	return true
}

// secureBoot is a variable of UEFI: four bytes of attributes, then the value.
const secureBoot = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"

// unsigned is a DKMS module under secure boot.
func (x *exam) unsigned(f *Finding) bool {
	v := x.text(secureBoot)
	if len(v) != 5 || v[4] != 1 || !x.dkms() {
		return false
	}
	f.Detail += ": it is a DKMS module, and secure boot is on, which takes signed modules alone"
	f.Remedy = []string{"sudo mokutil --import " + x.dkmsKey() + "   # choose a password, and enter it at the next start", "sudo reboot"}
	return true
}

func (x *exam) dkmsKey() string {
	if x.distro.ID == "ubuntu" {
		return "/var/lib/shim-signed/mok/MOK.der"
	}
	return "/var/lib/dkms/mok.pub"
}
