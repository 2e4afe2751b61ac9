package doctor

import (
	"github.com/rocm-nightly/rocm-nightly/internal/plain"
)

// Schema is the version of the report's format.
const Schema = 1

// The severities of a finding.
const (
	Broken  = "broken"  // GPU programs do not start, or compute wrong results
	Warning = "warning" // they do so in the cases that are named
	Note    = "note"    // worth knowing
)

// Report is what a doctor says.
type Report struct {
	Schema   int       `json:"schema"`
	System   string    `json:"system"` // distribution and kernel
	Sections []Section `json:"sections"`
	GPUs     []GPU     `json:"gpus,omitempty"`
	Copies   []Copy    `json:"copies,omitempty"`
	Mapped   []Mapping `json:"mapped,omitempty"`   // of --pid and of a command
	Binaries []Binary  `json:"binaries,omitempty"` // of --binaries
	Counts   Counts    `json:"counts"`
}

// Section is one subject.
type Section struct {
	Name     string    `json:"name"`
	Facts    []string  `json:"facts,omitempty"` // what was looked at and is right
	Findings []Finding `json:"findings,omitempty"`
}

// Finding is one thing that is wrong.
type Finding struct {
	Check    string   `json:"check"` // its name in docs/doctor.md
	Severity string   `json:"severity"`
	Subject  string   `json:"subject"` // what was looked at: a file, a variable, a GPU
	Detail   string   `json:"detail"`  // what is wrong with it
	Why      string   `json:"why"`     // why that matters
	Remedy   []string `json:"remedy"`  // commands, or what to do where no command does it
}

// Counts sums up the findings.
type Counts struct {
	Broken  int `json:"broken"`
	Warning int `json:"warning"`
	Note    int `json:"note"`
}

// GPU is a GPU of the machine.
type GPU struct {
	Target     string `json:"target"`
	Name       string `json:"name,omitempty"`
	Node       int    `json:"node"`              // of the KFD topology
	PCI        string `json:"pci,omitempty"`     // 0000:03:00.0
	Render     string `json:"render,omitempty"`  // /dev/dri/renderD128
	CUs        int    `json:"compute_units"`     // 0: unknown
	Integrated bool   `json:"integrated"`        // shares the memory of the CPU
	VRAM       int64  `json:"vram"`              // bytes; 0: unknown
	GTT        int64  `json:"gtt"`               // bytes of system memory that it may use; 0: unknown
	Family     string `json:"family,omitempty"`  // the tarball that serves it; "" for none
	Nearest    string `json:"nearest,omitempty"` // where none does: the target to take instead
}

// Copy is a ROCm on the machine.
type Copy struct {
	Root    string   `json:"root"`    // where its lib directory is in, or that directory
	Version string   `json:"version"` // "" if it does not say
	Kind    string   `json:"kind"`    // whose it is
	Names   []string `json:"names,omitempty"`
	lib     string   // real directory of its libraries
	dirs    []string // real directories that are its own
}

// Mapping is a library of a process.
type Mapping struct {
	Name    string `json:"name"`
	Path    string `json:"path"`           // "" where it is not found
	Copy    string `json:"copy,omitempty"` // Root of the copy that it is of
	Why     string `json:"why"`            // for people
	Deleted bool   `json:"deleted"`        // the file is no longer there
	By      string `json:"by,omitempty"`   // who asked for it
	Process int    `json:"pid,omitempty"`  // 0 for a command that was not started
	Main    bool   `json:"main,omitempty"` // one of comgr, HIP and the HSA runtime
	soname  string // "" if it is not known
}

// Binary is a file that names a generation.
type Binary struct {
	Path       string `json:"path"`
	Kind       string `json:"kind"`       // elf, elf-rpath (it has no DT_RUNPATH), elf-needed, elf-interpreter or text
	Slot       string `json:"slot"`       // nightly-gfx1151
	Generation string `json:"generation"` // 10.2.0a20260930
	Exists     bool   `json:"exists"`     // the generation is still installed
	Line       int    `json:"line,omitempty"`
	text       string // the run path, or the path that is named
}

// close fills Counts, and makes every string printable.
func (r *Report) close() {
	r.System = plain.Text(r.System)
	for i := range r.Sections {
		s := &r.Sections[i]
		plainAll(s.Facts)
		for j := range s.Findings {
			f := &s.Findings[j]
			f.Subject, f.Detail, f.Why = plain.Cut(f.Subject, maxShown), plain.Cut(f.Detail, maxShown), plain.Text(f.Why)
			plainAll(f.Remedy)
			r.Counts.add(f.Severity)
		}
	}
	for i := range r.Copies {
		c := &r.Copies[i]
		c.Root, c.Version = plain.Text(c.Root), plain.Text(c.Version)
		plainAll(c.Names)
	}
	for i := range r.Mapped {
		m := &r.Mapped[i]
		m.Name, m.Path, m.Copy, m.Why, m.By = plain.Text(m.Name), plain.Text(m.Path), plain.Text(m.Copy), plain.Text(m.Why), plain.Text(m.By)
	}
	for i := range r.Binaries {
		b := &r.Binaries[i]
		b.Path, b.Slot, b.Generation = plain.Text(b.Path), plain.Text(b.Slot), plain.Text(b.Generation)
	}
}

func (c *Counts) add(severity string) {
	switch severity {
	case Broken:
		c.Broken++
	case Warning:
		c.Warning++
	default:
		c.Note++
	}
}

// OK reports whether nothing is broken.
func (r *Report) OK() bool { return r.Counts.Broken == 0 }

func plainAll(all []string) {
	for i := range all {
		all[i] = plain.Text(all[i])
	}
}

// maxShown bounds what is shown of a name or of a variable's value, in bytes.
const maxShown = 2048
