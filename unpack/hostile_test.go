package unpack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// What cannot belong to a ROCm is refused by name, and nothing is written
// outside the tree.
func TestTreeRefusesByName(t *testing.T) {
	file := func(name string) entry { return entry{name: name, body: "x"} }
	sym := func(name, to string) entry { return entry{name: name, kind: tar.TypeSymlink, link: to} }
	hard := func(name, to string) entry { return entry{name: name, kind: tar.TypeLink, link: to} }
	for what, entries := range map[string][]entry{
		"absolute name":                    {file("/etc/victim")},
		"dot dot":                          {file("./../victim")},
		"dot dot inside":                   {file("./a/../../victim")},
		"newline":                          {file("./a\nvictim")},
		"not UTF-8":                        {file("./victim\xff")},
		"listed twice":                     {file("./victim"), file("./victim")},
		"file then directory":              {file("./victim"), {name: "./victim/", kind: tar.TypeDir}},
		"file below a file":                {file("./a"), file("./a/victim")},
		"file below a link":                {sym("./a", "/etc"), file("./a/victim")},
		"file below a link in the tree":    {{name: "./d/", kind: tar.TypeDir}, sym("./a", "d"), file("./a/victim")},
		"link over a directory":            {file("./victim/x"), sym("./victim", "y")},
		"link out":                         {sym("./victim", "../etc")},
		"link out from below":              {sym("./a/victim", "../../etc")},
		"link out through a link":          {{name: "./a/b/", kind: tar.TypeDir}, sym("./a/b/up", "../.."), sym("./victim", "a/b/up/..")},
		"link out through what is missing": {sym("./victim", "nothing/../../etc")},
		"hard link out":                    {hard("./victim", "../etc/passwd")},
		"absolute hard link":               {hard("./victim", "/etc/passwd")},
		"hard link to nothing":             {hard("./victim", "./nothing")},
		"hard link to a directory":         {{name: "./d/", kind: tar.TypeDir}, hard("./victim", "./d")},
		"hard link to itself":              {hard("./victim", "./victim")},
		"hard link to a dropped link":      {sym("./a", "/nowhere"), hard("./b", "./a"), hard("./victim", "./c")},
		"character device":                 {{name: "./victim", kind: tar.TypeChar}},
		"block device":                     {{name: "./victim", kind: tar.TypeBlock}},
		"FIFO":                             {{name: "./victim", kind: tar.TypeFifo}},
		"root that is a link":              {sym("./", "victim")},
		"link to nothing":                  {sym("./victim", "")},
	} {
		t.Run(what, func(t *testing.T) {
			_, dir, err := untar(t, archive(t, entries...), Options{})
			var ee *EntryError
			if !errors.Is(err, ErrRefused) || !errors.As(err, &ee) {
				t.Fatalf("error %v", err)
			}
			if outside, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "victim")); len(outside) > 0 {
				t.Errorf("written outside: %v", outside)
			}
		})
	}
}

// Wherever a stream is cut or a byte of it is changed, Tree says so.
func TestTreeNoticesDamage(t *testing.T) {
	whole := archive(t, entry{name: "./a", body: strings.Repeat("abc", 5000)}, entry{name: "./b", body: "b"})
	for n := range len(whole) {
		if _, _, err := untar(t, whole[:n], Options{}); err == nil {
			t.Fatalf("cut at %d of %d went unnoticed", n, len(whole))
		} else if !errors.Is(err, ErrTruncated) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
	flipped := slices.Clone(whole)
	flipped[len(flipped)-5] ^= 1 // in the gzip trailer
	if _, _, err := untar(t, flipped, Options{}); err == nil {
		t.Error("a wrong trailer went unnoticed")
	}
	var noEnd bytes.Buffer
	gz := gzip.NewWriter(&noEnd)
	raw := rawTar(t, entry{name: "./a", body: strings.Repeat("x", 512)})
	gz.Write(raw[:1024]) // header and content, no end-of-archive blocks
	gz.Close()
	if _, _, err := untar(t, noEnd.Bytes(), Options{}); !errors.Is(err, ErrTruncated) {
		t.Errorf("no end of archive: %v", err)
	}
}

func TestTreePassesOnTheSourcesError(t *testing.T) {
	whole := archive(t, amdLike()...)
	boom := errors.New("digest mismatch")
	root, _ := openRoot(t)
	_, err := Tree(context.Background(), io.MultiReader(bytes.NewReader(whole), iotest.ErrReader(boom)), root, Options{})
	if !errors.Is(err, boom) {
		t.Errorf("error in place of EOF: %v", err)
	}
	root, _ = openRoot(t)
	_, err = Tree(context.Background(), io.MultiReader(bytes.NewReader(whole[:len(whole)/2]), iotest.ErrReader(boom)), root, Options{})
	if !errors.Is(err, boom) {
		t.Errorf("error midway: %v", err)
	}
}

func TestTreeSaysWhatIsNoTarball(t *testing.T) {
	for in, want := range map[string]string{
		"":                            "empty",
		"<!DOCTYPE html><h1>403</h1>": "web page",
		"\n<html>":                    "web page",
		"PK\x03\x04rest":              "zip",
		"\x28\xb5\x2f\xfdrest":        "zstd",
		"random bytes":                "not a tarball",
	} {
		if _, _, err := untar(t, []byte(in), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestLimits(t *testing.T) {
	many := archive(t, entry{name: "./a", body: "1"}, entry{name: "./b", body: "22"}, entry{name: "./c", body: "333"})
	for what, l := range map[string]Limits{"entries": {MaxEntries: 2}, "bytes": {MaxBytes: 5}} {
		if _, _, err := untar(t, many, Options{Limits: l}); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, _, err := untar(t, many, Options{Limits: Limits{MaxEntries: 3, MaxBytes: 6}}); err != nil {
		t.Errorf("at the limit: %v", err)
	}
}

func TestBombIsRefused(t *testing.T) {
	var header, member bytes.Buffer
	gz := gzip.NewWriter(&header)
	tar.NewWriter(gz).WriteHeader(&tar.Header{Name: "./bomb", Typeflag: tar.TypeReg, Size: 1 << 32, Mode: 0o644})
	gz.Close()
	gz, _ = gzip.NewWriterLevel(&member, gzip.BestSpeed)
	gz.Write(make([]byte, 4<<20))
	gz.Close()
	bomb := append(header.Bytes(), bytes.Repeat(member.Bytes(), 64)...)
	root, _ := openRoot(t)
	_, err := Tree(context.Background(), bytes.NewReader(bomb), root, Options{Limits: Limits{ratioFrom: 8 << 20, MaxRatio: 50}})
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "bomb") {
		t.Errorf("error %v", err)
	}
}

func FuzzTree(f *testing.F) {
	f.Add(rawTar(f, amdLike()...))
	f.Add(rawTar(f, entry{name: "./a", kind: tar.TypeSymlink, link: "../../x"}, entry{name: "a/b", body: "x"}))
	f.Add(rawTar(f, entry{name: "./a", kind: tar.TypeLink, link: "b"}, entry{name: "./b", kind: tar.TypeSymlink, link: "/opt/rocm/a"}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var tarball bytes.Buffer
		gz := gzip.NewWriter(&tarball)
		gz.Write(raw)
		gz.Close()
		outer := t.TempDir()
		dir := filepath.Join(outer, "tree")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		res, err := Tree(context.Background(), &tarball, root, Options{Limits: Limits{MaxBytes: 1 << 20, MaxEntries: 100}})
		if entries, _ := os.ReadDir(outer); len(entries) != 1 {
			t.Fatalf("something was written outside: %v", entries)
		}
		if err != nil {
			return
		}
		checkModes(t, dir)
		checkResult(t, res, dir)
		for _, l := range res.Files {
			if l.Kind == manifest.Symlink {
				if end, err := filepath.EvalSymlinks(filepath.Join(dir, l.Path)); err == nil && end != dir && !strings.HasPrefix(end, dir+"/") {
					t.Fatalf("%s leads out to %s", l.Path, end)
				}
			}
		}
	})
}
