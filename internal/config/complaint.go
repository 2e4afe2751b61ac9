package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Complaint is one thing that is wrong with the config.
type Complaint struct {
	File         string // in which it is, "" if it is in none
	Line, Column int    // from 1; 0 if nothing in File is to blame
	Variable     string // of the environment, that set the key
	Key          string // such as installs[0].keep.last; "" if it is about the whole
	Err          error  // what is wrong with it

	layer int // for the order: of the files, then the variables
}

// Error is FILE:LINE:COLUMN: KEY: REASON, which editors can jump to.
func (c *Complaint) Error() string {
	text := c.Err.Error()
	if c.Key != "" {
		text = c.Key + ": " + text
	}
	if place := c.place(); place != "" {
		return place + ": " + text
	}
	return text
}

func (c *Complaint) place() string {
	switch {
	case c.Variable != "":
		return "$" + c.Variable
	case c.File != "" && c.Line > 0:
		return fmt.Sprintf("%s:%d:%d", c.File, c.Line, c.Column)
	}
	return c.File
}

// Unwrap returns the reason.
func (c *Complaint) Unwrap() error { return c.Err }

// Error is everything that is wrong with the config, in the order of its files.
type Error struct{ Complaints []*Complaint }

// Error has a line for each complaint.
func (e *Error) Error() string {
	if len(e.Complaints) == 1 {
		return e.Complaints[0].Error()
	}
	lines := []string{fmt.Sprintf("%d things are wrong with the config:", len(e.Complaints))}
	for _, c := range e.Complaints {
		lines = append(lines, c.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the complaints.
func (e *Error) Unwrap() []error {
	errs := make([]error, len(e.Complaints))
	for i, c := range e.Complaints {
		errs[i] = c
	}
	return errs
}

// inOrder returns the complaints as one error, nil if there are none. What is said
// twice of one place is said once.
func inOrder(all []*Complaint) error {
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b *Complaint) int {
		return cmp.Or(cmp.Compare(a.layer, b.layer), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	all = slices.CompactFunc(all, func(a, b *Complaint) bool { return a.Error() == b.Error() })
	return &Error{Complaints: all}
}
