package patchelf

import (
	"debug/elf"
	"encoding/binary"
	"slices"
	"testing"
)

// TestShrink: an entry stays for a library that no earlier one has.
func TestShrink(t *testing.T) {
	disk := map[string][]string{"/a": {"x.so"}, "/b": {"x.so", "y.so"}, "/c": {"y.so"}, "/opt/bin/../lib": {"x.so"}, "/": {"x.so", "y.so"}}
	has := func(dir, lib string) bool { return slices.Contains(disk[dir], lib) }
	for _, c := range []struct {
		path   string
		o      ShrinkOptions
		needed []string
		want   string
	}{
		{path: "/a:/b:/c", want: "/a:/b"},
		{path: "/b:/a:/c", want: "/b"},
		{path: "/nowhere", want: ""},
		{path: "/nowhere:/c:/nowhere", want: "/c"},
		{path: "/a:/b", needed: []string{}, want: ""},
		{path: ":/a::/c:", want: "/a:/c"}, // an empty entry is the current directory
		{path: "$ORIGIN/../lib:/a:lib", want: "$ORIGIN/../lib:/a:lib"},
		{path: "$ORIGIN/../lib:/a:/c", o: ShrinkOptions{Origin: "/opt/bin"}, want: "$ORIGIN/../lib:/c"},
		{path: "${ORIGIN}/nothing:$ORIGINAL:$ORIGIN/$LIB:/a", o: ShrinkOptions{Origin: "/opt/bin"}, want: "$ORIGINAL:$ORIGIN/$LIB:/a"},
		{path: "/a:/b:/c", o: ShrinkOptions{AllowedPrefixes: []string{"/c", "/x"}}, want: "/c"},
		{path: "$ORIGIN:/b", o: ShrinkOptions{AllowedPrefixes: []string{"/x"}}, want: "$ORIGIN"},
	} {
		f := &File{RunPath: ptr(c.path), Needed: []string{"x.so", "y.so", "libc.so.6"}}
		if c.needed != nil {
			f.Needed = c.needed
		}
		c.o.Has = has
		if got, err := Shrink(f, c.o); err != nil || got != c.want {
			t.Errorf("%s (%+v): %q, want %q (%v)", c.path, c.o.AllowedPrefixes, got, c.want, err)
		}
	}
	if got, err := Shrink(&File{}, ShrinkOptions{Has: has}); got != "" || err != nil {
		t.Errorf("no run path: %q %v", got, err)
	}
	if _, err := Shrink(&File{RPath: ptr("/a")}, ShrinkOptions{}); err == nil {
		t.Error("no way to look is an error")
	}
}

// TestLoads: a library for another machine does not count.
func TestLoads(t *testing.T) {
	f := &File{Class: 64, ByteOrder: binary.LittleEndian, Machine: elf.EM_AARCH64}
	for _, c := range []struct {
		lib  File
		want bool
	}{
		{File{Class: 64, ByteOrder: binary.LittleEndian, Machine: elf.EM_AARCH64}, true},
		{File{Class: 32, ByteOrder: binary.LittleEndian, Machine: elf.EM_AARCH64}, false},
		{File{Class: 64, ByteOrder: binary.BigEndian, Machine: elf.EM_AARCH64}, false},
		{File{Class: 64, ByteOrder: binary.LittleEndian, Machine: elf.EM_X86_64}, false},
	} {
		if f.Loads(&c.lib) != c.want {
			t.Errorf("%+v", c.lib)
		}
	}
}
