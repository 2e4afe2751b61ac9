package ldcache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Path is where the cache is.
const Path = "/etc/ld.so.cache"

// MaxSize is the largest file that Parse reads, in bytes. Those of real machines
// have a few hundred kilobytes.
const MaxSize = 64 << 20

// ErrFormat is matched by the error for what is not such a cache.
var ErrFormat = errors.New("not a cache of ldconfig")

// Entry is one library.
type Entry struct {
	Name  string // the SONAME, or the file's name where it has none
	Path  string
	Flags uint32 // what kind of library: see X8664
	HWCap string // glibc-hwcaps subdirectory that it needs, such as x86-64-v3; "" for none
}

// flagX8664 is FLAG_ELF_LIBC6 | FLAG_X8664_LIB64 of glibc's ldconfig.h.
const flagX8664 = 0x0303

// X8664 reports whether the entry is a 64-bit library for x86-64.
func (e Entry) X8664() bool { return e.Flags == flagX8664 }

// Cache is what a cache holds, in its order.
type Cache struct {
	Entries []Entry
	byName  map[string][]int
}

// The format is glibc's sysdeps/generic/dl-cache.h: cache_file and
// cache_file_new. All numbers are in the machine's byte order.
const (
	oldMagic  = "ld.so-1.7.0"
	oldHeader = 16 // magic padded to 12, number of libraries
	oldEntry  = 12 // flags, offsets of name and path

	newMagic  = "glibc-ld.so.cache1.1"
	newHeader = 48 // magic, libraries, bytes of strings, flags, extensions, unused
	newEntry  = 24 // flags, offsets of name and path, OS version, hardware capabilities

	endianMask   = 3
	endianLittle = 2

	// A capability that is not a set of bits but an index of the names that an
	// extension lists (dl_cache_hwcap_extension).
	hwcapExtension = 1 << 62
	hwcapIndex     = 0xffffffff

	extensionMagic  = 0xeaa42174
	extensionHWCaps = 1
	maxExtensions   = 1024
)

// Parse reads a cache. Entries whose strings lie outside the file are errors.
func Parse(data []byte) (*Cache, error) {
	if len(data) > MaxSize {
		return nil, fmt.Errorf("parse ld.so.cache: %w: it has %d bytes", ErrFormat, len(data))
	}
	body, err := skipOld(data)
	if err != nil {
		return nil, fmt.Errorf("parse ld.so.cache: %w", err)
	}
	c, err := parseNew(body)
	if err != nil {
		return nil, fmt.Errorf("parse ld.so.cache: %w", err)
	}
	return c, nil
}

// skipOld passes over a cache of the format before glibc 2.2, behind which the
// newer one is, aligned to eight bytes.
func skipOld(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte(oldMagic)) {
		return data, nil
	}
	if len(data) < oldHeader {
		return nil, fmt.Errorf("%w: it ends in its header", ErrFormat)
	}
	end := int64(oldHeader) + int64(binary.LittleEndian.Uint32(data[12:]))*oldEntry
	end = (end + 7) &^ 7
	if end > int64(len(data)) {
		return nil, fmt.Errorf("%w: the format is older than glibc 2.2", ErrFormat)
	}
	return data[end:], nil
}

func parseNew(b []byte) (*Cache, error) {
	if len(b) < newHeader || !bytes.HasPrefix(b, []byte(newMagic)) {
		return nil, fmt.Errorf("%w: it does not begin with %q", ErrFormat, newMagic)
	}
	// Before glibc 2.33 the flags are 0.
	if e := b[28] & endianMask; e != 0 && e != endianLittle {
		return nil, fmt.Errorf("%w: it is in another byte order", ErrFormat)
	}
	count := int64(binary.LittleEndian.Uint32(b[20:]))
	if newHeader+count*newEntry > int64(len(b)) {
		return nil, fmt.Errorf("%w: it ends among its %d entries", ErrFormat, count)
	}
	text := string(b)
	caps := hwcapNames(text, b, binary.LittleEndian.Uint32(b[32:]))
	c := &Cache{Entries: make([]Entry, 0, count), byName: make(map[string][]int, count)}
	for i := range int(count) {
		raw := b[newHeader+i*newEntry:]
		e := Entry{Flags: binary.LittleEndian.Uint32(raw)}
		var okName, okPath bool
		e.Name, okName = stringAt(text, binary.LittleEndian.Uint32(raw[4:]))
		e.Path, okPath = stringAt(text, binary.LittleEndian.Uint32(raw[8:]))
		if !okName || !okPath {
			return nil, fmt.Errorf("%w: entry %d names a place outside the file", ErrFormat, i)
		}
		if cap := binary.LittleEndian.Uint64(raw[16:]); cap&hwcapExtension != 0 {
			if n := cap & hwcapIndex; n < uint64(len(caps)) {
				e.HWCap = caps[n]
			} else {
				continue // no loader takes what it cannot name
			}
		}
		c.byName[e.Name] = append(c.byName[e.Name], len(c.Entries))
		c.Entries = append(c.Entries, e)
	}
	return c, nil
}

// maxString bounds a name or a path: PATH_MAX.
const maxString = 4096

// stringAt is the string that ends with a zero byte at an offset. It is a part
// of text: entries may share one string.
func stringAt(text string, at uint32) (string, bool) {
	if int64(at) >= int64(len(text)) {
		return "", false
	}
	rest := text[at:min(int64(len(text)), int64(at)+maxString)]
	end := strings.IndexByte(rest, 0)
	if end < 0 {
		return "", false
	}
	return rest[:end], true
}

// hwcapNames reads the names of the glibc-hwcaps subdirectories from the
// extensions (glibc 2.33 and later). Where they make no sense there are none.
func hwcapNames(text string, b []byte, at uint32) []string {
	if at == 0 || int64(at)+8 > int64(len(b)) || binary.LittleEndian.Uint32(b[at:]) != extensionMagic {
		return nil
	}
	count := binary.LittleEndian.Uint32(b[at+4:])
	for i := range min(int64(count), maxExtensions) {
		section := int64(at) + 8 + i*16
		if section+16 > int64(len(b)) {
			return nil
		}
		s := b[section:]
		if binary.LittleEndian.Uint32(s) != extensionHWCaps {
			continue
		}
		offset, size := int64(binary.LittleEndian.Uint32(s[8:])), int64(binary.LittleEndian.Uint32(s[12:]))
		if offset+size > int64(len(b)) || size > 4*maxExtensions {
			return nil
		}
		return namesAt(text, b[offset:offset+size])
	}
	return nil
}

func namesAt(text string, offsets []byte) []string {
	var names []string
	for ; len(offsets) >= 4; offsets = offsets[4:] {
		name, ok := stringAt(text, binary.LittleEndian.Uint32(offsets))
		if !ok {
			return nil
		}
		names = append(names, name)
	}
	return names
}

// Lookup returns the paths that a 64-bit program finds a library at, the one
// that the loader takes first. caps are the names of the glibc-hwcaps
// subdirectories that the processor may use, best first.
func (c *Cache) Lookup(name string, caps []string) []string {
	rank := func(e Entry) int {
		if e.HWCap == "" {
			return len(caps)
		}
		return slices.Index(caps, e.HWCap)
	}
	var found []Entry
	for _, i := range c.byName[name] {
		if e := c.Entries[i]; e.X8664() && rank(e) >= 0 {
			found = append(found, e)
		}
	}
	slices.SortStableFunc(found, func(a, b Entry) int { return rank(a) - rank(b) })
	paths := make([]string, 0, len(found))
	for _, e := range found {
		paths = append(paths, e.Path)
	}
	return paths
}
