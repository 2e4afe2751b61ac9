package gfx

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// ErrNoGPU is what Detect's error matches on a machine without an AMD GPU, or
// without the kernel module that would tell.
var ErrNoGPU = errors.New("no AMD GPU that the kernel's KFD knows")

// nodesDir is where the amdgpu kernel module describes each compute node,
// relative to /sys.
const nodesDir = "class/kfd/kfd/topology/nodes"

// Limits of what is read: a machine has tens of nodes, and a properties file
// some forty lines.
const (
	maxNodes      = 1024
	maxProperties = 64 << 10
	maxBanks      = 64
)

// GPU is one GPU of this machine, as its KFD node describes it.
type GPU struct {
	Node        int    // the number of the topology node
	Target      string // gfx1100
	CUs         int    // compute units; 0 if the kernel does not say
	device      int64  // where on the buses: the nodes of a partitioned GPU have it in common; 0 if the kernel does not say
	Integrated  bool   // it shares the memory of the CPU
	DisplayOnly bool   // it is there to light a desktop: see Detect
	Memory      int64  // bytes of its local memory banks; 0 if unknown or none
	Name        string // what people call its target; "" if unknown
}

// LeftOut is a GPU that is not taken, and why.
type LeftOut struct {
	GPU
	Reason string // names the GPU and says how to include it
}

// Machine is what Detect finds.
type Machine struct {
	GPUs    []GPU     // all of them, in order of their nodes
	Taken   []string  // targets to install for, each once: that of the GPU with most compute units first
	LeftOut []LeftOut // GPUs of targets that are not taken, in order of their nodes
}

// Detect finds this machine's GPUs from the KFD topology in sysfs (an fs.FS
// of /sys). Discrete GPUs and APUs are taken. A GPU that is there to light a
// desktop (known as such, or integrated with two compute units or fewer) is
// left out beside any other, and taken where there is no other.
//
// Taken begins with the target of the GPU with most compute units; where two
// have as many, a discrete one comes before an integrated one, and a lower
// node before a higher. It is what a link such as /opt/rocm leads to.
//
// The error matches ErrNoGPU where there is nothing to take.
func (t *Table) Detect(sys fs.FS) (*Machine, error) {
	nodes, err := fs.ReadDir(sys, nodesDir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(nodes) == 0 {
		return nil, fmt.Errorf("%w: there is nothing in /sys/%s; is the amdgpu module loaded, and is /sys/class/kfd visible here (a container needs it, with /dev/kfd)? Otherwise name the target with --arch", ErrNoGPU, nodesDir)
	}
	if err != nil {
		return nil, fmt.Errorf("read the KFD topology: %w", err)
	}
	m := &Machine{}
	hidden := 0
	for _, n := range nodes[:min(len(nodes), maxNodes)] {
		number, err := strconv.Atoi(n.Name())
		if err != nil || number < 0 {
			continue
		}
		gpu, err := t.node(sys, number, path.Join(nodesDir, n.Name()))
		if err != nil {
			hidden++
		} else if gpu.Target != "" {
			m.GPUs = append(m.GPUs, gpu)
		}
	}
	if len(m.GPUs) == 0 {
		return nil, noneAmong(len(nodes), hidden)
	}
	slices.SortFunc(m.GPUs, func(a, b GPU) int { return cmp.Compare(a.Node, b.Node) })
	m.choose()
	return m, nil
}

func noneAmong(nodes, hidden int) error {
	if hidden > 0 {
		return fmt.Errorf("%w: %d of %d nodes in /sys/%s may not be read, as in a container that was given no GPU; name the target with --arch", ErrNoGPU, hidden, nodes, nodesDir)
	}
	return fmt.Errorf("%w: the %d nodes in /sys/%s are CPUs; if there is an AMD GPU, is amdgpu its driver, and is the kernel new enough for it? Otherwise name the target with --arch", ErrNoGPU, nodes, nodesDir)
}

// choose fills Taken and LeftOut from GPUs.
func (m *Machine) choose() {
	taken := slices.DeleteFunc(slices.Clone(m.GPUs), func(g GPU) bool { return g.DisplayOnly })
	if len(taken) == 0 {
		taken = slices.Clone(m.GPUs)
	}
	units := m.unitsOfDevices()
	slices.SortStableFunc(taken, func(a, b GPU) int {
		return cmp.Or(cmp.Compare(units[b.Node], units[a.Node]), compareBools(a.Integrated, b.Integrated))
	})
	for _, g := range taken {
		if !slices.Contains(m.Taken, g.Target) {
			m.Taken = append(m.Taken, g.Target)
		}
	}
	for _, g := range m.GPUs {
		if !slices.Contains(m.Taken, g.Target) {
			m.LeftOut = append(m.LeftOut, LeftOut{g, g.reason()})
		}
	}
}

// unitsOfDevices returns, for each node, the compute units of the whole GPU:
// one MI300X that is partitioned is up to eight nodes.
func (m *Machine) unitsOfDevices() map[int]int {
	sums := map[int64]int{}
	for _, g := range m.GPUs {
		sums[g.device] += g.CUs
	}
	units := map[int]int{}
	for _, g := range m.GPUs {
		units[g.Node] = g.CUs
		if g.device != 0 {
			units[g.Node] = sums[g.device]
		}
	}
	return units
}

// reason says why a GPU is left out, and how to include it.
func (g GPU) reason() string {
	name := g.Target
	if g.Name != "" {
		name += ", " + g.Name + ","
	}
	units := "few compute units"
	if g.CUs > 0 {
		units = fmt.Sprintf("%d compute units", g.CUs)
	}
	return fmt.Sprintf("%s has %s, enough to light a desktop: to include it add --arch %s, or an install with target: %s", name, units, g.Target, g.Target)
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// node reads one topology node. The GPU has no target if the node is a CPU.
func (t *Table) node(sys fs.FS, number int, dir string) (GPU, error) {
	// The kernel gives CPUs the id 0, and hides the ids of GPUs that this
	// process may not use. The file is absent in none that we know of, but
	// properties tell the same.
	if id, err := read(sys, path.Join(dir, "gpu_id")); err == nil && strings.TrimSpace(id) == "0" {
		return GPU{}, nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return GPU{}, err
	}
	text, err := read(sys, path.Join(dir, "properties"))
	if err != nil {
		return GPU{}, err
	}
	p := parseProperties(text)
	g := GPU{Node: number, Target: targetOf(p["gfx_target_version"])}
	if g.Target == "" {
		return GPU{}, nil
	}
	if p["simd_per_cu"] > 0 {
		g.CUs = int(p["simd_count"] / p["simd_per_cu"])
	}
	g.device = deviceOf(p)
	known := t.data.Targets[g.Target]
	g.Name = known.Name
	g.Integrated = known.Integrated || p["cpu_cores_count"] > 0
	g.DisplayOnly = known.DisplayOnly || g.Integrated && g.CUs > 0 && g.CUs <= 2
	g.Memory = localMemory(sys, dir)
	return g, nil
}

// deviceOf joins the PCI domain and the location on it. The top four bits of
// the location are the number of a partition.
func deviceOf(p map[string]int64) int64 {
	return p["domain"]&0xffffffff<<28 | p["location_id"]&0x0fffffff
}

// targetOf names gfx_target_version, which is major*10000 + minor*100 +
// stepping in decimal: 110501 is gfx1151, 90010 is gfx90a. CPUs have 0.
func targetOf(v int64) string {
	major, minor, stepping := v/10000, v/100%100, v%100
	if major < 1 || major > 99 || minor > 15 || stepping > 15 {
		return ""
	}
	return fmt.Sprintf("gfx%d%x%x", major, minor, stepping)
}

// localMemory adds up the memory banks that are the GPU's own: heap types 1
// and 2 are the frame buffer that the CPU can reach, and the rest of it. The
// local_mem_size of a node's properties is 0 on every kernel of today.
func localMemory(sys fs.FS, dir string) int64 {
	banks, err := fs.ReadDir(sys, path.Join(dir, "mem_banks"))
	if err != nil {
		return 0
	}
	var sum int64
	for _, b := range banks[:min(len(banks), maxBanks)] {
		text, err := read(sys, path.Join(dir, "mem_banks", b.Name(), "properties"))
		if err != nil {
			continue
		}
		p := parseProperties(text)
		if h := p["heap_type"]; h == 1 || h == 2 {
			sum += min(p["size_in_bytes"], math.MaxInt64-sum)
		}
	}
	return sum
}

// parseProperties reads lines of a name and a number. Lines of another form,
// and numbers that are negative or have no place in an int64 (unique_id can
// be larger), are passed over.
func parseProperties(text string) map[string]int64 {
	p := map[string]int64{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 2 {
			continue
		}
		if n, err := strconv.ParseInt(f[1], 10, 64); err == nil && n >= 0 {
			p[f[0]] = n
		}
	}
	return p
}

// read returns a small file.
func read(sys fs.FS, name string) (string, error) {
	f, err := sys.Open(name)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxProperties))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	return string(b), nil
}
