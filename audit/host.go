package audit

import (
	"bufio"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/cpu"

	"github.com/rocm-nightly/rocm-nightly/internal/ldcache"
)

// host answers what this machine has. Answers are remembered.
type host struct {
	libDirs []string                   // searched last by ld.so, in order
	cache   func(name string) []string // where ld.so.cache has a library, best first; nil for no cache
	path    []string                   // where commands are found when PATH says nothing
	stat    func(string) (os.FileInfo, error)

	mu   sync.Mutex
	have map[string]bool
}

// commandPath is what a login gives: the compiled-in PATH of common shells and
// of env, and where NixOS has its commands.
var commandPath = []string{
	"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/run/current-system/sw/bin",
}

func newHost() *host {
	return &host{path: commandPath, stat: os.Stat, have: map[string]bool{}}
}

// exists tells whether an absolute path is a file of this host.
func (h *host) exists(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	have, ok := h.have[name]
	if !ok {
		info, err := h.stat(name)
		have = err == nil && !info.IsDir()
		h.have[name] = have
	}
	return have
}

// command tells whether a command is found without any PATH of the user's.
func (h *host) command(name string) bool {
	for _, dir := range h.path {
		if h.exists(path.Join(dir, name)) {
			return true
		}
	}
	return false
}

// multiarch is Debian's name for the libraries of this machine.
const multiarch = "x86_64-linux-gnu"

// builtInLibDirs are what glibc searches after ld.so.cache: Debian's order
// first; elsewhere those names do not exist.
var builtInLibDirs = []string{
	"/lib/" + multiarch, "/usr/lib/" + multiarch, "/lib64", "/usr/lib64", "/lib", "/usr/lib",
}

// libTokens are what $LIB can stand for; glibc has one of them compiled in.
func libTokens(stat func(string) (os.FileInfo, error)) []string {
	if _, err := stat("/lib/" + multiarch); err == nil {
		return []string{"lib/" + multiarch}
	}
	return []string{"lib64", "lib"}
}

// libraries finds out where ld.so looks at last. It knows ld.so.conf only by the
// cache that ldconfig made of it: a directory that was added since is not
// searched. Where there is no cache that can be read, the directories stand for it.
func (h *host) libraries(cache, conf string) {
	if h.libDirs = builtInLibDirs; h.readCache(cache) != nil {
		h.libDirs = hostLibDirs(conf)
	}
}

func (h *host) readCache(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close() // opened for reading
	data, err := io.ReadAll(io.LimitReader(f, ldcache.MaxSize+1))
	if err != nil {
		return err
	}
	c, err := ldcache.Parse(data)
	if err == nil {
		h.cache = func(name string) []string { return c.Lookup(name, HWCaps()) }
	}
	return err
}

// hostLibDirs reads ld.so.conf(5) and adds the built-in directories.
func hostLibDirs(conf string) []string {
	var dirs []string
	readLDConf(conf, 0, &dirs)
	dirs = append(dirs, builtInLibDirs...)
	seen := map[string]bool{}
	return slices.DeleteFunc(dirs, func(d string) bool {
		dup := seen[d]
		seen[d] = true
		return dup
	})
}

// Limits on ld.so.conf, which may include itself.
const (
	maxConfDepth = 8
	maxConfDirs  = 4096
)

func readLDConf(name string, depth int, dirs *[]string) {
	f, err := os.Open(name)
	if err != nil || depth > maxConfDepth {
		return
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	for sc.Scan() && len(*dirs) < maxConfDirs {
		line, _, _ := strings.Cut(sc.Text(), "#")
		fields := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r:,", r) })
		if len(fields) > 1 && fields[0] == "include" {
			includeLDConf(path.Dir(name), fields[1:], depth+1, dirs)
			continue
		}
		for _, d := range fields {
			// "hwcap N name" lines of old and "dir=type" of older configurations.
			d, _, _ = strings.Cut(d, "=")
			if path.IsAbs(d) {
				*dirs = append(*dirs, path.Clean(d))
			}
		}
	}
}

func includeLDConf(dir string, globs []string, depth int, dirs *[]string) {
	for _, g := range globs {
		if !path.IsAbs(g) {
			g = path.Join(dir, g)
		}
		names, _ := filepath.Glob(g) // sorted, as glob(3) does for ldconfig
		for _, n := range names {
			readLDConf(n, depth, dirs)
		}
	}
}

// hwcaps are the glibc-hwcaps directories that this processor may use, best
// first (x86-64 psABI micro-architecture levels).
func hwcaps() []string {
	x := cpu.X86
	if !(x.HasSSE3 && x.HasSSSE3 && x.HasSSE41 && x.HasSSE42 && x.HasPOPCNT) {
		return nil
	}
	caps := []string{"glibc-hwcaps/x86-64-v2"}
	if !(x.HasAVX && x.HasAVX2 && x.HasBMI1 && x.HasBMI2 && x.HasFMA && x.HasOSXSAVE) {
		return caps
	}
	caps = append([]string{"glibc-hwcaps/x86-64-v3"}, caps...)
	if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512CD && x.HasAVX512DQ && x.HasAVX512VL {
		caps = append([]string{"glibc-hwcaps/x86-64-v4"}, caps...)
	}
	return caps
}
