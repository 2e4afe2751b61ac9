package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// said is what a run of a tool shows.
type said struct {
	code        int
	out, errors string
}

// ours runs the verb in this process.
func ours(dir string, args ...string) said {
	var out, errs bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, getenv: func(string) string { return "" }}
	code := a.run(context.Background(), append([]string{"patchelf"}, inDir(dir, args)...))
	return said{code, strings.ReplaceAll(out.String(), dir+"/", ""), strings.ReplaceAll(errs.String(), dir+"/", "")}
}

// theirs runs Debian's patchelf.
func theirs(dir string, args ...string) said {
	var out, errs bytes.Buffer
	cmd := exec.Command("patchelf", inDir(dir, args)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	return said{cmd.ProcessState.ExitCode(), strings.ReplaceAll(out.String(), dir+"/", ""), strings.ReplaceAll(errs.String(), dir+"/", "")}
}

// inDir replaces % by the directory of a test's files.
func inDir(dir string, args []string) []string {
	all := make([]string, len(args))
	for i, s := range args {
		all[i] = strings.ReplaceAll(s, "%", dir)
	}
	return all
}

// peers makes the inputs: each a file in dir.
func peers(t *testing.T) string {
	t.Helper()
	for tool, pkg := range map[string]string{"patchelf": "patchelf", "gcc": "gcc", "readelf": "binutils", "objcopy": "binutils"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is missing (Debian: %s)", tool, pkg)
		}
	}
	dir := t.TempDir()
	run := func(source string, args ...string) {
		t.Helper()
		cmd := exec.Command(args[0], inDir(dir, args[1:])...)
		cmd.Stdin = strings.NewReader(source)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	for _, sub := range []string{"one", "two"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c := []string{"gcc", "-g", "-x", "c", "-", "-x", "none", "-o"}
	run("int one(void) { return 40; }", append(c, "%/one/libone.so", "-shared", "-fPIC", "-Wl,-soname,libone.so")...)
	run("int two(void) { return 2; }", append(c, "%/two/libtwo.so", "-shared", "-fPIC", "-Wl,-soname,libtwo.so")...)
	const prog = "int one(void), two(void); int main(void) { return one() + two(); }"
	libs := []string{"-L%/one", "-L%/two", "-lone", "-ltwo"}
	run(prog, append(append(c, "%/runpath", "-Wl,--enable-new-dtags,-rpath,/nowhere:%/one:%/two"), libs...)...)
	run(prog, append(append(c, "%/rpath", "-Wl,--disable-new-dtags,-rpath,%/two:/nowhere:%/one:$ORIGIN/one"), libs...)...)
	run(prog, append(append(c, "%/exec", "-no-pie", "-Wl,-rpath,/nowhere"), libs...)...)
	run(prog, append(append(c, "%/plain", "-pie"), libs...)...)
	run("int lib(void) { return 1; }", append(c, "%/lib.so", "-shared", "-fPIC", "-Wl,-soname,lib.so.1")...)
	run("int lib(void) { return 1; }", append(c, "%/bare.so", "-shared", "-fPIC", "-nostdlib")...)
	run("int main(void) { return 0; }", append(c, "%/static", "-static")...)
	run("int main(void) { return 0; }", append(c, "%/part.o", "-c")...)
	run("", "objcopy", "--only-keep-debug", "%/runpath", "%/runpath.debug")
	for name, text := range map[string]string{"text": "no ELF file\n", "empty": "", "long": strings.Repeat("no ELF file\n", 100), "value": "/from/a/file"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := os.ReadFile(dir + "/plain")
	if err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int{"head": 60, "headers": 300} { // truncated
		if err := os.WriteFile(filepath.Join(dir, name), whole[:size], 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var peerFiles = []string{"runpath", "rpath", "exec", "plain", "lib.so", "bare.so", "static", "part.o", "runpath.debug", "text", "empty", "long", "missing", "one",
	"head", "headers", "missing/of/it", "text/of/it"}

// peerFlags are the command lines that are compared, each on every file, with
// the reason where a difference is meant.
var peerFlags = []struct {
	flags string
	but   map[string]string // file to the difference that docs/patchelf.md justifies
	apart []string          // what patchelf must be told one by one: in one run, 0.14.3 writes its new strings over one another
}{
	{flags: ""},
	{flags: "--print-rpath"},
	{flags: "--print-interpreter", but: map[string]string{"runpath.debug": diffDebug}},
	{flags: "--print-soname"},
	{flags: "--print-needed", but: map[string]string{"runpath.debug": diffDebug}},
	{flags: "--print-soname --print-needed --print-rpath", but: map[string]string{"runpath.debug": diffDebug}},
	{flags: "--set-rpath /x"},
	{flags: "--set-rpath /a/path/that/is/longer/than/any/that/the/linker/was/told/of/by/this/test"},
	{flags: "--force-rpath --set-rpath /x"},
	{flags: "--force-rpath"},
	{flags: "--set-rpath @%/value"},
	{flags: "--set-rpath @%/missing"},
	{flags: "--add-rpath /y:/z"},
	{flags: "--add-rpath /y --force-rpath"},
	{flags: "--remove-rpath"},
	{flags: "--shrink-rpath"},
	{flags: "--shrink-rpath --force-rpath"},
	{flags: "--shrink-rpath --allowed-rpath-prefixes %/two:/x"},
	{flags: "--shrink-rpath --set-rpath /ignored"},
	{flags: "--set-interpreter /lib64/another/interpreter.so", but: map[string]string{"runpath.debug": diffDebug}},
	{flags: "--set-interpreter /l", but: map[string]string{"runpath.debug": diffDebug}},
	{flags: "--set-soname libother.so.7", but: crashes},
	{flags: "--add-needed libz.so.1", but: crashes},
	{flags: "--add-needed libz.so.1 --add-needed libm.so.6", but: crashes},
	{flags: "--remove-needed libone.so"},
	{flags: "--remove-needed libabsent.so"},
	{flags: "--replace-needed libone.so libuno.so"},
	{flags: "--replace-needed libone.so one.so"},
	{flags: "--remove-needed libone.so --add-needed libuno.so --replace-needed libtwo.so libdue.so", but: crashes,
		apart: []string{"--remove-needed libone.so", "--replace-needed libtwo.so libdue.so", "--add-needed libuno.so"}},
	{flags: "--no-default-lib", but: crashes},
	{flags: "--set-soname s --set-rpath /q --add-needed libz.so.1 --no-default-lib", but: crashes,
		apart: []string{"--set-soname s", "--set-rpath /q", "--add-needed libz.so.1", "--no-default-lib"}},
	{flags: "--page-size 65536 --set-rpath /x"},
	{flags: "--output %/out --set-rpath /x"},
	{flags: "--output %/out"},
	{flags: "--print-rpath --set-rpath /after"},
	{flags: "--set-rpath"},
	{flags: "--page-size 0"},
	{flags: "--set-rpath /a --add-rpath /b"},
}

const diffDebug = "a separate debug file has no interpreter, and needs no libraries"

var crashes = map[string]string{"runpath.debug": "a separate debug file is left alone; patchelf 0.14.3 crashes"}

// TestPatchelfPeer compares the verb with Debian's patchelf.
func TestPatchelfPeer(t *testing.T) {
	dir := peers(t)
	t.Run("like", func(t *testing.T) { likePatchelf(t, dir) })
	t.Run("names", likeForNames)
	t.Run("unlike", func(t *testing.T) { unlikePatchelf(t, dir) })
	t.Run("newer", func(t *testing.T) { likeNewerPatchelf(t, dir) })
}

// likeForNames compares what is said of names that are no files.
func likeForNames(t *testing.T) {
	for _, name := range []string{"", "/dev/null", "/proc/self/fd/99"} {
		for _, flag := range []string{"--print-rpath", "--remove-rpath"} {
			their, our := theirs("", flag, name), ours("", flag, name)
			if our.code != their.code || our.out != their.out || firstLine(our.errors) != firstLine(their.errors) {
				t.Errorf("%s %q: here %+v, there %+v", flag, name, our, their)
			}
		}
	}
}

// likePatchelf runs both side by side: exit code, standard output, the
// message, and what readelf sees after.
func likePatchelf(t *testing.T, dir string) {
	for _, c := range peerFlags {
		for _, name := range peerFiles {
			if c.but[name] != "" {
				continue
			}
			t.Run(c.flags+" "+name, func(t *testing.T) {
				work := filepath.Join(dir, name)
				args := append(strings.Fields(c.flags), work)
				was := snapshot(t, work)
				their := theirs(dir, args...)
				if c.apart != nil {
					was.back(t)
				}
				for _, flags := range c.apart {
					theirs(dir, append(strings.Fields(flags), work)...)
				}
				theirFile := was.describe(dir)
				was.back(t)
				our := ours(dir, args...)
				ourFile := was.describe(dir)
				was.back(t)
				if our.code != their.code || our.out != their.out || firstLine(our.errors) != firstLine(their.errors) {
					t.Errorf("here:  %d %q %q\nthere: %d %q %q", our.code, our.out, our.errors, their.code, their.out, their.errors)
				}
				if !slices.Equal(ourFile, theirFile) {
					t.Errorf("here:\n  %s\nthere:\n  %s", strings.Join(ourFile, "\n  "), strings.Join(theirFile, "\n  "))
				}
			})
		}
	}
}

func firstLine(s string) string {
	for line := range strings.Lines(s) {
		if !strings.HasPrefix(line, "patchelf: warning:") { // patchelf has no such warnings
			return line
		}
	}
	return ""
}

// saved is a file as it was, to be put back.
type saved struct {
	path string
	data []byte
}

func snapshot(t *testing.T, path string) saved {
	data, err := os.ReadFile(path)
	if err != nil {
		return saved{}
	}
	return saved{path, data}
}

func (s saved) back(t *testing.T) {
	if s.path == "" {
		return
	}
	os.Remove(filepath.Join(filepath.Dir(s.path), "out"))
	if err := os.WriteFile(s.path, s.data, 0o755); err != nil {
		t.Fatal(err)
	}
}

var (
	dynamicValue = regexp.MustCompile(`\((NEEDED|SONAME|RPATH|RUNPATH|FLAGS_1|DEBUG)\)\s+(.*)`)
	stackFlags   = regexp.MustCompile(`GNU_STACK.*0x\w+ +0x\w+ (...) `)
	interpreter  = regexp.MustCompile(`Requesting program interpreter: (.*)\]`)
	versionFile  = regexp.MustCompile(`Version: \d+ +File: (\S+)`)
)

// describe is what readelf sees in a file, and in what --output made of it.
func (s saved) describe(dir string) []string {
	var all []string
	for _, path := range []string{s.path, filepath.Join(dir, "out")} {
		if now, err := os.ReadFile(path); err != nil || bytes.Equal(now, s.data) {
			all = append(all, fmt.Sprint("as it was: ", err == nil))
			continue
		}
		b, err := exec.Command("readelf", "-lWdV", path).CombinedOutput()
		if err != nil {
			continue
		}
		var lines []string
		for _, re := range []*regexp.Regexp{dynamicValue, stackFlags, interpreter, versionFile} {
			for _, m := range re.FindAllStringSubmatch(string(b), -1) {
				lines = append(lines, strings.Join(m[1:], " "))
			}
		}
		// An empty run path is none: patchelf leaves it, this verb removes it.
		lines = slices.DeleteFunc(lines, func(s string) bool { return regexp.MustCompile(`runpath: \[\]|rpath: \[\]`).MatchString(s) })
		slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(kind(a), kind(b)) })
		all = append(all, lines...)
	}
	return all
}

// kind sorts entries by tag: their order counts among those of a tag.
func kind(line string) string {
	k, _, _ := strings.Cut(line, " ")
	return k
}

// unlikePatchelf holds the differences that docs/patchelf.md lists.
func unlikePatchelf(t *testing.T, dir string) {
	t.Run("flags that are not known are no files", func(t *testing.T) {
		if s := ours(dir, "--nonsense", "%/plain"); s.code != 2 || !strings.Contains(s.errors, "--nonsense") {
			t.Errorf("%+v", s)
		}
	})
	t.Run("links", func(t *testing.T) {
		if err := os.Symlink("plain", dir+"/link"); err != nil {
			t.Fatal(err)
		}
		if s := ours(dir, "--set-rpath", "/x", "%/link"); s.code != 1 || !strings.Contains(s.errors, "symbolic link") {
			t.Errorf("%+v", s)
		}
		if s := ours(dir, "--print-needed", "%/link"); s.code != 0 || s.out != "libone.so\nlibtwo.so\nlibc.so.6\n" {
			t.Errorf("%+v", s)
		}
		if s := ours(dir, "--follow", "--set-rpath", "/x", "%/link"); s.code != 0 || ours(dir, "--print-rpath", "%/plain").out != "/x\n" {
			t.Errorf("%+v", s)
		}
	})
	t.Run("an edit twice is one", func(t *testing.T) {
		for _, flags := range []string{"--add-rpath /y:/z", "--add-needed libz.so.1"} {
			for range 2 {
				if s := ours(dir, append(strings.Fields(flags), "%/exec")...); s.code != 0 {
					t.Errorf("%+v", s)
				}
			}
		}
		if s := ours(dir, "--print-rpath", "--print-needed", "%/exec"); s.out != "/nowhere:/y:/z\nlibz.so.1\nlibone.so\nlibtwo.so\nlibc.so.6\n" {
			t.Errorf("%+v", s)
		}
	})
	t.Run("an empty path is none", func(t *testing.T) {
		for _, flags := range []string{"--set-rpath|", "--shrink-rpath|--allowed-rpath-prefixes|/none"} {
			was := snapshot(t, dir+"/runpath")
			s := ours(dir, append(strings.Split(flags, "|"), "%/runpath")...)
			out, _ := exec.Command("readelf", "-dW", dir+"/runpath").Output()
			if s.code != 0 || bytes.Contains(out, []byte("RUNPATH")) {
				t.Errorf("%s: %+v", flags, s)
			}
			was.back(t)
		}
	})
	t.Run("a debug file", func(t *testing.T) {
		was := snapshot(t, dir+"/runpath.debug")
		for _, flags := range []string{"--print-interpreter", "--set-interpreter /l", "--set-rpath /x"} {
			if s := ours(dir, append(strings.Fields(flags), "%/runpath.debug")...); s.code != 0 || s.out != "" {
				t.Errorf("%s: %+v", flags, s)
			}
		}
		if now := snapshot(t, dir+"/runpath.debug"); !bytes.Equal(now.data, was.data) {
			t.Error("it changed")
		}
	})
	t.Run("what it shrinks for need not be an ELF file", func(t *testing.T) {
		if err := os.WriteFile(dir+"/one/libtwo.so", []byte("INPUT(libtwo.so.1)"), 0o644); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(dir + "/one/libtwo.so")
		if s := ours(dir, "--shrink-rpath", "%/runpath"); s.code != 0 {
			t.Errorf("%+v", s)
		}
		if s := ours(dir, "--print-rpath", "%/runpath"); s.out != "one:two\n" {
			t.Errorf("%+v", s)
		}
	})
	t.Run("the modes of --output", func(t *testing.T) {
		if err := os.Chmod(dir+"/lib.so", 0o640); err != nil {
			t.Fatal(err)
		}
		s := ours(dir, "--output", "%/lib.out", "--set-rpath", "/x", "%/lib.so")
		if info, err := os.Stat(dir + "/lib.out"); s.code != 0 || err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("%+v %v", s, err)
		}
		if s := ours(dir, "--output", "/dev/null", "--set-rpath", "/x", "%/lib.so"); s.code != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// likeNewerPatchelf holds what patchelf 0.14.3 lacks, and later ones have.
func likeNewerPatchelf(t *testing.T, dir string) {
	for _, c := range []struct{ flags, out string }{
		{"--print-os-abi", "System V\n"},
		{"--print-execstack", "execstack: -\n"},
		{"--set-execstack", ""},
		{"--print-execstack", "execstack: X\n"},
		{"--clear-execstack", ""},
		{"--print-execstack --set-execstack", "execstack: -\n"},
		{"--print-execstack", "execstack: -\n"},
		{"--add-debug-tag", ""},
	} {
		if s := ours(dir, append(strings.Fields(c.flags), "%/lib.so")...); s.code != 0 || s.out != c.out {
			t.Errorf("%s: %+v", c.flags, s)
		}
	}
	if out, _ := exec.Command("readelf", "-dW", dir+"/lib.so").Output(); !bytes.Contains(out, []byte("(DEBUG)")) {
		t.Errorf("no DT_DEBUG:\n%s", out)
	}
	bare, err := os.ReadFile(dir + "/bare.so")
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(bare, []byte{0x51, 0xe5, 0x74, 0x64}) // PT_GNU_STACK
	if err := os.WriteFile(dir+"/bare.so", append(append(bare[:at:at], 0, 0, 0, 0), bare[at+4:]...), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ flags, out string }{{"--print-execstack", "execstack: ?\n"}, {"--set-execstack", ""}, {"--print-execstack", "execstack: X\n"}} {
		if s := ours(dir, c.flags, "%/bare.so"); s.code != 0 || s.out != c.out {
			t.Errorf("%s: %+v", c.flags, s)
		}
	}
	if s := ours(dir, "--version"); !regexp.MustCompile(`^patchelf \d+\.\d+\.\d+ `).MatchString(s.out) {
		t.Errorf("%+v", s)
	}
}
