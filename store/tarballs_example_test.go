package store_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	digest "github.com/opencontainers/go-digest"

	"github.com/rocm-nightly/rocm-nightly/store"
)

// A download of two parts is kept, and read again.
func ExampleStore_KeepTarball() {
	if err := keep(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// kept: therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz for [nightly-gfx1151]
	// a tarball, in two parts
}

func keep(ctx context.Context) error {
	root, err := os.MkdirTemp("", "rocm-nightly-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	s, err := store.Open(root)
	if err != nil {
		return err
	}
	const name, text = "therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz", "a tarball, in two parts"
	dir := s.SpoolDir("nightly", name) // where fetch has left it
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for i, part := range []string{text[:12], text[12:]} {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%04d", i)), []byte(part), 0o644); err != nil {
			return err
		}
	}
	pin := store.LedgerEntry{Name: name, Channel: "nightly", Digest: digest.FromString(text), Size: int64(len(text))}
	if _, err := s.KeepTarball(ctx, pin, store.Download{Dir: dir, PartSize: 12}, "nightly-gfx1151"); err != nil {
		return err // the download is still there
	}
	t, err := s.KeptTarball("nightly", name)
	if err != nil || t == nil {
		return err
	}
	fmt.Println("kept:", t.Name, "for", t.Slots)
	r, err := t.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	b, err := io.ReadAll(r) // an error, if a byte is wrong
	fmt.Println(string(b))
	return err
}
