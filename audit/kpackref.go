package audit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// The section is one MessagePack map (github.com/msgpack/msgpack, spec.md) with
// a string kernel_name and an array of strings kpack_search_paths, each relative
// to the real directory of the file or absolute, with @GFXARCH@ for the name of
// the GPU (ROCm/rocm-kpack, runtime/src/loader.cpp). Bytes behind the map are
// padding.

// Limits on the section.
const (
	maxKpackRef   = 1 << 20 // bytes looked at
	maxKpackPaths = 256
	maxKpackPath  = 4096 // bytes, PATH_MAX
	maxKpackDepth = 16   // nested values that are passed over
)

// kpackRef is what one file says of its GPU code archives.
type kpackRef struct {
	kernel string
	paths  []string
	err    error // why the map cannot be read; paths are then strings that end in .kpack
}

// readKpackRef decodes a section. It never fails: what cannot be decoded is
// searched for names of archives.
func readKpackRef(b []byte) *kpackRef {
	b = b[:min(len(b), maxKpackRef)]
	r, err := decodeKpackRef(b)
	if err != nil {
		return &kpackRef{paths: archiveNames(b), err: err}
	}
	return r
}

var errKpackShort = errors.New("it ends in the middle of a value")

// msgpack reads one value after the other.
type msgpack struct{ b []byte }

func (m *msgpack) take(n uint64) ([]byte, error) {
	if n > uint64(len(m.b)) {
		return nil, errKpackShort
	}
	out := m.b[:n]
	m.b = m.b[n:]
	return out, nil
}

// number reads a big-endian length of n bytes.
func (m *msgpack) number(n uint64) (uint64, error) {
	b, err := m.take(n)
	if err != nil {
		return 0, err
	}
	var wide [8]byte
	copy(wide[8-n:], b)
	return binary.BigEndian.Uint64(wide[:]), nil
}

// head is the start of a value: what it is, and its length in bytes or values.
type head struct {
	kind byte // one of the kinds below
	n    uint64
}

const (
	kindScalar = iota // n bytes follow
	kindString
	kindArray
	kindMap
)

// next reads the head of a value. The formats are those of the specification;
// 0xc1 is never used.
func (m *msgpack) next() (head, error) {
	b, err := m.take(1)
	if err != nil {
		return head{}, err
	}
	switch c := b[0]; {
	case c <= 0x7f, c >= 0xe0, c == 0xc0, c == 0xc2, c == 0xc3:
		return head{kindScalar, 0}, nil
	case c <= 0x8f:
		return head{kindMap, uint64(c & 0x0f)}, nil
	case c <= 0x9f:
		return head{kindArray, uint64(c & 0x0f)}, nil
	case c <= 0xbf:
		return head{kindString, uint64(c & 0x1f)}, nil
	case c == 0xc1:
		return head{}, fmt.Errorf("byte 0x%02x starts no value", c)
	case c <= 0xc6: // bin 8, 16, 32
		return m.sized(kindScalar, 1<<(c-0xc4), 0)
	case c <= 0xc9: // ext 8, 16, 32: a type byte follows the length
		return m.sized(kindScalar, 1<<(c-0xc7), 1)
	case c <= 0xcb: // float 32, 64
		return head{kindScalar, 4 << (c - 0xca)}, nil
	case c <= 0xd3: // uint and int 8, 16, 32, 64
		return head{kindScalar, 1 << ((c - 0xcc) % 4)}, nil
	case c <= 0xd8: // fixext 1 … 16
		return head{kindScalar, 1<<(c-0xd4) + 1}, nil
	case c <= 0xdb:
		return m.sized(kindString, 1<<(c-0xd9), 0)
	case c <= 0xdd:
		return m.sized(kindArray, 2<<(c-0xdc), 0)
	default:
		return m.sized(kindMap, 2<<(c-0xde), 0)
	}
}

func (m *msgpack) sized(kind byte, width, more uint64) (head, error) {
	n, err := m.number(width)
	return head{kind, n + more}, err
}

// skip passes over one value. Each value has at least one byte, so that the
// work is bounded by the input.
func (m *msgpack) skip(depth int) error {
	h, err := m.next()
	if err != nil {
		return err
	}
	n := h.n
	switch h.kind {
	case kindScalar, kindString:
		_, err := m.take(n)
		return err
	case kindMap:
		n *= 2
	}
	if depth >= maxKpackDepth {
		return fmt.Errorf("values are nested deeper than %d", maxKpackDepth)
	}
	for ; n > 0; n-- {
		if err := m.skip(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

func (m *msgpack) text() (string, error) {
	h, err := m.next()
	switch {
	case err != nil:
		return "", err
	case h.kind != kindString:
		return "", errors.New("a string was expected")
	case h.n > maxKpackPath:
		return "", fmt.Errorf("a string has %d bytes, more than %d", h.n, maxKpackPath)
	}
	b, err := m.take(h.n)
	return string(b), err
}

// decodeKpackRef reads the map; keys that are not known are passed over.
func decodeKpackRef(b []byte) (*kpackRef, error) {
	m := &msgpack{b}
	h, err := m.next()
	if err != nil {
		return nil, err
	}
	if h.kind != kindMap {
		return nil, errors.New("it is not a map")
	}
	r := &kpackRef{}
	for ; h.n > 0; h.n-- {
		key, err := m.text()
		if err != nil {
			return nil, err
		}
		switch key {
		case "kernel_name":
			r.kernel, err = m.text()
		case "kpack_search_paths":
			r.paths, err = m.texts()
		default:
			err = m.skip(0)
		}
		if err != nil {
			return nil, fmt.Errorf("%.40q: %w", key, err)
		}
	}
	if len(r.paths) == 0 {
		return nil, errors.New("it has no kpack_search_paths")
	}
	return r, nil
}

func (m *msgpack) texts() ([]string, error) {
	h, err := m.next()
	switch {
	case err != nil:
		return nil, err
	case h.kind != kindArray:
		return nil, errors.New("an array was expected")
	case h.n > maxKpackPaths:
		return nil, fmt.Errorf("%d paths, more than %d", h.n, maxKpackPaths)
	}
	var out []string
	for ; h.n > 0; h.n-- {
		s, err := m.text()
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// archiveNames finds printable strings that end in .kpack.
func archiveNames(b []byte) []string {
	var out []string
	suffix := []byte(".kpack")
	for rest := b; len(out) < maxKpackPaths; {
		i := bytes.Index(rest, suffix)
		if i < 0 {
			break
		}
		end := i + len(suffix)
		start := i
		for start > 0 && i-start < maxKpackPath && rest[start-1] > ' ' && rest[start-1] < 0x7f {
			start--
		}
		// "../.kpack/x.kpack" holds the suffix twice: the name goes on.
		for end < len(rest) && rest[end] > ' ' && rest[end] < 0x7f && end-start < maxKpackPath {
			end++
		}
		if name := rest[start:end]; bytes.HasSuffix(name, suffix) && i > start {
			// A length byte in front of a short string may be printable.
			if at := bytes.Index(name, []byte("../")); at > 0 {
				name = name[at:]
			}
			if !slices.Contains(out, string(name)) {
				out = append(out, string(name))
			}
		}
		rest = rest[end:]
	}
	return out
}
