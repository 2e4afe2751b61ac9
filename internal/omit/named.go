package omit

import (
	"slices"
	"strings"
)

// NamedGPUs lists what in a path looks like a GPU's name, each once: for telling
// what there is. To decide what may go, KernelGPUs is stricter.
func NamedGPUs(name string) []string {
	var gpus []string
	for _, gpu := range gpuRE.FindAllString(name, maxNamed) {
		if !slices.Contains(gpus, gpu) {
			gpus = append(gpus, gpu)
		}
	}
	return gpus
}

// maxNamed bounds what NamedGPUs looks at of one path.
const maxNamed = 8

// FirstGPU is the GPU that the name of a file of MIOpen begins with; "" for none.
// The number of its compute units may follow in hex: gfx90a6e.
func FirstGPU(name string) string { return gpuFirstRE.FindString(name) }

// KernelGPUs lists the GPUs that a file of kernels is for, by its name and those
// of its directories; none where it names none, or one that cannot be read.
func KernelGPUs(name string) []string { return kernelGPUs(strings.Split(name, "/")) }

// DatabaseGPU is the GPU that a database of MIOpen is for, by its name; "" for
// what is no such file.
func DatabaseGPU(name string) string {
	if gpus := databaseGPUs(strings.Split(name, "/")); len(gpus) > 0 {
		return gpus[0]
	}
	return ""
}
