package repack

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/unpack"
)

// TestManifestIsAPureFunction: neither the place, nor the number of processors, the
// decompressor or the time zone is in manifest.json and files.jsonl, and the result
// names the digests that the files have.
func TestManifestIsAPureFunction(t *testing.T) {
	tarball := nightly(t)
	base := t.TempDir()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	type files struct{ manifest, listing string }
	var want files
	for i, c := range []struct {
		procs             int
		decompressor, dir string
		layout            string
	}{{1, unpack.DecompressorAuto, "one", LayoutRoot}, {4, unpack.DecompressorAuto, "a/b/two", LayoutRoot}, {2, unpack.DecompressorKlauspost, "three", LayoutRoot}} {
		runtime.GOMAXPROCS(c.procs)
		dir := filepath.Join(base, c.dir)
		t.Setenv("TZ", []string{"UTC", "Asia/Tokyo", "America/Lima"}[i])
		res, err := repackFile(t, tarball, dir, Options{FinalPrefix: "/opt/here", Target: "gfx1151", Decompressor: c.decompressor})
		if err != nil {
			t.Fatal(err)
		}
		got := files{digest(t, filepath.Join(dir, manifest.Name)), digest(t, filepath.Join(dir, manifest.FilesName))}
		if i == 0 {
			want = got
		}
		if got != want {
			t.Errorf("%+v: another manifest", c)
		}
		if res.Described.Encoded() != got.manifest || res.Listing.Encoded() != got.listing {
			t.Errorf("the result says %s and %s, there is %+v", res.Described, res.Listing, got)
		}
	}
}

// A tree on its own has neither file; the result says what they would be, the same
// each time.
func TestATreesListingIsNamed(t *testing.T) {
	tarball := nightly(t)
	base := t.TempDir()
	one, err1 := repackFile(t, tarball, filepath.Join(base, "one"), Options{Layout: LayoutTree})
	two, err2 := repackFile(t, tarball, filepath.Join(base, "two"), Options{Layout: LayoutTree})
	if err1 != nil || err2 != nil || one.Listing == "" || one.Listing != two.Listing || one.Described != two.Described {
		t.Fatalf("%v, %v", err1, err2)
	}
	if _, err := os.Stat(filepath.Join(base, "one", manifest.FilesName)); err == nil {
		t.Error("it has a listing")
	}
	three, err := repackFile(t, tarball, filepath.Join(base, "three"), Options{Layout: LayoutTree, RunPath: "runpath"})
	if err != nil || three.Listing == one.Listing {
		t.Errorf("another tree has the same listing, %v", err)
	}
}

func digest(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
