package omit

import (
	"regexp"
	"strings"
)

// gpuRE finds what names GPUs in a part of a path: TensileLibrary_lazy_gfx1030.dat,
// Kernels.so-000-gfx90a-xnack+.hsaco, blas_lib_gfx9-4-generic.kpack, amd-gfx11xx.
var gpuRE = regexp.MustCompile(`gfx[0-9]+(?:-[0-9]+)?-generic|gfx[0-9a-f]+[xX]*`)

// kernelGPUs lists the GPUs that a file of kernels is for, by its name and those
// of its directories: all of them, because what is for one of them is needed
// there. It is empty where one cannot be read, and where there is none: what
// names no GPU is for all.
func kernelGPUs(parts []string) []string {
	var gpus []string
	for _, part := range parts {
		named := gpuRE.FindAllStringIndex(part, -1)
		if len(named) != strings.Count(part, "gfx") {
			return nil
		}
		for _, m := range named {
			from, to := m[0], m[1]
			if from > 0 && isWord(part[from-1]) || to < len(part) && isWord(part[to]) {
				return nil
			}
			gpus = append(gpus, part[from:to])
		}
	}
	return gpus
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// gpuFirst matches the GPU that a name begins with, though hex digits may follow:
// names of GPUs have three digits up to gfx9 and four from gfx10 on.
const gpuFirst = `^gfx(?:[6-9][0-9a-f]{2}|[1-5][0-9a-f]{3})`

var gpuFirstRE = regexp.MustCompile(gpuFirst)

// databaseRE takes the name of a database of MIOpen apart: the GPU, and the
// number of its compute units: in decimal after _ up to 64, above that in hex
// right behind the GPU (MIOpen, Handle::GetDbBasename).
var databaseRE = regexp.MustCompile(gpuFirst + `[0-9a-f]*(?:[._-].*)?\.(?:kdb|db|db\.txt|fdb\.txt)(?:\.bz2)?$`)

// databaseGPUs is the GPU that a database of MIOpen is for.
func databaseGPUs(parts []string) []string {
	if name := parts[len(parts)-1]; databaseRE.MatchString(name) {
		return []string{FirstGPU(name)}
	}
	return nil
}
