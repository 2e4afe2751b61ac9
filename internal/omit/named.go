package omit

import "strings"

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
