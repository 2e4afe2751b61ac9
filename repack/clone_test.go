package repack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/audit"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// into makes a prefix from a tarball.
func into(t testing.TB, tarball string, o Options) (string, *Result) {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Open(tarball)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	res, err := Into(context.Background(), f, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return dir, res
}

// groups tells which names are one inode.
func groups(t *testing.T, dir string) string {
	t.Helper()
	first := map[uint64]string{}
	var lines []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		ino := fi.Sys().(*syscall.Stat_t).Ino
		if was, ok := first[ino]; ok {
			rel, _ := filepath.Rel(dir, p)
			lines = append(lines, rel+" = "+was)
		} else {
			first[ino], _ = filepath.Rel(dir, p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// same tests that two prefixes are the same in all that a user could notice.
func same(t *testing.T, want, got string) {
	t.Helper()
	one, two := snapshot(t, want), snapshot(t, got)
	if len(one) != len(two) {
		t.Errorf("%d and %d entries", len(one), len(two))
		return
	}
	for i := range one {
		if one[i] != two[i] {
			t.Errorf("differs:\n%.200q\n%.200q", one[i], two[i])
		}
	}
	const holes = "opt/rocm/share/holes"
	if a, err := os.Stat(filepath.Join(want, holes)); err == nil {
		b, err := os.Stat(filepath.Join(got, holes))
		if err != nil || b.Sys().(*syscall.Stat_t).Blocks > a.Sys().(*syscall.Stat_t).Blocks {
			t.Errorf("the holes are filled: %v", err)
		}
	}
	if a, b := groups(t, want), groups(t, got); a != b {
		t.Errorf("hard links:\n%s\nand\n%s", a, b)
	}
}

// plain is a result without what may differ between a clone and the tarball's.
func plain(r *Result) Result {
	p := *r
	p.Seconds, p.Bytes, p.Links, p.ClonedFrom, p.Shared, p.Decompressor = 0, 0, 0, "", nil, ""
	report := *p.Report
	report.Dir = ""
	p.Report = &report
	return p
}

// Sharing that is refused, as on another file system.
func refusing(err error) func(*means) {
	return func(k *means) {
		k.reflink = func(*os.File, *os.File) error { return err }
		k.link = func(*os.File, *os.File, string) error { return err }
	}
}

// reflinking does what FICLONE does, where there is none: holes stay.
func reflinking(by *means) {
	by.reflink = func(dst, src *os.File) error {
		body, err := io.ReadAll(src)
		for off := 0; off < len(body); off += 1 << 16 {
			part := body[off:min(off+1<<16, len(body))]
			if len(bytes.Trim(part, "\x00")) > 0 {
				err = errors.Join(err, ignore(dst.WriteAt(part, int64(off))))
			}
		}
		return errors.Join(err, dst.Truncate(int64(len(body))))
	}
}

// perPrefix is how many files of the demo's tree are of one prefix alone: the
// compiler's configuration.
const perPrefix = 2

func TestCloneIsWhatTheTarballGives(t *testing.T) {
	tarball := trapped(t)
	name, err := release.ParseName(filepath.Base(tarball))
	if err != nil {
		t.Fatal(err)
	}
	rel := release.Release{Channel: "nightly", Name: name.String(), Family: name.Family, Version: name.Version}
	audits := AuditOptions{Refuse: audit.RefuseNever}
	from, first := into(t, tarball, Options{FinalPrefix: "/opt/one", Target: "gfx1030", Release: rel, Audit: audits})
	o := Options{FinalPrefix: "/opt/two", Target: "gfx1036", Release: rel, Audit: audits, Expect: []release.Expectation{{Digest: first.Digest, Source: "here"}}}
	want, wanted := into(t, tarball, o)
	if len(wanted.Skips) < 2 || wanted.ELF.Skipped == 0 || wanted.Dropped == 0 || wanted.ELF.Patched == 0 || wanted.Scripts == 0 {
		t.Fatalf("the fixture shows too little: %+v", wanted)
	}
	for what, c := range map[string]struct {
		change func(*means)
		dedup  string
		verify bool
		ok     func(s *Sharing) bool
	}{
		"as it comes": {dedup: DedupAuto, ok: func(s *Sharing) bool { return s.Copied == perPrefix && s.HashedBytes > 0 }},
		"reflinks":    {change: reflinking, dedup: DedupAuto, verify: true, ok: func(s *Sharing) bool { return s.Copied == perPrefix && s.HardLinked == 0 }},
		"hard links":  {dedup: DedupHardLink, ok: func(s *Sharing) bool { return s.Copied == perPrefix && s.Reflinked == 0 }},
		"off":         {dedup: DedupOff, ok: func(s *Sharing) bool { return s.HardLinked+s.Reflinked == 0 }},
		"another file system": {change: refusing(unix.EXDEV), dedup: DedupAuto, ok: func(s *Sharing) bool {
			return s.HardLinked+s.Reflinked == 0 && s.HashedBytes == s.CopiedBytes
		}},
		"too many links": {change: refusing(unix.EMLINK), dedup: DedupAuto, ok: func(s *Sharing) bool { return s.HardLinked == 0 }},
		"protected":      {change: refusing(unix.EPERM), dedup: DedupHardLink, ok: func(s *Sharing) bool { return s.HardLinked == 0 }},
		"no more twins": {dedup: DedupHardLink, change: func(k *means) {
			refuse := map[string]bool{}
			k.twin = func(root *os.Root, first, name string) error {
				if !refuse[first] && strings.HasSuffix(name, "twin") {
					refuse[first] = true
					return unix.EMLINK
				}
				return root.Link(first, name)
			}
		}, ok: func(s *Sharing) bool { return s.HardLinked > 0 && s.Copied > perPrefix }},
	} {
		t.Run(what, func(t *testing.T) {
			k := linux
			if c.change != nil {
				c.change(&k)
			}
			o := o
			o.Dedup, o.Verify = c.dedup, c.verify
			dir := t.TempDir()
			before := snapshot(t, from)
			res, err := clone(context.Background(), from, dir, o, k)
			if err != nil {
				t.Fatal(err)
			}
			same(t, want, dir)
			if got := plain(res); !reflect.DeepEqual(got, plain(wanted)) {
				t.Errorf("result\n%+v\nand\n%+v", got, plain(wanted))
			}
			if !c.ok(res.Shared) || res.Shared.Reflinked+res.Shared.HardLinked+res.Shared.Copied == 0 || res.ClonedFrom == "" {
				t.Errorf("%+v of %s", *res.Shared, res.ClonedFrom)
			}
			if !reflect.DeepEqual(before, snapshot(t, from)) {
				t.Error("what it was taken from has changed")
			}
		})
	}
	t.Run("the clone of a clone", func(t *testing.T) {
		one, two := t.TempDir(), t.TempDir()
		_, err := Clone(context.Background(), from, one, Options{Audit: audits})
		if err == nil {
			_, err = Clone(context.Background(), one, two, o)
		}
		if err != nil {
			t.Fatal(err)
		}
		same(t, want, two)
	})
}

// The links that the tree lacks are made again where they were made, and
// taken over where the tarball had them.
func TestCloneOfTreeThatLacksLinks(t *testing.T) {
	var buf bytes.Buffer
	gz := gzip.NewWriter(&buf)
	tw := tar.NewWriter(gz)
	for _, hdr := range []*tar.Header{
		{Name: "./lib/llvm/amdgcn/bitcode/x.bc", Typeflag: tar.TypeReg, Mode: 0o644, ModTime: long},
		{Name: "./lib/opencl", Typeflag: tar.TypeSymlink, Linkname: "../llvm/opencl", ModTime: long},
		{Name: "./lib/llvm/opencl/libamdocl64.so", Typeflag: tar.TypeReg, Mode: 0o644, ModTime: long},
		{Name: "./amdgcn", Typeflag: tar.TypeSymlink, Linkname: "lib/llvm/amdgcn", ModTime: long.AddDate(-1, 0, 0)},
	} {
		if err := tw.WriteHeader(hdr); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tw.Close(), gz.Close()); err != nil {
		t.Fatal(err)
	}
	tarball := filepath.Join(t.TempDir(), "t.tar.gz")
	if err := os.WriteFile(tarball, buf.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	o := Options{FinalPrefix: "/x", Target: "gfx1", Audit: AuditOptions{Refuse: audit.RefuseNever}}
	want, wanted := into(t, tarball, o)
	dir := t.TempDir()
	res, err := Clone(context.Background(), want, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	same(t, want, dir)
	if res.Links != wanted.Links || wanted.Links != 2 {
		t.Errorf("%d links, not %d", res.Links, wanted.Links)
	}
}

// BenchmarkClone clones a prefix of the tarball that BenchmarkRepack repacks.
func BenchmarkClone(b *testing.B) {
	tarball := os.Getenv("ROCM_NIGHTLY_CORPUS_TARBALL")
	if tarball == "" {
		tarball = nightly(b)
	}
	base := b.TempDir()
	if _, err := repackFile(b, tarball, filepath.Join(base, "from"), Options{Target: "gfx1030"}); err != nil {
		b.Fatal(err)
	}
	for _, dedup := range []string{DedupAuto, DedupOff} {
		n := 0
		b.Run(dedup, func(b *testing.B) {
			for b.Loop() {
				dir := filepath.Join(base, fmt.Sprint(dedup, n))
				n++
				if err := os.Mkdir(dir, 0o755); err != nil {
					b.Fatal(err)
				}
				res, err := Clone(context.Background(), filepath.Join(base, "from"), dir, Options{Target: "gfx1036", Dedup: dedup})
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(res.Bytes)
				if b.N == 1 || n == 1 {
					b.Logf("%+v", *res.Shared)
				}
			}
		})
	}
}
