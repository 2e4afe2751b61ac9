package gfx

import (
	"errors"
	"fmt"
	"io/fs"
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

// Detect returns the targets of this machine's GPUs, each once, in order,
// from the KFD topology in sysfs (an fs.FS of /sys).
func Detect(sys fs.FS) ([]string, error) {
	nodes, err := fs.ReadDir(sys, nodesDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the KFD topology: %w", err)
	}
	var targets []string
	for _, n := range nodes {
		props, err := fs.ReadFile(sys, path.Join(nodesDir, n.Name(), "properties"))
		if err != nil {
			continue // a node that this user may not read
		}
		if t := nodeTarget(string(props)); t != "" && !slices.Contains(targets, t) {
			targets = append(targets, t)
		}
	}
	if len(targets) == 0 {
		return nil, ErrNoGPU
	}
	slices.Sort(targets)
	return targets, nil
}

// nodeTarget reads gfx_target_version, which is major*10000 + minor*100 +
// stepping in decimal: 110501 is gfx1151, 90010 is gfx90a. CPUs have 0.
func nodeTarget(properties string) string {
	for line := range strings.Lines(properties) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if key != "gfx_target_version" {
			continue
		}
		v, err := strconv.Atoi(value)
		if err != nil || v < 10000 || v > 999999 {
			return ""
		}
		return fmt.Sprintf("gfx%d%x%x", v/10000, v/100%100, v%100)
	}
	return ""
}
