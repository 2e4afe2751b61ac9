package patchelf

import (
	"debug/elf"
	"os"
	"slices"
	"testing"
)

// TestClass32 edits 32-bit libraries. They cannot be loaded here without a
// 32-bit loader, so readelf and eu-elflint judge.
func TestClass32(t *testing.T) {
	object := shop.build(t, "class32.o", "int value = 5; int *where = &value; int get(void) { return *where; }", "-m32", "-c", "-fPIC", "-ffreestanding")
	for name, args := range map[string][]string{
		"plain": nil, "path": {"-Wl,-rpath,/some/where"}, "joined": {"-Wl,-z,noseparate-code"}, "sysv": {"-Wl,--hash-style=sysv"},
	} {
		path := copyOf(t, shop.build(t, "class32-"+name+".so", "", append([]string{object, "-m32", "-shared", "-nostdlib"}, args...)...))
		before, complaints := names(t, path), lint(path)
		for i, p := range []string{longPath, "/x", longPath, "", longPath + longPath} {
			res := mustEdit(t, path, Edit{RunPath: &p, Tag: RPath})
			if (i == 1 || i == 2) && res.Growth != 0 {
				t.Errorf("%s: grew again: %+v", name, res)
			}
			checkPath(t, path, p, RPath)
			clean(t, path)
			if after := names(t, path); after != before {
				t.Errorf("%s: names were\n%s\nand are\n%s", name, before, after)
			}
			if after := lint(path); len(after) > len(complaints) {
				t.Errorf("%s: %s: %q", name, res.How, after)
			}
		}
	}
}

// split makes the middle of a large read-only section NOBITS, as kernel packs
// do: the bytes are cut out of the file and the PT_LOAD is split in three.
func split(t *testing.T, b []byte, section string) []byte {
	t.Helper()
	f, err := Parse(byteFile(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	index, sec := -1, shdr{}
	if err := f.eachShdr(1000, func(i int, s shdr) bool {
		names := nameTable{f: f, shdr: f.shdr(b[f.shoff+uint64(f.shstrndx*64):])}
		if is, err := names.is(s.name, section); is && err == nil {
			index, sec = i, s
		}
		return true
	}); err != nil || index < 0 {
		t.Fatalf("no %s: %v", section, err)
	}
	at := up(sec.off, 4096)
	n := (sec.off + sec.size - at) &^ 4095
	out := append(slices.Clone(b[:at]), b[at+n:]...)
	shoff := f.shoff - n
	f.put(out[40:], shoff)
	for i := range f.shnum {
		raw := out[shoff+uint64(i*64):]
		s := f.shdr(raw)
		if i == index {
			s.kind = uint32(elf.SHT_NOBITS)
		} else if s.off >= at+n {
			s.off -= n
		}
		f.putShdr(raw, s)
	}
	var ps []phdr
	for _, p := range f.phdrs {
		if !p.load() || p.off > at || p.end() < at+n {
			if p.off >= at+n {
				p.off -= n
			}
			ps = append(ps, p)
			continue
		}
		pre, mid, post := p, p, p
		pre.filesz, pre.memsz = at-p.off, at-p.off
		mid.off, mid.vaddr, mid.paddr, mid.filesz, mid.memsz = at, p.vaddr+at-p.off, p.vaddr+at-p.off, 0, n
		post.vaddr, post.off = mid.vaddr+n, at
		post.paddr, post.filesz, post.memsz = post.vaddr, p.end()-at-n, p.end()-at-n
		ps = append(ps, pre, mid, post)
	}
	return relocate(f, out, ps)
}

// relocate puts the table ps at the end of out.
func relocate(f *File, out []byte, ps []phdr) []byte {
	highest := uint64(0)
	for _, p := range ps {
		if p.load() {
			highest = max(highest, p.vend())
		}
	}
	size := uint64(16 * 56)
	off := up(uint64(len(out)), 4096)
	vaddr := up(highest, 4096)
	ps = slices.DeleteFunc(ps, func(p phdr) bool { return elf.ProgType(p.kind) == elf.PT_PHDR })
	ps = append(ps, phdr{kind: uint32(elf.PT_LOAD), flags: uint32(elf.PF_R), off: off, vaddr: vaddr, paddr: vaddr, filesz: size, memsz: size, alignment: 4096})
	out = append(out, make([]byte, off+size-uint64(len(out)))...)
	copy(out[off:], f.putPhdrs(ps))
	f.put(out[32:], off)
	f.order.PutUint16(out[56:], uint16(len(ps)))
	return append(out, 0) // never page-aligned again
}

// TestKernelPackShape: a library whose kernels were cut out into a NOBITS
// segment still loads after the edit.
func TestKernelPackShape(t *testing.T) {
	deps := shop.deps(t)
	source := userSource + ` __attribute__((section(".hip_fatbin,\"a\",@progbits#"), aligned(4096))) const char fat[1 << 20] = {1};`
	for _, extra := range [][]string{nil, {"-Wl,-rpath,/o/p"}} {
		object := shop.build(t, "kernels.o", source, "-c", "-fPIC")
		lib := shop.build(t, "kernels"+string(rune('0'+len(extra)))+".so", "", append([]string{object, "-shared", "-L" + deps, "-ldep"}, extra...)...)
		b, err := os.ReadFile(lib)
		if err != nil {
			t.Fatal(err)
		}
		path := put(t, "kernels.so", split(t, b, ".hip_fatbin"))
		for _, p := range []string{longPath + ":" + deps, deps, longPath + ":" + longPath + ":" + deps} {
			res := mustEdit(t, path, Edit{RunPath: &p, Tag: RPath})
			if code, out := runs(t, path, true); code != 46 {
				t.Fatalf("%s: exit %d: %s", res.How, code, out)
			}
			clean(t, path)
		}
	}
}
