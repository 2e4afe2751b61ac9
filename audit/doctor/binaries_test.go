package doctor_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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
