package audit

import (
	"slices"
	"strings"
	"testing"
)

func TestReadKpackRef(t *testing.T) {
	pattern := "../.kpack/k_lib_@GFXARCH@.kpack"
	for _, c := range []struct {
		name, in string
		paths    []string
		broken   bool
	}{
		{"as AMD writes it", string(refTo(pattern)), []string{pattern}, false},
		{"two paths", string(refTo(pattern, "/abs/x.kpack")), []string{pattern, "/abs/x.kpack"}, false},
		{"padding", string(refTo(pattern)) + "\x00\x00\xc1", []string{pattern}, false},
		{"unknown keys", "\x86\xa1a\xc0\xa1b\x93\x01\xcd\x01\x02\xca\x00\x00\x00\x00\xa1c\x81\xa1x\xc4\x02yy\xa1d\xd6\x01\x00\x00\x00\x00" +
			"\xa1e\xc7\x01\x05z\xb2kpack_search_paths\xdc\x00\x01\xda\x00\x07a.kpack", []string{"a.kpack"}, false},
		{"long map and string", "\xdf\x00\x00\x00\x01\xdb\x00\x00\x00\x12kpack_search_paths\xdd\x00\x00\x00\x01\xa7a.kpack", []string{"a.kpack"}, false},
		{"no map", "\x91\xa1a ../.kpack/x_gfx90a.kpack\x00", []string{"../.kpack/x_gfx90a.kpack"}, true},
		{"cut", string(refTo(pattern))[:45], nil, true},
		{"cut behind the name", string(refTo(pattern))[:56], []string{pattern}, true},
		{"no paths", "\x81\xabkernel_name\xa3k/k", nil, true},
		{"paths that are no array", "\x81\xb2kpack_search_paths\xa1x", nil, true},
		{"a path that is no string", "\x81\xb2kpack_search_paths\x91\x01", nil, true},
		{"more than there is", "\xdf\xff\xff\xff\xff", nil, true},
		{"a huge string", "\x81\xdb\xff\xff\xff\xffx", nil, true},
		{"a huge array", "\x81\xb2kpack_search_paths\xdd\xff\xff\xff\xff", nil, true},
		{"a deep nest", "\x81\xa1x" + strings.Repeat("\x91", 1000), nil, true},
		{"nothing", "", nil, true},
	} {
		r := readKpackRef([]byte(c.in))
		if !slices.Equal(r.paths, c.paths) || (r.err != nil) != c.broken {
			t.Errorf("%s: %q, %v", c.name, r.paths, r.err)
		}
	}
	if r := readKpackRef(refTo("x.kpack")); r.kernel != "k/k" {
		t.Errorf("kernel %q", r.kernel)
	}
}

func TestIsGFX(t *testing.T) {
	for in, want := range map[string]bool{"gfx1151": true, "gfx90a": true, "gfx9-4-generic": true, "gfx90a:xnack+": true,
		"gfx": false, "": false, "1151": false, "gfx90a/..": false, "gfx 9": false} {
		if isGFX(in) != want {
			t.Errorf("%q", in)
		}
	}
}

func FuzzKpackRef(f *testing.F) {
	f.Add(refTo("../.kpack/k_lib_@GFXARCH@.kpack"))
	f.Add([]byte("\xdf\xff\xff\xff\xff"))
	f.Add([]byte("\x81\xa1x" + strings.Repeat("\x91", 40)))
	f.Add([]byte("\xc1 ../.kpack/a.kpack\x00b.kpack"))
	f.Add([]byte("\x82\xb2kpack_search_paths\x91\xd9\xff.kpack"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := readKpackRef(b)
		if len(r.paths) > maxKpackPaths {
			t.Fatalf("%d paths", len(r.paths))
		}
		total := 0
		for _, p := range r.paths {
			total += len(p)
			if r.err != nil && !strings.HasSuffix(p, ".kpack") {
				t.Errorf("%q is no archive", p)
			}
		}
		if total > len(b) {
			t.Errorf("%d bytes of paths out of %d", total, len(b))
		}
	})
}

func TestCheckKpack(t *testing.T) {
	for _, c := range []struct {
		head string
		size int64
		ok   bool
	}{
		{archive, 17, true},
		{archive, 16, false},
		{"", 0, false},
		{"KPAK", 4, false},
		{"KPAX\x01\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00", 99, false},
		{"KPAK\x02\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff", 99, true}, // a newer format may say anything
		{"KPAK\x01\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff", 99, false},
		{"KPAK\x01\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00", 99, false},
	} {
		if got := checkKpack([]byte(c.head), c.size); (got == "") != c.ok {
			t.Errorf("%q of %d bytes: %q", c.head, c.size, got)
		}
	}
}
