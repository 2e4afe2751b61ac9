package smoke

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/patchelf"
)

// maxProduct bounds what is read of a compiler's output, in bytes.
const maxProduct = 64 << 20

// machines are the values of EF_AMDGPU_MACH in e_flags, by target, as LLVM lists
// them (AMDGPUUsage, "AMDGPU ELF Header"). One that is missing here is known by
// the metadata of the code object alone.
var machines = map[string]byte{
	"gfx600": 0x20, "gfx601": 0x21, "gfx602": 0x3a, "gfx700": 0x22, "gfx701": 0x23, "gfx702": 0x24, "gfx703": 0x25, "gfx704": 0x26, "gfx705": 0x3b,
	"gfx801": 0x28, "gfx802": 0x29, "gfx803": 0x2a, "gfx805": 0x3c, "gfx810": 0x2b,
	"gfx900": 0x2c, "gfx902": 0x2d, "gfx904": 0x2e, "gfx906": 0x2f, "gfx908": 0x30, "gfx909": 0x31, "gfx90a": 0x3f, "gfx90c": 0x32,
	"gfx940": 0x40, "gfx941": 0x4b, "gfx942": 0x4c, "gfx950": 0x4f,
	"gfx1010": 0x33, "gfx1011": 0x34, "gfx1012": 0x35, "gfx1013": 0x42,
	"gfx1030": 0x36, "gfx1031": 0x37, "gfx1032": 0x38, "gfx1033": 0x39, "gfx1034": 0x3e, "gfx1035": 0x3d, "gfx1036": 0x45,
	"gfx1100": 0x41, "gfx1101": 0x46, "gfx1102": 0x47, "gfx1103": 0x44,
	"gfx1150": 0x43, "gfx1151": 0x4a, "gfx1152": 0x55, "gfx1153": 0x58, "gfx1200": 0x48, "gfx1201": 0x4e, "gfx1250": 0x49,
}

// machineAMDGPU is EM_AMDGPU.
const machineAMDGPU = 224

// product reads a file that a program of the tree left in its scratch
// directory: anything may be under that name by now.
func product(dir, name string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	fi, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("it wrote nothing")
	}
	if err == nil && !fi.Mode().IsRegular() {
		err = errors.New("what it wrote is no regular file")
	}
	if err != nil {
		return nil, err
	}
	f, _, err := regular(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxProduct+1))
	if err == nil && len(b) > maxProduct {
		err = fmt.Errorf("it wrote more than %d bytes", maxProduct)
	}
	return b, err
}

// put writes a file that the user of the cage can read into a scratch directory,
// whatever the umask. A program of the tree may have had that directory: a link
// under that name is removed, and not written through.
func put(dir, name string, content []byte, mode fs.FileMode) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.RemoveAll(name); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Chmod(mode), f.Close())
}

// codeObject reports what is wrong with a code object for target.
func codeObject(b []byte, target string) error {
	if len(b) < 64 || !bytes.HasPrefix(b, []byte("\x7fELF\x02\x01")) {
		return errors.New("it wrote no 64-bit ELF file")
	}
	if m := binary.LittleEndian.Uint16(b[18:]); m != machineAMDGPU {
		return fmt.Errorf("it wrote code for machine %d (%v), not for a GPU (%d)", m, elf.Machine(m), machineAMDGPU)
	}
	want, known := machines[target]
	if got := b[48]; known && got != want {
		return fmt.Errorf("it wrote code for another GPU: EF_AMDGPU_MACH is %#x, and for %s it is %#x", got, target, want)
	}
	if !namesTarget(b, target) {
		return fmt.Errorf("the metadata of what it wrote does not name %s", target)
	}
	return nil
}

// namesTarget reports whether b has the full name of a target in it, as
// metadata and bundles have: amdgcn-amd-amdhsa--gfx90a, of which gfx90 is no
// part. Features may follow.
func namesTarget(b []byte, target string) bool {
	name := []byte("amdgcn-amd-amdhsa--" + target)
	for {
		i := bytes.Index(b, name)
		if i < 0 {
			return false
		}
		b = b[i+len(name):]
		if len(b) == 0 || !strings.ContainsRune("0123456789abcdefghijklmnopqrstuvwxyz", rune(b[0])) {
			return true
		}
	}
}

// hipProgram is what is known of a program that was built for HIP.
type hipProgram struct {
	runtime string // its HIP runtime's name, libamdhip64.so.7
	path    string // its run path; "" for none
	leads   bool   // the run path leads to the runtime of this tree
}

// hipProgram looks at a program that the tree's compiler made.
func (r *run) hipProgram(b []byte) (*hipProgram, error) {
	f, err := patchelf.Parse(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, fmt.Errorf("it wrote no valid ELF file: %w", err)
	}
	if f.Machine != elf.EM_X86_64 || f.Interp == "" {
		return nil, errors.New("it wrote no program for this machine")
	}
	code, err := f.Section(".hip_fatbin")
	if err != nil {
		return nil, errors.New("the program has no device code: no section .hip_fatbin")
	}
	if compressed := bytes.Contains(code[:min(len(code), 4<<10)], []byte("CCOB")); !compressed {
		for _, t := range r.targets {
			if !namesTarget(code, t) {
				return nil, fmt.Errorf("the program has no device code for %s", t)
			}
		}
	}
	p := &hipProgram{}
	for _, n := range f.Needed {
		if strings.HasPrefix(n, hipRuntime+".so") {
			p.runtime = n
		}
	}
	if p.runtime == "" {
		return nil, errors.New("the program does not need libamdhip64: it would run without HIP")
	}
	if !r.tree.has("lib/" + filepath.Base(p.runtime)) {
		return nil, fmt.Errorf("the program needs %s, which is not in lib", p.runtime)
	}
	p.path, _ = f.Path()
	return p, r.runPath(p)
}

// names reports whether the run path of p has one of these directories.
func (p *hipProgram) names(dirs []string) bool {
	return slices.ContainsFunc(strings.Split(p.path, ":"), func(dir string) bool { return slices.Contains(dirs, filepath.Clean(dir)) })
}

// runPath looks where the run path of p leads. One that leads to the HIP runtime
// of something else is an error.
func (r *run) runPath(p *hipProgram) error {
	own, err := filepath.EvalSymlinks(filepath.Join(r.tree.rocm, "lib"))
	if err != nil {
		return err
	}
	final := r.tree.finals()
	if r.o.FinalPrefix != "" {
		final = append(final, filepath.Join(r.o.FinalPrefix, "lib"), filepath.Join(r.o.FinalPrefix, "opt/rocm/lib"))
	}
	for _, dir := range strings.Split(p.path, ":") {
		if !filepath.IsAbs(dir) {
			continue
		}
		clean := filepath.Clean(dir)
		if strings.HasPrefix(clean, r.tree.dir+"/") && r.tree.has(strings.TrimPrefix(clean, r.tree.rocm+"/")+"/"+p.runtime) {
			if len(final) > 0 && !p.names(final) {
				return fmt.Errorf("the program's run path has %s, and not %s, where the tree is used: the program dies with this directory", dir, final[0])
			}
			p.leads = true
			return nil
		}
		if slices.Contains(final, clean) {
			return nil // it will be there
		}
		if real, err := filepath.EvalSymlinks(dir); err == nil && real == own {
			return nil // it is there, under a name that a cage does not show
		}
		if _, err := os.Stat(filepath.Join(dir, p.runtime)); err == nil {
			return fmt.Errorf("the program's run path leads to the %s of another ROCm: %s", p.runtime, dir)
		}
	}
	return nil
}
