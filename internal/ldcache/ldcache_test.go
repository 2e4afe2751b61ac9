package ldcache_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/ldcache"
)

// What this package reads of a real cache is what ldconfig prints of it.
func TestSameAsLdconfig(t *testing.T) {
	data, err := os.ReadFile(ldcache.Path)
	if err != nil {
		t.Skip("no /etc/ld.so.cache here: apt install libc-bin, and run ldconfig")
	}
	compare(t, data, ldcache.Path)
}

// A cache of libraries of our own, in a root of its own, with one that needs a
// capability of the processor.
func TestCacheMadeHere(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("gcc is missing: apt install gcc")
	}
	root := t.TempDir()
	build := func(dir, soname string) {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(gcc, "-shared", "-nostdlib", "-x", "c", "/dev/null", "-Wl,-soname,"+soname, "-o", filepath.Join(root, dir, soname))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	build("opt/rocm/lib", "libamdhip64.so.7")
	build("opt/rocm/lib/glibc-hwcaps/x86-64-v3", "libamdhip64.so.7")
	build("opt/other/lib", "libamdhip64.so.7")
	conf := filepath.Join(root, "ld.so.conf")
	if err := os.WriteFile(conf, []byte(root+"/opt/rocm/lib\n"+root+"/opt/other/lib\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(root, "cache")
	if out, err := exec.Command(ldconfig(t), "-X", "-f", conf, "-C", cache).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	data, err := os.ReadFile(cache)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, data, cache)
	c, err := ldcache.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	v3 := root + "/opt/rocm/lib/glibc-hwcaps/x86-64-v3/libamdhip64.so.7"
	plain := []string{root + "/opt/rocm/lib/libamdhip64.so.7", root + "/opt/other/lib/libamdhip64.so.7"}
	if got := c.Lookup("libamdhip64.so.7", []string{"x86-64-v3", "x86-64-v2"}); len(got) < 2 || got[0] != v3 || got[1] != plain[0] {
		t.Errorf("with x86-64-v3: %q", got)
	}
	if got := c.Lookup("libamdhip64.so.7", nil); slices.Contains(got, v3) || got[0] != plain[0] {
		t.Errorf("without: %q", got)
	}
	if got := c.Lookup("libnothing.so.1", nil); len(got) != 0 {
		t.Errorf("found what is not there: %q", got)
	}
}

func ldconfig(t *testing.T) string {
	for _, name := range []string{"/sbin/ldconfig", "/usr/sbin/ldconfig"} {
		if _, err := os.Stat(name); err == nil {
			return name
		}
	}
	t.Skip("ldconfig is missing: apt install libc-bin")
	return ""
}

func compare(t *testing.T, data []byte, file string) {
	t.Helper()
	out, err := exec.Command(ldconfig(t), "-C", file, "-p").Output()
	if err != nil {
		t.Fatal(err)
	}
	c, err := ldcache.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^\t(\S+) \(([^)]*)\) => (.*)$`).FindAllSubmatch(out, -1)
	if len(lines) != len(c.Entries) || len(lines) == 0 {
		t.Fatalf("%d entries, ldconfig has %d", len(c.Entries), len(lines))
	}
	for i, l := range lines {
		e := c.Entries[i]
		if string(l[1]) != e.Name || string(l[3]) != e.Path || bytes.HasPrefix(l[2], []byte("libc6,x86-64")) != e.X8664() {
			t.Errorf("entry %d is %+v, ldconfig says %s", i, e, l[0])
		}
		if has := bytes.Contains(l[2], []byte(`hwcap: "`+e.HWCap+`"`)); e.HWCap != "" && !has || e.HWCap == "" && bytes.Contains(l[2], []byte("hwcap: \"")) {
			t.Errorf("entry %d is %+v, ldconfig says %s", i, e, l[0])
		}
	}
}

// image makes a cache by hand.
func image(entries ...[2]string) []byte {
	const header, entry = 48, 24
	b := make([]byte, header+entry*len(entries))
	copy(b, "glibc-ld.so.cache1.1")
	binary.LittleEndian.PutUint32(b[20:], uint32(len(entries)))
	b[28] = 2
	for i, e := range entries {
		at := b[header+i*entry:]
		binary.LittleEndian.PutUint32(at, 0x303)
		binary.LittleEndian.PutUint32(at[4:], uint32(len(b)))
		b = append(b, e[0]+"\x00"...)
		binary.LittleEndian.PutUint32(b[header+i*entry+8:], uint32(len(b)))
		b = append(b, e[1]+"\x00"...)
	}
	return b
}

func TestBehindAnOldCache(t *testing.T) {
	old := make([]byte, 32) // one entry of 12 bytes, and four to align
	copy(old, "ld.so-1.7.0")
	old[12] = 1
	c, err := ldcache.Parse(append(old, image([2]string{"liba.so.1", "/lib/liba.so.1"})...))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Lookup("liba.so.1", nil); len(got) != 1 || got[0] != "/lib/liba.so.1" {
		t.Errorf("found %q", got)
	}
}

func TestRefused(t *testing.T) {
	good := image([2]string{"liba.so.1", "/lib/liba.so.1"})
	edit := func(at int, v byte) []byte { b := bytes.Clone(good); b[at] = v; return b }
	for name, data := range map[string][]byte{
		"empty":            nil,
		"text":             []byte("# nothing of ldconfig's"),
		"header alone":     good[:40],
		"too many entries": edit(23, 0xff),
		"big endian":       edit(28, 3),
		"name outside":     edit(48+7, 0xff),
		"path outside":     edit(48+11, 0xff),
		"no end of string": good[:len(good)-1],
		"old only":         append([]byte("ld.so-1.7.0\x00"), 0xff, 0xff, 0, 0),
		"old, cut":         []byte("ld.so-1.7.0"),
	} {
		if _, err := ldcache.Parse(data); !errors.Is(err, ldcache.ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(image([2]string{"liba.so.1", "/lib/liba.so.1"}, [2]string{"libb.so.1", "/lib/libb.so.1"}))
	f.Add([]byte("ld.so-1.7.0\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ldcache.Parse(data)
		if err != nil {
			return
		}
		for _, e := range c.Entries {
			if e.X8664() && e.HWCap == "" && !slices.Contains(c.Lookup(e.Name, nil), e.Path) {
				t.Errorf("%+v is not found", e)
			}
		}
	})
}
