package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestKpackWritesAnArchive(t *testing.T) {
	code := filepath.Join(t.TempDir(), "k.hsaco")
	if err := os.WriteFile(code, []byte("code"), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run([]string{"kpack", "--group", "rand", "--gpu", "gfx1036", "--kernel", "lib/librocrand.so.1", code}, &out); err != nil {
		t.Fatal(err)
	}
	if b := out.Bytes(); !bytes.HasPrefix(b, []byte("KPAK\x01\x00\x00\x00\x80")) || !bytes.Contains(b, []byte("lib/librocrand.so.1")) {
		t.Errorf("wrote %q", b)
	}
}

func TestLateEditsInPlace(t *testing.T) {
	from, err := exec.LookPath("ls")
	if err != nil {
		t.Skip("no ls (Debian: coreutils)")
	}
	in, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ls")
	if err := os.WriteFile(path, in, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"late", "--ref", "bin/ls", "--kpack", "../.kpack/x.kpack", path}, io.Discard); err != nil {
		t.Skipf("ls of this machine: %v", err)
	}
	if out, err := exec.CommandContext(t.Context(), path, "-d", "/").CombinedOutput(); err != nil || string(out) != "/\n" {
		t.Errorf("moved ls: %v %s", err, out)
	}
}

func TestRunRefuses(t *testing.T) {
	for _, args := range [][]string{nil, {"early"}, {"late"}, {"late", os.DevNull}, {"kpack"}} {
		if err := run(args, io.Discard); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
