package audit

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// The library that the breaks below damage: a program needs it.
const victim = rocm + "lib/liba.so.1.0"

// oneBreak is one thing that goes wrong with a sound tree, and the one finding
// that says so.
type oneBreak struct {
	name string
	do   func(f *fixture)
	want string
	with func(o *Options)
}

func inTree(o *Options) { o.Scope = ScopeTree }

// phdr changes the first program header of a kind in a 64-bit file: word is the
// index of one of its 8-byte words (1 offset, 2 address, 4 bytes of file, 5 of
// memory, 6 alignment).
func phdr(kind elf.ProgType, word int, change func(uint64) uint64) func(f *fixture) {
	return func(f *fixture) {
		f.patch(victim, func(b []byte) []byte {
			le := binary.LittleEndian
			at := le.Uint64(b[32:])
			for range le.Uint16(b[56:]) {
				if elf.ProgType(le.Uint32(b[at:])) == kind {
					w := b[at+8*uint64(word):]
					le.PutUint64(w, change(le.Uint64(w)))
					return b
				}
				at += 56
			}
			f.Fatalf("no %v", kind)
			return nil
		})
	}
}

// dyn changes the value of an entry of the dynamic section.
func dyn(tag elf.DynTag, change func(uint64) uint64) func(f *fixture) {
	return func(f *fixture) {
		f.patch(victim, func(b []byte) []byte {
			x, err := elf.NewFile(bytes.NewReader(b))
			if err != nil {
				f.Fatal(err)
			}
			le := binary.LittleEndian
			for at := x.Section(".dynamic").Offset; ; at += 16 {
				switch elf.DynTag(le.Uint64(b[at:])) {
				case tag:
					le.PutUint64(b[at+8:], change(le.Uint64(b[at+8:])))
					return b
				case elf.DT_NULL:
					f.Fatalf("no %v", tag)
				}
			}
		})
	}
}

// patch changes the bytes of a file.
func (f *fixture) patch(name string, change func([]byte) []byte) {
	f.Helper()
	b, err := os.ReadFile(f.path(name))
	if err != nil {
		f.Fatal(err)
	}
	info, err := os.Stat(f.path(name))
	if err != nil {
		f.Fatal(err)
	}
	write(f, f.path(name), string(change(slices.Clone(b))), info.Mode())
}

func to(v uint64) func(uint64) uint64   { return func(uint64) uint64 { return v } }
func plus(n uint64) func(uint64) uint64 { return func(v uint64) uint64 { return v + n } }

func cutAt(n int) func(f *fixture) {
	return func(f *fixture) { f.patch(victim, func(b []byte) []byte { return b[:min(n, len(b)*9/10)] }) }
}

const damaged = "fatal invalid-elf " + victim

var damages = []oneBreak{
	{name: "cut in the ELF header", do: cutAt(30), want: damaged},
	{name: "cut in the program headers", do: cutAt(100), want: damaged},
	{name: "cut in the first page", do: cutAt(600), want: damaged},
	{name: "cut behind the first page", do: cutAt(4500), want: damaged},
	{name: "not a byte", do: func(f *fixture) { f.patch(victim, func([]byte) []byte { return nil }) }, want: damaged},
	{name: "nothing but zeros", do: func(f *fixture) { f.patch(victim, func(b []byte) []byte { return make([]byte, len(b)) }) }, want: damaged},
	{name: "a library of bytes that nobody needs", do: func(f *fixture) { f.text(rocm+"lib/liby.so.1", "\x1f\x8b\x08\x00\x00", 0o644) },
		want: "fatal invalid-elf " + rocm + "lib/liby.so.1"},
	{name: "a library of another system", do: func(f *fixture) { f.text(rocm+"lib/liby.so", "\xcf\xfa\xed\xfe\x07\x00\x00\x01", 0o644) }},
	{name: "a linker script", do: func(f *fixture) { f.text(rocm+"lib/liby.so", "INPUT(liby.so.1)\n", 0o644) }},
	{name: "an odd class", do: func(f *fixture) { f.patch(victim, func(b []byte) []byte { b[4] = 9; return b }) }, want: damaged},
	{name: "program headers of an odd size", do: func(f *fixture) { f.patch(victim, func(b []byte) []byte { b[54] = 55; return b }) }, want: damaged},
	{name: "program headers past the end", do: func(f *fixture) { f.patch(victim, func(b []byte) []byte { b[36] = 1; return b }) }, want: damaged},
	{name: "a PT_LOAD that no page fits", do: phdr(elf.PT_LOAD, 1, plus(16)), want: damaged},
	{name: "a PT_LOAD of an odd alignment", do: phdr(elf.PT_LOAD, 6, to(0x1001)), want: damaged},
	{name: "a PT_LOAD with more file than memory", do: phdr(elf.PT_LOAD, 5, to(8)), want: damaged},
	{name: "PT_LOADs one over the other", do: phdr(elf.PT_LOAD, 5, to(1<<20)), want: damaged},
	{name: "PT_DYNAMIC in no PT_LOAD", do: phdr(elf.PT_DYNAMIC, 2, plus(1<<30)), want: damaged},
	{name: "PT_DYNAMIC at another offset", do: phdr(elf.PT_DYNAMIC, 1, plus(4096)), want: damaged},
	{name: "a string table in no PT_LOAD", do: dyn(elf.DT_STRTAB, plus(1<<30)), want: damaged},
	{name: "a string table that is too long", do: dyn(elf.DT_STRSZ, to(1<<40)), want: damaged},
	{name: "a symbol table in no PT_LOAD", do: dyn(elf.DT_SYMTAB, plus(1<<30)), want: damaged},
	{name: "a hash table in no PT_LOAD", do: dyn(elf.DT_GNU_HASH, plus(1<<30)), want: damaged},
	{name: "section headers that are cut off", do: func(f *fixture) {
		f.patch(victim, func(b []byte) []byte { return b[:len(b)-64] })
	}, want: "warning invalid-elf " + victim},
}

// versioned is a library of the tree that needs a version of another.
func versioned(f *fixture, define, use string) {
	f.elf(rocm+"lib/libv.so.1", elfSpec{soname: "libv.so.1", defines: strings.Fields(define)})
	f.elf(rocm+"lib/libu.so.1", elfSpec{soname: "libu.so.1", uses: []string{"libv.so.1 " + use}, runpath: "$ORIGIN"})
}

func hostC(f *fixture, have, use string) {
	f.hostLibrary("libc.so.6", elfSpec{soname: "libc.so.6", defines: strings.Fields(have)})
	f.elf(rocm+"lib/libu.so.1", elfSpec{soname: "libu.so.1", uses: []string{"libc.so.6 " + use}})
}

const user = rocm + "lib/libu.so.1"

var versionBreaks = []oneBreak{
	{name: "a version that the tree's library lacks", do: func(f *fixture) { versioned(f, "V_1.0", "V_1.1") },
		want: "required symbol-version " + user + " | libv.so.1 V_1.1"},
	{name: "the same in a build", do: func(f *fixture) { versioned(f, "V_1.0", "V_1.1") }, with: inTree,
		want: "required symbol-version " + user + " | libv.so.1 V_1.1"},
	{name: "a version that the tree's library has", do: func(f *fixture) { versioned(f, "V_1.0 V_1.1", "V_1.1") }},
	{name: "a library without versions", do: func(f *fixture) {
		versioned(f, "V_1.0", "V_1.1")
		f.elf(rocm+"lib/libv.so.1", elfSpec{soname: "libv.so.1"})
	}},
	{name: "a glibc that is too old", do: func(f *fixture) { hostC(f, "GLIBC_2.34 GLIBC_2.36", "GLIBC_2.38") },
		want: "required symbol-version " + user + " | libc.so.6 GLIBC_2.38"},
	{name: "a glibc that will do", do: func(f *fixture) { hostC(f, "GLIBC_2.34 GLIBC_2.38", "GLIBC_2.38") }},
	{name: "a glibc that will do here, but not there", do: func(f *fixture) { hostC(f, "GLIBC_2.34 GLIBC_2.38", "GLIBC_2.38") },
		with: func(o *Options) { o.GLIBC = "2.28" }, want: "required symbol-version " + user + " | libc.so.6 GLIBC_2.38"},
	{name: "the same in a build", do: func(f *fixture) { hostC(f, "GLIBC_2.34", "GLIBC_2.38") },
		with: func(o *Options) { o.GLIBC, o.Scope = "2.28", ScopeTree }, want: "required symbol-version " + user + " | libc.so.6 GLIBC_2.38"},
	{name: "a build that asks for no glibc", do: func(f *fixture) { hostC(f, "GLIBC_2.34", "GLIBC_2.38") }, with: inTree},
	{name: "a loader of this host, inside a build", do: func(f *fixture) {
		f.elf(rocm+"bin/tool", elfSpec{program: true, needed: []string{"liba.so.1"}, runpath: "$ORIGIN/../lib", uses: []string{"ld-linux-x86-64.so.2 GLIBC_2.99"}})
	}, with: inTree},
	{name: "a glibc that will do there, but not here", do: func(f *fixture) { hostC(f, "GLIBC_2.17", "GLIBC_2.28") },
		with: func(o *Options) { o.GLIBC = "2.28" }},
	{name: "a libstdc++ that is too old", do: func(f *fixture) {
		f.elf(user, elfSpec{soname: "libu.so.1", uses: []string{"libstdc++.so.6 GLIBCXX_3.4.32"}})
	}, with: func(o *Options) { o.GLIBC, o.Scope = "2.28", ScopeTree }, want: "required symbol-version " + user + " | libstdc++.so.6 GLIBCXX_3.4.32"},
	{name: "a libstdc++ that was asked for", do: func(f *fixture) {
		f.elf(user, elfSpec{soname: "libu.so.1", uses: []string{"libstdc++.so.6 GLIBCXX_3.4.32"}})
	}, with: func(o *Options) { o.GLIBC, o.GLIBCXX, o.Scope = "2.28", "3.4.32", ScopeTree }},
	{name: "an object that nothing public loads", do: func(f *fixture) {
		versioned(f, "V_1.0", "V_1.1")
		f.remove(user)
		f.elf(rocm+"lib/sys/libw.so", elfSpec{uses: []string{"libv.so.1 V_1.1"}, runpath: "$ORIGIN/.."})
	}, want: "warning symbol-version " + rocm + "lib/sys/libw.so | libv.so.1 V_1.1"},
	{name: "a version that is needed weakly", do: func(f *fixture) {
		versioned(f, "V_1.0", "V_1.1")
		f.patch(user, func(b []byte) []byte { return weaken(f, b) })
	}, want: "warning symbol-version " + user + " | libv.so.1 V_1.1"},
	{name: "what glibc keeps for itself", do: func(f *fixture) { hostC(f, "GLIBC_2.34 GLIBC_PRIVATE", "GLIBC_PRIVATE") },
		want: "warning symbol-version " + user + " | libc.so.6 GLIBC_PRIVATE"},
	{name: "a library of the host that gets the tree's old one", do: func(f *fixture) {
		f.hostLibrary("libh.so.1", elfSpec{soname: "libh.so.1", uses: []string{"libv.so.1 V_2.0"}})
		f.elf(rocm+"lib/libv.so.1", elfSpec{soname: "libv.so.1", defines: []string{"V_1.0"}})
		f.elf(user, elfSpec{soname: "libu.so.1", needed: []string{"libv.so.1", "libh.so.1"}, runpath: "$ORIGIN"})
	}, want: "required symbol-version " + rocm + "lib/libv.so.1 | V_2.0 for libh.so.1"},
	{name: "versions of a library that is not asked for", do: func(f *fixture) {
		versioned(f, "V_1.0", "V_1.0")
		f.patch(user, func(b []byte) []byte {
			x, err := elf.NewFile(bytes.NewReader(b))
			if err != nil {
				f.Fatal(err)
			}
			at := x.Section(".dynamic").Offset
			if le := binary.LittleEndian; elf.DynTag(le.Uint64(b[at:])) == elf.DT_NEEDED {
				le.PutUint64(b[at:], 0x60000fff) // a tag of an operating system, which nobody knows
			}
			return b
		})
		// ld.so: Assertion `needed != NULL' failed!
		if out, err := exec.Command(ldso, "--list", f.path(user)).CombinedOutput(); err == nil || !strings.Contains(string(out), "needed != NULL") {
			f.Errorf("%v: %s", err, out)
		}
	}, want: "required symbol-version " + user + " | libv.so.1 V_1.0"},
	{name: "a table of versions that leads nowhere", do: func(f *fixture) {
		versioned(f, "V_1.0", "V_1.0")
		f.patch(user, func(b []byte) []byte {
			x, err := elf.NewFile(bytes.NewReader(b))
			if err != nil {
				f.Fatal(err)
			}
			at := x.Section(".gnu.version_r").Offset
			binary.LittleEndian.PutUint32(b[at+8:], 0x7fffffff)
			return b
		})
	}, want: "fatal invalid-elf " + user},
}

// weaken sets VER_FLG_WEAK in the first record of a version that is needed.
func weaken(f *fixture, b []byte) []byte {
	x, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		f.Fatal(err)
	}
	at := x.Section(".gnu.version_r").Offset
	b[at+uint64(binary.LittleEndian.Uint32(b[at+8:]))+4] |= 2
	return b
}

// A prefix that somebody else made has wrappers of its own kind, or none, and
// no lists.
func TestAForeignPrefixIsNotHeldToOurRules(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"bin", "manifest.json", "files.jsonl", "share/licenses"} {
		f.remove(name)
	}
	f.text("bin/other", "#!/bin/sh\nexec true\n", 0o755)
	if r := f.audit(f.options()); len(r.Findings) != 0 {
		t.Errorf("%+v", r.Findings)
	}
}

// Without lists nothing is known of what was left out, or of the target: a tree
// with kernels for one GPU of several is as good as any.
func TestABareTreeIsNotAskedForOtherTargets(t *testing.T) {
	f := newFixture(t)
	rocBLAS(f, "gfx1151")
	f.text(rocm+".kpack/k_lib_gfx1100.kpack", archive, 0o644)
	r, err := Run(t.Context(), f.path("opt/rocm"), f.options())
	if err != nil || len(r.Findings) != 0 || r.Target != "" {
		t.Errorf("%+v, %v", r, err)
	}
}

// A list that is known, as while a prefix is made, gives the digests of wrappers.
func TestWrappersAreComparedWithTheFacts(t *testing.T) {
	f := newFixture(t)
	o := f.options()
	o.Files = []manifest.File{{Path: "bin/tool", Kind: manifest.Regular, Mode: 0o755, Size: 1, SHA256: strings.Repeat("0", 64)}}
	f.remove("files.jsonl")
	f.remove("manifest.json")
	if got := brief(f.audit(o).Findings); !slices.Contains(got, "required wrapper bin/tool | tool") {
		t.Errorf("%q", got)
	}
}

func TestOneBreakIsOneFinding(t *testing.T) {
	n := 0
	for _, group := range [][]oneBreak{damages, versionBreaks, kernelBreaks, placeBreaks} {
		for _, b := range group {
			n++
			t.Run(b.name, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				b.do(f)
				o := f.options()
				if b.with != nil {
					b.with(&o)
				}
				r := f.audit(o)
				got := strings.ReplaceAll(strings.Join(brief(r.Findings), "\n"), f.dir, "PREFIX")
				if got != b.want {
					t.Errorf("got  %s\nwant %s\n%+v", got, b.want, r.Findings)
				}
			})
		}
	}
	if n < 80 {
		t.Errorf("only %d breaks", n)
	}
}
