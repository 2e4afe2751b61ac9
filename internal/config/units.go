package config

import (
	"encoding"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// valueError is what a scalar that is read from text does not like about it.
type valueError struct{ err error }

func (e *valueError) Error() string { return e.err.Error() }

func (e *valueError) Unwrap() error { return e.err }

// fromNode reads v from the text of a scalar. An empty value leaves v as it is.
func fromNode(v encoding.TextUnmarshaler, node ast.Node) error {
	var err error
	switch n := node.(type) {
	case *ast.NullNode:
		return nil
	case *ast.StringNode:
		err = v.UnmarshalText([]byte(n.Value))
	case ast.ScalarNode:
		err = v.UnmarshalText([]byte(n.GetToken().Value))
	default:
		err = fmt.Errorf("a %s is no plain value", strings.ToLower(node.Type().String()))
	}
	if err != nil {
		return &valueError{err}
	}
	return nil
}

// Duration is a time.Duration written as Go writes it: 90s, 2h, 96h.
type Duration time.Duration

// String returns d as it is written.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (d *Duration) UnmarshalYAML(node ast.Node) error { return fromNode(d, node) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a duration such as 90s, 2h or 96h", b)
	}
	*d = Duration(v)
	return nil
}

// Patience is a Duration, or auto: whatever is usual for the channel.
type Patience struct {
	Auto  bool
	After Duration // if not Auto
}

// Or returns what p means where usual is usual.
func (p Patience) Or(usual time.Duration) time.Duration {
	if p.Auto {
		return usual
	}
	return time.Duration(p.After)
}

// MarshalText implements encoding.TextMarshaler.
func (p Patience) MarshalText() ([]byte, error) {
	if p.Auto {
		return []byte("auto"), nil
	}
	return p.After.MarshalText()
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (p *Patience) UnmarshalYAML(node ast.Node) error { return fromNode(p, node) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Patience) UnmarshalText(b []byte) error {
	*p = Patience{Auto: string(b) == "auto"}
	if p.Auto {
		return nil
	}
	if err := p.After.UnmarshalText(b); err != nil {
		return fmt.Errorf("%w, nor auto", err)
	}
	return nil
}

// Size is a number of bytes, written plainly or with a unit: 0, 50MB, 200GiB.
type Size int64

var sizeRE = regexp.MustCompile(`^([0-9]{1,15})\s*(|B|[kKMGT]B|[KMGT]iB)$`)

// units are the factors of SI and IEC 80000-13.
var units = map[string]int64{
	"": 1, "B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (s *Size) UnmarshalYAML(node ast.Node) error { return fromNode(s, node) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Size) UnmarshalText(b []byte) error {
	m := sizeRE.FindSubmatch(b)
	if m == nil {
		return fmt.Errorf("%q is not a size such as 0, 50MB or 200GiB", b)
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	unit := units[string(m[2])]
	if err != nil || n > (1<<62)/unit {
		return fmt.Errorf("size %q is too large", b)
	}
	*s = Size(n * unit)
	return nil
}

// String returns s with the largest unit that divides it.
func (s Size) String() string {
	for _, unit := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if f := units[unit]; s != 0 && int64(s)%f == 0 {
			return strconv.FormatInt(int64(s)/f, 10) + unit
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// MarshalText implements encoding.TextMarshaler.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
