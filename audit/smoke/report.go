package smoke

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
)

// Schema is the version of the report's format.
const Schema = 1

// What a check comes to.
const (
	Passed   = "passed"    // it was run, and is as it should be
	Failed   = "failed"    // it was run, and is not
	NotThere = "not-there" // the tree does not have it, or this machine lacks what it takes
	NotRun   = "not-run"   // it could not be run here, whatever it would have come to
)

// The environments of a check.
const (
	Empty   = "empty"   // HOME, TMPDIR, PATH and LANG
	Hostile = "hostile" // another ROCm wherever a variable can put one
)

// The modes of a run.
const (
	Auto = "auto" // CPU, and GPU where /dev/kfd can be used and a GPU is served
	CPU  = "cpu"  // what takes no GPU
	GPU  = "gpu"  // kernels on the GPUs of this machine
)

// Check is one thing that was tried, in one environment.
type Check struct {
	Name        string  `json:"name"`             // one of Checks
	Environment string  `json:"environment"`      // Empty or Hostile
	Target      string  `json:"target,omitempty"` // what was compiled for, or the GPU's
	GPU         *int    `json:"gpu,omitempty"`    // the GPU's KFD node
	Status      string  `json:"status"`
	Detail      string  `json:"detail"`            // one line: what was seen, or is missing
	Seconds     float64 `json:"seconds,omitempty"` // how long it ran
	Command     string  `json:"command,omitempty"` // the last that was run
	Output      string  `json:"output,omitempty"`  // the end of what it printed, unless it passed; escapes of Go for what is not text
}

// Counts sums up the checks.
type Counts struct {
	Passed   int `json:"passed"`
	Failed   int `json:"failed"`
	NotThere int `json:"not_there"`
	NotRun   int `json:"not_run"`
}

// Report is what a run says.
type Report struct {
	Schema  int      `json:"schema"`
	Dir     string   `json:"dir"`     // as it was given
	Mode    string   `json:"mode"`    // as it was asked for
	Targets []string `json:"targets"` // what is compiled for
	From    string   `json:"from"`    // what named the targets
	Cage    string   `json:"cage"`    // the kind of cage; "" when there was none
	Counts  Counts   `json:"counts"`
	Checks  []Check  `json:"checks"`
}

// Failures returns the checks that failed.
func (r *Report) Failures() []Check {
	return slices.DeleteFunc(slices.Clone(r.Checks), func(c Check) bool { return c.Status != Failed })
}

// Summary is the report in one line.
func (r *Report) Summary() string {
	c := r.Counts
	text := fmt.Sprintf("smoke: %d passed, %d failed, %d not there, %d not run", c.Passed, c.Failed, c.NotThere, c.NotRun)
	if c.Passed+c.Failed == 0 {
		text += "; nothing was tried"
	}
	return text
}

// Table writes the report for people: a line for each check, and below those
// that failed the end of what they printed.
func (r *Report) Table(w io.Writer) error {
	b := bufio.NewWriter(w)
	for _, c := range r.Checks {
		fmt.Fprintf(b, "%-9s %s: %s\n", strings.ReplaceAll(c.Status, "-", " "), c.title(), c.Detail)
		if c.Status != Failed {
			continue
		}
		if c.Command != "" {
			fmt.Fprintf(b, "    $ %s\n", c.Command)
		}
		for line := range strings.Lines(c.Output) {
			fmt.Fprintf(b, "    | %s\n", strings.TrimRight(line, "\n"))
		}
	}
	fmt.Fprintln(b, r.Summary())
	return b.Flush()
}

// title names the check for people.
func (c Check) title() string {
	text := c.Name
	if c.Target != "" {
		text += " " + c.Target
	}
	if c.GPU != nil {
		text += " (node " + strconv.Itoa(*c.GPU) + ")"
	}
	if c.Environment == Hostile {
		text += ", beside another ROCm"
	}
	return text
}

// close sums up and orders: by the order of Checks, then target, GPU and
// environment.
func (r *Report) close() {
	order := map[string]int{}
	for i, k := range Checks() {
		order[k.Name] = i
	}
	slices.SortStableFunc(r.Checks, func(a, b Check) int {
		return cmp.Or(cmp.Compare(order[a.Name], order[b.Name]), cmp.Compare(node(a), node(b)), cmp.Compare(a.Environment, b.Environment))
	})
	for _, c := range r.Checks {
		switch c.Status {
		case Passed:
			r.Counts.Passed++
		case Failed:
			r.Counts.Failed++
		case NotThere:
			r.Counts.NotThere++
		default:
			r.Counts.NotRun++
		}
	}
}

func node(c Check) int {
	if c.GPU == nil {
		return -1
	}
	return *c.GPU
}

// seconds rounds to hundredths.
func seconds(d time.Duration) float64 {
	return float64(d.Round(10*time.Millisecond)) / float64(time.Second)
}

// What is kept of a program's output in a report.
const (
	maxLines  = 12
	maxOutput = 2000 // bytes
	maxDetail = 300
)

// tail is the end of what a program printed, line by line, with nothing in it
// that a terminal obeys.
func tail(text string) string {
	if cut := len(text) - maxOutput; cut > 0 {
		text = text[cut:]
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	lines = lines[max(0, len(lines)-maxLines):]
	for i, l := range lines {
		lines[i] = plain.Text(strings.ReplaceAll(strings.TrimRight(l, "\r\t "), "\t", "    "))
	}
	return strings.Join(lines, "\n")
}

// short bounds a line that becomes part of a detail.
func short(s string) string { return plain.Cut(strings.TrimSpace(s), maxDetail) }
