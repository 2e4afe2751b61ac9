package smoke

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// ErrNotTree is matched when a directory is neither a prefix nor a ROCm tree.
var ErrNotTree = errors.New("not a ROCm tree")

// Limits of what is read of a tree.
const (
	maxText    = 1 << 20 // bytes of a file that says what the tree is
	maxEntries = 20_000  // names of one directory
	maxServed  = 64      // targets that a tree is for
	maxTargets = 16      // that are compiled for
)

// tree is a ROCm tree, alone or in a prefix.
type tree struct {
	named   string // the absolute path of what was named
	dir     string // the real one
	rocm    string // where the tree is: dir/opt/rocm or dir
	wrapped bool   // dir is laid out like a generation
	root    *os.Root
}

// openTree finds the tree in dir.
func openTree(dir string) (*tree, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	named := abs
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return nil, err
	}
	t := &tree{named: named, dir: abs, rocm: abs}
	if t.root, err = os.OpenRoot(abs); err != nil {
		return nil, err
	}
	if fi, err := t.root.Stat("opt/rocm"); err == nil && fi.IsDir() {
		rocm, err := t.root.OpenRoot("opt/rocm")
		if err := errors.Join(err, t.root.Close()); err != nil {
			return nil, err
		}
		t.root, t.rocm, t.wrapped = rocm, filepath.Join(abs, "opt/rocm"), true
	}
	if !t.has("bin") && !t.has("lib") {
		t.root.Close()
		return nil, fmt.Errorf("%w: it has neither bin nor lib", ErrNotTree)
	}
	return t, nil
}

// has reports whether the tree has a file or directory, links followed; one that
// leads out of the tree is none of it.
func (t *tree) has(name string) bool {
	_, err := t.root.Stat(name)
	return err == nil
}

// entry reports whether the tree has the name, if only as a link to nothing.
func (t *tree) entry(name string) bool {
	_, err := t.root.Lstat(name)
	return err == nil
}

// program returns the path by which a user starts bin/NAME: that of its
// wrapper where there is one. ok is false where the tree has no such name.
func (t *tree) program(name string) (file string, ok bool) {
	if !t.entry(name) {
		return "", false
	}
	if t.wrapped && path.Dir(name) == "bin" {
		if _, err := os.Lstat(filepath.Join(t.dir, name)); err == nil {
			return filepath.Join(t.dir, name), true
		}
	}
	return filepath.Join(t.rocm, name), true
}

// names lists the names in a directory of the tree that match, in order.
func (t *tree) names(dir string, re *regexp.Regexp) []string {
	if fi, err := t.root.Stat(dir); err != nil || !fi.IsDir() {
		return nil
	}
	f, err := t.root.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, err := f.Readdirnames(maxEntries)
	if err != nil && err != io.EOF {
		return nil
	}
	var found []string
	for _, name := range entries {
		if re.MatchString(name) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// library returns the path of lib/NAME.so, or of the lowest of its versions.
func (t *tree) library(name string) (file string, ok bool) {
	if t.has("lib/" + name + ".so") {
		return filepath.Join(t.rocm, "lib", name+".so"), true
	}
	for _, versioned := range t.names("lib", regexp.MustCompile(`^`+regexp.QuoteMeta(name)+`\.so\.[0-9.]+$`)) {
		if t.has("lib/" + versioned) {
			return filepath.Join(t.rocm, "lib", versioned), true
		}
	}
	return "", false
}

// regular opens a regular file. Opening a FIFO would wait for a writer.
func regular(root *os.Root, name string) (*os.File, int64, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: errors.New("no regular file")}
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, fi.Size(), nil
}

// text reads a small regular file, of the tree or of the prefix around it.
func text(root *os.Root, name string) ([]byte, error) {
	f, _, err := regular(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxText))
}

// interpreter returns the program that a script of the tree needs and this
// machine does not have; "" where nothing is missing.
func (t *tree) interpreter(name string) string {
	f, _, err := regular(t.root, name)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReaderSize(io.LimitReader(f, 256), 256).ReadString('\n')
	rest, script := strings.CutPrefix(line, "#!")
	fields := strings.Fields(rest)
	if !script || len(fields) == 0 {
		return ""
	}
	if path.Base(fields[0]) != "env" {
		if _, err := os.Stat(fields[0]); err != nil {
			return fields[0]
		}
		return ""
	}
	for _, f := range fields[1:] {
		if strings.HasPrefix(f, "-") || strings.Contains(f, "=") {
			continue
		}
		for _, dir := range []string{"/usr/bin", "/bin"} { // the PATH of a cage
			if _, err := os.Stat(filepath.Join(dir, f)); err == nil {
				return ""
			}
		}
		return f
	}
	return ""
}

var kpackRE = regexp.MustCompile(`_(gfx[0-9a-f]+)\.kpack$`)

// targets says what the tree is for, and what told: what was asked for, the
// prefix's manifest, AMD's own list, the names of kernel archives, the GPUs of
// this machine.
func (t *tree) targets(asked []string, gpus []gfx.GPU) (names []string, from string) {
	for _, source := range []struct {
		from string
		list func() []string
	}{
		{"what was asked for", func() []string { return asked }},
		{"manifest.json", t.manifestTarget},
		{"share/therock/dist_info.json", t.distTargets},
		{"the names in .kpack", t.kpackTargets},
		{"the GPUs of this machine", func() (list []string) {
			for _, g := range gpus {
				list = append(list, g.Target)
			}
			return list
		}},
	} {
		for _, name := range source.list() {
			if gfx.IsTarget(name) && !slices.Contains(names, name) && len(names) < maxServed {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			return names, source.from
		}
	}
	return []string{}, ""
}

// around reads a small file of the prefix around the tree.
func (t *tree) around(name string) ([]byte, error) {
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return text(root, name)
}

// finals are the library directories under which programs will find the tree, by
// what is registered for the loader: that of the prefix's final place.
func (t *tree) finals() (dirs []string) {
	b, err := t.around("etc/ld.so.conf.d/rocm-nightly.conf")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		if dir := strings.TrimSpace(line); filepath.IsAbs(dir) {
			dirs = append(dirs, filepath.Clean(dir))
		}
	}
	return dirs
}

func (t *tree) manifestTarget() []string {
	b, err := t.around("manifest.json")
	if err != nil {
		return nil
	}
	m, err := manifest.Read(bytes.NewReader(b))
	if err != nil {
		return nil
	}
	var shape struct {
		Target string `json:"target"`
	}
	if json.Unmarshal(m.Options, &shape) != nil {
		return nil
	}
	return []string{shape.Target}
}

func (t *tree) distTargets() []string {
	b, err := text(t.root, "share/therock/dist_info.json")
	if err != nil {
		return nil
	}
	var info struct {
		Targets string `json:"dist_amdgpu_targets"`
	}
	if json.Unmarshal(b, &info) != nil {
		return nil
	}
	return strings.FieldsFunc(info.Targets, func(r rune) bool { return r == ';' || r == ',' || r == ' ' })
}

func (t *tree) kpackTargets() (list []string) {
	for _, name := range t.names(".kpack", kpackRE) {
		list = append(list, kpackRE.FindStringSubmatch(name)[1])
	}
	return list
}

// isa is the number by which the device libraries know a target: 10300 for
// gfx1030, 9010 for gfx90a. It is 0 where the tree has no library that says it,
// and for what is no target.
func (t *tree) isa(target string) int {
	digits, ok := strings.CutPrefix(target, "gfx")
	if !ok || !gfx.IsTarget(target) {
		return 0
	}
	b, err := text(t.root, "lib/llvm/amdgcn/bitcode/oclc_isa_version_"+digits+".bc")
	if err != nil || !bytes.Contains(b, []byte("__oclc_ISA_version")) {
		return 0
	}
	n := len(digits)
	var major, minor, stepping int
	if _, err := fmt.Sscanf(digits[:n-2]+" "+digits[n-2:n-1]+" "+digits[n-1:], "%d %x %x", &major, &minor, &stepping); err != nil {
		return 0
	}
	return major*1000 + minor*100 + stepping
}
