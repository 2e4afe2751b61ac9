package doctor_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/rocm-nightly/rocm-nightly/audit/doctor"
)

// Programs that name a generation are found, each with a remedy that works;
// those that name current are not.
func TestBinaries(t *testing.T) {
	l := newLab(t)
	root := l.at("store")
	slot := root + "/slots/nightly-gfx1151"
	l.library("store/slots/nightly-gfx1151/generations/10.2.0a20260930/opt/rocm/lib/libamdhip64.so.7")
	if err := os.Symlink("generations/10.2.0a20260930", slot+"/current"); err != nil {
		t.Fatal(err)
	}
	hip := slot + "/generations/10.2.0a20260930/opt/rocm/lib"
	l.waiter(hip+"/libamdhip64.so.7", "-Wl,-rpath,$ORIGIN:"+hip)
	for _, dir := range []string{"work/bin", "work/build", "work/links"} {
		if err := os.MkdirAll(l.at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(l.at("waiter"), l.at("work/bin/new tags")); err != nil {
		t.Fatal(err)
	}
	l.gcc("waiter.c", "-o", "work/bin/old", "-Wl,--disable-new-dtags,-rpath,"+slot+"/generations/10.1.0a20260801/opt/rocm/lib")
	l.gcc("waiter.c", "-o", "work/bin/right", "-Wl,-rpath,"+slot+"/current/opt/rocm/lib")
	l.write("work/build/CMakeCache.txt", "X:PATH=1\nhip_DIR:PATH="+hip+"/cmake/hip\n")
	l.write("work/run.sh", "#!/bin/sh\nexport ROCM_PATH='"+slot+"/generations/10.2.0a20260930'\n")
	l.write("work/notes.txt", hip+"\n") // nobody runs it
	if err := os.Symlink("/", l.at("work/links/everything")); err != nil {
		t.Fatal(err)
	}

	look := func() *doctor.Report {
		t.Helper()
		r, err := doctor.Binaries(context.Background(), doctor.This(), doctor.Options{Table: table(t), Root: root}, l.at("work"))
		if err != nil {
			t.Fatal(err)
		}
		fits(t, r)
		return r
	}
	r := look()
	want := map[string]string{
		"work/bin/new tags": "elf true", "work/bin/old": "elf-rpath false", "work/build/CMakeCache.txt": "text true", "work/run.sh": "text true",
	}
	for _, b := range r.Binaries {
		name, err := filepath.Rel(l.dir, b.Path)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.Kind + map[bool]string{true: " true", false: " false"}[b.Exists]; want[name] != got || b.Slot != "nightly-gfx1151" {
			t.Errorf("%+v", b)
		}
		delete(want, name)
	}
	if len(want) > 0 || r.OK() {
		t.Errorf("not found: %v", want)
	}
	for _, f := range findings(r, "binary-generation") {
		remedy(t, l, f)
	}
	if r := look(); len(r.Binaries) != 1 || !strings.HasSuffix(r.Binaries[0].Path, "CMakeCache.txt") {
		t.Errorf("after the remedies: %+v", r.Binaries)
	}
}

// remedy runs what a finding says, but for cmake.
func remedy(t *testing.T, l lab, f doctor.Finding) {
	t.Helper()
	line := f.Remedy[0]
	if strings.HasPrefix(line, "cmake") {
		return
	}
	if _, err := exec.LookPath("patchelf"); err != nil {
		t.Skip("patchelf is missing: apt install patchelf")
	}
	cmd := exec.Command("sh", "-c", strings.TrimPrefix(line, "rocm-nightly "))
	cmd.Dir = l.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", line, err, out)
	}
}

func TestBinariesOfNothing(t *testing.T) {
	_, err := doctor.Binaries(context.Background(), doctor.This(), doctor.Options{}, filepath.Join(t.TempDir(), "no"))
	if err == nil {
		t.Error("there is nothing to look at")
	}
}

// A library by its path and an interpreter name a generation too; loops, pipes
// and headers that promise too much hold nothing up.
func TestBinariesOddly(t *testing.T) {
	l := newLab(t)
	g := l.at("store/slots/nightly-gfx1151/generations/10.2.0a20260930")
	if err := os.MkdirAll(g, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"work", "work/deep"} {
		if err := os.MkdirAll(l.at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l.write("f.c", "int f(void) { return 0; }\n")
	l.write("g.c", "int f(void); int main(void) { return f(); }\n")
	l.gcc("f.c", "-shared", "-fPIC", "-o", g+"/libf.so")
	l.gcc("g.c", "-o", "work/needed", g+"/libf.so")
	l.gcc("f.c", "g.c", "-o", "work/interp", "-Wl,--dynamic-linker="+g+"/ld.so")
	for _, name := range []string{"work/pipe.sh", "work/CMakeCache.txt"} {
		if err := syscall.Mkfifo(l.at(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"work/deep/up": "..", "work/loop": "loop"} {
		if err := os.Symlink(to, l.at(from)); err != nil {
			t.Fatal(err)
		}
	}
	head := append([]byte("\x7fELF\x02\x01\x01"), bytes.Repeat([]byte{0xff}, 100)...)
	l.write("work/huge", string(head))
	r, err := doctor.Binaries(t.Context(), doctor.This(), doctor.Options{Table: table(t)}, l.at("work"))
	if err != nil {
		t.Fatal(err)
	}
	fits(t, r)
	if len(r.Binaries) != 2 || r.Binaries[0].Kind != "elf-interpreter" || r.Binaries[1].Kind != "elf-needed" {
		t.Fatalf("%+v", r.Binaries)
	}
	if got := r.Sections[0].Findings[1].Remedy[0]; !strings.Contains(got, "--replace-needed "+g+"/libf.so "+l.at("store/slots/nightly-gfx1151/current/libf.so")) {
		t.Error(got)
	}
}

// What the kernel makes up is not read: some of it waits for ever.
func TestBinariesOfTheKernel(t *testing.T) {
	files := fstest.MapFS{"proc/1/x.sh": {Data: []byte("#!/bin/sh\n/slots/s/generations/g/x\n")}, "srv/root/proc/x.sh": {Data: []byte("#!/bin/sh\n/slots/s/generations/g/x\n")},
		"proc/self/mountinfo": {Data: []byte("1 0 0:1 / /srv/root/proc rw - proc proc rw\n")}}
	for _, dir := range []string{"/proc", "/proc/1", "/srv", "/"} {
		r, err := doctor.Binaries(t.Context(), &doctor.System{FS: files}, doctor.Options{Table: table(t)}, dir)
		if err != nil || len(r.Binaries) != 0 {
			t.Errorf("%s: %v %+v", dir, err, r.Binaries)
		}
	}
}
