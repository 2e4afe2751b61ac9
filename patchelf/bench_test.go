//go:build bench

package patchelf

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"
)

// What scripts/bench-patchelf.sh runs: this test binary, told to edit one file
// and to say how long that took.
var (
	editOnce   = flag.String("edit-once", "", "set the run path of this `file`; prints microseconds and bytes written")
	runPath    = flag.String("run-path", "", "the run path")
	makeSparse = flag.String("make-sparse", "", "make this `file` one of 5 GB, with a hole before the section headers")
)

// TestBenchChore is nothing to test: it does what the flags say.
func TestBenchChore(t *testing.T) {
	if *makeSparse != "" {
		makeBig(t, *makeSparse, 5<<30)
	}
	if *editOnce == "" {
		return
	}
	begin := time.Now()
	res, err := EditPath(*editOnce, Edit{RunPath: runPath})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(time.Since(begin).Microseconds(), res.Written)
}

// makeBig moves the section headers of the file at path to an offset far away.
func makeBig(t *testing.T, path string, at int64) {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g := parsed(t, b)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	word := make([]byte, g.word())
	g.put(word, uint64(at))
	_, errTable := f.WriteAt(b[g.shoff:g.shoff+uint64(g.shnum*g.shdrSize())], at)
	_, errWord := f.WriteAt(word, int64(24+2*g.word()))
	if err := f.Close(); err != nil || errTable != nil || errWord != nil {
		t.Fatal(err, errTable, errWord)
	}
}
