package wrap

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// RuleCompilerPath is the name of the rule that makes the compiler name the
// final place of a tree in the programs that it builds.
const RuleCompilerPath = "compiler-path"

// AMD's rocm.cfg tells clang to put the directory that HIP's library is in into
// every HIP program (-frtlib-add-rpath). Clang takes that from where it really
// is, whatever link it was called through, so that the program names one
// generation and dies with it. In the place of that option the rule writes linker
// options that name the same directories below the tree's final place. How the
// compiler finds its own device libraries and headers (--rocm-path with
// <CFGDIR>) stays as it is: a tree that is staged, moved or no longer active
// must never compile with another's.
const (
	optRuntimePath = "-frtlib-add-rpath"
	// optNoOpenMPPath stops clang from adding its own lib directory to every
	// OpenMP program. LLVM had it from 16 to 20, AMD's fork has it still; any
	// other clang refuses it.
	optNoOpenMPPath = "-fno-openmp-implicit-rpath"
)

// compilerDirs are where compilers with configuration files lie in a tree.
var compilerDirs = []string{"lib/llvm/bin", "lib/llvm/alt/bin", "llvm/bin", "llvm/alt/bin"}

// maxConfig bounds a configuration file, in bytes: AMD's have less than 100.
const maxConfig = 64 << 10

// isCompilerConfig reports whether a path of the tree is a configuration file
// of a compiler.
func isCompilerConfig(p string) bool {
	return path.Ext(p) == ".cfg" && slices.Contains(compilerDirs, parent(p))
}

// FileEdit is the new content of one file of a tree.
type FileEdit struct {
	Path  string // as the files are given
	Data  []byte
	Rules []string // those that made it what it is; none when it is as it came
}

// FileLeft is a file that a rule should have edited and has not.
type FileLeft struct {
	Path   string
	Reason string
}

// CompilerPaths plans the edits of the compiler's configuration for a tree that
// will be found at place, an absolute path. root is what the paths in files are
// relative to, dir where in it the tree lies ("" is root itself). Nothing is
// written. What an earlier call for another place wrote is taken out first, so
// that the outcome depends on place and the tree alone; a file that is right
// already is not in edits.
func CompilerPaths(root *os.Root, dir string, files []manifest.File, place string) (edits []FileEdit, left []FileLeft, err error) {
	c := &compilerPaths{root: root, dir: dir, tree: newTree(files, dir), place: path.Clean(place), is: map[string]string{}}
	c.names = c.tree.children()
	for _, bin := range compilerDirs {
		if real, ok := c.tree.resolveDir("", bin); !ok || real != bin {
			continue // not there, or another name of one that is
		}
		if err := c.compiler(bin); err != nil {
			return nil, nil, fmt.Errorf("plan the compiler's paths: %w", err)
		}
	}
	return c.edits, c.left, nil
}

type compilerPaths struct {
	root  *os.Root
	dir   string
	tree  *tree
	names map[string][]string // of its directories
	place string
	is    map[string]string // the configuration files as they are, by path
	edits []FileEdit
	left  []FileLeft
}

// compiler plans the edits in one directory.
func (c *compilerPaths) compiler(bin string) error {
	texts := map[string]string{} // as they came
	var configs []string
	for _, name := range c.names[bin] {
		if path.Ext(name) != ".cfg" {
			continue
		}
		text, ok, err := c.read(bin + "/" + name)
		if err != nil {
			return err
		}
		if ok {
			texts[name] = text
			configs = append(configs, name)
		}
	}
	if !slices.ContainsFunc(configs, func(n string) bool { return strings.Contains(texts[n], optRuntimePath) }) {
		c.settle(bin, configs, texts, nil)
		return nil
	}
	openMP, err := c.knows(bin, optNoOpenMPPath)
	if err != nil {
		return err
	}
	edited := map[string]string{}
	fired := false
	dirs := c.libraries(bin, openMP)
	for _, name := range configs {
		text, reason := c.config(bin, texts[name], dirs)
		if reason != "" {
			c.left = append(c.left, FileLeft{Path: c.at(bin + "/" + name), Reason: reason})
		} else if text != texts[name] {
			edited[name], fired = text, true
		}
	}
	for _, name := range configs {
		if _, done := edited[name]; openMP && fired && !done && frontEnd.MatchString(name) {
			edited[name] = configBlock("added", "", []string{optNoOpenMPPath}) + texts[name]
		}
	}
	c.settle(bin, configs, texts, edited)
	return nil
}

// frontEnd matches the configuration of clang as a compiler of C and C++. That
// of flang and clang-cl is another: they may refuse what clang knows.
var frontEnd = regexp.MustCompile(`^clang(\+\+|-[0-9]+)?\.cfg$`)

// settle compares what the files should be with what they are.
func (c *compilerPaths) settle(bin string, configs []string, texts, edited map[string]string) {
	for _, name := range configs {
		want, rules := texts[name], []string(nil)
		if text, ok := edited[name]; ok {
			want, rules = text, []string{RuleCompilerPath}
		}
		p := bin + "/" + name
		switch {
		case c.is[p] == want:
		case c.shared(p):
			c.left = append(c.left, FileLeft{Path: c.at(p), Reason: "is one of several names of a file"})
		default:
			c.edits = append(c.edits, FileEdit{Path: c.at(p), Data: []byte(want), Rules: rules})
		}
	}
}

// read returns a configuration file as it came. Links and what is too large to
// be one are not ours.
func (c *compilerPaths) read(p string) (text string, ok bool, err error) {
	f := c.tree.file(p)
	if f == nil || f.Kind != manifest.Regular || f.Size > maxConfig {
		return "", false, nil
	}
	data, err := c.content(p)
	if err != nil || bytes.IndexByte(data, 0) >= 0 {
		return "", false, err
	}
	c.is[p] = string(data)
	text = plainConfig(c.is[p])
	if slices.ContainsFunc(strings.SplitAfter(text, "\n"), configBegin.MatchString) {
		c.left = append(c.left, FileLeft{Path: c.at(p), Reason: "has marks of ours that do not belong together"})
		return "", false, nil
	}
	return text, true, nil
}

func (c *compilerPaths) content(p string) ([]byte, error) {
	f, err := c.root.Open(c.at(p))
	if err != nil {
		return nil, err
	}
	defer f.Close() // opened for reading
	data, err := io.ReadAll(io.LimitReader(f, maxConfig))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", c.at(p), err)
	}
	return data, nil
}

func (c *compilerPaths) at(p string) string { return path.Join(c.dir, p) }

// shared reports whether a file has other names.
func (c *compilerPaths) shared(p string) bool {
	at := c.at(p)
	return slices.ContainsFunc(c.tree.files, func(f manifest.File) bool {
		return f.Same == at || f.Path == at && f.Same != ""
	})
}

// config is one configuration file with linker options for dirs in the place of
// -frtlib-add-rpath. A reason says why it is left as it is.
func (c *compilerPaths) config(bin, text string, dirs []string) (out, reason string) {
	lines := strings.SplitAfter(text, "\n")
	at, seen := -1, 0
	for i, line := range lines {
		if !hashComment.MatchString(line) && strings.Contains(line, optRuntimePath) {
			seen++
			if strings.TrimSpace(line) == optRuntimePath {
				at = i
			}
		}
	}
	switch {
	case seen == 0:
		return text, ""
	case at < 0 || seen > 1:
		return text, "says " + optRuntimePath + " in a way that is not known"
	case at > 0 && strings.HasSuffix(strings.TrimRight(lines[at-1], "\r\n"), `\`):
		return text, "says " + optRuntimePath + " in a continued line"
	}
	if why := cannotBeSaid(c.place); why != "" {
		return text, why
	}
	tail := c.tail(bin, text)
	var options []string
	for _, d := range dirs {
		options = append(options, linkerOption(path.Join(c.place, d), tail))
	}
	block := configBlock("instead of", lines[at], options)
	return strings.Join(slices.Concat(lines[:at], []string{block}, lines[at+1:]), ""), ""
}

// cannotBeSaid tells why a directory cannot stand in a program's run path or in
// a configuration file of clang, or "".
func cannotBeSaid(place string) string {
	switch {
	case strings.ContainsAny(place, ":\n\r\x00"):
		return "the final prefix holds a colon or a line end, which no run path can say"
	case dynamicString.MatchString(place):
		return "the final prefix holds a name that the loader replaces in run paths"
	case strings.Contains(place, "<CFGDIR>"):
		return "the final prefix holds <CFGDIR>, which the compiler replaces"
	}
	return ""
}

// dynamicString matches what ld.so expands in a run path (ld.so(8)).
var dynamicString = regexp.MustCompile(`\$(\{?(ORIGIN|LIB|PLATFORM))`)

// tailVersion is the first LLVM release whose configuration files know $, which
// keeps an option for the end of a command that links.
const tailVersion = 20

// tail reports whether linker options are written with $: as the file has them
// already, else as the compiler can. Without it they count as input files, so
// that a bare clang -v links, and the making of a precompiled header fails (AMD's
// clang sees to that for those with $): only a clang that knows no $ gets them so.
func (c *compilerPaths) tail(bin, text string) bool {
	for line := range strings.Lines(text) {
		switch word := strings.TrimSpace(line); {
		case strings.HasPrefix(word, "$-"):
			return true
		case strings.HasPrefix(word, "-Wl,"), strings.HasPrefix(word, "-Xlinker"):
			return false
		}
	}
	return c.newest(bin) >= tailVersion
}

// linkerOption is the option that adds dir to a program's run path. The linker
// options of -Wl are separated by commas.
func linkerOption(dir string, tail bool) string {
	words := []string{"-Wl,-rpath," + dir}
	if strings.Contains(dir, ",") {
		words = []string{"-Xlinker", "-rpath", "-Xlinker", dir}
	}
	for i, w := range words {
		if words[i] = quoteConfig(w); tail {
			words[i] = "$" + words[i]
		}
	}
	return strings.Join(words, " ")
}

// quoteConfig quotes one word of a configuration file of clang: LLVM reads its
// lines as GNU tools do their response files, where a backslash takes the
// meaning of any byte after it (cl::TokenizeGNUCommandLine).
func quoteConfig(word string) string {
	var b strings.Builder
	for _, c := range []byte(word) {
		if strings.IndexByte(" \t\v\f'\"\\", c) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}
