package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	digest "github.com/opencontainers/go-digest"
)

// keepForever downloads and keeps one tarball after the other, and prunes. It
// only ends by an error.
func keepForever(root string) error {
	s, err := Open(root)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for n := 1; ; n = n%9 + 1 {
		pin, d, err := leaveDownload(s, n)
		if err == nil {
			_, err = s.KeepTarball(context.Background(), pin, d, "nightly-gfx1151")
		}
		if err == nil && n%3 == 0 {
			_, err = s.PruneTarballs(context.Background(), map[string]int{"nightly-gfx1151": 4})
		}
		if err != nil {
			return err
		}
	}
}

// leaveDownload makes a whole download by one rename: how that comes about is
// fetch's to test.
func leaveDownload(s *Store, n int) (LedgerEntry, Download, error) {
	name, data := tarballFile(n), tarballBytes(n)
	dir := s.SpoolDir("nightly", name)
	temp := s.SpoolDir("nightly", "temp-"+random())
	pin := LedgerEntry{Name: name, Channel: "nightly", Digest: digest.FromBytes(data), Size: int64(len(data))}
	err := errors.Join(os.RemoveAll(dir), os.MkdirAll(temp, 0o755))
	for i := 0; i*testPart < len(data) && err == nil; i++ {
		err = os.WriteFile(filepath.Join(temp, partName(i)), data[i*testPart:min(len(data), (i+1)*testPart)], 0o644)
	}
	if err == nil {
		err = os.Rename(temp, dir)
	}
	return pin, Download{Dir: dir, PartSize: testPart}, err
}

// Killed at any instant, it leaves tarballs that are whole, downloads that are
// whole, and nothing that the next prune does not remove. STORE_TEST_SEED repeats
// a run, STORE_TEST_KILLS makes it longer.
func TestAKilledKeepLeavesWholeTarballs(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if v, err := strconv.ParseUint(os.Getenv("STORE_TEST_SEED"), 10, 64); err == nil {
		seed = v
	}
	t.Logf("STORE_TEST_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	s := open(t)
	most := 0
	for range kills(25) {
		ctx, cancel := context.WithCancel(t.Context())
		cmd, _ := other(t, ctx, "tarballs", s.Root())
		timer := time.AfterFunc(time.Duration(rng.Int64N(int64(50*time.Millisecond))), cancel)
		err := cmd.Wait()
		timer.Stop()
		cancel()
		if cmd.ProcessState.Exited() {
			t.Fatalf("it ended by itself: %v", err)
		}
		all, err := s.Tarballs()
		bad, berr := s.DamagedTarballs()
		if err != nil || berr != nil || len(bad) > 0 {
			t.Fatalf("%v, %v, %v", bad, err, berr)
		}
		most = max(most, len(all))
		for i := range all {
			n, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSuffix(strings.SplitAfter(all[i].Name, "gfx1151-")[1], ".tar.gz"), "10.2.0a"))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := readTarballBytes(&all[i]); err != nil || !bytes.Equal(got, tarballBytes(n-20260100)) {
				t.Fatalf("%s: %v", all[i].Name, err)
			}
		}
		if _, err := s.PruneTarballs(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(s.TarballsDir(), "nightly")
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			continue // it was killed before it had made that
		}
		for _, e := range entries(t, dir) {
			if strings.HasPrefix(e, ".") {
				t.Errorf("left: %s", e)
			}
		}
	}
	if most < 3 {
		t.Errorf("only %d were kept at most: nothing was tested", most)
	}
}
