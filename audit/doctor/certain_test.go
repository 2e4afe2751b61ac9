package doctor

import (
	"context"
	"encoding/binary"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/rocm-nightly/rocm-nightly/internal/amd"
	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	"github.com/rocm-nightly/rocm-nightly/internal/ldcache"
)

// closedFS is a machine of which one directory may not be entered.
type closedFS struct {
	fstest.MapFS
	dir string
}

func (c closedFS) closed(op, name string) error {
	if strings.HasPrefix(name, c.dir+"/") {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrPermission}
	}
	return nil
}

func (c closedFS) Open(name string) (fs.File, error) {
	if err := c.closed("open", name); err != nil {
		return nil, err
	}
	return c.MapFS.Open(name)
}

func (c closedFS) Lstat(name string) (fs.FileInfo, error) {
	if err := c.closed("lstat", name); err != nil {
		return nil, err
	}
	return c.MapFS.Lstat(name)
}

func text(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s), Mode: 0o644} }

func symlink(to string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink | 0o777}
}

// found runs the doctor, and lists its findings.
func found(t *testing.T, s *System, o Options) []Finding {
	t.Helper()
	o.Table = gfx.New(amd.Builtin())
	r, err := Run(context.Background(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	var all []Finding
	for _, s := range r.Sections {
		all = append(all, s.Findings...)
	}
	return slices.DeleteFunc(all, func(f Finding) bool { return f.Check == "gpu-none" })
}

// What a user may not look at is not said to be missing.
func TestClosedIsNotGone(t *testing.T) {
	files := fstest.MapFS{
		"srv/rocm": {Mode: fs.ModeDir | 0o700}, "opt/rocm": symlink("/srv/rocm/current"),
		"store/slots/nightly-gfx1151/current":                     symlink("/srv/rocm/g"),
		"store/slots/nightly-gfx1151/generations/10.2.0a20260930": {Mode: fs.ModeDir | 0o755},
		"etc/profile.d/rocm.sh":                                   text(". /srv/rocm/slots/nightly-gfx1151/current/etc/env.sh\n"),
	}
	env := []string{"ROCM_PATH=/srv/rocm/x", "LD_PRELOAD=/srv/rocm/lib/libfoo.so"}
	o := Options{Root: "/store", Links: []Link{{Path: "/srv/rocm/link", Slot: "nightly-gfx1151"}}}
	if all := found(t, &System{FS: closedFS{files, "srv/rocm"}, Environ: env}, o); len(all) != 0 {
		t.Errorf("%+v", all)
	}
	// The same is found where it can be seen.
	var checks []string
	for _, f := range found(t, &System{FS: files, Environ: env}, o) {
		checks = append(checks, f.Check)
	}
	slices.Sort(checks)
	if want := []string{"leftover", "link-dangling", "preload", "store-current", "store-link", "variable-path"}; !slices.Equal(checks, want) {
		t.Errorf("%q", checks)
	}
}

// A library that the cache has for other processors alone is no concern.
func TestCacheForOtherProcessors(t *testing.T) {
	const header, entry, name = 48, 24, "libamdhip64.so.7\x00/lib/libamdhip64.so.7\x00other-cpu\x00"
	b := make([]byte, header+entry)
	copy(b, "glibc-ld.so.cache1.1")
	binary.LittleEndian.PutUint32(b[20:], 1)
	at := uint32(len(b))
	b = append(b, name...)
	b = append(b, make([]byte, -len(b)&7)...)
	extension := uint32(len(b))
	binary.LittleEndian.PutUint32(b[32:], extension)
	for _, v := range []uint32{0xeaa42174, 1, 1, 0, extension + 24, 4, at + 39} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	for i, v := range []uint32{0x0303, at, at + 17, 0, 0, 1 << 30} {
		binary.LittleEndian.PutUint32(b[header+4*i:], v)
	}
	c, err := ldcache.Parse(b)
	if err != nil || len(c.Entries) != 1 || c.Entries[0].HWCap != "other-cpu" {
		t.Fatalf("%v %+v", err, c)
	}
	if all := found(t, &System{FS: fstest.MapFS{"etc/ld.so.cache": {Data: b}, "lib/libamdhip64.so.7": text("x")}}, Options{}); len(all) != 0 {
		t.Errorf("%+v", all)
	}
}

// A line of a login file need not hold: it may take a variable away, have more
// behind it, or depend on something.
func TestLoginLines(t *testing.T) {
	for line, want := range map[string]string{
		"export LLVM_PATH=": "",
		"export LLVM_PATH":  "",
		"set -e LLVM_PATH":  "",
		"export HSA_OVERRIDE_GFX_VERSION=11.0.0 # the RX 7900":          "",
		"export HSA_OVERRIDE_GFX_VERSION=11.0.0; export HSA_XNACK=1":    "",
		"export HSA_OVERRIDE_GFX_VERSION='11.0.0' ROCM_X=2":             "",
		"[ -e /dev/kfd ] && true; export HSA_OVERRIDE_GFX_VERSION=11.0": "",
		"  export HSA_OVERRIDE_GFX_VERSION=11.0":                        Warning,
		"export ROCM_KPACK_DISABLE=1":                                   Warning,
	} {
		worst := ""
		for _, f := range found(t, &System{FS: fstest.MapFS{"etc/profile": text(line + "\n")}}, Options{}) {
			if f.Check != "variable-left" {
				worst = f.Severity
			}
		}
		if worst != want {
			t.Errorf("%s: %q", line, worst)
		}
	}
}

// Debian has comgr without HIP where Mesa wants it.
func TestComgrOfTheSystem(t *testing.T) {
	files := fstest.MapFS{"usr/lib/x86_64-linux-gnu/libamd_comgr.so.2": text("x")}
	env := []string{"LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu"}
	if all := found(t, &System{FS: files, Environ: env}, Options{}); len(all) != 0 {
		t.Errorf("%+v", all)
	}
	files["opt/rocm/lib/libamdhip64.so.7"], files["opt/rocm/lib/libamd_comgr.so.3"] = text("x"), text("x")
	for _, f := range found(t, &System{FS: files, Environ: env}, Options{}) {
		if f.Severity == Broken {
			t.Errorf("another SONAME: %+v", f)
		}
	}
	files["usr/lib/x86_64-linux-gnu/libamd_comgr.so.3"] = text("x")
	if all := found(t, &System{FS: files, Environ: env}, Options{}); len(all) != 1 || all[0].Check != "library-path" || all[0].Severity != Broken {
		t.Errorf("%+v", all)
	}
}

// Containers for builds have a small /dev/shm, and need no more.
func TestContainerWithoutGPU(t *testing.T) {
	files := fstest.MapFS{".dockerenv": text(""), "proc/self/mountinfo": text("1 0 0:1 / /dev/shm rw - tmpfs shm rw,size=65536k\n")}
	if all := found(t, &System{FS: files}, Options{}); len(all) != 0 {
		t.Errorf("%+v", all)
	}
}

// WSL says that it is a container, and is none.
func TestWSLIsNoContainer(t *testing.T) {
	if c := containerOf(&exam{System: &System{FS: fstest.MapFS{"run/systemd/container": text("wsl\n")}}}); c != "" {
		t.Errorf("%q", c)
	}
}

// The kernels of RHEL have drivers that are newer than their number.
func TestEnterpriseKernel(t *testing.T) {
	x := newExam(&System{FS: fstest.MapFS{}, Kernel: "5.14.0-503.el9.x86_64"}, Options{Table: gfx.New(amd.Builtin())})
	x.sec = &Section{}
	if x.kernel("gfx1151"); len(x.sec.Findings) != 0 || len(x.sec.Facts) != 1 {
		t.Errorf("%+v", x.sec)
	}
}

// Sixty thousand findings are sorted out in no time.
func TestManyFindings(t *testing.T) {
	var all []Finding
	for range 2 {
		for i := range 30_000 {
			all = append(all, Finding{Subject: string(rune('a'+i%26)) + strings.Repeat("x", i%7), Remedy: []string{strings.Repeat("y", i/4)[:i/4%50] + string(rune(i))}})
		}
	}
	if got := merged(all); len(got) < 29_000 || len(got) > 30_000 {
		t.Error(len(got))
	}
	one := merged([]Finding{{Subject: "a"}, {Subject: "b"}, {Subject: "a"}})
	if len(one) != 1 || one[0].Subject != "a, b" {
		t.Errorf("%+v", one)
	}
}

// Remedies are commands that the distribution has.
func TestRemediesByDistribution(t *testing.T) {
	for _, c := range []struct{ release, kernel, parameter, firmware string }{
		{"ID=ubuntu\nVERSION_ID=24.04", "linux-generic-hwe-24.04", "update-grub", "apt install linux-firmware"},
		{"ID=ubuntu\nVERSION_ID=25.10", "newer kernel of this distribution", "update-grub", "apt install linux-firmware"},
		{"ID=pop\nID_LIKE=\"ubuntu debian\"\nVERSION_ID=22.04", "newer kernel", "kernelstub -a x=1", "apt install linux-firmware"},
		{"ID=rocky\nID_LIKE=\"rhel fedora\"\nVERSION_ID=9.6", "dnf upgrade kernel", "grubby", "dnf install linux-firmware"},
		{"ID=fedora\nVERSION_ID=43\nVARIANT_ID=silverblue", "rpm-ostree upgrade", "rpm-ostree kargs", "rpm-ostree install amd-gpu-firmware"},
		{"ID=opensuse-tumbleweed\nID_LIKE=\"opensuse suse\"", "zypper", "update-bootloader --config", "zypper install kernel-firmware-amdgpu"},
	} {
		x := newExam(&System{FS: fstest.MapFS{"etc/os-release": text(c.release)}}, Options{})
		if k, p, f := x.newKernel(), strings.Join(x.kernelParameter("x=1"), ";"), x.firmware(); !strings.Contains(k, c.kernel) || !strings.Contains(p, c.parameter) || !strings.Contains(f, c.firmware) {
			t.Errorf("%s: %s | %s | %s", c.release, k, p, f)
		}
	}
}

// Silverblue keeps its groups in /usr/lib/group, of which usermod knows nothing.
func TestGroupsOfAnImage(t *testing.T) {
	x := newExam(&System{FS: fstest.MapFS{"etc/os-release": text("ID=fedora\nVARIANT_ID=silverblue"), "etc/group": text("root:x:0:\n"), "usr/lib/group": text("render:x:105:\n")}}, Options{})
	if nameOf(x.groups(), 105) != "render" {
		t.Errorf("%+v", x.groups())
	}
	if got := x.join("ada", "render"); got[0] != "getent group render | sudo tee -a /etc/group" {
		t.Errorf("%q", got)
	}
}

// Where passwd does not know the user, the shell does.
func TestUserWithoutName(t *testing.T) {
	files := fstest.MapFS{"dev/kfd": {Mode: fs.ModeDevice | fs.ModeCharDevice | 0o660, Sys: &syscall.Stat_t{Gid: 105}}, "etc/group": text("render:x:105:\n"), "etc/os-release": text("ID=debian\n")}
	all := found(t, &System{FS: files, UID: 1000, GID: 1000}, Options{})
	if len(all) != 1 || all[0].Check != "device-group" || all[0].Remedy[0] != `sudo usermod -aG render "$USER"` {
		t.Errorf("%+v", all)
	}
}

// Where /sys is not mounted nobody knows what is on the bus.
func TestNoSys(t *testing.T) {
	r, err := Run(context.Background(), &System{FS: fstest.MapFS{}}, Options{Table: gfx.New(amd.Builtin())})
	if err != nil || len(r.Sections) != 2 || !strings.Contains(r.Sections[1].Findings[0].Detail, "without /sys") {
		t.Errorf("%v %+v", err, r)
	}
}

// What env.sh has set is not left over from anything.
func TestVariablesOfAnInstall(t *testing.T) {
	env := []string{"HSA_ENABLE_SDMA=0", "ROCM_NIGHTLY_UNDO=set ROCM_X 1\tset HSA_ENABLE_SDMA 0\tfirst PATH /x"}
	if all := found(t, &System{FS: fstest.MapFS{}, Environ: env}, Options{}); len(all) != 0 {
		t.Errorf("%+v", all)
	}
	if all := found(t, &System{FS: fstest.MapFS{}, Environ: append(env, "HSA_ENABLE_SDMA=1")}, Options{}); len(all) != 1 {
		t.Errorf("%+v", all)
	}
}

// A process may give its variables any name: none becomes a command.
func TestHostileNames(t *testing.T) {
	env := []string{"HSA_;touch x=1", "HSA_TOOLS_$(touch x)=/nothing"}
	for _, f := range found(t, &System{FS: fstest.MapFS{}, Environ: env}, Options{}) {
		for _, r := range f.Remedy {
			if !strings.Contains(r, "'HSA_;touch x'") && r != "unset 'HSA_TOOLS_$(touch x)'" {
				t.Error(r)
			}
		}
	}
}

// An install that may not be looked at is said to be unseen.
func TestClosedStore(t *testing.T) {
	files := fstest.MapFS{"store/slots/nightly-gfx1151/generations/10.2.0a20260930": {Mode: fs.ModeDir | 0o755}}
	for closed, want := range map[string]bool{"store": true, "elsewhere": false} {
		r, err := Run(context.Background(), &System{FS: closedFS{files, closed}}, Options{Table: gfx.New(amd.Builtin()), Root: "/store"})
		if err != nil {
			t.Fatal(err)
		}
		said := slices.ContainsFunc(r.Sections, func(s Section) bool {
			return slices.Contains(s.Facts, "not looked at: /store/slots, which this user may not read")
		})
		if said != want || !r.OK() {
			t.Errorf("%s: %+v", closed, r.Sections)
		}
	}
}

// A library of another ROCm is one in place of the own only if it has its name.
func TestMixedBySoname(t *testing.T) {
	files := fstest.MapFS{}
	for _, name := range []string{"opt/rocm/lib/libamdhip64.so.7", "opt/rocm/lib/libamd_comgr.so.3", "usr/lib64/libamd_comgr.so.2.8", "usr/lib64/libamd_comgr.so.2"} {
		files[name] = text("x")
	}
	hip := Mapping{Name: "libamdhip64.so.7", Path: "/opt/rocm/lib/libamdhip64.so.7", Copy: "/opt/rocm", soname: "libamdhip64.so.7"}
	other := Mapping{Name: "libamd_comgr.so.2.8", Path: "/usr/lib64/libamd_comgr.so.2.8", Copy: "/usr/lib64", soname: "libamd_comgr.so.2"}
	own := Mapping{Name: "libamd_comgr.so.3", Path: "/opt/rocm/lib/libamd_comgr.so.3", Copy: "/opt/rocm", soname: "libamd_comgr.so.3"}
	displaced := other
	displaced.soname = "libamd_comgr.so.3"
	for _, c := range []struct {
		main []Mapping
		want string
	}{{[]Mapping{hip, other}, ""}, {[]Mapping{hip, own, other}, Warning}, {[]Mapping{hip, displaced}, Broken}, {[]Mapping{own, displaced}, Broken}} {
		x := newExam(&System{FS: files}, Options{})
		x.sec = &Section{}
		x.mixed(c.main, "process-mixed")
		got := ""
		for _, f := range x.sec.Findings {
			got = f.Severity
		}
		if got != c.want {
			t.Errorf("%+v: %q", c.main, got)
		}
	}
}
