package update

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/smallfs"
	"github.com/rocm-nightly/rocm-nightly/repack"
	"github.com/rocm-nightly/rocm-nightly/store"
)

const (
	roomyBytes  = 1 << 30
	roomyInodes = 1 << 20

	oldNight = "10.2.0a20260929"
	newNight = "10.2.0a20260930"
)

// full is a world whose store is on a small file system, with one night
// installed and a newer one published.
type full struct {
	*world
	fs       *smallfs.FS
	pristine string // copy of the store as it was
	old, new map[string]string
	log      bytes.Buffer
}

func newFull(t *testing.T) *full {
	t.Helper()
	f := &full{world: newWorld(t), fs: smallfs.Tmpfs(t, roomyBytes, roomyInodes), pristine: filepath.Join(t.TempDir(), "pristine")}
	f.root = filepath.Join(f.fs.Dir, "root")
	st, err := store.Open(f.root)
	if err != nil {
		t.Fatal(err)
	}
	f.o.Store = st
	f.o.Log = slog.New(slog.NewTextHandler(&f.log, nil))
	// The foresight is blind: writing has to find out.
	f.o.Space = func(dir string) (diskspace.Space, error) {
		return diskspace.Space{Mount: "/", Bytes: diskspace.Unknown, Inodes: diskspace.Unknown}, nil
	}
	// What is shared depends on what is there, and on how far sharing came.
	f.o.Installs[0].Repack.Dedup = repack.DedupOff
	f.publish(oldNight, 2)
	f.must(t, oldNight)
	f.copy(t, f.root, f.pristine)
	f.publish(newNight, 1)
	f.must(t, newNight)
	f.old = smallfs.Snapshot(t, f.generation(oldNight))
	f.new = smallfs.Snapshot(t, f.generation(newNight))
	return f
}

func (f *full) generation(name string) string {
	return filepath.Join(f.root, "slots/nightly-gfx1151/generations", name)
}

func (f *full) must(t *testing.T, active string) {
	t.Helper()
	if out := f.run(); out.Exit != 0 || f.active() != active {
		t.Fatalf("%+v", out)
	}
}

func (f *full) copy(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v\n%s", err, out)
	}
}

// restore makes the store what it was before the newer night.
func (f *full) restore(t *testing.T) {
	t.Helper()
	f.fs.Limit(roomyBytes, roomyInodes)
	if err := os.RemoveAll(f.root); err != nil {
		t.Fatal(err)
	}
	f.copy(t, f.pristine, f.root)
	f.log.Reset()
}

// judge holds an outcome on the full file system against the promises, and
// returns what was being done when it was full.
func (f *full) judge(t *testing.T, at string, out *Outcome, cause error) (phase string) {
	t.Helper()
	if out.Exit == 0 {
		if f.active() != newNight || !maps.Equal(smallfs.Snapshot(t, f.generation(newNight)), f.new) {
			t.Errorf("%s: success, but %s is active, or not as it should be", at, f.active())
		}
	} else {
		if out.Exit != ExitFailed || !errors.Is(out.Err, cause) {
			t.Errorf("%s: exit %d, %v", at, out.Exit, out.Err)
		}
		if !strings.Contains(out.Error, f.root) {
			t.Errorf("%s: the error names no file: %v", at, out.Err)
		}
		if f.active() != oldNight {
			t.Errorf("%s: %s is active after %v", at, f.active(), out.Err)
		}
	}
	if !maps.Equal(smallfs.Snapshot(t, f.generation(oldNight)), f.old) {
		t.Errorf("%s: the old generation was changed", at)
	}
	return out.Error
}

// recovers holds the run after that, with room again, against the promises.
func (f *full) recovers(t *testing.T, at string) {
	t.Helper()
	if out := f.run(); out.Exit != 0 || f.active() != newNight {
		t.Errorf("%s: with room again: exit %d, %s is active: %v", at, out.Exit, f.active(), out.Err)
	}
	if !maps.Equal(smallfs.Snapshot(t, f.generation(newNight)), f.new) {
		t.Errorf("%s: the new generation is not as it should be", at)
	}
	entries, err := os.ReadDir(filepath.Join(f.root, "slots/nightly-gfx1151"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains([]string{"checks.json", "current", "generations", "records", "runs", "seals", "state.json", "switch.lock"}, e.Name()) {
			t.Errorf("%s: %s was left", at, e.Name())
		}
	}
	for dir, want := range map[string]int{"spool/nightly": 0, "slots/nightly-gfx1151/generations": 2, "slots/nightly-gfx1151/runs": 4} {
		entries, _ := os.ReadDir(filepath.Join(f.root, dir))
		if len(entries) > want {
			t.Errorf("%s: %s has %v", at, dir, entries)
		}
	}
}

// attempt runs with room for so many bytes and inodes, and then with any.
func (f *full) attempt(t *testing.T, at string, size, inodes int64) string {
	t.Helper()
	f.restore(t)
	f.fs.Limit(size, inodes)
	failure := f.judge(t, at, f.run(), unix.ENOSPC)
	f.fs.Limit(roomyBytes, roomyInodes)
	f.recovers(t, at)
	return failure
}

// Wherever the disk is full: what was installed stays and is untouched, the
// error says where it was full, and the next run with room needs nobody's help.
func TestPromiseAFullDiskIsClean(t *testing.T) {
	if !smallfs.Inside(t) {
		return
	}
	f := newFull(t)
	most, mostInodes := f.fs.Used()
	f.restore(t)
	least, leastInodes := f.fs.Used()
	t.Run("no inodes", func(t *testing.T) { f.noInodes(t, leastInodes, mostInodes) })
	t.Run("no bytes", func(t *testing.T) { f.noBytes(t, least, most+f.tarball(t)) })
	t.Run("it fills up", f.fillsUp)
	t.Run("sharing", f.sharing)
	t.Run("the ledger", f.ledgerIsFull)
	t.Run("the first install", f.first)
	t.Run("read-only", f.readOnly)
	t.Run("a limit of file size", f.fileSize)
}

// tarball returns the size of the newer night, in bytes.
func (f *full) tarball(t *testing.T) int64 {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(f.amd, "*"+newNight+"*"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	fi, err := os.Stat(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return fi.Size()
}

func (f *full) noInodes(t *testing.T, least, most int64) {
	var failures []string
	for n := least; n < most+6; n++ {
		if heavy || n <= least+6 || (n-least)%15 == 0 {
			failures = append(failures, f.attempt(t, fmt.Sprintf("%d inodes", n-least), roomyBytes, n))
		}
	}
	hit(t, failures, "create spool", "write spool state", "stage in", "mkdirat", "openat", "finish prefix")
}

func (f *full) noBytes(t *testing.T, least, most int64) {
	step := (most - least) / 8
	if heavy {
		step = 16384
	}
	var failures []string
	for n := least; n < most+step+64<<10; n += step {
		failures = append(failures, f.attempt(t, fmt.Sprintf("%d bytes", n-least), n, roomyInodes))
	}
	if failures[0] == "" || failures[len(failures)-1] != "" {
		t.Errorf("the first ended with %q, the last with %q", failures[0], failures[len(failures)-1])
	}
	hit(t, failures, "write spool state", "unpack")
}

// hit makes sure that the disk was full where it is meant to have been.
func hit(t *testing.T, failures []string, phases ...string) {
	t.Helper()
	for _, p := range phases {
		if !slices.ContainsFunc(failures, func(f string) bool { return strings.Contains(f, p) }) {
			t.Errorf("nothing failed at %q", p)
		}
	}
	t.Logf("%d attempts: %s", len(failures), strings.Join(slices.Compact(failures), "\n"))
}

// fillsUp lets the disk become full while a stage is under way, but for so many
// blocks or inodes.
func (f *full) fillsUp(t *testing.T) {
	var failures []string
	try := func(stage string, blocks, inodes int64) {
		f.restore(t)
		at, done := fmt.Sprintf("%s, %d blocks, %d inodes", stage, blocks, inodes), false
		out := f.run(func(o *Options) {
			o.Event = func(e Event) {
				if e.Stage == stage && !done {
					done = true
					f.fs.Leave(blocks*4096, inodes)
				}
			}
		})
		if !done {
			t.Errorf("%s: no such stage", at)
		}
		failures = append(failures, f.judge(t, at, out, unix.ENOSPC))
		f.fs.Limit(roomyBytes, roomyInodes)
		f.recovers(t, at)
	}
	const any = 1000
	for _, stage := range []string{"download", "unpack", "patch", "audit", "activate"} {
		try(stage, 0, any)
		try(stage, any, 0)
		try(stage, 1, 1)
	}
	for blocks := range int64(32) {
		if heavy || blocks >= 4 && blocks < 20 {
			try("wrap", blocks, any)
		}
	}
	hit(t, failures, "unpack", "finish prefix", "write manifest.json", "write files.jsonl", "checks.json", "activate "+newNight)
}

// sharing: the disk becomes full while files are shared with the older night.
// However far that came, what is active is whole and as its files.jsonl says.
func (f *full) sharing(t *testing.T) {
	f.o.Installs[0].Repack.Dedup = repack.DedupHardLink
	defer func() { f.o.Installs[0].Repack.Dedup = repack.DedupOff }()
	const any = 1000
	for _, room := range [][2]int64{{0, any}, {1, any}, {2, any}, {8, any}, {any, 0}, {any, 1}, {any, 2}, {1, 1}, {any, any}} {
		f.restore(t)
		at, done := fmt.Sprintf("%d blocks, %d inodes", room[0], room[1]), false
		out := f.run(func(o *Options) {
			o.Event = func(e Event) {
				if e.Stage == "reuse" && !done {
					done = true
					f.fs.Leave(room[0]*4096, room[1])
				}
			}
		})
		f.fs.Limit(roomyBytes, roomyInodes)
		switch {
		case !done:
			t.Errorf("%s: nothing was to be shared", at)
		case out.Exit != 0 && (!errors.Is(out.Err, unix.ENOSPC) || f.active() != oldNight):
			t.Errorf("%s: %s is active: %+v", at, f.active(), out)
		case room[0]+room[1] == 2*any && (out.Exit != 0 || out.Reused.HardLinked == 0):
			t.Errorf("%s: nothing is shared: %+v", at, out)
		}
		if out := f.run(); out.Exit != 0 || f.active() != newNight {
			t.Errorf("%s: with room again: %s is active: %+v", at, f.active(), out)
		}
		for name, want := range map[string]map[string]string{oldNight: maps.Clone(f.old), newNight: maps.Clone(f.new)} {
			got := smallfs.Snapshot(t, f.generation(name))
			for _, has := range []map[string]string{got, want} {
				delete(has, manifest.FilesName) // it has the times of what is shared
			}
			if !maps.Equal(got, want) {
				t.Errorf("%s: %s is not as it should be", at, name)
			}
			f.timesAreListed(t, at, f.generation(name))
		}
	}
}

// timesAreListed compares the times of files with the list.
func (f *full) timesAreListed(t *testing.T, at, dir string) {
	t.Helper()
	list, err := os.Open(filepath.Join(dir, manifest.FilesName))
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	err = manifest.EachFile(list, nil, func(e *manifest.File) error {
		fi, err := os.Lstat(filepath.Join(dir, e.Path))
		if err == nil && fi.ModTime().Unix() != e.MTime {
			t.Errorf("%s: %s is of %d, not of %d", at, e.Path, fi.ModTime().Unix(), e.MTime)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// ledgerIsFull has the ledger on a full file system of its own.
func (f *full) ledgerIsFull(t *testing.T) {
	f.restore(t)
	small := smallfs.Tmpfs(t, 4096, 10)
	path := filepath.Join(small.Dir, "ledger.jsonl")
	text := bytes.Repeat([]byte("\n"), 4096-40) // of the next line, 40 bytes fit
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	own := func(o *Options) { o.Ledger = store.OpenLedger(path) }
	out := f.run(own)
	if out.Exit != ExitFailed || !errors.Is(out.Err, unix.ENOSPC) || !strings.Contains(out.Error, path) || f.active() != oldNight {
		t.Errorf("%s is active: %+v", f.active(), out)
	}
	if left, err := os.ReadFile(path); err != nil || !bytes.Equal(left, text) {
		t.Errorf("the ledger has %q, %v", bytes.TrimSpace(left), err)
	}
	small.Limit(1<<20, 10)
	if out := f.run(own); out.Exit != 0 || f.active() != newNight {
		t.Errorf("%+v", out)
	}
	f.recovers(t, "the ledger")
}

// first installs into a store that is not there yet.
func (f *full) first(t *testing.T) {
	for n := int64(1); n < 180; n += 29 {
		f.restore(t)
		if err := os.RemoveAll(f.root); err != nil {
			t.Fatal(err)
		}
		f.fs.Limit(roomyBytes, n)
		rep, err := Run(t.Context(), f.o)
		if err == nil {
			err = rep.Installs[0].Err
		}
		if err != nil && (!errors.Is(err, unix.ENOSPC) || f.active() != "") || err == nil && f.active() != newNight {
			t.Errorf("%d inodes: %s is active, %v", n, f.active(), err)
		}
		f.fs.Limit(roomyBytes, roomyInodes)
		f.recovers(t, fmt.Sprintf("%d inodes", n))
	}
}

// readOnly: what cannot be written to ends the run before anything is asked for.
func (f *full) readOnly(t *testing.T) {
	f.restore(t)
	f.fs.ReadOnly(true)
	before := f.tarballs.Load()
	_, err := Run(t.Context(), f.o)
	if !errors.Is(err, unix.EROFS) || f.tarballs.Load() != before || f.active() != oldNight {
		t.Errorf("%v after %d requests", err, f.tarballs.Load()-before)
	}
	f.fs.ReadOnly(false)
	f.recovers(t, "writable")
}

// fileSize: a limit on the size of files (RLIMIT_FSIZE) is an error like a full
// disk, and not the end of the process by SIGXFSZ.
func (f *full) fileSize(t *testing.T) {
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	for _, n := range []uint64{0, 1000, 4096, 20_000} {
		f.restore(t)
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: n, Max: was.Max}); err != nil {
			t.Fatal(err)
		}
		out := f.run()
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
			t.Fatal(err)
		}
		at := fmt.Sprintf("files of %d bytes", n)
		t.Logf("%s: %s", at, f.judge(t, at, out, unix.EFBIG))
		f.recovers(t, at)
	}
}
