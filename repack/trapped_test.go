package repack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// trapped is the demo's night with what that lacks: a script that nothing can
// run, an ELF file that cannot be edited, hard links to edited files and across
// directories, a large file with holes, an empty one, an odd name.
func trapped(t testing.TB) string {
	t.Helper()
	path, err := trappedNight()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var trappedNight = sync.OnceValues(func() (path string, err error) {
	demo, err := demoNight()
	if err != nil {
		return "", err
	}
	dir, err := made()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "trapped")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	in, err := os.Open(demo)
	if err != nil {
		return "", err
	}
	defer in.Close()
	path = filepath.Join(dir, filepath.Base(demo))
	out, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	gz := gzip.NewWriter(out)
	tw := tar.NewWriter(gz)
	program, err := copyEntries(tw, in)
	if err != nil {
		return "", err
	}
	return path, errors.Join(addTraps(tw, program), tw.Close(), gz.Close())
})

// copyEntries copies a tarball's entries, and returns the content of a program.
func copyEntries(tw *tar.Writer, in io.Reader) (program []byte, err error) {
	unzip, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	for tr := tar.NewReader(unzip); ; {
		hdr, err := tr.Next()
		if err == io.EOF {
			return program, nil
		}
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(tr)
		if err := errors.Join(err, tw.WriteHeader(hdr), ignore(tw.Write(body))); err != nil {
			return nil, err
		}
		if program == nil && bytes.HasPrefix(body, []byte("\x7fELF")) && hdr.Mode&0o111 != 0 {
			program = body
		}
	}
}

func addTraps(tw *tar.Writer, program []byte) (err error) {
	if program == nil {
		return errors.New("the demo has no program")
	}
	add := func(name, body string) {
		hdr := &tar.Header{Name: "./" + name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(body)), ModTime: long}
		err = errors.Join(err, tw.WriteHeader(hdr), ignore(io.WriteString(tw, body)))
	}
	link := func(name, to string) {
		err = errors.Join(err, tw.WriteHeader(&tar.Header{Name: "./" + name, Typeflag: tar.TypeLink, Linkname: "./" + to, ModTime: long}))
	}
	add("bin/template", "#!@PYTHON@\nprint()\n")
	add("libexec/builder", "#!/__w/x/bin/python3.11 -s\nprint()\n")
	link("a/first-by-name", "libexec/builder")
	link("a/elf", "zz/elf")
	add("zz/elf", string(program))
	link("zz/twin", "zz/elf")
	add("lib/truncated.so", string(program[:len(program)-300]))
	add("share/holes", strings.Repeat("\x00", 3<<20)+strings.Repeat("x", 64<<10)+strings.Repeat("\x00", 512<<10)+"x")
	add("share/empty", "")
	add("share/odd & <name>", "x")
	return err
}

// long is the time of what the tests add to a tarball.
var long = time.Unix(1_700_000_000, 0)

func ignore[N int | int64](_ N, err error) error { return err }
