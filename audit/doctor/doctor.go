package doctor

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	"github.com/rocm-nightly/rocm-nightly/internal/hostpkg"
)

// Options say what is looked at besides the machine itself.
type Options struct {
	// Table knows GPUs; Families are the slugs that are published now.
	Table    *gfx.Table
	Families []string
	// Root is where generations are kept; "" is nowhere.
	Root string
	// Slot restricts what is installed to one slot, by name.
	Slot string
	// Dir is one ROCm tree that is looked at in place of what is installed.
	Dir string
	// Links are the paths that should lead to a slot, such as /opt/rocm.
	Links []Link
	// User is whose access to the GPUs is judged; "" is that of this process.
	User string
}

// Link is a path that should lead to a slot.
type Link struct{ Path, Slot string }

// exam is one look at a machine.
type exam struct {
	*System
	o         Options
	r         *Report
	sec       *Section
	env       map[string]string
	distro    hostpkg.Distro
	container string // "" outside, else whose: docker, podman …
	gpus      *gfx.Machine
	gpuErr    error
	cards     []card // AMD's GPUs, as PCI and DRM show them
	slots     []slot
	logins    []setting // what files give to logins; nil until it is asked for
	started   bool      // env is that of one process, which no login changes
}

// checks are the sections, in order.
var checks = []struct {
	name string
	run  func(context.Context, *exam) error
}{
	{"system", checkSystem},
	{"gpus", checkGPUs},
	{"driver", checkDriver},
	{"devices", checkDevices},
	{"memory", checkMemory},
	{"environment", checkEnvironment},
	{"copies", checkCopies},
	{"loader", checkLoader},
	{"store", checkStore},
	{"selinux", checkSELinux},
	{"libraries", checkLibraries},
}

// Run looks at a machine. An error means that it could not be looked at; what is
// wrong with it is in the report.
func Run(ctx context.Context, s *System, o Options) (*Report, error) {
	x := newExam(s, o)
	for _, c := range checks {
		if err := x.section(ctx, c.name, c.run); err != nil {
			return nil, err
		}
	}
	x.r.close()
	return x.r, nil
}

// newExam finds out what several checks need.
func newExam(s *System, o Options) *exam {
	x := &exam{System: s, o: o, r: &Report{Schema: Schema, Sections: []Section{}}, env: map[string]string{}}
	for _, e := range s.Environ {
		if name, value, ok := strings.Cut(e, "="); ok {
			x.env[name] = value
		}
	}
	x.distro = hostpkg.Parse(s.text("/etc/os-release"))
	if x.distro.ID == "" {
		x.distro = hostpkg.Parse(s.text("/usr/lib/os-release"))
	}
	x.container = containerOf(x)
	x.cards = findCards(s)
	if o.Table != nil {
		x.gpus, x.gpuErr = o.Table.Detect(sysFS{s})
	}
	if x.gpus == nil {
		x.gpus = &gfx.Machine{}
	}
	x.slots = findSlots(s, o)
	x.r.Copies = x.findCopies()
	name := x.distro.Name
	if name == "" {
		name = "unknown distribution"
	}
	x.r.System = name + ", Linux " + s.Kernel
	return x
}

// section runs one check; one that has nothing to say leaves no trace.
func (x *exam) section(ctx context.Context, name string, run func(context.Context, *exam) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	x.sec = &Section{Name: name}
	if err := run(ctx, x); err != nil {
		return fmt.Errorf("look at %s: %w", name, err)
	}
	x.sec.Findings = merged(x.sec.Findings)
	slices.SortStableFunc(x.sec.Findings, func(a, b Finding) int { return rank(a.Severity) - rank(b.Severity) })
	if len(x.sec.Facts)+len(x.sec.Findings) > 0 {
		x.r.Sections = append(x.r.Sections, *x.sec)
	}
	return nil
}

// merged makes one of findings that differ in their subject alone.
func merged(all []Finding) []Finding {
	var out []Finding
	at := map[string]int{}
	seen := map[string]bool{}
	for _, f := range all {
		key := strings.Join(append([]string{f.Check, f.Severity, f.Detail, f.Why}, f.Remedy...), "\x00")
		again := seen[key+"\x00"+f.Subject]
		seen[key+"\x00"+f.Subject] = true
		i, have := at[key]
		switch {
		case !have:
			at[key] = len(out)
			out = append(out, f)
		case !again && len(out[i].Subject) < maxShown:
			out[i].Subject += ", " + f.Subject
		}
	}
	return out
}

func rank(severity string) int {
	switch severity {
	case Broken:
		return 0
	case Warning:
		return 1
	}
	return 2
}

// fact says what is right.
func (x *exam) fact(format string, args ...any) {
	x.sec.Facts = append(x.sec.Facts, fmt.Sprintf(format, args...))
}

// find files a finding.
func (x *exam) find(f Finding) { x.sec.Findings = append(x.sec.Findings, f) }

// hasGPU reports whether there is any sign of a GPU of AMD's.
func (x *exam) hasGPU() bool { return len(x.gpus.GPUs)+len(x.cards) > 0 }

// home is the user's home directory, "" if it is not known.
func (x *exam) home() string {
	if h := x.env["HOME"]; path.IsAbs(h) {
		return path.Clean(h)
	}
	return ""
}

// who is the user whose access is judged, by name where there is one.
func (x *exam) who() account {
	all := parseAccounts(x.text("/etc/passwd"))
	for _, a := range all {
		if x.o.User == "" && a.uid == x.UID || x.o.User != "" && a.name == x.o.User {
			return a
		}
	}
	if x.o.User != "" {
		return account{name: x.o.User, uid: -1, gid: -1}
	}
	return account{uid: x.UID, gid: x.GID}
}
