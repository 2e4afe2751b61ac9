package patchelf

import (
	"debug/elf"
	"os"
	"slices"
	"strings"
	"testing"
)

// harm is one damage to a fixture, the rule that it breaks, and whether what is
// left still works.
type harm struct {
	name   string
	of     string // variant
	kind   elf.ProgType
	word   int // of the program header: 1 offset, 2 address, 4 bytes of file, 5 of memory, 6 alignment
	change func(uint64) uint64
	rule   string // that is broken; "" for none
	works  bool
}

func setTo(v uint64) func(uint64) uint64  { return func(uint64) uint64 { return v } }
func raised(n uint64) func(uint64) uint64 { return func(v uint64) uint64 { return v + n } }
func same(v uint64) uint64                { return v }

var harms = []harm{
	{"a sound program", "bfd-pie-0", elf.PT_LOAD, 1, same, "", true},
	{"a sound library", "bfd-lib-0", elf.PT_LOAD, 1, same, "", true},
	{"an offset that no page fits", "bfd-lib-0", elf.PT_LOAD, 1, raised(16), "every PT_LOAD can be mapped", false},
	{"an alignment that is no power of two", "bfd-lib-0", elf.PT_LOAD, 6, setTo(0x1001), "every PT_LOAD can be mapped", true}, // glibc before 2.35 stops
	{"more file than memory", "bfd-pie-0", elf.PT_LOAD, 5, setTo(8), "every PT_LOAD can be mapped", false},
	{"memory into the next PT_LOAD", "bfd-lib-0", elf.PT_LOAD, 5, setTo(0x3000), "PT_LOADs ascend and share no page", true},
	{"a PT_DYNAMIC that nothing loads", "bfd-lib-0", elf.PT_DYNAMIC, 2, raised(1 << 30), "the dynamic section is in memory", false},
	{"a PT_PHDR that lies", "bfd-pie-0", elf.PT_PHDR, 2, raised(4096), "program headers are in memory", false},
	{"PT_GNU_RELRO that nothing loads", "bfd-lib-0", elf.PT_GNU_RELRO, 2, raised(1 << 30), "PT_TLS and PT_GNU_RELRO are in memory", false},
	{"no PT_LOAD", "bfd-lib-0", 0, 0, nil, "every PT_LOAD can be mapped", false},
}

func (h harm) apply(t *testing.T, b []byte) {
	t.Helper()
	f, err := Parse(byteFile(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	done := false
	for i := range f.phdrs {
		at := f.phoff + uint64(i*f.phdrSize())
		switch kind := elf.ProgType(f.phdrs[i].kind); {
		case h.change == nil && kind == elf.PT_LOAD:
			f.order.PutUint32(b[at:], uint32(elf.PT_NULL))
			done = true
		case h.change != nil && kind == h.kind && !done:
			w := b[at+uint64(8*h.word):]
			f.order.PutUint64(w, h.change(f.order.Uint64(w)))
			done = true
		}
	}
	if !done {
		t.Fatalf("no %v", h.kind)
	}
}

// TestHealth damages files, and asks the system what it makes of them: what
// does not work has a fault, and what is sound has none.
func TestHealth(t *testing.T) {
	for _, h := range harms {
		t.Run(h.name, func(t *testing.T) {
			v := variantOf(t, h.of)
			v.args = append(slices.Clone(v.args), "-Wl,-rpath,"+shop.deps(t))
			v.name += "-health"
			b, err := os.ReadFile(v.make(t))
			if err != nil {
				t.Fatal(err)
			}
			h.apply(t, b)
			path := put(t, "x", b)
			if status, out := runs(t, path, v.lib); (status == 46) != h.works {
				t.Errorf("exit %d: %s", status, out)
			}
			f, err := Parse(byteFile(b), int64(len(b)))
			if err != nil {
				if h.rule == "" || h.works {
					t.Error(err)
				}
				return // as good as a fault
			}
			faults := f.Health()
			has := slices.ContainsFunc(faults, func(x Fault) bool { return x.Rule == h.rule && !x.Harmless && x.Detail != "" })
			if has != (h.rule != "") || h.rule == "" && len(faults) > 0 {
				t.Errorf("%v", faults)
			}
		})
	}
}

// TestHarmlessFaults: what no loader looks at is said, and stops nobody.
func TestHarmlessFaults(t *testing.T) {
	for _, h := range []harm{
		{"a PT_NOTE elsewhere", "bfd-lib-0", elf.PT_NOTE, 2, raised(64), "PT_DYNAMIC, PT_INTERP, PT_NOTE and others map to their offsets", true},
		{"a PT_PHDR of a library that lies", "bfd-lib-0", elf.PT_GNU_STACK, 0, func(uint64) uint64 { return uint64(elf.PT_PHDR) }, "program headers are loaded where PT_PHDR says", true},
	} {
		t.Run(h.name, func(t *testing.T) {
			v := variantOf(t, h.of)
			v.args = append(slices.Clone(v.args), "-Wl,-rpath,"+shop.deps(t))
			v.name += "-health"
			b, err := os.ReadFile(v.make(t))
			if err != nil {
				t.Fatal(err)
			}
			h.apply(t, b)
			if status, out := runs(t, put(t, "x", b), true); status != 46 {
				t.Errorf("exit %d: %s", status, out)
			}
			f, err := Parse(byteFile(b), int64(len(b)))
			if err != nil {
				t.Fatal(err)
			}
			if faults := f.Health(); len(faults) == 0 || !faults[0].Harmless || faults[0].Rule != h.rule {
				t.Errorf("%v", faults)
			}
		})
	}
}

func TestHealthOfACutFile(t *testing.T) {
	b, err := os.ReadFile(variantOf(t, "bfd-lib-0").make(t))
	if err != nil {
		t.Fatal(err)
	}
	for n := 64; n < len(b); n += 97 {
		f, err := Parse(byteFile(b[:n]), int64(n))
		if err != nil {
			continue
		}
		faults := f.Health()
		if len(faults) == 0 {
			t.Fatalf("the first %d of %d bytes are sound", n, len(b))
		}
		for _, x := range faults {
			if loaded := n < int(f.phdrs[len(f.phdrs)-1].end()); x.Harmless && loaded && len(faults) == 1 {
				t.Fatalf("the first %d bytes: %v", n, faults)
			}
		}
	}
}

// TestHealthOfTheSystem: what linkers and packagers make has no faults.
func TestHealthOfTheSystem(t *testing.T) {
	n := 0
	for _, v := range variants() {
		f := parsePath(t, v.make(t))
		if faults := f.Health(); len(faults) > 0 {
			t.Errorf("%s: %v", v.name, faults)
		}
	}
	for _, dir := range []string{"/usr/bin", "/usr/lib/x86_64-linux-gnu"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if !e.Type().IsRegular() || n > 600 {
				continue
			}
			file, err := os.Open(dir + "/" + e.Name())
			if err != nil {
				continue
			}
			if f, err := parseFile(file); err == nil {
				n++
				if faults := f.Health(); len(faults) > 0 {
					t.Errorf("%s: %v", e.Name(), faults)
				}
			}
			file.Close()
		}
	}
	if n < 50 {
		t.Errorf("only %d files", n)
	}
	for name, o := range oddFiles() {
		b := o.bytes()
		if f, err := Parse(byteFile(b), int64(len(b))); err == nil {
			for _, x := range f.Health() {
				if x.Detail == "" || strings.TrimSpace(x.Rule) == "" {
					t.Errorf("%s: %+v", name, x)
				}
			}
		}
	}
}
