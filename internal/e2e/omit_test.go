package e2e

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/omit"
)

// Without all that can be left out the real corpus is a fraction of its size,
// and works: the compiler compiles, HIP finds its libraries, and each entry of
// the tarball is there or is listed as left out.
func TestCorpusWithoutItsParts(t *testing.T) {
	tarball, _ := corpus(t)
	prefix := filepath.Join(t.TempDir(), "prefix")
	args := []string{"repack", tarball, "--prefix", prefix, "--arch", "gfx1036", "--json"}
	for _, name := range omit.Names() {
		args = append(args, "--omit", name)
	}
	var res struct {
		Bytes   int64
		Omitted map[string]manifest.Tally
		Kept    []manifest.Omission
		Audit   struct{ Fatal, Required int }
	}
	run(t, nil, args...).want(t, 0, "{", "").decode(t, &res)
	var out int64
	for _, tally := range res.Omitted {
		out += tally.Bytes
	}
	if res.Audit.Fatal+res.Audit.Required > 0 || len(res.Kept) < 3 || out < 900<<20 || out+res.Bytes < 1_600_000_000 {
		t.Errorf("%d bytes are left out, %d are left: %+v", out, res.Bytes, res)
	}

	t.Run("clang compiles", func(t *testing.T) {
		src := filepath.Join(t.TempDir(), "kernel.cl")
		if err := os.WriteFile(src, []byte(kernel), 0o644); err != nil {
			t.Fatal(err)
		}
		runCommand(t, nil, filepath.Join(prefix, "opt/rocm/lib/llvm/bin/clang"), "-x", "cl", "-Xclang", "-finclude-default-header",
			"-target", "amdgcn-amd-amdhsa", "-mcpu=gfx90a", "--rocm-path="+prefix, "-c", src, "-o", filepath.Join(t.TempDir(), "k.o")).want(t, 0, "", "")
	})
	t.Run("HIP finds its libraries", func(t *testing.T) {
		for _, lib := range []string{"lib/libamdhip64.so.5", "lib/libamd_comgr.so.2", "lib/librocrand.so.1", "lib/llvm/bin/flang-new", "lib/llvm/bin/lld"} {
			r := runCommand(t, nil, "/lib64/ld-linux-x86-64.so.2", "--list", filepath.Join(prefix, "opt/rocm", lib)).want(t, 0, "libc.so.6", "")
			if strings.Contains(r.stdout, "not found") {
				t.Errorf("%s: %s", lib, r.stdout)
			}
		}
	})
	t.Run("each entry is accounted for", func(t *testing.T) { everyEntryIsAccountedFor(t, tarball, prefix) })
	t.Run("the audit agrees", func(t *testing.T) { run(t, nil, "audit", prefix).want(t, 0, "0 fatal, 0 required", "") })
}

func everyEntryIsAccountedFor(t *testing.T, tarball, prefix string) {
	t.Helper()
	listed := readManifest(t, prefix)
	f, err := os.Open(filepath.Join(prefix, manifest.OmittedName))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, err := manifest.ReadOmitted(f, 1e6)
	if err != nil {
		t.Fatal(err)
	}
	omitted := map[string]manifest.Omission{}
	for _, o := range list {
		if o.Needs == "" {
			omitted[o.Path] = o
		}
	}
	in, err := os.Open(tarball)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	gz, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	for tr := tar.NewReader(gz); ; {
		hdr, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		p := path.Join("opt/rocm", hdr.Name)
		_, there := listed[p]
		o, gone := omitted[p]
		if there == gone && !strings.HasPrefix(hdr.Linkname, "/") {
			t.Errorf("%s: listed %v, left out %v", p, there, gone)
		}
		if gone && hdr.Typeflag == tar.TypeReg && o.Size != hdr.Size {
			t.Errorf("%s: %d bytes are left out, the tarball has %d", p, o.Size, hdr.Size)
		}
	}
}
