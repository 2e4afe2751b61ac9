package update

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/audit/smoke"
	"github.com/rocm-nightly/rocm-nightly/internal/cage"
)

// sayings is a Runner for whose programs one thing is said, with exit status 1.
type sayings struct {
	text string
	ran  []cage.Command
	err  error
}

func (s *sayings) Run(_ context.Context, c cage.Command) (*cage.Result, error) {
	s.ran = append(s.ran, c)
	return &cage.Result{Stdout: []byte(s.text), ExitCode: 1, Kind: "test"}, s.err
}

const (
	goodRocminfo = "ROCk module is NOT loaded, possibly no GPU devices\n"
	badRocminfo  = "rocminfo: symbol lookup error: rocminfo: undefined symbol: hsa_init\n"
)

// withRocminfo adds a program to a night that is published already.
func (w *world) withRocminfo(night string) {
	w.t.Helper()
	fi, err := os.Stat(night)
	if err != nil {
		w.t.Fatal(err)
	}
	f, err := os.Open(night)
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	in, err := gzip.NewReader(f)
	if err != nil {
		w.t.Fatal(err)
	}
	var out bytes.Buffer
	gz := gzip.NewWriter(&out)
	tr, tw := tar.NewReader(in), tar.NewWriter(gz)
	for {
		hdr, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = tw.WriteHeader(hdr)
		}
		if err == nil {
			_, err = io.Copy(tw, tr)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	script := "#!/bin/sh\n"
	err = tw.WriteHeader(&tar.Header{Name: "./bin/rocminfo", Mode: 0o755, Size: int64(len(script)), ModTime: fi.ModTime()})
	if err == nil {
		_, err = io.WriteString(tw, script)
	}
	if err := errors.Join(err, tw.Close(), gz.Close(), os.WriteFile(night, out.Bytes(), 0o644), os.Chtimes(night, fi.ModTime(), fi.ModTime())); err != nil {
		w.t.Fatal(err)
	}
}

// A night of which something does not start is not installed, whatever the
// policy of the audit; what was installed stays; it is not tried again until a
// newer one comes, or the check is another.
func TestPromiseWhatFailsItsHealthCheckIsNotActivated(t *testing.T) {
	w := newWorld(t)
	w.withRocminfo(w.publish("10.2.0a20260929", 2))
	runner := &sayings{text: goodRocminfo}
	w.o.Smoke, w.o.SmokeRunner = smoke.CPU, runner
	out := w.run()
	if out.Exit != 0 || w.active() != "10.2.0a20260929" || out.Smoke == nil || out.Smoke.Passed != 2 || out.Smoke.Failed != 0 {
		t.Fatalf("%+v %+v", out, out.Smoke)
	}
	if c := runner.ran[0]; !strings.Contains(c.Path, "/.staging-") {
		t.Errorf("%s was run, which is no staged tree", c.Path)
	}

	w.withRocminfo(w.publish("10.2.0a20260930", 1))
	runner.text = badRocminfo
	w.o.Installs[0].Repack.Audit.Refuse = "never"
	out = w.run()
	var failed *SmokeError // what is active is asked too, and this runner says the same of it
	if out.Exit != ExitRefused || w.active() != "10.2.0a20260929" || !errors.As(out.Err, &failed) || !failed.Active || !strings.Contains(out.Error, "undefined symbol: hsa_init") {
		t.Fatalf("%+v", out)
	}
	if gens, err := w.o.Store.Slot("nightly", "gfx1151").Generations(); err != nil || len(gens) != 1 {
		t.Errorf("%v, %v", gens, err)
	}
	var rec Record
	if err := w.o.Store.Slot("nightly", "gfx1151").ReadRun("10.2.0a20260930", &rec); err != nil || rec.Exit != ExitRefused || rec.Smoke == nil || rec.Smoke.Counts.Failed != 2 {
		t.Errorf("%+v, %v", rec, err)
	}

	before := len(runner.ran)
	if out = w.run(); out.Exit != 0 || len(runner.ran) != before || w.active() != "10.2.0a20260929" {
		t.Errorf("it is tried again: %+v", out)
	}
	out = w.run(func(o *Options) { o.Smoke = SmokeOff })
	if out.Exit != 0 || out.Smoke != nil || w.active() != "10.2.0a20260930" {
		t.Errorf("without a check: %+v", out)
	}
}

// Where there is no cage, or nothing that could be tried, nothing has failed.
func TestSmokeThatTriedNothing(t *testing.T) {
	w := newWorld(t)
	w.withRocminfo(w.publish("10.2.0a20260929", 1))
	w.o.Smoke, w.o.SmokeRunner = smoke.CPU, &sayings{err: &cage.NotRunError{Reason: "no namespaces here"}}
	if out := w.run(); out.Exit != 0 || w.active() != "10.2.0a20260929" || out.Smoke.NotRun == 0 || out.Smoke.Passed != 0 {
		t.Errorf("%+v %+v", out, out.Smoke)
	}
	w.publish("10.2.0a20260930", 1)
	w.o.Smoke = smoke.GPU
	if out := w.run(); out.Exit != 0 || w.active() != "10.2.0a20260930" {
		t.Errorf("%+v %+v", out, out.Smoke)
	}
}

// What is only looked at is checked too, and leaves nothing behind.
func TestSmokeOfNoInstall(t *testing.T) {
	w := newWorld(t)
	w.withRocminfo(w.publish("10.2.0a20260930", 1))
	w.o.Smoke, w.o.SmokeRunner = smoke.CPU, &sayings{text: badRocminfo}
	out := w.run(func(o *Options) { o.NoInstall = true })
	if out.Exit != ExitRefused || out.pin != nil {
		t.Errorf("%+v", out)
	}
	left, err := filepath.Glob(filepath.Join(w.root, "slots/*/.staging-*"))
	if err != nil || slices.ContainsFunc(left, func(s string) bool { return filepath.Ext(s) != ".lock" }) {
		t.Errorf("%v, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(w.root, "slots/nightly-gfx1151/generations/10.2.0a20260930")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// Auto is nothing on a machine where /dev/kfd cannot be used.
func TestSmokeMode(t *testing.T) {
	auto := ""
	if smoke.Usable() == nil {
		auto = smoke.GPU
	}
	for asked, want := range map[string]string{"": "", SmokeOff: "", SmokeAuto: auto, smoke.CPU: smoke.CPU, smoke.GPU: smoke.GPU} {
		if got := (&run{o: Options{Smoke: asked}}).smokeMode(); got != want {
			t.Errorf("%q is %q, want %q", asked, got, want)
		}
	}
}
