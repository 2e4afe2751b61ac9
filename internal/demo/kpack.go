package demo

import (
	"encoding/binary"
	"slices"
)

// packer writes MessagePack, the little of it that kpack uses, after
// https://github.com/msgpack/msgpack/blob/master/spec.md.
type packer struct{ b []byte }

func (p *packer) fixmap(n int)   { p.b = append(p.b, 0x80|byte(n)) } // n < 16
func (p *packer) fixarray(n int) { p.b = append(p.b, 0x90|byte(n)) } // n < 16

func (p *packer) uint(v uint64) {
	switch {
	case v < 0x80:
		p.b = append(p.b, byte(v))
	case v < 1<<32:
		p.b = binary.BigEndian.AppendUint32(append(p.b, 0xce), uint32(v))
	default:
		p.b = binary.BigEndian.AppendUint64(append(p.b, 0xcf), v)
	}
}

// str writes strings shorter than 64 KiB.
func (p *packer) str(s string) {
	switch {
	case len(s) < 32:
		p.b = append(p.b, 0xa0|byte(len(s)))
	case len(s) < 256:
		p.b = append(p.b, 0xd9, byte(len(s)))
	default:
		p.b = binary.BigEndian.AppendUint16(append(p.b, 0xda), uint16(len(s)))
	}
	p.b = append(p.b, s...)
}

// KpackRef returns the content of a .rocm_kpack_ref section: which kernels a
// library owns, and where from its own directory their archives are. The text
// @GFXARCH@ in a path stands for the name of the GPU.
func KpackRef(kernel string, paths ...string) []byte {
	var p packer
	p.fixmap(2)
	p.str("kernel_name")
	p.str(kernel)
	p.str("kpack_search_paths")
	p.fixarray(len(paths))
	for _, s := range paths {
		p.str(s)
	}
	return p.b
}

// Offsets in a kpack archive, in bytes: magic, version and the place of the
// table of contents; blobs begin on multiples of the alignment.
const (
	kpackHeader = 16
	kpackAlign  = 64
)

// Kpack returns an archive of one code object for one GPU, uncompressed, in
// the format of AMD's rocm-kpack: header, blob, table of contents.
func Kpack(group, gpu, kernel string, code []byte) []byte {
	out := make([]byte, kpackAlign)
	copy(out, "KPAK")
	binary.LittleEndian.PutUint32(out[4:], 1)
	out = append(out, code...)
	out = slices.Concat(out, make([]byte, -len(out)&(kpackAlign-1)))
	binary.LittleEndian.PutUint64(out[8:kpackHeader], uint64(len(out)))

	var p packer
	p.fixmap(7)
	p.str("format_version")
	p.uint(1)
	p.str("group_name")
	p.str(group)
	p.str("gfx_arch_family")
	p.str(gpu)
	p.str("gfx_arches")
	p.fixarray(1)
	p.str(gpu)
	p.str("compression_scheme")
	p.str("none")
	p.str("blobs")
	p.fixarray(1)
	p.fixmap(2)
	p.str("offset")
	p.uint(kpackAlign)
	p.str("size")
	p.uint(uint64(len(code)))
	p.str("toc")
	p.fixmap(1)
	p.str(kernel)
	p.fixmap(1)
	p.str(gpu)
	p.fixmap(3)
	p.str("type")
	p.str("hsaco")
	p.str("ordinal")
	p.uint(0)
	p.str("original_size")
	p.uint(uint64(len(code)))
	return append(out, p.b...)
}
