package diff

import (
	"fmt"
	"slices"
)

// notes gathers what could not be compared: one line for each thing, with its
// first example.
type notes map[string]*note

type note struct {
	count int
	path  string // the first by name
	err   error
}

// add counts one more case of what.
func (ns *notes) add(what, path string, err error) {
	if *ns == nil {
		*ns = notes{}
	}
	n := (*ns)[what]
	if n == nil {
		n = &note{path: path, err: err}
		(*ns)[what] = n
	}
	if path < n.path {
		n.path, n.err = path, err
	}
	n.count++
}

// lines are the notes for people, sorted.
func (ns notes) lines() []string {
	var out []string
	for what, n := range ns {
		line := what
		if n.path != "" {
			line = fmt.Sprintf("%s: %d, such as %s", what, n.count, n.path)
		}
		if n.err != nil {
			line += fmt.Sprintf(" (%v)", n.err)
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}
