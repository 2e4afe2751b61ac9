package pinfile

import (
	"path"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/lockfile"
)

// formats is the table of what can be read. A row of code lives in the file of
// its format.
func formats() []format {
	return slices.Concat(
		dataFormats(),
		codeFormats(),
	)
}

// dataFormats are the formats that hold nothing but data, Nix among them for
// what is edited there is data.
func dataFormats() []format {
	return []format{
		nixFormat(),
		{"json", []string{"*.json"}, parseJSON},
		{"json5", []string{"*.json5", "*.jsonc"}, parseJSON5},
		{"yaml", []string{"*.yaml", "*.yml"}, parseYAML},
		{"toml", []string{"*.toml"}, parseTOML},
		{"lock", []string{lockfile.Name}, parseLock},
		{"regex", nil, parsePattern},
	}
}

// Formats lists the formats by name.
func Formats() []string {
	var names []string
	for _, f := range formats() {
		names = append(names, f.name)
	}
	slices.Sort(names)
	return names
}

// FormatOf returns the format of a file by its name, "" if the name tells none.
// A name that stands in the table as it is wins over a pattern.
func FormatOf(file string) string {
	base, two := path.Base(file), lastTwo(file)
	loose := ""
	for _, f := range formats() {
		for _, pattern := range f.names {
			name := base
			if strings.Contains(pattern, "/") {
				name = two
			}
			if pattern == name {
				return f.name
			}
			if ok, err := path.Match(pattern, name); err == nil && ok && loose == "" {
				loose = f.name
			}
		}
	}
	return loose
}

// lastTwo is the file with the directory that it is in.
func lastTwo(file string) string {
	dir, base := path.Split(path.Clean(file))
	return path.Join(path.Base(dir), base)
}

func formatNamed(name string) (format, bool) {
	for _, f := range formats() {
		if f.name == name {
			return f, true
		}
	}
	return format{}, false
}
