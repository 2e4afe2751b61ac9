package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func mkfifo(path string) error { return unix.Mkfifo(path, 0o644) }

// A record that is damaged, foreign or of a newer program serves nobody, hides
// no other, and is not removed unless the same bytes are kept anew.
func TestRecordsOfTarballsThatAreOfNoUse(t *testing.T) {
	for name, record := range map[string]string{
		"empty":   "",
		"torn":    `{"schema":1,"pin":{"name":"`,
		"newer":   `{"schema":99}`,
		"another": "", // see below
		"too big": `{"schema":1,"x":"` + strings.Repeat("x", maxTarballLen) + `"}`,
		"zero":    `{"schema":1,"pin":{"schema":1,"name":"` + tarballFile(1) + `","channel":"nightly","digest":"sha256:` + strings.Repeat("0", 64) + `","size":0},"part_size":0,"parts":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			var told []string
			s.Event = func(e Event) { told = append(told, e.Kind) }
			k := keepOne(t, s, 1, "nightly-gfx1151")
			keepOne(t, s, 2, "nightly-gfx1151")
			path := filepath.Join(k.Dir, tarballName)
			if name == "another" {
				b, err := os.ReadFile(filepath.Join(isKept(t, s, 2).Dir, tarballName))
				if err != nil {
					t.Fatal(err)
				}
				record = string(b)
			}
			if err := os.WriteFile(path, []byte(record), 0o644); err != nil {
				t.Fatal(err)
			}
			equal(t, "kept", keptNames(t, s), []string{night(2) + ".tar.gz"})
			if got, err := s.KeptTarball("nightly", tarballFile(1)); got != nil || err != nil {
				t.Errorf("%+v, %v", got, err)
			}
			if bad, err := s.DamagedTarballs(); err != nil || len(bad) != 1 || bad[0].Dir != k.Dir {
				t.Errorf("%v, %v", bad, err)
			}
			if len(told) == 0 || told[0] != EventTarball {
				t.Errorf("told %q", told)
			}
			if _, err := s.PruneTarballs(t.Context(), map[string]int{"nightly-gfx1151": 0}); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(k.Dir, "0000")); err != nil {
				t.Errorf("its parts are gone: %v", err)
			}
			again := keepOne(t, s, 1, "nightly-gfx1151")
			isKept(t, s, 1)
			if kept := again.Dir != k.Dir; kept != (name == "newer" || name == "another") {
				t.Errorf("kept in %s", again.Dir)
			}
		})
	}
}

// Nothing outside is reached by what stands where tarballs are kept.
func TestNothingOutsideIsReachedByAKeptTarball(t *testing.T) {
	s := open(t)
	k := keepOne(t, s, 1, "nightly-gfx1151")
	outside := scratch(t)
	if err := os.Rename(k.Dir, filepath.Join(outside, "x")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "x"), k.Dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(s.TarballsDir(), "nightly", dyingPrefix+"y")); err != nil {
		t.Fatal(err)
	}
	equal(t, "kept", keptNames(t, s), nil)
	if _, err := s.PruneTarballs(t.Context(), map[string]int{"nightly-gfx1151": 0}); err != nil {
		t.Fatal(err)
	}
	keepOne(t, s, 1, "nightly-gfx1151")
	isKept(t, s, 1)
	if _, err := os.Stat(filepath.Join(outside, "x", "0000")); err != nil {
		t.Errorf("what a link led to was changed: %v", err)
	}
	bad := *k
	if err := s.ReopenTarball(&bad, []string{"../../../etc/passwd"}, s.SpoolDir("nightly", "z")); err == nil {
		t.Error("a part of that name was taken")
	}
}

func TestWriteFile(t *testing.T) {
	s := open(t)
	k := keepOne(t, s, 1, "")
	dir := t.TempDir()
	path := filepath.Join(dir, "out.tar.gz")
	for _, wantHere := range []bool{false, true} {
		here, err := k.WriteFile(t.Context(), path, false)
		if err != nil || here != wantHere {
			t.Fatalf("%v, %v", here, err)
		}
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, tarballBytes(1)) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", fi, err)
	}
	// What is something else stays, unless it is to be replaced.
	if err := flip(path); err != nil {
		t.Fatal(err)
	}
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.WriteFile(t.Context(), path, false); !errors.Is(err, ErrOccupied) {
		t.Errorf("%v", err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, was) {
		t.Errorf("it was changed: %v", err)
	}
	if here, err := k.WriteFile(t.Context(), path, true); here || err != nil {
		t.Errorf("%v, %v", here, err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, tarballBytes(1)) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("nowhere", link); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{link, dir, os.DevNull} {
		if _, err := k.WriteFile(t.Context(), p, false); !errors.Is(err, ErrOccupied) {
			t.Errorf("%s: %v", p, err)
		}
	}
	equal(t, "in the directory", entries(t, dir), []string{"link", "out.tar.gz"})
}

// Where the file system can, what is written shares the blocks of the parts.
func TestWriteFileReflinks(t *testing.T) {
	for kind, debian := range map[string]string{"xfs": "xfsprogs", "btrfs": "btrfs-progs"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			disk := reflinkDisk(t, kind, debian)
			s, err := Open(filepath.Join(disk, "root"))
			if err != nil {
				t.Fatal(err)
			}
			data := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
			data = append(data, "tail"...)
			pin, d := downloaded(t, s, tarballFile(1), data)
			const part = 4 << 20
			if err := os.RemoveAll(d.Dir); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(d.Dir, 0o755); err != nil {
				t.Fatal(err)
			}
			for i := 0; i*part < len(data); i++ {
				if err := os.WriteFile(filepath.Join(d.Dir, partName(i)), data[i*part:min(len(data), (i+1)*part)], 0o644); err != nil {
					t.Fatal(err)
				}
			}
			k, err := s.KeepTarball(t.Context(), pin, Download{Dir: d.Dir, PartSize: part}, "")
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(disk, "out")
			if _, err := k.WriteFile(t.Context(), path, false); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(got, data) {
				t.Fatalf("%d bytes, %v", len(got), err)
			}
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			shared, err := extentsOf(f, true)
			if err != nil {
				t.Fatal(err)
			}
			var bytes uint64
			for _, e := range shared {
				bytes += e.end - e.start
			}
			if bytes < uint64(len(data))/2 {
				t.Errorf("%d of %d bytes are shared", bytes, len(data))
			}
		})
	}
}

// FuzzTarball holds that any bytes are damaged, newer, or a record that reads
// back as itself and leads nowhere else.
func FuzzTarball(f *testing.F) {
	sum := "sha256:" + strings.Repeat("ab", 32)
	f.Add([]byte(`{"schema":1,"pin":{"schema":1,"name":"x.tar.gz","channel":"nightly","family":"f","version":"1","url":"u","digest":"` + sum + `","size":3,"first_seen":"2026-09-30T06:30:00Z"},"kept":"2026-09-30T06:30:00Z","slots":{"nightly-gfx1151":"2026-09-30T06:30:00Z"},"part_size":2,"parts":["` + sum + `","` + sum + `"]}`))
	f.Add([]byte(`{"schema":2}`))
	f.Add([]byte(`{"schema":1,"part_size":-1,"pin":{"size":9223372036854775807}}`))
	f.Add([]byte(`{"schema":1,"slots":{"../x":null}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseTarball(b)
		if err != nil {
			return
		}
		for slot := range r.Slots {
			if strings.Contains(slot, "/") || slot == "" {
				t.Fatalf("a slot is called %q", slot)
			}
		}
		var total int64
		k := r.tarball("/x")
		for i := range k.Parts {
			n := k.partSize(i)
			if n < 1 || n > k.PartSize {
				t.Fatalf("part %d has %d bytes", i, n)
			}
			total += n
		}
		if total != k.Size {
			t.Fatalf("the parts have %d of %d bytes", total, k.Size)
		}
		enc, err := r.encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseTarball(enc)
		if err != nil {
			t.Fatalf("%s: %v", enc, err)
		}
		enc2, err := json.Marshal(again)
		enc1, err1 := json.Marshal(r)
		if err != nil || err1 != nil || !bytes.Equal(enc1, enc2) {
			t.Fatalf("%s reads back as %s", enc1, enc2)
		}
	})
}
