package pgunzip

import (
	"encoding/binary"
	"unsafe"
)

// The fast loop checks once for each symbol that there is room for the longest
// in its input and output, and then goes without the checks of each access.
// What stands here compiles to single loads and stores. off is in bytes.

func load64(p unsafe.Pointer, off int) uint64 {
	return binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(p, off))[:])
}

func store64(p unsafe.Pointer, off int, v uint64) {
	binary.LittleEndian.PutUint64((*[8]byte)(unsafe.Add(p, off))[:], v)
}

func copy16(p unsafe.Pointer, to, from int) {
	*(*[16]byte)(unsafe.Add(p, to)) = *(*[16]byte)(unsafe.Add(p, from))
}
