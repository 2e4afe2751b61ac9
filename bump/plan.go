package bump

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/bump/pinfile"
)

var errNoFiles = errors.New("no files are named that hold a pin")

// want is what one target file shall hold.
type want struct {
	path string
	o    pinfile.Options
	set  map[string]string // key -> value
	pins map[string]Pin    // key -> the pin that the value is of
	from []entry           // what asked for it
}

// entry is a File with its pin.
type entry struct {
	file File
	pin  Pin
}

// plan is what a repository shall hold.
type plan struct {
	wants   []want // by path
	targets []string
	missing []string // targets of files without a pin
}

// planFiles expands the templates of all files that have a pin. Files of the
// same path become one want, so that each file is edited once.
func planFiles(files []File, pins map[string]Pin) (*plan, error) {
	if len(files) == 0 {
		return nil, errNoFiles
	}
	p := &plan{}
	byPath := map[string]*want{}
	targets, missing := map[string]bool{}, map[string]bool{}
	for _, f := range files {
		if err := checkFile(f); err != nil {
			return nil, err
		}
		target, pin, ok, err := pinFor(f, pins)
		if err != nil {
			return nil, err
		}
		if !ok {
			missing[target] = true
			continue
		}
		targets[target] = true
		w := byPath[f.Path]
		if w == nil {
			w = &want{path: f.Path, o: pinfile.Options{Format: f.Format, Pattern: f.Pattern}, set: map[string]string{}, pins: map[string]Pin{}}
			byPath[f.Path] = w
		}
		if w.o != (pinfile.Options{Format: f.Format, Pattern: f.Pattern}) {
			return nil, fmt.Errorf("plan %s: two entries read it in different ways (give both the same format and pattern)", f.Path)
		}
		if err := w.add(f, pin); err != nil {
			return nil, err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		p.wants = append(p.wants, *byPath[path])
	}
	p.targets = slices.Sorted(maps.Keys(targets))
	p.missing = slices.Sorted(maps.Keys(missing))
	return p, nil
}

func (w *want) add(f File, pin Pin) error {
	w.from = append(w.from, entry{f, pin})
	for _, key := range slices.Sorted(maps.Keys(f.Set)) {
		value, err := expand(f.Path, key, f.Set[key], pin)
		if err != nil {
			return err
		}
		if old, twice := w.set[key]; twice && old != value {
			return fmt.Errorf("plan %s: %s is set twice, to %.100q and to %.100q (name each by its path)", f.Path, key, old, value)
		}
		w.set[key], w.pins[key] = value, pin
	}
	return nil
}

// pinFor returns the pin of f, or false when its target has none.
func pinFor(f File, pins map[string]Pin) (string, Pin, bool, error) {
	target := f.Target
	if target == "" {
		if len(pins) != 1 {
			return "", Pin{}, false, fmt.Errorf("plan %s: it names no target and there are %d pins (write target: in its entry)", f.Path, len(pins))
		}
		target = slices.Collect(maps.Keys(pins))[0]
	}
	pin, ok := pins[target]
	if pin.Target == "" {
		pin.Target = target
	}
	return target, pin, ok, checkPin(pin)
}

// checkPin refuses control characters, which would end up in a commit message
// or an attribute.
func checkPin(p Pin) error {
	for _, s := range []string{p.Version, p.URL, p.SRI, p.Hex, p.Nix32, p.Date, p.Family, p.Target, p.Channel, p.Name} {
		if strings.ContainsFunc(s, isControl) {
			return fmt.Errorf("read pin of %.40q: %.100q holds a control character", p.Target, s)
		}
	}
	return nil
}

func checkFile(f File) error {
	if err := checkPath(f.Path); err != nil {
		return err
	}
	if f.Format != "" && !slices.Contains(pinfile.Formats(), f.Format) {
		return fmt.Errorf("plan %s: format %.40q is not known (known: %s)", f.Path, f.Format, strings.Join(pinfile.Formats(), ", "))
	}
	if len(f.Set) == 0 {
		return fmt.Errorf("plan %s: nothing is set (write e.g. set: {version: \"{{.Version}}\"})", f.Path)
	}
	return nil
}

// checkPath accepts a relative path with slashes that stays inside the
// repository and out of .git, in any spelling that some file system takes for
// .git.
func checkPath(path string) error {
	if !fs.ValidPath(path) || path == "." || strings.ContainsAny(path, "\\:\x00\n\r\"") {
		return fmt.Errorf("plan %.200q: not a relative path inside the repository", path)
	}
	for part := range strings.SplitSeq(path, "/") {
		trimmed := strings.ToLower(strings.TrimRight(part, ". "))
		if trimmed == ".git" || trimmed == "git~1" {
			return fmt.Errorf("plan %.200q: files of .git are not edited", path)
		}
	}
	return nil
}
