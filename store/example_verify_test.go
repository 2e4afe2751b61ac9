package store_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/rocm-nightly/rocm-nightly/store"
)

// A file of an installed generation is damaged: it is named.
func ExampleStore_Verify() {
	root, err := os.MkdirTemp("", "rocm-nightly-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	if err := damaged(context.Background(), root); err != nil {
		log.Fatal(err)
	}
	// Output:
	// full, 1 files, right: true
	// hello size: it has 4 bytes, not 5
}

func damaged(ctx context.Context, root string) error {
	s, err := store.Open(root)
	if err != nil {
		return err
	}
	staging, err := s.Slot("nightly", "gfx1151").Stage(ctx)
	if err != nil {
		return err
	}
	defer staging.Abort()
	for name, text := range map[string]string{ // what repack writes
		"hello":         "hello",
		"manifest.json": `{"schema":1,"version":"10.2.0a20260930","options":{}}`,
		"files.jsonl":   `{"path":"hello","kind":"file","mode":"0444","size":5,"mtime":1790000000,"sha256":"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}`,
	} {
		path := filepath.Join(staging.Dir(), name)
		at := time.Unix(1790000000, 0)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o444), os.Chtimes(path, at, at)); err != nil {
			return err
		}
	}
	generation, err := staging.Commit("10.2.0a20260930")
	if err != nil {
		return err
	}
	gens := []store.Generation{*generation}
	all, err := s.Verify(ctx, gens, store.VerifyOptions{})
	if err != nil {
		return err
	}
	fmt.Printf("%s, %d files, right: %v\n", all[0].Method, all[0].Files, all[0].OK())
	hello := filepath.Join(generation.Dir, "hello")
	at := time.Unix(1790000000, 0)
	if err := errors.Join(os.Remove(hello), os.WriteFile(hello, []byte("help"), 0o444), os.Chtimes(hello, at, at)); err != nil {
		return err
	}
	all, err = s.Verify(ctx, gens, store.VerifyOptions{Fast: true})
	if err != nil {
		return err
	}
	for _, d := range all[0].Damage {
		fmt.Printf("%s %s: %s\n", d.Path, d.What[0], d.Detail)
	}
	return nil
}
