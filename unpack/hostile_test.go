package unpack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

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
