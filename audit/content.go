package audit

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path"
	"regexp"
	"strings"
	"syscall"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/patchelf"
)

// Limits on what is read of one file.
const (
	maxText    = 4 << 20 // bytes of a text file that are searched for leaked paths
	headLength = 512     // bytes that show what a file is; the kernel reads 256 of a script
)

// content is what a regular file turned out to be.
type content struct {
	elf      *manifest.ELF // nil when it is not ELF
	badELF   error         // why an ELF file for this machine cannot be read
	faults   []patchelf.Fault
	vers     *symvers  // nil when it has no versions of symbols
	filters  []filter  // libraries that stand in for this one
	kpack    *kpackRef // nil when the file names no GPU code archives
	badKpack string    // why an archive of GPU code is not whole
	script   string    // first line of a script, without #!
	leaks    leaks     // paths of build machines in text
}

// hostELF tells whether ld.so and the kernel would load the file here.
func (c *content) hostELF() bool {
	return c.elf != nil && c.elf.Class == 64 && c.elf.Machine == hostMachine
}

// textNames end the names of the text files that are known to leak paths.
var textNames = []string{".pc", ".la", ".cmake", "-config", ".cfg"}

func isText(name string) bool {
	for _, s := range textNames {
		if strings.HasSuffix(name, s) {
			return true
		}
	}
	return false
}

// look opens a file and fills what it is.
func (t *tree) look(dir *os.Root, base string, e *entry, known *manifest.File) error {
	// Without a class the facts only say that the file begins as ELF does.
	if known != nil && known.ELF != nil && known.ELF.Class != 0 {
		// Nothing that is checked in a file for another machine needs its bytes.
		if e.elf = known.ELF; !e.hostELF() {
			return nil
		}
	}
	f, info, err := openRegular(dir, base)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, min(headLength, max(info.Size(), 0)))
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte("\x7fELF")):
		e.lookELF(f, info.Size())
		return nil
	case bytes.HasPrefix(head, []byte("#!")):
		line, _, _ := bytes.Cut(head[2:], []byte("\n"))
		e.script = string(line)
	case strings.HasSuffix(base, ".kpack"):
		e.badKpack = checkKpack(head, info.Size())
		return nil
	case sharedObject.MatchString(base) && lost(head):
		e.badELF = errNotELF
		return nil
	case !isText(path.Base(base)):
		return nil
	}
	e.leaks, err = findLeaks(io.LimitReader(f, maxText), t.own, t.movable(base))
	return err
}

// sharedObject matches the names of libraries alone: libfoo.so.1-gdb.py is none.
var sharedObject = regexp.MustCompile(`^lib.*\.so(\.[0-9]+)*$`)

// lost tells whether what a library begins with is that of none: a text may be
// a script for the linker, and other systems have formats of their own.
func lost(head []byte) bool {
	if len(head) > 0 && bytes.IndexByte(head, 0) < 0 {
		return false
	}
	for _, magic := range []string{
		"MZ", "\xca\xfe\xba\xbe", "\xcf\xfa\xed\xfe", "\xce\xfa\xed\xfe", "\xfe\xed\xfa", // PE, Mach-O
		"!<arch>\n", "!<thin>\n", "BC\xc0\xde", // archives, bitcode of LLVM
	} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return false
		}
	}
	return true
}

var errNotELF = errors.New("it is called a library, and is empty or something else")

var errReplaced = errors.New("it is no regular file any more: somebody changes the tree meanwhile")

// openRegular opens a file that was listed as a regular one. Whoever may write
// to the tree can have put a pipe in its place by now, which would be waited for.
func openRegular(dir *os.Root, name string) (*os.File, os.FileInfo, error) {
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errReplaced
	}
	if err != nil {
		f.Close() // opened for reading
		return nil, nil, err
	}
	return f, info, nil
}

// open opens a file of the tree.
func (t *tree) open(name string) (*os.File, error) {
	f, _, err := openRegular(t.root, name)
	return f, err
}
