package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// checkMemory looks at how much memory GPUs may use.
func checkMemory(_ context.Context, x *exam) error {
	ram := x.meminfo()
	for _, g := range x.gpus.GPUs {
		c := x.cardOf(g)
		switch {
		case c == nil || c.vram == 0:
		case g.Integrated && !g.DisplayOnly:
			x.shared(g.Target, c, ram)
		case !g.Integrated:
			x.window(g.Target, c)
		}
	}
	x.overGTT()
	x.sharedMemory()
	x.lockable()
	return nil
}

// meminfo is the memory that Linux has, in bytes; 0 if unknown.
func (x *exam) meminfo() int64 {
	for line := range strings.Lines(x.text("/proc/meminfo")) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "MemTotal:" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil || kib < 0 || kib > 1<<50 {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}

// ttm is the module that limits how much system memory GPUs may have: the DKMS
// driver has one of its own.
func (x *exam) ttm() string {
	if x.exists("/sys/module/amdttm/parameters/pages_limit") {
		return "amdttm"
	}
	return "ttm"
}

const pageSize = 4096 // of x86-64

// ttmLimit is how much of it GPUs may have, in bytes; 0 if unknown.
func (x *exam) ttmLimit() int64 {
	n := x.number("/sys/module/" + x.ttm() + "/parameters/pages_limit")
	if n > 1<<50/pageSize {
		return 0
	}
	return n * pageSize
}

// shared judges a GPU that shares the memory of the CPU. The driver lets it have
// half of that, besides what the firmware took away for it.
func (x *exam) shared(target string, c *card, ram int64) {
	text := fmt.Sprintf("%s: %s set apart by the firmware, up to %s of the system's (GTT), of %s", target, size(c.vram), size(c.gtt), size(ram))
	if limit := x.ttmLimit(); limit > 0 && limit < c.gtt {
		return // that is said by itself
	}
	if c.gtt == 0 || ram < 8<<30 || c.vram+c.gtt > (ram+c.vram)/10*7 {
		x.fact("%s", text)
		return
	}
	// What the system itself needs, and one that compiles ROCm programs.
	keep := max(6<<30, ram/8)
	pages := (ram - keep) / pageSize
	m := x.ttm()
	x.find(Finding{Check: "memory-gtt", Severity: Warning, Subject: target, Detail: fmt.Sprintf("it may use %s of %s: %s", size(c.vram+c.gtt), size(ram+c.vram), text[len(target)+2:]),
		Why:    "a model that is larger ends with hipErrorOutOfMemory, with memory to spare",
		Remedy: x.kernelParameter(fmt.Sprintf("%s.pages_limit=%d", m, pages))})
}

// window is the part of a card's memory that the CPU reaches: all of it with
// Resizable BAR.
func (x *exam) window(target string, c *card) {
	if c.visible == 0 || c.visible >= c.vram/2 {
		x.fact("%s: %s, all of which the CPU reaches", target, size(c.vram))
		return
	}
	x.find(Finding{Check: "memory-bar", Severity: Note, Subject: target + " (" + c.pci + ")", Detail: fmt.Sprintf("the CPU reaches %s of its %s", size(c.visible), size(c.vram)),
		Why:    "copies take a detour, and GPUs cannot read each other's memory",
		Remedy: []string{"in the firmware setup: turn on Resizable BAR (Smart Access Memory) and Above 4G Decoding, turn off CSM"}})
}

// overGTT is a GTT that was made larger than TTM lets anybody have.
func (x *exam) overGTT() {
	limit := x.ttmLimit()
	for _, c := range x.cards {
		if limit == 0 || c.gtt <= limit {
			continue
		}
		x.find(Finding{Check: "memory-ttm", Severity: Warning, Subject: c.pci, Detail: fmt.Sprintf("GTT has %s, and %s.pages_limit lets GPUs have %s", size(c.gtt), x.ttm(), size(limit)),
			Why:    "what is allocated beyond that fails, or the kernel kills the program; amdgpu.gttsize alone no longer raises it",
			Remedy: x.kernelParameter(fmt.Sprintf("%s.pages_limit=%d", x.ttm(), c.gtt/pageSize))})
	}
}

// sharedMemory is /dev/shm, of which container engines give 64 MiB.
func (x *exam) sharedMemory() {
	if x.container == "" || !x.hasGPU() {
		return
	}
	tool := "docker"
	if x.container == "podman" {
		tool = "podman"
	}
	for _, m := range x.mounts() {
		if m.at != "/dev/shm" {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(m.option("size"), "k"), 10, 64)
		if err != nil || kib > 1<<20 {
			return
		}
		x.find(Finding{Check: "memory-shm", Severity: Warning, Subject: "/dev/shm", Detail: "it has " + size(kib<<10),
			Why:    "RCCL and PyTorch's data loaders pass data through it, and end with SIGBUS when it is full",
			Remedy: []string{tool + " run --shm-size 16g …, or --ipc=host"}})
	}
}

// lockable matters where network cards write to GPUs: they pin what they use.
func (x *exam) lockable() {
	if !x.exists("/dev/infiniband") || x.Memlock <= 0 || x.Memlock >= 1<<30 || x.UID == 0 {
		return
	}
	x.find(Finding{Check: "memory-lock", Severity: Warning, Subject: "RLIMIT_MEMLOCK", Detail: "this user may lock " + size(x.Memlock),
		Why:    "RDMA pins memory: RCCL over InfiniBand or RoCE fails with \"cannot allocate memory\"",
		Remedy: []string{"printf '%s\\n' '* soft memlock unlimited' '* hard memlock unlimited' | sudo tee /etc/security/limits.d/50-rdma.conf", "log out and in again"}})
}
