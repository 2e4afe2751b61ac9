package cage

import (
	"cmp"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// spec is what the guard of a cage is told, as JSON over a pipe: never in argv
// and never in the environment, which others can read.
type spec struct {
	Kind    string
	Path    string
	Args    []string
	Env     []string
	Dir     string
	Places  []place // what can be seen
	Scratch string  // "": a private one
	Private string  // that, made for a cage without a /tmp of its own
	Limits  limits
	User    *User // whom to become; nil: nobody else
	Test    hooks

	stdin     []byte
	maxOutput int
	only      string
}

// limits are what the guard and the kernel hold a run to.
type limits struct {
	Timeout      time.Duration
	Memory       int64
	SparseMemory bool
	Processes    int
	Others       int // threads that the user has outside, which the kernel counts too
	FileSize     int64
	ScratchSize  int64
}

// spec checks c and fills in what it leaves open.
func (c *Command) spec() (*spec, error) {
	if !filepath.IsAbs(c.Path) {
		return nil, fmt.Errorf("cage: %q is not an absolute path", c.Path)
	}
	for _, text := range slices.Concat([]string{c.Path, c.Dir, c.Scratch}, c.Args, c.Env) {
		if strings.IndexByte(text, 0) >= 0 {
			return nil, fmt.Errorf("cage: %q has a zero byte", text)
		}
	}
	if c.Only != "" && c.Only != Namespaces && c.Only != Landlock {
		return nil, fmt.Errorf("cage: there is no kind %q of cage: try %s or %s", c.Only, Namespaces, Landlock)
	}
	s := &spec{
		Path: c.Path, Args: c.Args, Env: c.Env, Dir: c.Dir, User: c.User, Test: c.test,
		Limits: limits{
			Timeout: cmp.Or(c.Timeout, DefaultTimeout), Memory: cmp.Or(c.Memory, DefaultMemory),
			SparseMemory: c.SparseMemory || len(c.Devices) > 0,
			Processes:    cmp.Or(c.Processes, DefaultProcesses+8*runtime.NumCPU()),
			FileSize:     cmp.Or(c.FileSize, DefaultFileSize), ScratchSize: cmp.Or(c.ScratchSize, DefaultScratchSize),
		},
		stdin: c.Stdin, maxOutput: cmp.Or(c.MaxOutput, DefaultMaxOutput), only: c.Only,
	}
	l := &s.Limits
	if l.Timeout < 0 || l.Memory < 0 || l.Processes < 0 || l.FileSize < 0 || l.ScratchSize < 0 || s.maxOutput < 0 {
		return nil, fmt.Errorf("cage: a limit is negative")
	}
	return s, s.see(c)
}

// see lists what can be seen inside.
func (s *spec) see(c *Command) error {
	s.Places = system()
	if c.Scratch != "" {
		real, err := scratch(c.Scratch)
		if err != nil {
			return err
		}
		s.Scratch = real
		s.Places = append(s.Places, place{Path: real, Access: writable})
	}
	for _, dir := range c.ReadOnly {
		more, real, err := trace(dir)
		if err != nil {
			return fmt.Errorf("cage: %w", err)
		}
		if err := admissible(real); err != nil {
			return err
		}
		if s.Scratch != "" && within(real, s.Scratch) {
			return fmt.Errorf("cage: %s is to be read-only and lies in the scratch directory %s", dir, s.Scratch)
		}
		s.Places = append(append(s.Places, more...), place{Path: real, Access: readable})
	}
	for _, dev := range c.Devices {
		links, real, err := traceDevice(dev)
		if err != nil {
			return err
		}
		s.Places = append(append(s.Places, links...), place{Path: real, Access: device})
	}
	if len(c.Devices) > 0 {
		s.Places = append(s.Places, existing(sysfsDirs...)...)
	}
	return nil
}

// inside gives the environment: Env over the few defaults, each name once.
func (s *spec) inside(home string) []string {
	var env []string
	seen := map[string]int{}
	for _, v := range append([]string{"HOME=" + home, "TMPDIR=" + home, "PATH=/usr/bin:/bin", "LANG=C"}, s.Env...) {
		name, _, _ := strings.Cut(v, "=")
		if i, ok := seen[name]; ok {
			env[i] = v
			continue
		}
		seen[name] = len(env)
		env = append(env, v)
	}
	return env
}

// within reports whether path is dir or lies below it; both are clean.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
