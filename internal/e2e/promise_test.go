package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/demo"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// TestPromiseCurrentIsAlwaysComplete: whoever opens current, at any instant of
// updates, rollbacks and switches, has one whole generation in hand.
func TestPromiseCurrentIsAlwaysComplete(t *testing.T) {
	a := newAxe(t, 6)
	a.install(t, 0)
	stop, done := make(chan struct{}), make(chan error, 1)
	var reads int
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := a.oneVersion(); err != nil {
				done <- err
				return
			}
			reads++
		}
	}()
	for n := 1; n < 6; n++ {
		a.install(t, n)
		a.look(t, "update")
		for _, args := range [][]string{{"rollback"}, {"use", axeNight(n)}, {"rollback"}, {"use", axeNight(n)}} {
			a.do(t, nil, args...).want(t, 0, "", "")
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if reads < 100 {
		t.Errorf("it was only read %d times", reads)
	}
}

// oneVersion opens current and says what is wrong with it, if what is read of it
// is of several generations, or missing.
func (a *axe) oneVersion() error {
	root, err := os.OpenRoot(a.slot("current"))
	if err != nil {
		return err
	}
	defer root.Close()
	text, err := root.ReadFile(manifest.Name)
	if err != nil {
		return err
	}
	m, err := manifest.Read(bytes.NewReader(text))
	if err != nil {
		return err
	}
	inside, err := root.ReadFile("opt/rocm/share/therock/therock_manifest.json")
	if err != nil {
		return err
	}
	var v struct {
		Version string `json:"rocm_package_version"`
	}
	if err := json.Unmarshal(inside, &v); err != nil || !strings.Contains(m.Name, v.Version) {
		return fmt.Errorf("%s has files of %s: %v", m.Name, v.Version, err)
	}
	return nil
}

// TestPromiseNothingIsVisibleBeforeItIsVerified: bytes that are damaged, cut
// off, or not those that the ledger knows become no generation under any name.
func TestPromiseNothingIsVisibleBeforeItIsVerified(t *testing.T) {
	a := newAxe(t, 2)
	a.install(t, 0)
	before := a.end(t)
	path := filepath.Join(a.amd, "therock-dist-linux-gfx1151-"+axeNight(1)+".tar.gz")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flipped := slices.Clone(good)
	flipped[len(flipped)/2] ^= 1
	for what, bad := range map[string][]byte{"a flipped bit": flipped, "cut off": good[:len(good)*3/4], "a page": []byte("<!DOCTYPE html>")} {
		if err := os.WriteFile(path, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		a.do(t, nil, "update", "--no-bump").want(t, 1, "", "")
		left := slices.DeleteFunc(a.debris(t), func(name string) bool { return strings.HasPrefix(name, "spool/") })
		if got := a.end(t); !got.equal(before) || len(left) > 0 {
			t.Errorf("%s: %+v, left %v", what, got, left)
		}
	}
	// Sound in itself, but not the bytes that were seen under this name.
	if err := os.WriteFile(path, good, 0o644); err != nil {
		t.Fatal(err)
	}
	a.do(t, nil, "update", "--no-bump", "--no-install").want(t, 0, "", "")
	other := &demo.Tree{RootMode: 0o755}
	other.File("bin/other", 0o755, []byte("#!/bin/sh\n"))
	var b bytes.Buffer
	if err := demo.WriteTarball(&b, other); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	a.do(t, nil, "update", "--no-bump").want(t, 5, "", "new bytes under a known name")
	if got := a.end(t); got.active != before.active || len(got.generations) != 1 {
		t.Errorf("%+v", got)
	}
}

// TestPromiseRollbackIsOneRename: it needs no network, no lock of a run and no
// second, and changes nothing but the link.
func TestPromiseRollbackIsOneRename(t *testing.T) {
	a := newAxe(t, 2)
	a.install(t, 0)
	a.install(t, 1)
	before := a.end(t)
	a.url = "http://127.0.0.1:1/" // where nobody listens
	a.configure(t, "")
	began := time.Now()
	a.do(t, nil, "rollback").want(t, 0, axeNight(0)+" is active now", "")
	if took := time.Since(began); took > time.Second {
		t.Errorf("it took %v", took)
	}
	want := before
	want.active = axeNight(0)
	if got := a.end(t); !got.equal(want) || len(a.debris(t)) > 0 {
		t.Errorf("%+v, left %v", got, a.debris(t))
	}
}

// TestPromiseWhatMattersSurvivesPruning: the active generation and the one
// before stay, however few are to be kept, and a held one.
func TestPromiseWhatMattersSurvivesPruning(t *testing.T) {
	a := newAxe(t, 5)
	for n := range 4 {
		a.install(t, n)
	}
	a.do(t, nil, "rollback").want(t, 0, "", "") // 2 is active, 3 was before
	want := []string{axeNight(2), axeNight(3)}
	if got := slices.Sorted(mapKeys(a.end(t).generations)); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	a.install(t, 4) // 4 is active, 2 was before
	want = []string{axeNight(2), axeNight(3), axeNight(4)}
	if got := slices.Sorted(mapKeys(a.end(t).generations)); !slices.Contains(got, axeNight(2)) || !slices.Contains(got, axeNight(4)) {
		t.Errorf("%v, want at least the first and last of %v", got, want)
	}
	a.look(t, "pruned")
}

// TestPromiseNoDowngradeUnlessAsked: an index that offers an older night as its
// newest changes nothing.
func TestPromiseNoDowngradeUnlessAsked(t *testing.T) {
	a := newAxe(t, 3)
	a.install(t, 2)
	if err := os.Remove(filepath.Join(a.amd, "therock-dist-linux-gfx1151-"+axeNight(2)+".tar.gz")); err != nil {
		t.Fatal(err)
	}
	a.do(t, nil, "update", "--no-bump").want(t, 0, axeNight(1), "")
	if a.active() != axeNight(2) {
		t.Errorf("%s is active", a.active())
	}
	a.do(t, nil, "update", "--no-bump", "--version", axeNight(1)).want(t, 0, "installed "+axeNight(1), "")
	if a.active() != axeNight(1) {
		t.Errorf("%s is active", a.active())
	}
}

// TestPromiseTheSameTarballGivesTheSameTree: installed again from nothing, every
// byte and mode is what it was, and the list of files too.
func TestPromiseTheSameTarballGivesTheSameTree(t *testing.T) {
	a := newAxe(t, 1)
	var digests, lists []string
	for range 2 {
		if err := os.RemoveAll(a.root); err != nil {
			t.Fatal(err)
		}
		a.install(t, 0)
		list, err := os.ReadFile(a.slot("generations", axeNight(0), manifest.FilesName))
		if err != nil {
			t.Fatal(err)
		}
		digests, lists = append(digests, a.end(t).generations[axeNight(0)]), append(lists, string(list))
	}
	if digests[0] != digests[1] || lists[0] != lists[1] {
		t.Error("two installs of one tarball differ")
	}
}
