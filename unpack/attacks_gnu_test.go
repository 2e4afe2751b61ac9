package unpack

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// gnuTar is what "tar -xf" makes of an attack in an empty directory, where that
// differs from what Tree does in a way that is worth knowing, and is the same
// with each version of it.
type gnuTar struct {
	tree   string // as in attack
	status int
	root   bool // only if it is run by root
}

var gnuOutcomes = map[string]gnuTar{
	"dot dot inside":                         {status: 2},
	"name in two parts that is absolute":     {tree: "etc/; etc/victim: x"},
	"file with the name of a directory":      {tree: "a/"},
	"file twice":                             {tree: "a: y"},
	"directory, then link":                   {tree: "a -> ../beside"},
	"link, then file through it":             {tree: "a -> ../beside", status: 2},
	"link in the tree, then file through it": {tree: "a -> d; d/; d/b: x"},
	"link out":                               {tree: "a -> ../beside/victim"},
	"link out behind a loop":                 {tree: "a -> b; b -> a; c -> a/../../beside"},
	"link of the compiler's configuration":   {tree: "bin/; bin/rocm.cfg -> /etc/passwd"},
	"hard link to a link out":                {tree: "a -> ../beside/victim; b -> ../beside/victim"},
	"hard link before its target":            {tree: "b: x", status: 2},
	"FIFO":                                   {tree: "a: p---------"},
	"kind that nobody knows":                 {tree: "a: x"},
	"setuid":                                 {tree: "a* u---------: x", root: true},
	"all bits of a file":                     {tree: "a* ugt---------: x", root: true},
	"pax name and a GNU long name":           {tree: "safe: x"},
	"global header with a link target":       {tree: "a -> ../beside"},
	"global header with a size":              {tree: "a: 512 bytes"},
	"no end":                                 {tree: "a: x"},
}

// What is said of GNU tar is what it does.
func TestGNUTarOnAttacks(t *testing.T) {
	if _, err := exec.LookPath("tar"); err != nil {
		t.Skip("tar is not installed (Debian package tar)")
	}
	y := newYard(t)
	seen := 0
	for i, a := range attacks(y.beside) {
		want, ok := gnuOutcomes[a.name]
		if !ok {
			continue
		}
		if seen++; want.root && os.Geteuid() != 0 {
			continue
		}
		_, dir := y.root(t, fmt.Sprintf("root-%03d", i))
		before := y.look(t)
		cmd := exec.Command("tar", "-xf", "-", "-C", dir)
		cmd.Stdin = strings.NewReader(a.tar)
		out, err := cmd.CombinedOutput()
		if got := describe(t, dir); got != want.tree || cmd.ProcessState.ExitCode() != want.status {
			t.Errorf("%s: %q, %v: %s", a.name, got, err, out)
		}
		if after := y.look(t); after != before {
			t.Errorf("%s: outside the root there was\n%s\nand is\n%s", a.name, before, after)
		}
	}
	if seen != len(gnuOutcomes) {
		t.Errorf("%d of %d outcomes are of attacks in the table", seen, len(gnuOutcomes))
	}
}

// What GNU tar makes of honest files, holes and long names that are not ASCII
// in every format, is taken, strict as Tree is about headers.
func TestSparseFilesOfGNUTar(t *testing.T) {
	if _, err := exec.LookPath("tar"); err != nil {
		t.Skip("tar is not installed (Debian package tar)")
	}
	src := t.TempDir()
	deep := filepath.Join(src, strings.Repeat(strings.Repeat("ünï", 20)+"/", 5))
	err := os.MkdirAll(deep, 0o755)
	for _, name := range []string{"hole", strings.Repeat("h", 180)} {
		f, err2 := os.Create(filepath.Join(deep, name))
		if err = errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		_, err2 = f.WriteAt(bytes.Repeat([]byte("x"), 5000), 3<<20)
		err = errors.Join(err, err2, f.Truncate(5<<20), f.Close())
	}
	err = errors.Join(err, os.Link(filepath.Join(deep, "hole"), filepath.Join(src, "twin")), os.Symlink(strings.Repeat("y", 200)+"/ü", filepath.Join(src, "link")))
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--format=pax", "--sparse-version=0.0"}, {"--format=pax", "--sparse-version=0.1"}, {"--format=pax", "--sparse-version=1.0"}, {"--format=gnu"}, {"--format=oldgnu"}} {
		raw, err := exec.Command("tar", append(args, "-cSC", src, ".")...).Output()
		if err != nil {
			t.Fatalf("tar %v: %v", args, err)
		}
		res, dir, err := untar(t, stored(t, string(raw)), Options{})
		if err != nil {
			t.Fatalf("tar %v: %v", args, err)
		}
		checkResult(t, res, dir)
		if out, err := exec.Command("diff", "-r", "--no-dereference", src, dir).CombinedOutput(); err != nil {
			t.Errorf("tar %v: %s", args, out)
		}
	}
}
