package update

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/store"
)

// A second night shares what it can with the first, and costs the rest.
func TestASecondNightSharesFiles(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260929", 2)
	if out := w.run(); out.Reused != nil {
		t.Errorf("a first night shares with %+v", out.Reused)
	}
	w.publish("10.2.0a20260930", 1)
	out := w.run()
	re := out.Reused
	if out.Exit != 0 || re == nil || re.Files == 0 || re.Bytes == 0 || len(re.From) != 1 || re.From[0].Generation != "10.2.0a20260929" {
		t.Fatalf("%+v %+v", out, re)
	}
	var rec Record
	if err := w.o.Store.Slot("nightly", "gfx1151").ReadRun("10.2.0a20260930", &rec); err != nil || rec.Reused == nil || rec.Reused.Bytes != re.Bytes {
		t.Errorf("%+v, %v", rec.Reused, err)
	}
	gens := filepath.Join(w.root, "slots/nightly-gfx1151/generations")
	c, err := store.Compare(context.Background(), filepath.Join(gens, "10.2.0a20260929"), filepath.Join(gens, "10.2.0a20260930"))
	if err != nil || c.HardLinked.Files+c.Reflinked.Files != re.Files || c.Missing > 0 {
		t.Errorf("%+v, %v", c, err)
	}
	// And so does another target, whose bytes a clone shares later.
	w.publishFamily("10.2.0a20260930", "gfx103X-all")
	rep, n := w.twins()
	if a, b := rep.Installs[0], rep.Installs[1]; rep.Exit != 0 || n != 1 || a.Reused == nil || a.Reused.Files == 0 || b.Reused != nil {
		t.Errorf("%d downloads, %+v %+v", n, a, b)
	}
	u, err := w.o.Store.Usage(context.Background())
	if err != nil || u.AtMost {
		t.Fatalf("%+v, %v", u, err)
	}
	var sum int64
	for _, g := range u.Generations {
		sum += g.Disk
	}
	if len(u.Generations) != 4 || u.Total >= sum {
		t.Errorf("%d bytes of %d are occupied: %+v", u.Total, sum, u)
	}
}

func TestSharingCanBeTurnedOff(t *testing.T) {
	w := newWorld(t)
	w.o.Installs[0].Repack.Dedup = store.DedupOff
	w.publish("10.2.0a20260929", 2)
	w.run()
	w.publish("10.2.0a20260930", 1)
	out := w.run()
	text, err := json.Marshal(out)
	if err != nil || out.Exit != 0 || out.Reused != nil || strings.Contains(string(text), "reused") {
		t.Errorf("%s, %v", text, err)
	}
}

// A damaged file of an older night is named, and serves nobody.
func TestADamagedFileIsNotShared(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260929", 2)
	w.run()
	damaged := ""
	err := filepath.WalkDir(filepath.Join(w.root, "slots/nightly-gfx1151/generations/10.2.0a20260929/opt/rocm/lib"), func(p string, e os.DirEntry, err error) error {
		if fi, ierr := e.Info(); err == nil && ierr == nil && fi.Mode().IsRegular() && fi.Size() > 4096 {
			damaged = p
		}
		return err
	})
	if err != nil || damaged == "" {
		t.Fatalf("nothing to damage: %v", err)
	}
	fi, err := os.Stat(damaged)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(damaged)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.Chmod(damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(damaged, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(damaged, fi.Mode()); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(damaged, fi.ModTime(), fi.ModTime()); err != nil {
		t.Fatal(err)
	}
	w.publish("10.2.0a20260930", 1)
	var log bytes.Buffer
	out := w.run(func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	if out.Exit != 0 || len(out.Reused.Damaged) != 1 || !strings.Contains(log.String(), filepath.Base(damaged)) {
		t.Errorf("%+v %+v\n%s", out, out.Reused, &log)
	}
	now, err := os.ReadFile(strings.Replace(damaged, "20260929", "20260930", 1))
	if err != nil || bytes.Equal(now, data) {
		t.Errorf("the damage has come over: %v", err)
	}
}
