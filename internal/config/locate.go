package config

import (
	"errors"
	"strings"
)

// Locate puts the place at which key is set in front of err: FILE:LINE:COLUMN, or the
// variable. It is for what only others can find wrong, such as a schedule.
func (c *Config) Locate(key string, err error) error {
	if err == nil {
		return nil
	}
	return c.complaint(key, err)
}

// Together is what Locate has found wrong at several places as one *Error, in the order
// of the files; nil if that is nothing.
func Together(errs []error) error {
	var all []*Complaint
	for _, err := range errs {
		var c *Complaint
		switch {
		case err == nil:
		case errors.As(err, &c):
			all = append(all, c)
		default:
			all = append(all, &Complaint{Err: err})
		}
	}
	return inOrder(all)
}

// located puts places in front of everything that Validate says.
func (c *Config) located(err error) error {
	if err == nil {
		return nil
	}
	var all []*Complaint
	for _, e := range flat(err) {
		var keyed *keyError
		if errors.As(e, &keyed) {
			all = append(all, c.complaint(keyed.key, keyed.err))
			continue
		}
		// Written by hand: "KEY: REASON".
		if key, reason, found := strings.Cut(e.Error(), ": "); found && !strings.ContainsAny(key, " /") {
			all = append(all, c.complaint(key, errors.New(reason)))
			continue
		}
		all = append(all, &Complaint{Err: e, layer: len(c.layers)})
	}
	return inOrder(all)
}

// flat lists what errors.Join has joined.
func flat(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()
	}
	return []error{err}
}

// complaint is one about a key of c, wherever that was set last: where it is not set,
// what is nearest above it is to blame.
func (c *Config) complaint(key string, err error) *Complaint {
	best := &Complaint{Key: key, Err: err, layer: len(c.layers)}
	steps, reached := stepsOf(key), 0
	for i := len(c.layers) - 1; i >= 0; i-- {
		l := c.layers[i]
		if l.body == nil {
			continue
		}
		node, depth, whole, list := l.find(steps)
		if depth > reached {
			best, reached = l.complain(node, key, err), depth
			best.layer = i
		}
		if whole || list {
			break
		}
	}
	return best
}

// Overrides lists the variables of the environment that set a key of c.
func (c *Config) Overrides() []string {
	var names []string
	for _, l := range c.layers {
		if l.variable != "" {
			names = append(names, l.variable)
		}
	}
	return names
}

// Source says where key was set last: FILE:LINE:COLUMN, or the variable with a $; "" if it
// has its default.
func (c *Config) Source(key string) string {
	steps := stepsOf(key)
	for i := len(c.layers) - 1; i >= 0; i-- {
		l := c.layers[i]
		if l.body == nil {
			continue
		}
		node, _, whole, _ := l.find(steps)
		if !whole {
			continue
		}
		return l.complain(node, key, nil).place()
	}
	return ""
}
