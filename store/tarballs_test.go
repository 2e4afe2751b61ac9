package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	digest "github.com/opencontainers/go-digest"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/internal/smallfs"
)

const testPart = 1000 // bytes

// tarballBytes is what the n-th tarball of these tests holds.
func tarballBytes(n int) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "tarball %04d\n", n), 300+n) // 13 bytes a line; no multiple of a part
}

func tarballFile(n int) string { return "therock-dist-linux-gfx1151-" + night(n) + ".tar.gz" }

// downloaded puts a whole download of data where downloads are.
func downloaded(t testing.TB, s *Store, name string, data []byte) (LedgerEntry, Download) {
	t.Helper()
	dir := s.SpoolDir("nightly", name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(dir), 0o755), os.MkdirAll(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "state.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	sums := NewPartSums(testPart)
	sums.Write(data)
	for i := 0; i*testPart < len(data); i++ {
		part := data[i*testPart : min(len(data), (i+1)*testPart)]
		if err := os.WriteFile(filepath.Join(dir, partName(i)), part, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pin := LedgerEntry{Name: name, Channel: "nightly", Family: "gfx1151", Version: strings.TrimSuffix(strings.TrimPrefix(name, "therock-dist-linux-gfx1151-"), ".tar.gz"),
		URL: "https://example.org/" + name, Digest: digest.FromBytes(data), Size: int64(len(data)), ETag: `"e"`}
	return pin, Download{Dir: dir, PartSize: testPart, Sums: sums.Sums()}
}

// keepOne keeps the n-th tarball for a slot.
func keepOne(t testing.TB, s *Store, n int, slot string) *Tarball {
	t.Helper()
	pin, d := downloaded(t, s, tarballFile(n), tarballBytes(n))
	k, err := s.KeepTarball(context.Background(), pin, d, slot)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func readTarballBytes(k *Tarball) ([]byte, error) {
	r, err := k.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// isKept fails unless the n-th tarball is kept and whole.
func isKept(t testing.TB, s *Store, n int) *Tarball {
	t.Helper()
	k, err := s.KeptTarball("nightly", tarballFile(n))
	if err != nil || k == nil {
		t.Fatalf("tarball %d: %v, %v", n, k, err)
	}
	if got, err := readTarballBytes(k); err != nil || !bytes.Equal(got, tarballBytes(n)) {
		t.Fatalf("tarball %d: %d bytes, %v", n, len(got), err)
	}
	return k
}

func keptNames(t testing.TB, s *Store) (names []string) {
	t.Helper()
	all, err := s.Tarballs()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range all {
		names = append(names, strings.TrimPrefix(filepath.Base(k.Dir), "therock-dist-linux-gfx1151-"))
	}
	slices.Sort(names)
	return names
}

func TestTarballsAreKeptByARename(t *testing.T) {
	s := open(t)
	pin, d := downloaded(t, s, tarballFile(1), tarballBytes(1))
	before, err := os.Stat(filepath.Join(d.Dir, "0000"))
	if err != nil {
		t.Fatal(err)
	}
	if k, err := s.KeptTarball("nightly", pin.Name); k != nil || err != nil {
		t.Fatalf("%v, %v", k, err)
	}
	k, err := s.KeepTarball(t.Context(), pin, d, "nightly-gfx1151")
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(s.Root(), "tarballs/nightly", pin.Name); k.Dir != want || k.Digest != pin.Digest || k.Size != pin.Size || k.Channel != "nightly" || k.Kept.IsZero() {
		t.Errorf("%+v", k)
	}
	if _, err := os.Stat(d.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the download is there still: %v", err)
	}
	after, err := os.Stat(filepath.Join(k.Dir, "0000"))
	if err != nil || !os.SameFile(before, after) || after.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", after, err)
	}
	if fi, err := os.Stat(k.Dir); err != nil || fi.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", fi, err)
	}
	got := isKept(t, s, 1)
	if pin, err := got.Pin(); err != nil || pin.Version.String() != night(1) || pin.ETag != `"e"` || !slices.Equal(got.Slots, []string{"nightly-gfx1151"}) {
		t.Errorf("%+v, %v", pin, err)
	}
}

// Without digests of the parts all of it is read, and nothing but the right
// bytes is kept.
func TestWhatIsKeptHasTheDigest(t *testing.T) {
	s := open(t)
	pin, d := downloaded(t, s, tarballFile(1), tarballBytes(1))
	d.Sums = nil
	right := pin.Digest
	pin.Digest = digest.FromString("another")
	var mismatch *release.MismatchError
	if _, err := s.KeepTarball(t.Context(), pin, d, ""); !errors.As(err, &mismatch) {
		t.Fatalf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(d.Dir, "0001")); err != nil {
		t.Errorf("the download is gone: %v", err)
	}
	pin.Digest = right
	if _, err := s.KeepTarball(t.Context(), pin, d, ""); err != nil {
		t.Fatal(err)
	}
	isKept(t, s, 1)
	// A part that was shortened behind our back, and one that is a link.
	for _, spoil := range []func(string) error{
		func(p string) error { return os.Truncate(p, 3) },
		func(p string) error { return errors.Join(os.Rename(p, p+"x"), os.Symlink(p+"x", p)) },
		os.Remove,
	} {
		pin, d := downloaded(t, s, tarballFile(2), tarballBytes(2))
		if err := spoil(filepath.Join(d.Dir, "0001")); err != nil {
			t.Fatal(err)
		}
		if _, err := s.KeepTarball(t.Context(), pin, d, ""); err == nil {
			t.Error("a download that is not whole was kept")
		}
		if err := os.RemoveAll(d.Dir); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "kept", keptNames(t, s), []string{night(1) + ".tar.gz"})
}

// One name with two contents is two tarballs; the last installed is the one that
// is meant, unless a digest is named.
func TestTwoContentsOfOneNameAreKept(t *testing.T) {
	s := open(t)
	first := keepOne(t, s, 1, "nightly-gfx1151")
	pin, d := downloaded(t, s, tarballFile(1), tarballBytes(7))
	second, err := s.KeepTarball(t.Context(), pin, d, "nightly-gfx1151")
	if err != nil {
		t.Fatal(err)
	}
	if second.Dir == first.Dir {
		t.Fatal("one took the place of the other")
	}
	if k, err := s.KeptTarball("nightly", tarballFile(1)); err != nil || k.Digest != second.Digest {
		t.Errorf("%+v, %v", k, err)
	}
	for _, k := range []*Tarball{first, second} {
		if got, err := s.KeptDigest("nightly", tarballFile(1), k.Digest); err != nil || got == nil || got.Dir != k.Dir {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if k, err := s.KeptDigest("nightly", tarballFile(1), digest.FromString("third")); k != nil || err != nil {
		t.Errorf("%+v, %v", k, err)
	}
	// Once more the second bytes: they replace themselves, and nothing else.
	pin, d = downloaded(t, s, tarballFile(1), tarballBytes(7))
	if again, err := s.KeepTarball(t.Context(), pin, d, "nightly-gfx1150"); err != nil || again.Dir != second.Dir || len(again.Slots) != 2 {
		t.Errorf("%+v, %v", again, err)
	}
	if n := len(keptNames(t, s)); n != 2 {
		t.Errorf("%d are kept", n)
	}
	if _, err := s.PruneTarballs(t.Context(), map[string]int{"nightly-gfx1151": 1, "nightly-gfx1150": 0}); err != nil {
		t.Fatal(err)
	}
	if k, err := s.KeptTarball("nightly", tarballFile(1)); err != nil || k == nil || k.Digest != second.Digest {
		t.Errorf("%+v, %v", k, err)
	}
}

func TestDamageOfAKeptTarballIsLocated(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(dir string) error
		parts []string
	}{
		"flipped": {func(dir string) error { return flip(filepath.Join(dir, "0001")) }, []string{"0001"}},
		"two": {func(dir string) error {
			return errors.Join(flip(filepath.Join(dir, "0000")), flip(filepath.Join(dir, "0003")))
		}, []string{"0000", "0003"}},
		"truncated": {func(dir string) error { return os.Truncate(filepath.Join(dir, "0002"), 10) }, []string{"0002"}},
		"longer":    {func(dir string) error { return os.Truncate(filepath.Join(dir, "0002"), testPart+1) }, []string{"0002"}},
		"missing":   {func(dir string) error { return os.Remove(filepath.Join(dir, "0003")) }, []string{"0003"}},
		"a link": {func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "0001")), os.Symlink("0000", filepath.Join(dir, "0001")))
		}, []string{"0001"}},
		"a pipe": {func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "0001")), mkfifo(filepath.Join(dir, "0001")))
		}, []string{"0001"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			k := keepOne(t, s, 1, "nightly-gfx1151")
			if err := k.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := tt.spoil(k.Dir); err != nil {
				t.Fatal(err)
			}
			var damaged *TarballError
			if err := k.Check(t.Context()); !errors.As(err, &damaged) || !slices.Equal(damaged.Parts, tt.parts) || damaged.Name != k.Name {
				t.Errorf("%v", err)
			}
			got, err := readTarballBytes(k)
			if !errors.As(err, &damaged) {
				t.Errorf("%d bytes were read, and then %v", len(got), err)
			}
			out := filepath.Join(t.TempDir(), "out")
			if _, err := k.WriteFile(t.Context(), out, false); !errors.As(err, &damaged) {
				t.Errorf("%v", err)
			}
			if left := entries(t, filepath.Dir(out)); len(left) > 0 {
				t.Errorf("written all the same: %q", left)
			}
			// It is a download again without those parts, and who wants it is remembered.
			spool := s.SpoolDir(k.Channel, k.Name)
			if err := s.ReopenTarball(k, tt.parts, spool); err != nil {
				t.Fatal(err)
			}
			for _, part := range tt.parts {
				if _, err := os.Lstat(filepath.Join(spool, part)); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s: %v", part, err)
				}
			}
			pin, d := downloaded(t, s, tarballFile(1), tarballBytes(1))
			again, err := s.KeepTarball(t.Context(), pin, d, "nightly-gfx1150")
			if err != nil || len(again.Slots) != 2 {
				t.Errorf("%+v, %v", again, err)
			}
			isKept(t, s, 1)
		})
	}
}

func flip(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	b[len(b)/2] ^= 1
	return os.WriteFile(path, b, 0o644)
}

// Wherever keeping is cut off, there is a whole download or a kept tarball, and
// the next try comes to the same end.
func TestAnInterruptedKeepIsADownloadOrATarball(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		cut := errors.New("cut off")
		for n := 1; ; n++ {
			s := open(t)
			if replaced { // a damaged one, which is fetched again
				k := keepOne(t, s, 1, "nightly-gfx1150")
				if err := flip(filepath.Join(k.Dir, "0002")); err != nil {
					t.Fatal(err)
				}
			}
			pin, d := downloaded(t, s, tarballFile(1), tarballBytes(1))
			calls := 0
			real := s.disk
			s.disk.replace = func(path string, data []byte) error {
				if calls++; calls == n {
					return cut
				}
				return real.replace(path, data)
			}
			s.disk.syncDir = func(path string) error {
				if calls++; calls == n {
					return cut
				}
				return real.syncDir(path)
			}
			_, err := s.KeepTarball(t.Context(), pin, d, "nightly-gfx1151")
			if err == nil {
				if n < 4 {
					t.Errorf("only %d steps were cut off", n-1)
				}
				break
			}
			if !errors.Is(err, cut) {
				t.Fatal(err)
			}
			s.disk = real
			if _, err := os.Stat(d.Dir); err == nil {
				if _, err := s.KeepTarball(t.Context(), pin, Download{Dir: d.Dir, PartSize: testPart}, "nightly-gfx1151"); err != nil {
					t.Fatalf("after step %d: %v", n, err)
				}
			}
			isKept(t, s, 1)
			if _, err := s.PruneTarballs(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			equal(t, "in the channel", entries(t, filepath.Join(s.TarballsDir(), "nightly")), []string{tarballFile(1)})
		}
	}
}

// The record is on the disk before the tarball has its name, and the name before
// the download is forgotten.
func TestATarballIsDurableBeforeItHasItsName(t *testing.T) {
	s := open(t)
	pin, d := downloaded(t, s, tarballFile(1), tarballBytes(1))
	if err := os.MkdirAll(filepath.Join(s.TarballsDir(), "nightly"), 0o755); err != nil {
		t.Fatal(err)
	}
	var log []string
	note := func(what, path string) {
		state := "download"
		if isRealDir(filepath.Join(s.TarballsDir(), "nightly", pin.Name)) {
			state = "kept"
		}
		rel, _ := filepath.Rel(s.Root(), path)
		log = append(log, what+" "+strings.ReplaceAll(rel, pin.Name, "X")+" "+state)
	}
	real := s.disk
	s.disk.replace = func(path string, data []byte) error { note("write", path); return real.replace(path, data) }
	s.disk.syncDir = func(path string) error { note("sync", path); return real.syncDir(path) }
	if _, err := s.KeepTarball(t.Context(), pin, d, ""); err != nil {
		t.Fatal(err)
	}
	equal(t, "order", log, []string{
		"write spool/nightly/X/tarball.json download", "sync spool/nightly/X download",
		"sync tarballs/nightly kept", "sync spool/nightly kept",
	})
}

func TestTarballsStayWhileASlotWantsThem(t *testing.T) {
	s := open(t)
	for n := 1; n <= 4; n++ {
		keepOne(t, s, n, "nightly-gfx1030")
	}
	if err := s.WantTarball(isKept(t, s, 1), "nightly-gfx1036"); err != nil {
		t.Fatal(err)
	}
	if err := s.WantTarball(isKept(t, s, 2), "nightly-gfx1030"); err != nil { // installed once more
		t.Fatal(err)
	}
	debris := filepath.Join(s.TarballsDir(), "nightly", keepingPrefix+"x")
	if err := os.MkdirAll(filepath.Join(debris, "y"), 0o755); err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(isKept(t, s, 4).Dir, "."+tarballName+"123")
	if err := os.WriteFile(half, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	gone, err := s.PruneTarballs(t.Context(), map[string]int{"nightly-gfx1030": 2})
	if err != nil || len(gone.Removed) != 1 || gone.Removed[0].Name != tarballFile(3) || gone.Bytes != int64(len(tarballBytes(3))) {
		t.Errorf("%+v, %v", gone, err)
	}
	equal(t, "kept", keptNames(t, s), []string{night(1) + ".tar.gz", night(2) + ".tar.gz", night(4) + ".tar.gz"})
	equal(t, "wanted by", isKept(t, s, 1).Slots, []string{"nightly-gfx1036"})
	for _, path := range []string{debris, half} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if gone, err := s.PruneTarballs(t.Context(), map[string]int{"nightly-gfx1036": 0}); err != nil || len(gone.Removed) != 1 {
		t.Errorf("%+v, %v", gone, err)
	}
	if gone, err := s.PruneTarballs(t.Context(), nil); err != nil || len(gone.Removed) != 0 {
		t.Errorf("%+v, %v", gone, err)
	}
	if gone, err := s.PruneTarballs(t.Context(), map[string]int{"nightly-gfx1030": 0}); err != nil || len(gone.Removed) != 2 {
		t.Errorf("%+v, %v", gone, err)
	}
	equal(t, "left", entries(t, filepath.Join(s.TarballsDir(), "nightly")), nil)
}

// Where kept tarballs are on another file system they are copied there; if that
// fails, the download stays.
func TestTarballsOnAnotherFileSystem(t *testing.T) {
	if !smallfs.Inside(t) {
		return
	}
	disk := smallfs.Tmpfs(t, 1<<20, 1000)
	s := open(t)
	if err := os.MkdirAll(s.Root(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(disk.Dir, s.TarballsDir()); err != nil {
		t.Fatal(err)
	}
	keepOne(t, s, 1, "nightly-gfx1151")
	isKept(t, s, 1)
	if _, err := os.Stat(s.SpoolDir("nightly", tarballFile(1))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the download is there still: %v", err)
	}
	for inodes := int64(8); inodes < 18; inodes++ { // full at every step
		disk.Limit(1<<20, inodes)
		pin, d := downloaded(t, s, tarballFile(2), tarballBytes(2))
		_, err := s.KeepTarball(t.Context(), pin, d, "nightly-gfx1151")
		if err == nil {
			if inodes < 10 {
				t.Errorf("it fitted into %d inodes", inodes)
			}
			break
		}
		if _, err := os.Stat(filepath.Join(d.Dir, "0003")); err != nil {
			t.Errorf("the download is gone: %v", err)
		}
		equal(t, "in the channel", entries(t, filepath.Join(disk.Dir, "nightly")), []string{tarballFile(1)})
	}
	disk.Limit(1<<20, 1000)
	isKept(t, s, 1)
	isKept(t, s, 2)
}

// A store that cannot be written to can be read from.
func TestKeptTarballsOfAStoreThatIsReadOnly(t *testing.T) {
	s := open(t)
	k := keepOne(t, s, 1, "nightly-gfx1151")
	pin, d := downloaded(t, s, tarballFile(2), tarballBytes(2))
	channel := filepath.Dir(k.Dir)
	for _, dir := range []string{k.Dir, channel} {
		if err := os.Chmod(dir, 0o555); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(channel, 1, 1); err != nil && os.Getuid() == 0 {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(s.Root()), 0o755); err != nil {
		t.Fatal(err)
	}
	asNobody(t, func() {
		if k, err := s.KeptTarball("nightly", tarballFile(1)); err != nil || k == nil {
			t.Errorf("%v, %v", k, err)
		} else if got, err := readTarballBytes(k); err != nil || !bytes.Equal(got, tarballBytes(1)) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if _, err := s.KeepTarball(t.Context(), pin, d, ""); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%v", err)
		}
		if err := s.RemoveTarball(k); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "owner of the store") {
			t.Errorf("%v", err)
		}
	})
	if err := os.Chmod(channel, 0o755); err != nil {
		t.Fatal(err)
	}
	isKept(t, s, 1)
}
