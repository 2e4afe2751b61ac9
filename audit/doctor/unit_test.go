package doctor

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"io/fs"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
)

func TestParseMaps(t *testing.T) {
	got := parseMaps(`55d0c0000000-55d0c0001000 r--p 00000000 fe:01 12   /usr/bin/python3.12
55d0c0001000-55d0c0002000 r-xp 00001000 fe:01 12   /usr/bin/python3.12
7f00-7f01 rw-p 00000000 00:00 0
7f02-7f03 rw-s 00000000 00:06 9    /dev/dri/renderD128
7f04-7f05 r-xp 00000000 fe:01 13   /opt/my rocm/lib/libamdhip64.so.7 (deleted)
7ffc-7ffd rw-p 00000000 00:00 0    [stack]
7f06-7f07 r-xp 00000000 fe:01 14   /a\012b
`)
	want := []mapped{{"/usr/bin/python3.12", false}, {"/opt/my rocm/lib/libamdhip64.so.7", true}, {"/a\nb", false}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestParseSettings(t *testing.T) {
	for line, want := range map[string]string{
		`export HSA_OVERRIDE_GFX_VERSION="11.0.0"`: "HSA_OVERRIDE_GFX_VERSION=11.0.0",
		`HIP_PATH=/opt/rocm`:                       "HIP_PATH=/opt/rocm",
		`  setenv ROCM_PATH /opt/rocm;`:            "ROCM_PATH=/opt/rocm",
		`set -gx HSA_XNACK 1`:                      "HSA_XNACK=1",
		`set --export HSA_XNACK 1`:                 "HSA_XNACK=1",
		`# export HSA_XNACK=1`:                     "",
		`export PATH=/x`:                           "",
		`export ROCM_NIGHTLY_KEEP_ENV=1`:           "",
		`echo HSA_XNACK=1`:                         "",
	} {
		got := ""
		for _, s := range parseSettings("f", "\n"+line+"\n") {
			if got = s.name + "=" + s.value; s.line != 2 {
				t.Errorf("%q is on line %d", line, s.line)
			}
		}
		if got != want {
			t.Errorf("%q: %q", line, got)
		}
	}
}

func TestOverridden(t *testing.T) {
	for value, want := range map[string]string{
		"11.0.0": "gfx1100", "9.0.10": "gfx90a", "11.5.1": "gfx1151", "12.0.1": "gfx1201",
		"gfx1100": "", "11.0": "", "11.0.0.0": "", "11.0.99": "", "-1.0.0": "", "a.b.c": "", "": "",
	} {
		if got := overridden(value); got != want {
			t.Errorf("%q is %q", value, got)
		}
	}
}

func TestVisible(t *testing.T) {
	for value, want := range map[string]string{
		"": " ", "0": "1 ", "0,1": "2 ", "1,1": "1 ", "-1": "0 -1", "0,7,1": "1 7", "GPU-abc": "1 ", " 1 , 0": "2 ", "none": "0 none",
	} {
		shown, odd := visible(value, 2)
		if got := string(rune('0'+len(shown))) + " " + odd; got != want && (value != "" || len(shown) > 0) {
			t.Errorf("%q: %q", value, got)
		}
	}
}

func TestBlacklistLine(t *testing.T) {
	for text, want := range map[string]int{
		"# blacklist amdgpu\nblacklist amdgpu\n": 2, "install amdgpu /bin/false\n": 1, "install amdgpu /sbin/modprobe x\n": 0,
		"blacklist radeon\noptions amdgpu gttsize=1\n": 0, "": 0,
	} {
		if got := blacklistLine(text); got != want {
			t.Errorf("%q: line %d", text, got)
		}
	}
}

// Links lead where the kernel would take them, and never above the root.
func TestResolve(t *testing.T) {
	link := func(to string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink | 0o777}
	}
	s := &System{FS: fstest.MapFS{
		"a/b/file": {Data: []byte("here")}, "abs": link("/a/b"), "rel": link("a/b/../b"), "up": link("../../../../a"), "loop": link("loop2"), "loop2": link("loop"),
		"a/to": link("/abs"), "pipe": {Mode: fs.ModeNamedPipe},
	}}
	for name, want := range map[string]string{
		"/a/b/file": "here", "/abs/file": "here", "/rel/file": "here", "/up/b/file": "here", "/a/to/file": "here", "/a/to/../b/file": "here",
		"/loop/file": "", "/nothing": "", "/pipe": "", "/a": "", "/../a/b/file": "here",
	} {
		if got := s.text(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if s.real("/a/to/file") != "/a/b/file" || s.real("/loop") != "" || s.link("/abs") != "/a/b" || s.link("/a") != "" {
		t.Error("links")
	}
	if got := s.glob("/a*/*/fi*"); !reflect.DeepEqual(got, []string{"/a/b/file", "/a/to/file", "/abs/file"}) && !reflect.DeepEqual(got, []string{"/a/b/file", "/a/to/file"}) {
		t.Errorf("glob: %q", got)
	}
}

func TestNamedROCms(t *testing.T) {
	for text, want := range map[string]string{
		"export PATH=$PATH:/opt/rocm-6.2.0/bin\n":                            "/opt/rocm-6.2.0/bin",
		"/opt/rocm/lib\n/opt/rocm/lib64\n":                                   "/opt/rocm/lib /opt/rocm/lib64",
		". /var/lib/rocm-nightly/slots/nightly-gfx1151/current/etc/env.sh\n": "/var/lib/rocm-nightly/slots/nightly-gfx1151/current/etc/env.sh",
		"for d in /opt/rocm*; do PATH=$PATH:$d; done":                        "",
		"[ -d /opt/rocm/bin ] && PATH=$PATH:/opt/rocm/bin":                   "",
		"if ( -d /opt/rocm/bin ) setenv ROCM_PATH /opt/rocm":                 "",
		"if (! -d /opt/rocm/bin) exit":                                       "",
		"[ ! -d /opt/rocm/bin ] || PATH=$PATH:/opt/rocm/bin":                 "",
		"/usr/lib/fakeroot\n":                                                "",
	} {
		if got := strings.Join(namedROCms(text), " "); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// In Nix and Spack each library is a package of its own.
func TestOverlap(t *testing.T) {
	s := &System{FS: fstest.MapFS{
		"nix/store/a-clr-6.4/lib/libamdhip64.so.6": {}, "nix/store/b-rocm-comgr-6.4/lib/libamd_comgr.so.2": {},
		"opt/rocm/lib/libamdhip64.so.6": {}, "opt/rocm/lib/libamd_comgr.so.2": {},
	}}
	x := &exam{System: s}
	hip := Mapping{Name: "libamdhip64.so.6", Path: "/nix/store/a-clr-6.4/lib/libamdhip64.so.6"}
	comgr := Mapping{Name: "libamd_comgr.so.2", Path: "/nix/store/b-rocm-comgr-6.4/lib/libamd_comgr.so.2"}
	other := Mapping{Name: "libamd_comgr.so.2", Path: "/opt/rocm/lib/libamd_comgr.so.2"}
	if x.overlap(hip, comgr) || !x.overlap(hip, other) || !x.overlap(other, hip) {
		t.Error("which libraries are in the place of others")
	}
}

func TestQuote(t *testing.T) {
	for name, want := range map[string]string{"/opt/rocm-6.4": "/opt/rocm-6.4", "a b": "'a b'", "it's": `'it'\''s'`, "": "''", "$(id)": "'$(id)'", "-x": "-x"} {
		if got := quote(name); got != want {
			t.Errorf("%q: %s", name, got)
		}
	}
}

// What can be filed is filed for some recorded machine, but for what other tests
// of real processes and programs show.
func TestEveryCheckHasAMachine(t *testing.T) {
	elsewhere := "process-mixed process-deleted command-mixed command-missing command-displaced binary-generation"
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	doc, err := os.ReadFile("../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllSubmatch(doc, -1) {
		if !strings.Contains(all.String(), "["+string(m[1])+"]") && !strings.Contains(elsewhere, string(m[1])) {
			t.Errorf("no machine shows %s", m[1])
		}
	}
}

func FuzzTexts(f *testing.F) {
	f.Add("export HSA_XNACK=1\n", "7f04-7f05 r-xp 00000000 fe:01 13   /opt/lib/libamdhip64.so.7 (deleted)\n", "25 1 0:22 / / rw - ext4 /dev/sda1 rw,size=1k\n")
	f.Fuzz(func(t *testing.T, settings, maps, mounts string) {
		for _, s := range parseSettings("f", settings) {
			if !concerns(s.name) {
				t.Errorf("%q", s.name)
			}
		}
		for _, m := range parseMaps(maps) {
			generationOf("/r", m.path)
		}
		s := &System{FS: fstest.MapFS{"proc/self/mountinfo": {Data: []byte(mounts)}}}
		for _, m := range s.mounts() {
			m.option("size")
		}
		parseGroups(settings)
		parseAccounts(mounts)
		blacklistLine(settings)
		overridden(settings)
		if p := plain.Text(settings); strings.ContainsAny(p, "\n\x1b\x00") {
			t.Errorf("%q is not printable", p)
		}
		if _, err := interpreter(settings); err == nil && !strings.HasPrefix(settings, "#!") {
			t.Errorf("%q is a script", settings)
		}
	})
}
