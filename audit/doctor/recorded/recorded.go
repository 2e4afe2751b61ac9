package recorded

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/rocm-nightly/rocm-nightly/audit/doctor"
	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
	"github.com/rocm-nightly/rocm-nightly/internal/ldcache"
)

// Machine is machine.json.
type Machine struct {
	UID, GID int
	Groups   []int
	Environ  []string
	Kernel   string // uname -r
	Memlock  int64
	KFD      string            // a directory of internal/gfx/testdata/kfd, laid over /sys
	Without  []string          // files and directories of that which are not there
	Cards    []Card            // on PCI
	Devices  map[string]Device // by name
	Links    map[string]string // symbolic links
	Dirs     []string          // empty directories
	Bytes    map[string][]byte // files that are not text, in base64
	Cache    [][2]string       // ld.so.cache: names and paths of libraries
	Labels   map[string]string // SELinux labels by path; * at the end stands for the rest
	Refuse   map[string]string // devices that cannot be opened, and why: EPERM, EACCES, EIO
	Missing  []doctor.Missing  // what installs lack of the host
	Free     int64             // bytes on every file system; 0: enough

	// Options of the doctor.
	Root string
	Dir  string
	User string
	Want []doctor.Link // links of the config
}

// Card is a GPU on the PCI bus.
type Card struct {
	PCI, Device, Driver, Render string
	VRAM, Visible, GTT          int64
}

// Device is a character device.
type Device struct {
	Mode     string // octal permissions
	UID, GID int
	ACL      []byte // system.posix_acl_access
}

// Load reads an archive. kfd is the directory of KFD topologies.
func Load(archive *txtar.Archive, kfd string) (*doctor.System, *Machine, error) {
	var m Machine
	files := fstest.MapFS{}
	for _, f := range archive.Files {
		if f.Name == "machine.json" {
			if err := json.Unmarshal(f.Data, &m); err != nil {
				return nil, nil, fmt.Errorf("read machine.json: %w", err)
			}
		} else if name, ok := strings.CutPrefix(f.Name, "/"); ok {
			files[name] = &fstest.MapFile{Data: f.Data, Mode: 0o755}
		}
	}
	if err := m.fill(files, kfd); err != nil {
		return nil, nil, err
	}
	s := &doctor.System{FS: files, UID: m.UID, GID: m.GID, Groups: m.Groups, Environ: m.Environ, Kernel: m.Kernel, Memlock: m.Memlock,
		Xattr: m.xattr, Try: m.try, Space: m.space, Missing: m.missing}
	return s, &m, nil
}

// fill adds what machine.json describes.
func (m *Machine) fill(files fstest.MapFS, kfd string) error {
	if m.KFD != "" {
		if err := m.topology(files, path.Join(kfd, m.KFD)); err != nil {
			return fmt.Errorf("read the topology: %w", err)
		}
	}
	for _, c := range m.Cards {
		c.fill(files)
	}
	for name, d := range m.Devices {
		mode, err := strconv.ParseUint(d.Mode, 8, 9)
		if err != nil {
			return fmt.Errorf("mode of %s: %w", name, err)
		}
		files[rel(name)] = &fstest.MapFile{Mode: fs.ModeDevice | fs.ModeCharDevice | fs.FileMode(mode), Sys: &syscall.Stat_t{Uid: uint32(d.UID), Gid: uint32(d.GID)}}
	}
	for name, to := range m.Links {
		files[rel(name)] = &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink | 0o777}
	}
	for name, data := range m.Bytes {
		files[rel(name)] = &fstest.MapFile{Data: data, Mode: 0o644}
	}
	if m.Cache != nil {
		files[rel(ldcache.Path)] = &fstest.MapFile{Data: cache(m.Cache), Mode: 0o644}
	}
	for _, name := range m.Dirs {
		files[rel(name)] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
	}
	return nil
}

func rel(name string) string { return strings.TrimPrefix(name, "/") }

// topology copies a recorded /sys.
func (m *Machine) topology(files fstest.MapFS, dir string) error {
	sys := os.DirFS(dir)
	return fs.WalkDir(sys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		for _, w := range m.Without {
			if name == w || strings.HasPrefix(name, w+"/") {
				return nil
			}
		}
		data, err := fs.ReadFile(sys, name)
		files[path.Join("sys", name)] = &fstest.MapFile{Data: data, Mode: 0o444}
		return err
	})
}

// fill makes the directory of a card.
func (c Card) fill(files fstest.MapFS) {
	dir := "sys/bus/pci/devices/" + c.PCI + "/"
	put := func(name, text string) { files[dir+name] = &fstest.MapFile{Data: []byte(text + "\n"), Mode: 0o444} }
	put("vendor", "0x1002")
	put("class", "0x030000")
	put("device", c.Device)
	if c.Driver != "" {
		files[dir+"driver"] = &fstest.MapFile{Data: []byte("../../drivers/" + c.Driver), Mode: fs.ModeSymlink | 0o777}
		files["sys/bus/pci/drivers/"+c.Driver] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
	}
	if c.Render != "" {
		files[dir+"drm/"+c.Render] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
	}
	for name, n := range map[string]int64{"mem_info_vram_total": c.VRAM, "mem_info_vis_vram_total": c.Visible, "mem_info_gtt_total": c.GTT} {
		if n > 0 {
			put(name, strconv.FormatInt(n, 10))
		}
	}
}

// cache is an ld.so.cache of libraries for x86-64: a header, an entry for each, then
// the strings.
func cache(libraries [][2]string) []byte {
	const header, entry, x8664 = 48, 24, 0x0303
	b := make([]byte, header+entry*len(libraries))
	copy(b, "glibc-ld.so.cache1.1")
	binary.LittleEndian.PutUint32(b[20:], uint32(len(libraries)))
	for i, l := range libraries {
		at := header + entry*i
		binary.LittleEndian.PutUint32(b[at:], x8664)
		for j, text := range l {
			binary.LittleEndian.PutUint32(b[at+4+4*j:], uint32(len(b)))
			b = append(b, text+"\x00"...)
		}
	}
	return b
}

var errNone = errors.New("no such attribute")

func (m *Machine) xattr(name, attr string) ([]byte, error) {
	if d, ok := m.Devices[name]; ok && attr == "system.posix_acl_access" && d.ACL != nil {
		return d.ACL, nil
	}
	if attr != "security.selinux" {
		return nil, errNone
	}
	if l, ok := m.Labels[name]; ok {
		return []byte(l + "\x00"), nil
	}
	for p, l := range m.Labels {
		if dir, all := strings.CutSuffix(p, "*"); all && strings.HasPrefix(name, dir) {
			return []byte(l + "\x00"), nil
		}
	}
	return nil, errNone
}

func (m *Machine) try(name string) error {
	switch m.Refuse[name] {
	case "":
		return nil
	case "EPERM":
		return syscall.EPERM
	case "EACCES":
		return syscall.EACCES
	}
	return syscall.EIO
}

func (m *Machine) space(dir string) (diskspace.Space, error) {
	if m.Free == 0 {
		return diskspace.Space{Bytes: diskspace.Unknown, Inodes: diskspace.Unknown}, nil
	}
	return diskspace.Space{Path: dir, Mount: "/", Bytes: m.Free, Inodes: diskspace.Unknown}, nil
}

func (m *Machine) missing(context.Context, string) ([]doctor.Missing, error) { return m.Missing, nil }
