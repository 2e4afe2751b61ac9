package unpack

import (
	"archive/tar"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
)

// A file of holes is as much a bomb as one of repeated text.
func TestSparseBombIsRefused(t *testing.T) {
	for _, format := range []string{"gnu", "pax"} {
		raw := gnuSparse(t, format, 8<<30)
		_, _, err := untar(t, zip(t, raw), Options{Limits: Limits{ratioFrom: 8 << 20}})
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "unpack.max_ratio") {
			t.Errorf("%s: %v", format, err)
		}
	}
}

// The ratio is that of what came, not of what a header says will come.
func TestRatioIsJudgedAsContentComes(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 12<<20)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	tarball := stored(t, string(rawTar(t, entry{name: "./big", body: string(noise)}))) // it would not shrink
	if _, _, err := untar(t, tarball, Options{Limits: Limits{ratioFrom: 1 << 20, MaxRatio: 1.5}}); err != nil {
		t.Error(err)
	}
}

func TestImpliedDirectoriesAreEntries(t *testing.T) {
	tarball := archive(t, entry{name: "./a/b/c/file", body: "x"}, entry{name: "./a/b/other", body: "x"})
	if _, _, err := untar(t, tarball, Options{Limits: Limits{MaxEntries: 5}}); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	_, _, err := untar(t, tarball, Options{Limits: Limits{MaxEntries: 4}})
	var ee *EntryError
	if !errors.Is(err, ErrRefused) || !errors.As(err, &ee) || ee.Name != "./a/b/other" {
		t.Errorf("error %v", err)
	}
}

func TestDepthIsBounded(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("d/", n-1) + "f" }
	if _, _, err := untar(t, archive(t, entry{name: "./" + deep(maxDepth), body: "x"}), Options{}); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	for what, e := range map[string]entry{
		"file":      {name: deep(maxDepth + 1), body: "x"},
		"directory": {name: deep(maxDepth+1) + "/", kind: tar.TypeDir},
		"hard link": {name: "l", kind: tar.TypeLink, link: deep(maxDepth + 1)},
	} {
		_, _, err := untar(t, archive(t, e), Options{})
		var ee *EntryError
		if !errors.Is(err, ErrRefused) || !errors.As(err, &ee) || ee.Name != e.name {
			t.Errorf("%s: %v", what, err)
		}
	}
}
