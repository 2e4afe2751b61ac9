package systemd

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"
)

// Mark begins every file that a Set has: who finds it may replace or remove the file.
const Mark = "# Written by `rocm-nightly init systemd`, which replaces it. Your changes belong in drop-ins.\n"

// shippedExec is the program in the units that packages ship.
const shippedExec = "/usr/bin/rocm-nightly"

// DefaultRoot is the root that the units of the system give the service.
const DefaultRoot = "/var/lib/rocm-nightly"

// Options says which files a Set has.
type Options struct {
	User   bool     // the units of a user's manager
	Daemon bool     // the daemon and its socket; else the timers of updates and looks
	Laptop bool     // weekly, and on mains power: with the timers
	GPU    bool     // nights are tried on the GPU
	Exec   []string // the program, absolute, and the arguments that come before its verb
	Root   string   // where it installs, of a system; "" and DefaultRoot need no drop-in
	Links  []Link   // what systemd-tmpfiles makes; of a system

	// Textfile is the directory of metrics.textfile, of a system; "" and what is below
	// the root need no drop-in.
	Textfile string
}

// Link is a link that the service may not make itself.
type Link struct{ Path, Target string }

// File is one file of a Set.
type File struct {
	// Path is relative to where units are (systemd/system), or to what lies beside
	// that: Kind tells.
	Path string
	Kind Kind
	Text string
}

// Kind is what a file is for, and so where it goes.
type Kind string

// The kinds of files: each is the name of a directory of /etc, /usr/lib or, for units
// of users, ~/.config.
const (
	SystemUnit Kind = "systemd/system"
	UserUnit   Kind = "systemd/user"
	SysUsers   Kind = "sysusers.d"
	TmpFiles   Kind = "tmpfiles.d"
)

// Kinds lists them all.
func Kinds() []Kind { return []Kind{SystemUnit, UserUnit, SysUsers, TmpFiles} }

// Set returns the files that o asks for, those of packages but for the path of the
// program and what o changes by drop-ins.
func Set(o Options) ([]File, error) {
	command, err := commandLine(o.Exec)
	if err != nil {
		return nil, err
	}
	dir, kind := ".", SystemUnit
	if o.User {
		dir, kind = "user", UserUnit
	}
	var files []File
	for _, name := range o.units() {
		text, err := fs.ReadFile(Files, path.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("read unit %s: %w", name, err)
		}
		unit := strings.Replace(string(text), "ExecStart="+shippedExec, "ExecStart="+command, 1)
		files = append(files, File{name, kind, Mark + unit})
		more, err := o.over(name, kind)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	if o.User {
		return files, nil
	}
	user, err := fs.ReadFile(Files, "sysusers.d/rocm-nightly.conf")
	if err != nil {
		return nil, err
	}
	files = append(files, File{"rocm-nightly.conf", SysUsers, Mark + string(user)})
	links, err := o.links()
	return append(files, links...), err
}

// units lists the units of a set, by name.
func (o Options) units() []string {
	names := []string{"rocm-nightly-update.service", "rocm-nightly-update.timer"}
	switch {
	case o.User && o.Daemon:
		return []string{"rocm-nightly.service"}
	case o.User:
		return names
	case o.Daemon:
		names = []string{"rocm-nightly.service", "rocm-nightly.socket"}
	default:
		names = append(names, "rocm-nightly-check.service", "rocm-nightly-check.timer")
	}
	return append(names, "rocm-nightly-prune.service", "rocm-nightly-prune.timer")
}

// Enable lists the units of a set that are to be started at every boot.
func (o Options) Enable() []string {
	return slices.DeleteFunc(o.units(), func(name string) bool {
		return strings.HasSuffix(name, ".socket") || strings.HasSuffix(name, ".service") && !(o.Daemon && name == "rocm-nightly.service")
	})
}

// over is what o lays over one unit.
func (o Options) over(unit string, kind Kind) ([]File, error) {
	var files []File
	for name, want := range map[string]bool{"laptop": o.Laptop, "gpu": o.GPU && !o.User} {
		if text := dropIns[unit][name]; want && text != "" {
			files = append(files, File{unit + ".d/" + name + ".conf", kind, Mark + text})
		}
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	if o.User || !strings.HasSuffix(unit, ".service") {
		return files, nil
	}
	numbers, err := o.numbers(unit, kind)
	if err != nil {
		return nil, err
	}
	files = append(files, numbers...)
	if o.Root == "" || o.Root == DefaultRoot {
		return files, nil
	}
	root, err := word(o.Root)
	if err != nil {
		return nil, fmt.Errorf("root: %w", err)
	}
	text := "# The root of the config is elsewhere.\n[Unit]\nRequiresMountsFor=" + root + "\n"
	if unit == "rocm-nightly-prune.service" {
		text += "ConditionPathExists=\nConditionPathExists=" + strings.ReplaceAll(o.Root, "%", "%%") + "/slots\n"
	}
	return append(files, File{unit + ".d/root.conf", kind, Mark + text + "\n[Service]\nReadWritePaths=" + root + "\n"}), nil
}

// numbers lets those that update write metrics.textfile.
func (o Options) numbers(unit string, kind Kind) ([]File, error) {
	below := func(dir string) bool { return strings.HasPrefix(o.Textfile+"/", dir+"/") }
	if o.Textfile == "" || below(cmp.Or(o.Root, DefaultRoot)) || unit != "rocm-nightly.service" && unit != "rocm-nightly-update.service" {
		return nil, nil
	}
	dir, err := word("-" + o.Textfile) // without it, the rest goes on
	if err != nil {
		return nil, fmt.Errorf("metrics.textfile: %w", err)
	}
	text := "# metrics.textfile of the config; the user rocm-nightly must be allowed to write there.\n[Service]\nReadWritePaths=" + dir + "\n"
	return []File{{unit + ".d/textfile.conf", kind, Mark + text}}, nil
}

// links is the file of systemd-tmpfiles, if there is anything for it to do.
func (o Options) links() ([]File, error) {
	if len(o.Links) == 0 {
		return nil, nil
	}
	text := Mark + "# The service cannot make links outside its own directories. L makes one only where\n# nothing is yet.\n"
	for _, l := range o.Links {
		from, err := word(l.Path)
		if err != nil {
			return nil, fmt.Errorf("link: %w", err)
		}
		to, err := word(l.Target)
		if err != nil {
			return nil, fmt.Errorf("link: %w", err)
		}
		text += "L " + from + " - - - - " + to + "\n"
	}
	return []File{{"rocm-nightly-link.conf", TmpFiles, text}}, nil
}

// commandLine quotes a program and its arguments for ExecStart=, where $ begins a
// variable.
func commandLine(exec []string) (string, error) {
	if len(exec) == 0 || !path.IsAbs(exec[0]) {
		return "", errors.New("the program of a unit has no absolute path")
	}
	words := make([]string, len(exec))
	for i, s := range exec {
		w, err := word(s)
		if err != nil {
			return "", fmt.Errorf("the program of a unit: %w", err)
		}
		words[i] = strings.ReplaceAll(w, "$", "$$")
	}
	return strings.Join(words, " "), nil
}

// word quotes a path for unit files and those of systemd-tmpfiles (systemd.syntax(7),
// tmpfiles.d(5)): % begins a specifier, blanks part words.
func word(s string) (string, error) {
	if s == "" || strings.ContainsFunc(s, unicode.IsControl) {
		return "", fmt.Errorf("%q cannot stand in a unit file", s)
	}
	s = strings.ReplaceAll(s, "%", "%%")
	if !strings.ContainsAny(s, " \"'\\;") {
		return s, nil
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`, nil
}
