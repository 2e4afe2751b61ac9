package directio_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/directio"
)

// What is written past the cache is what is read through it, and past it.
func TestWhereItIsKnown(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd := int(f.Fd())
	if !directio.Known(fd) || !directio.Start(fd) {
		t.Log("not here: the file system is another one")
		return
	}
	want := bytes.Repeat([]byte("0123456789abcdef"), directio.Least/16) // of a page of its own
	if _, err := f.WriteAt(want, 0); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, directio.Least)
	for range 2 {
		if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("it reads otherwise, %v", err)
		}
		clear(got)
		if err := directio.Stop(fd); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.WriteAt([]byte("x"), 1); err != nil {
		t.Errorf("one byte cannot be written once it is over: %v", err)
	}
}

func TestClosedFile(t *testing.T) {
	if directio.Known(-1) || directio.Start(-1) {
		t.Error("a file that is not open can do it")
	}
	if directio.Stop(-1) == nil {
		t.Error("no error about a file that is not open")
	}
}
