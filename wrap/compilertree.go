package wrap

import (
	"bytes"
	"errors"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// What the rule writes is between these lines, comments to clang. The first
// keeps the line that stood there, so that the file as it came can be had again.
const (
	blockBegin = "# rocm-nightly, "
	blockEnd   = "# rocm-nightly: end"
)

// configBlock is lines of ours. what says how they relate to old, a whole line
// or "".
func configBlock(what, old string, options []string) string {
	body := strings.TrimRight(old, "\r\n")
	end := old[len(body):]
	if old == "" {
		end = "\n"
	}
	begin := blockBegin + what + ":"
	if old != "" {
		begin += " " + body
	}
	return strings.Join(append(append([]string{begin}, options...), blockEnd), "\n") + end
}

// configBegin is the first line of a block. Group 1 is the line that it stands
// for; that of an added one is empty.
var configBegin = regexp.MustCompile(`^` + blockBegin + `(?:added:|instead of: (.*))\n?$`)

// plainConfig takes out what configBlock wrote.
func plainConfig(text string) string {
	lines := strings.SplitAfter(text, "\n")
	var out []string
	for i := 0; i < len(lines); i++ {
		n := blockLength(lines[i:])
		if n == 0 {
			out = append(out, lines[i])
			continue
		}
		old := configBegin.FindStringSubmatch(lines[i])[1]
		if i += n - 1; old != "" {
			out = append(out, old+lines[i][len(blockEnd):])
		}
	}
	return strings.Join(out, "")
}

// blockLength is the number of lines of the block that lines begin with; 0 for
// none, or one with no end before the next.
func blockLength(lines []string) int {
	if !configBegin.MatchString(lines[0]) {
		return 0
	}
	for i, line := range lines[1:] {
		if configBegin.MatchString(line) {
			return 0
		}
		if strings.TrimRight(line, "\r\n") == blockEnd {
			return i + 2
		}
	}
	return 0
}

// outsideBlocks calls edit for each line that is not of a block of ours.
func outsideBlocks(lines []string, edit func(line string) string) []string {
	out := make([]string, len(lines))
	for i := 0; i < len(lines); i++ {
		n := blockLength(lines[i:])
		if n == 0 {
			out[i] = edit(lines[i])
			continue
		}
		copy(out[i:i+n], lines[i:])
		i += n - 1
	}
	return out
}

// clangVersion matches a directory of clang's own headers and libraries.
var clangVersion = regexp.MustCompile(`^([0-9]+)(\.[0-9]+)*$`)

// newest is the highest major version of the compiler in a directory, from the
// names of the directories with its own headers; 0 if none is known.
func (c *compilerPaths) newest(bin string) int {
	newest := 0
	for _, name := range c.names[path.Join(parent(bin), "lib/clang")] {
		if m := clangVersion.FindStringSubmatch(name); m != nil {
			if v, err := strconv.Atoi(m[1]); err == nil {
				newest = max(newest, v)
			}
		}
	}
	return newest
}

// hostTriple matches the directory of libraries for the machine that ROCm's
// programs run on.
var hostTriple = regexp.MustCompile(`^x86_64-[a-z0-9_]+-linux-gnu$`)

// libraries are the directories that clang itself would put into programs, of
// those that are in the tree: HIP's, always; of its own, those with a shared
// library: per target, of its runtime (ToolChain::getArchSpecificLibPaths and
// getStdlibPath), and for OpenMP the one beside bin/ and, with a sanitizer, that
// of the sanitizers.
func (c *compilerPaths) libraries(bin string, openMP bool) []string {
	var dirs []string
	add := func(dir string, always bool) {
		real, ok := c.tree.resolveDir("", dir)
		if ok && (always || slices.ContainsFunc(c.names[real], libraryName.MatchString)) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	add("lib", true)
	own := path.Join(parent(bin), "lib")
	for _, name := range c.names[own] {
		if hostTriple.MatchString(name) {
			add(own+"/"+name, false)
		}
	}
	for _, version := range c.names[own+"/clang"] {
		runtime := own + "/clang/" + version + "/lib"
		for _, name := range c.names[runtime] {
			if hostTriple.MatchString(name) {
				add(runtime+"/"+name, false)
			}
		}
		add(runtime+"/linux/x86_64", false)
	}
	if openMP {
		add(own, false)
		for _, version := range c.names[own+"/clang"] {
			add(own+"/clang/"+version+"/lib/linux", false)
		}
	}
	return dirs
}

// knows reports whether clang has an option, by the names that its option table
// holds: an unknown one in its configuration would make it useless.
func (c *compilerPaths) knows(bin, option string) (bool, error) {
	real, ok := c.tree.resolve(bin, "clang")
	if !ok {
		return false, nil
	}
	f := c.tree.file(real)
	if f == nil || f.Kind != manifest.Regular {
		return false, nil
	}
	if e := c.tree.elf(f, c.dir); e != nil {
		for _, need := range e.Needed {
			if strings.HasPrefix(need, "libclang-cpp.so") {
				if real, ok = c.tree.resolve(path.Join(parent(bin), "lib"), need); !ok {
					return false, nil
				}
			}
		}
	}
	return c.holds(real, append([]byte(strings.TrimLeft(option, "-")), 0))
}

// holds searches a file for some bytes.
func (c *compilerPaths) holds(p string, want []byte) (bool, error) {
	f, err := c.root.Open(c.at(p))
	if err != nil {
		return false, err
	}
	defer f.Close() // opened for reading
	buf := make([]byte, 256<<10)
	have := 0
	for {
		n, err := f.Read(buf[have:])
		if bytes.Contains(buf[:have+n], want) {
			return true, nil
		}
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		have += n
		keep := min(have, len(want)-1)
		copy(buf, buf[have-keep:have])
		have = keep
	}
}
