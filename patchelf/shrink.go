package patchelf

import (
	"errors"
	"strings"
)

// ShrinkOptions says how Shrink judges the entries of a run path.
type ShrinkOptions struct {
	// Has tells whether directory dir holds the library lib for this file.
	Has func(dir, lib string) bool
	// AllowedPrefixes, if any: entries that start with none of these are
	// dropped. They are compared as text: /a allows /ab.
	AllowedPrefixes []string
	// Origin is the directory of the file. Where it is set, entries with
	// $ORIGIN are judged like others; else they stay without a look.
	Origin string
}

// Shrink returns the run path of f with those entries that serve it: each that
// has a needed library which no earlier one has. Entries that are not absolute
// stay, for where they lead depends on who loads the file, and libraries in
// them count for nobody. Empty entries go. It writes nothing.
func Shrink(f *File, o ShrinkOptions) (string, error) {
	path, tag := f.Path()
	if tag == 0 {
		return "", nil
	}
	if o.Has == nil {
		return "", errors.New("shrink run path: ShrinkOptions.Has is missing")
	}
	var stay []string
	found := make([]bool, len(f.Needed))
	for _, entry := range strings.Split(path, ":") {
		dir, judged := o.resolve(entry)
		if !judged {
			stay = append(stay, entry)
			continue
		}
		if entry != "" && o.allowed(entry) && serves(f.Needed, found, dir, o.Has) {
			stay = append(stay, entry)
		}
	}
	return strings.Join(stay, ":"), nil
}

// serves notes which libraries dir has, and tells whether any is new.
func serves(needed []string, found []bool, dir string, has func(dir, lib string) bool) bool {
	serves := false
	for i, lib := range needed {
		if !found[i] && has(dir, lib) {
			found[i], serves = true, true
		}
	}
	return serves
}

// resolve returns the directory that an entry means, and whether it is to be
// judged at all.
func (o ShrinkOptions) resolve(entry string) (dir string, judged bool) {
	if entry == "" || strings.HasPrefix(entry, "/") {
		return entry, true
	}
	if o.Origin == "" {
		return "", false
	}
	for _, token := range []string{"${ORIGIN}", "$ORIGIN"} {
		rest, ok := strings.CutPrefix(entry, token)
		if ok && (rest == "" || rest[0] == '/') && !strings.Contains(rest, "$") {
			return o.Origin + rest, true
		}
	}
	return "", false
}

func (o ShrinkOptions) allowed(entry string) bool {
	if len(o.AllowedPrefixes) == 0 || !strings.HasPrefix(entry, "/") {
		return true
	}
	for _, prefix := range o.AllowedPrefixes {
		if strings.HasPrefix(entry, prefix) {
			return true
		}
	}
	return false
}

// Loads tells whether a loader that runs f takes the library lib: the machine,
// the class and the byte order are those of f.
func (f *File) Loads(lib *File) bool {
	return f.Machine == lib.Machine && f.Class == lib.Class && f.ByteOrder == lib.ByteOrder
}
