package hostpkg

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
)

// Owners asks the package tools of this machine whose a path is. The zero value
// looks for them where distributions have them.
type Owners struct {
	Dirs    []string      // where the tools are; nil: the system's own directories, never $PATH
	Timeout time.Duration // of each of them; 0: five seconds
}

// toolDirs are the directories that only root writes to.
var toolDirs = []string{"/usr/bin", "/bin", "/run/current-system/sw/bin"}

// Bounds of what a tool says: bytes that are read, packages that are named, and
// bytes of a name.
const (
	maxOutput   = 64 << 10
	maxPackages = 4
	maxName     = 100
)

// tools ask whose a path is: the arguments before it, and how the answer is read.
var tools = []struct {
	name string
	args []string
	read func(output, path string) []string
}{
	{"dpkg", []string{"-S"}, readDpkg},
	{"rpm", []string{"-qf", "--queryformat", `%{NAME}\n`}, readLines},
	{"pacman", []string{"-Qoq"}, readLines},
}

// Of returns the packages that own path, or what it leads to, for people: fit to
// be shown, "" if none is known to. path must be absolute. No shell is used.
func (o Owners) Of(ctx context.Context, path string) string {
	if !filepath.IsAbs(path) {
		return ""
	}
	paths := []string{filepath.Clean(path)}
	if real, err := filepath.EvalSymlinks(path); err == nil && real != paths[0] {
		paths = append(paths, real)
	}
	for _, p := range paths {
		for _, t := range tools {
			exe := o.find(t.name)
			if exe == "" || t.name == "dpkg" && strings.ContainsAny(p, `*?[\`) {
				continue // dpkg would take it for a pattern
			}
			out, err := o.run(ctx, exe, append(slices.Clone(t.args), p)...)
			if err != nil {
				continue // nobody's, as far as this one knows
			}
			if found := t.read(out, p); len(found) > 0 {
				return inWords(found)
			}
		}
	}
	return ""
}

// find returns the path of a tool, "" if it is not there.
func (o Owners) find(name string) string {
	dirs := o.Dirs
	if dirs == nil {
		dirs = toolDirs
	}
	for _, dir := range dirs {
		exe := filepath.Join(dir, name)
		if fi, err := os.Stat(exe); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
			return exe
		}
	}
	return ""
}

// run returns the beginning of what a tool prints.
func (o Owners) run(ctx context.Context, exe string, args ...string) (string, error) {
	timeout := o.Timeout
	if timeout == 0 {
		timeout = 5 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out := &limited{full: cancel}
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Env = []string{"LC_ALL=C.UTF-8", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.Dir = "/"
	cmd.Stdout = out
	cmd.WaitDelay = 200 * time.Millisecond // a child that keeps the pipe open is not waited for
	err := cmd.Run()
	return out.String(), err
}

// limited keeps the first maxOutput bytes that are written to it, and ends
// whoever writes more.
type limited struct {
	bytes.Buffer
	full func()
}

func (l *limited) Write(p []byte) (int, error) {
	if room := maxOutput - l.Len(); room > 0 {
		l.Buffer.Write(p[:min(room, len(p))])
	} else {
		l.full()
	}
	return len(p), nil
}

// readDpkg reads lines of the form "a, b:amd64: /path".
func readDpkg(output, path string) []string {
	var all []string
	for line := range strings.Lines(output) {
		packages, of, ok := strings.Cut(strings.TrimRight(line, "\n"), ": ")
		if !ok || of != path || strings.HasPrefix(packages, "diversion by ") {
			continue
		}
		all = append(all, strings.Split(packages, ", ")...)
	}
	return all
}

func readLines(output, _ string) []string { return strings.Fields(output) }

// inWords joins names of packages in one line.
func inWords(all []string) string {
	slices.Sort(all)
	all = slices.Compact(all)
	more := ""
	if len(all) > maxPackages {
		all, more = all[:maxPackages], " and others"
	}
	for i := range all {
		all[i] = plain.Cut(all[i], maxName)
	}
	return strings.Join(all, ", ") + more
}
