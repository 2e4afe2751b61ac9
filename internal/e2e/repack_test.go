package e2e

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

const kernel = `
__kernel void scale(__global float *a, float f) {
  size_t i = get_global_id(0);
  a[i] = sin(a[i]) * f;
}
`

// The real corpus becomes a prefix in which real programs work, with an empty
// environment, and nothing of the tarball is lost.
func TestCorpusBecomesAWorkingPrefix(t *testing.T) {
	tarball, _ := corpus(t)
	prefix := filepath.Join(t.TempDir(), "prefix")
	var res struct {
		Schema int
		Digest string
		Files  int
		ELF    struct{ Seen, Patched, Skipped int }
		Audit  struct{ Refused bool }
	}
	run(t, nil, "repack", tarball, "--prefix", prefix, "--arch", "gfx1036", "--json").want(t, 0, "{", "").decode(t, &res)
	if res.Schema != 1 || res.Files < 4000 || res.ELF.Patched < 100 || res.ELF.Skipped != 0 || res.Audit.Refused {
		t.Errorf("%+v", res)
	}

	t.Run("rocminfo starts", func(t *testing.T) {
		r := runCommand(t, nil, filepath.Join(prefix, "bin/rocminfo"))
		if !strings.Contains(r.stdout+r.stderr, "ROCk module is NOT loaded") {
			t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
		}
		direct := runCommand(t, nil, filepath.Join(prefix, "opt/rocm/bin/rocminfo"))
		if direct.code != r.code {
			t.Errorf("the wrapper exits %d, the program %d", r.code, direct.code)
		}
	})
	t.Run("clang finds the device libraries", func(t *testing.T) {
		src := filepath.Join(t.TempDir(), "kernel.cl")
		if err := os.WriteFile(src, []byte(kernel), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, root := range []string{prefix, filepath.Join(prefix, "opt/rocm")} {
			out := filepath.Join(t.TempDir(), "kernel.o")
			runCommand(t, nil, filepath.Join(prefix, "opt/rocm/lib/llvm/bin/clang"), "-x", "cl", "-Xclang", "-finclude-default-header",
				"-target", "amdgcn-amd-amdhsa", "-mcpu=gfx1036", "--rocm-path="+root, "-c", src, "-o", out).want(t, 0, "", "")
			if fi, err := os.Stat(out); err != nil || fi.Size() == 0 {
				t.Errorf("%v", err)
			}
		}
	})
	t.Run("nothing is lost", func(t *testing.T) { everyFileIsThere(t, tarball, prefix) })
	t.Run("the audit agrees", func(t *testing.T) { run(t, nil, "audit", prefix).want(t, 0, "0 fatal, 0 required", "") })
	t.Run("ld.so agrees with the audit", func(t *testing.T) { theLoaderAgrees(t, prefix, sampleOfLdSo) })
	t.Run("each break is found", func(t *testing.T) { eachBreakIsFound(t, prefix) })
}

// everyFileIsThere reads the tarball with the standard library and compares
// each file with the prefix: unchanged, or changed as files.jsonl says.
func everyFileIsThere(t *testing.T, tarball, prefix string) {
	t.Helper()
	listed := readManifest(t, prefix)
	f, err := os.Open(tarball)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	gz, err := gzip.NewReader(bufio.NewReaderSize(f, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	tr, seen, kpacks := tar.NewReader(gz), 0, 0
	for {
		hdr, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		name := path.Join("opt/rocm", hdr.Name)
		if strings.HasSuffix(name, ".kpack") {
			kpacks++
		}
		seen++
		checkEntry(t, tr, hdr, filepath.Join(prefix, name), listed[name])
	}
	if seen < 4000 || kpacks == 0 {
		t.Errorf("only %d entries and %d kernel archives in the tarball", seen, kpacks)
	}
}

func checkEntry(t *testing.T, content io.Reader, hdr *tar.Header, file string, want manifest.File) {
	t.Helper()
	fi, err := os.Lstat(file)
	if hdr.Typeflag == tar.TypeSymlink {
		if errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(hdr.Linkname, "/") {
			return // an absolute link to nothing: dropped and reported
		}
		if err != nil {
			t.Errorf("link lost: %v", err)
		}
		return
	}
	if err != nil {
		t.Errorf("lost: %v", err)
		return
	}
	if fi.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0 || fi.Mode().Perm()&0o022 != 0 {
		t.Errorf("%s has mode %v", file, fi.Mode())
	}
	if hdr.Typeflag != tar.TypeReg {
		return
	}
	if (hdr.Mode&0o111 != 0) != (fi.Mode()&0o111 != 0) {
		t.Errorf("%s was %o and has mode %v", file, hdr.Mode, fi.Mode())
	}
	if !fi.ModTime().Equal(hdr.ModTime) {
		t.Errorf("%s has time %v, want %v", file, fi.ModTime(), hdr.ModTime)
	}
	h := sha256.New()
	if _, err := io.Copy(h, content); err != nil {
		t.Fatal(err)
	}
	before := want.SHA256
	if want.Before != "" {
		before = want.Before
		if len(want.Edits) == 0 {
			t.Errorf("%s was changed by no rule", file)
		}
	}
	if sum := hex.EncodeToString(h.Sum(nil)); sum != before {
		t.Errorf("%s is listed as %s, the tarball has %s", file, before, sum)
	}
	if got := hashFile(t, file); got != want.SHA256 {
		t.Errorf("%s is %s on disk, listed as %s", file, got, want.SHA256)
	}
}

func hashFile(t *testing.T, file string) string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func readManifest(t *testing.T, prefix string) map[string]manifest.File {
	t.Helper()
	f, err := os.Open(filepath.Join(prefix, manifest.FilesName))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	files, err := manifest.ReadFiles(f)
	if err != nil {
		t.Fatal(err)
	}
	byPath := make(map[string]manifest.File, len(files))
	for _, f := range files {
		byPath[f.Path] = f
	}
	return byPath
}
