package patchelf

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHashMakesWay: where only a hash table could make way for a program
// header, the file still loads between any two writes.
func TestHashMakesWay(t *testing.T) {
	deps := shop.deps(t)
	for _, hash := range []string{"gnu", "sysv", "both"} {
		lib := shop.build(t, "bare-"+hash+".so", userSource, "-shared", "-fPIC", "-nostdlib", "-fcf-protection=none", "-L"+deps, "-ldep",
			"-Wl,--build-id=none", "-Wl,-z,noseparate-code", "-Wl,--hash-style="+hash, "-Wl,-rpath,"+deps)
		path := copyOf(t, lib)
		e := Edit{RunPath: ptr(strings.Repeat(longPath, 20) + ":" + deps)}
		p, err := parsedAt(t, path).Plan(e)
		if err != nil || !strings.Contains(p.String(), "behind the program headers moved") {
			t.Fatalf("%s: %v, %v", hash, p, err)
		}
		everyPrefix(t, path, e, func(at string) error {
			if code, out := runs(t, at, true); code != 46 {
				return fmt.Errorf("exit %d: %s", code, out)
			}
			return nil
		})
		mustEdit(t, path, e)
		clean(t, path)
		idempotent(t, path, e)
	}
}

// crowd makes the notes of an ELF file segments of a kind that nobody knows:
// then nothing can make way for another program header.
func crowd(tb testing.TB, path string) []byte {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	f, err := Parse(byteFile(b), int64(len(b)))
	if err != nil {
		tb.Fatal(err)
	}
	for i, s := range f.phdrs {
		if kind := elf.ProgType(s.kind); kind == elf.PT_NOTE || kind == ptGNUProperty {
			f.order.PutUint32(b[f.phoff+uint64(i*f.phdrSize()):], 0x6fff0000+uint32(i))
		}
	}
	return b
}

// TestLastResort: the program headers move only where nothing else helps, to
// where old kernels find them too.
func TestLastResort(t *testing.T) {
	deps := shop.deps(t)
	for _, name := range []string{"bfd-pie-0", "bfd-pie-4", "bfd-pie-0-page64k", "bfd-lib-0", "bfd-exec-0"} {
		t.Run(name, func(t *testing.T) {
			v := variantOf(t, name)
			path := put(t, "crowded", crowd(t, v.make(t)))
			f := parsedAt(t, path)
			if checkAuxv(f) != "" {
				t.Fatal("the fixture is not what old kernels take")
			}
			runPath := strings.Repeat(longPath+":", 40) + deps
			e := Edit{RunPath: &runPath}
			p, err := f.Plan(e)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(p, p.Growth())
			everyPrefix(t, path, Edit{RunPath: ptr(runPath)}, func(at string) error {
				if code, out := runs(t, at, v.lib); code == 139 || code < 0 || strings.Contains(out, "segment") {
					return fmt.Errorf("exit %d: %s", code, out)
				}
				return nil
			})
			res := mustEdit(t, path, e)
			if code, out := runs(t, path, v.lib); code != 46 {
				t.Fatalf("%s: exit %d: %s", res.How, code, out)
			}
			if says := checkAuxv(parsedAt(t, path)); says != "" {
				t.Error(says)
			}
			clean(t, path)
			again := mustEdit(t, path, Edit{RunPath: ptr("/s")})
			if again.Growth != 0 {
				t.Errorf("%+v", again)
			}
			if res := mustEdit(t, path, e); res.Growth != 0 {
				t.Errorf("%+v", res)
			}
		})
	}
}

// TestFarFromTheAddress: where old kernels would not find moved program
// headers, the edit is refused unless it is asked for, and says so.
func TestFarFromTheAddress(t *testing.T) {
	deps := shop.deps(t)
	object := shop.build(t, "wide.o", progSource+" char more[8 << 20];", "-c", "-fPIE")
	prog := shop.build(t, "wide", "", object, "-pie", "-L"+deps, "-ldep", "-Wl,-rpath,"+deps)
	path := put(t, "far", crowd(t, prog))
	e := Edit{RunPath: ptr(strings.Repeat(longPath+":", 40) + deps)}
	f := parsedAt(t, path)
	var refused *RefusedError
	if _, err := f.Plan(e); !errors.As(err, &refused) || !strings.Contains(err.Error(), "5.18") {
		t.Errorf("%v", err)
	}
	if p, err := f.Plan(Edit{RunPath: ptr("/short")}); err != nil {
		t.Errorf("%v, %v", p, err)
	}
	e.MoveHeaders = true
	res := mustEdit(t, path, e)
	if !strings.Contains(res.How, "5.18") {
		t.Error(res.How)
	}
	if code, out := runs(t, path, false); code != 46 {
		t.Errorf("%s: exit %d: %s", res.How, code, out)
	}
	idempotent(t, path, e)
}

// TestTooManyHeaders: a file with PN_XNUM is refused as it is.
func TestTooManyHeaders(t *testing.T) {
	b, err := os.ReadFile(variantOf(t, "bfd-pie-4").make(t))
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse(byteFile(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	f.order.PutUint32(b[f.shoff+44:], uint32(f.phnum)) // sh_info of section 0
	f.order.PutUint16(b[56:], 0xffff)
	if f, err = Parse(byteFile(b), int64(len(b))); err != nil {
		t.Fatal(err)
	}
	yes := true
	for _, e := range []Edit{{RunPath: ptr(longPath)}, {Soname: ptr("x")}, {ExecStack: &yes}} {
		var refused *RefusedError
		if _, err := f.Plan(e); !errors.As(err, &refused) || !strings.Contains(err.Error(), "PN_XNUM") {
			t.Errorf("%v", err)
		}
	}
}

// TestStackOfStaticPrograms: PT_GNU_STACK is what a static program has too.
func TestStackOfStaticPrograms(t *testing.T) {
	yes, no := true, false
	path := copyOf(t, shop.build(t, "static-stack", "int main(void) { return 46; }", "-static"))
	before, _ := os.ReadFile(path)
	for i, e := range []Edit{{ExecStack: &yes}, {ExecStack: &yes}, {ExecStack: &no}} {
		res := mustEdit(t, path, e)
		if res.Growth != 0 || res.Changed == (i == 1) || res.Written > 56 {
			t.Errorf("%+v", res)
		}
		if is, _ := parsedAt(t, path).ExecStack(); is != *e.ExecStack {
			t.Error(is)
		}
		if code, out := runs(t, path, false); code != 46 {
			t.Errorf("exit %d: %s", code, out)
		}
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("set and cleared is not as before")
	}
}

// TestStackHeaderAdded: where there is no PT_GNU_STACK, one is added.
func TestStackHeaderAdded(t *testing.T) {
	no := false
	b, err := os.ReadFile(variantOf(t, "bfd-lib-4").make(t))
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse(byteFile(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	at := f.phoff + uint64(f.segment(elf.PT_GNU_STACK)*56)
	f.order.PutUint32(b[at:], uint32(elf.PT_NULL))
	path := put(t, "nostack.so", b)
	mustEdit(t, path, Edit{ExecStack: &no})
	if is, stated := parsedAt(t, path).ExecStack(); is || !stated {
		t.Error(is, stated)
	}
	if code, out := runs(t, filepath.Clean(path), true); code == 139 {
		t.Errorf("exit %d: %s", code, out)
	}
	clean(t, path)
}
