package store

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// reflinkDisk mounts a new file system that has reflinks.
func reflinkDisk(t *testing.T, kind, debian string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can mount a file system")
	}
	if _, err := exec.LookPath("mkfs." + kind); err != nil {
		t.Skipf("mkfs.%s is missing: apt-get install %s", kind, debian)
	}
	base := t.TempDir()
	image, dir := filepath.Join(base, "image"), filepath.Join(base, "disk")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 320<<20); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs."+kind, "-q", image).CombinedOutput(); err != nil {
		t.Fatalf("mkfs.%s: %v: %s", kind, err, out)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", kind, "-o", "loop", image, dir).CombinedOutput(); err != nil {
		t.Skipf("%s cannot be mounted here: %v: %s", kind, err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	return dir
}

// With reflinks the second night costs its changed bytes too, and keeps its
// own inodes, modes and times: files.jsonl does not change.
func TestReuseReflinks(t *testing.T) {
	for kind, debian := range map[string]string{"xfs": "xfsprogs", "btrfs": "btrfs-progs"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s, err := Open(filepath.Join(reflinkDisk(t, kind, debian), "root"))
			if err != nil {
				t.Fatal(err)
			}
			// Longer than one call takes, and not a multiple of a block.
			big := entry{text: strings.Repeat("0123456789abcde\n", (dedupeStep+70000)/16) + "tail"}
			older := with(treeOf("a", "b", "c"), map[string]entry{"opt/rocm/big": big, "opt/rocm/big2": {same: "opt/rocm/big"}, "opt/rocm/large": {text: strings.Repeat("large", 1<<19)}, "opt/rocm/small": {text: "small"}, "opt/rocm/copy": {text: strings.Repeat("0", 8192)}})
			newer := with(older, map[string]entry{"opt/rocm/a": {text: strings.Repeat("n", 100<<10)}, "opt/rocm/more": older["opt/rocm/copy"]})
			n := newNights(t, s, older, newer)
			damaged := filepath.Join(n.first.Dir, "opt/rocm/b")
			data, err := os.ReadFile(damaged)
			if err != nil {
				t.Fatal(err)
			}
			data[len(data)-1] ^= 1
			write(t, damaged, string(data))
			list, err := os.ReadFile(filepath.Join(n.st.Dir(), manifest.FilesName))
			if err != nil {
				t.Fatal(err)
			}
			before := snapshot(t, n.first.Dir)
			res := n.reuse("")
			second := n.commit(2)
			now, err := os.ReadFile(filepath.Join(second.Dir, manifest.FilesName))
			if err != nil || !bytes.Equal(list, now) || snapshot(t, n.first.Dir) != before {
				t.Errorf("what is on record was changed, or the donor: %v", err)
			}
			if res.Files != 5 || res.Reflinked != 5 || res.Left[whySmall] != 1 || len(res.Damaged) != 1 || res.Left[whyDamaged] != 1 {
				t.Errorf("%+v", res)
			}
			// The kernel reads both sides.
			if res.Read < int64(len(big.text)) {
				t.Errorf("%d bytes were compared", res.Read)
			}
			c, err := Compare(t.Context(), n.first.Dir, second.Dir)
			if err != nil || c.HardLinked.Files != 0 || c.Reflinked.Files != 5 || c.Reflinked.Bytes < int64(len(big.text)) || c.ReflinksUnknown {
				t.Errorf("%+v, %v", c, err)
			}
			u, err := s.Usage(t.Context())
			if err != nil || u.AtMost {
				t.Fatalf("%+v, %v", u, err)
			}
			if own := u.Generations[second.Dir].Own; own < 100<<10 || own > 300<<10 || u.Total < int64(len(big.text)) || u.Total > int64(len(big.text))+(3<<20+700<<10) {
				t.Errorf("the second night costs %d bytes: %+v", own, u)
			}
		})
	}
}

// On a file system with reflinks hard links are made when they are asked for.
func TestReuseHardLinksWhereAsked(t *testing.T) {
	s, err := Open(filepath.Join(reflinkDisk(t, "xfs", "xfsprogs"), "root"))
	if err != nil {
		t.Fatal(err)
	}
	n := newNights(t, s, treeOf("a", "b"), treeOf("a", "b"))
	if res := n.reuse(DedupHardLink); res.HardLinked != 2 || res.Reflinked != 0 {
		t.Errorf("%+v", res)
	}
}

// dedupe(2) on real file systems in all orders of length and offset: what is
// shared lies in the same place, and what differs is told.
func TestDedupeRange(t *testing.T) {
	dir := reflinkDisk(t, "btrfs", "btrfs-progs")
	holes, err := os.Create(filepath.Join(dir, "holes"))
	if err != nil {
		t.Fatal(err)
	}
	defer holes.Close()
	const pieces = 200 // more than one call returns
	for i := range int64(pieces) {
		if _, err := holes.WriteAt(make([]byte, 64<<10), i*128<<10); err != nil {
			t.Fatal(err)
		}
	}
	if err := holes.Sync(); err != nil {
		t.Fatal(err)
	}
	list, err := extentsOf(holes, false)
	if n := overlap(list, slices.Clone(list)); err != nil || n != pieces*64<<10 || len(list) < pieces/2 {
		t.Errorf("%d extents of %d bytes, %v", len(list), n, err)
	}
	if list, err = extentsOf(holes, true); err != nil || len(list) != 0 {
		t.Errorf("%d are shared, %v", len(list), err)
	}
	for i, size := range []int{4096, 4097, 100000, 1 << 20, dedupeStep + 1} {
		text := bytes.Repeat([]byte("x"), size)
		open := func(name string) *os.File {
			path := filepath.Join(dir, fmt.Sprint(name, i))
			if err := os.WriteFile(path, text, 0o444); err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { f.Close() })
			return f
		}
		a, b := open("a"), open("b")
		n, same, err := dedupeRange(b, a, 0, int64(min(size, dedupeStep)))
		if err != nil || !same || n == 0 {
			t.Errorf("%d bytes: %d, %v, %v", size, n, same, err)
		}
		text[size-1] = 'y'
		c := open("c")
		off := int64(size-1) / dedupeStep * dedupeStep
		if _, same, err := dedupeRange(c, a, off, int64(size)-off); err != nil || same {
			t.Errorf("%d bytes that differ: %v, %v", size, same, err)
		}
		one, err := extentsOf(a, false)
		two, terr := extentsOf(b, false)
		if err != nil || terr != nil || overlap(one, two) == 0 {
			t.Errorf("%d bytes: %v and %v, %v, %v", size, one, two, err, terr)
		}
	}
}
