package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// patchelfFlags is what one command line of the verb patchelf asks for.
type patchelfFlags struct {
	files []string

	printInterp, printABI, printSoname, printPath, printNeeded, printStack bool

	interp             string
	soname             *string
	setPath, addPath   *string
	removePath         bool
	shrinkPath         bool
	prefixes           []string
	force              bool // DT_RPATH, not DT_RUNPATH
	addNeeded          []string
	removeNeeded       []string
	replaceNeeded      map[string]string
	noDefaultLib       bool
	debugTag           bool
	clearStack, xStack bool

	output                                 string
	atomic, sync, follow, breakLinks       bool
	touch, resolveOrigin, moveHeaders      bool
	json, debug, quiet, helpMe, versionAsk bool
	notes                                  []string // warnings about the command line
}

// patchelfFlag is one flag: its names, the names of its values, what it does,
// and how it is noted. patchelf's own have no dash dash VALUE=form, and that
// of a flag that takes a value is always the next argument.
type patchelfFlag struct {
	names  string
	values string // names of the values, separated by spaces
	raw    bool   // a value that starts with @ is no file
	help   string
	set    func(f *patchelfFlags, v []string) error
}

// patchelfUsage is wrong usage that patchelf knows too: exit 1, as there.
type patchelfUsage string

func (e patchelfUsage) Error() string { return string(e) }

func on(field func(*patchelfFlags) *bool) func(*patchelfFlags, []string) error {
	return func(f *patchelfFlags, _ []string) error {
		*field(f) = true
		return nil
	}
}

func keepText(field func(*patchelfFlags) **string) func(*patchelfFlags, []string) error {
	return func(f *patchelfFlags, v []string) error {
		*field(f) = &v[0]
		return nil
	}
}

func more(field func(*patchelfFlags) *[]string) func(*patchelfFlags, []string) error {
	return func(f *patchelfFlags, v []string) error {
		*field(f) = append(*field(f), v[0])
		return nil
	}
}

func ignored(*patchelfFlags, []string) error { return nil }

// patchelfFlagTable has patchelf's flags first, then those that it lacks.
var patchelfFlagTable = []patchelfFlag{
	{names: "--print-interpreter", help: "print the program interpreter", set: on(func(f *patchelfFlags) *bool { return &f.printInterp })},
	{names: "--print-os-abi", help: "print the OS ABI of the ELF header", set: on(func(f *patchelfFlags) *bool { return &f.printABI })},
	{names: "--print-soname", help: "print DT_SONAME, if there is one", set: on(func(f *patchelfFlags) *bool { return &f.printSoname })},
	{names: "--print-rpath", help: "print the run path: DT_RUNPATH, else DT_RPATH", set: on(func(f *patchelfFlags) *bool { return &f.printPath })},
	{names: "--print-needed", help: "print the libraries needed, one a line", set: on(func(f *patchelfFlags) *bool { return &f.printNeeded })},
	{names: "--print-execstack", help: "print X if the stack is executable, - if not, ? if unsaid", set: on(func(f *patchelfFlags) *bool { return &f.printStack })},
	{names: "--set-interpreter --interpreter", values: "FILE", help: "set the program interpreter", set: func(f *patchelfFlags, v []string) error {
		f.interp = v[0]
		return nil
	}},
	{names: "--set-soname", values: "NAME", help: "set DT_SONAME of a library", set: keepText(func(f *patchelfFlags) **string { return &f.soname })},
	{names: "--set-rpath", values: "PATH", help: "set the run path; an empty one is removed", set: keepText(func(f *patchelfFlags) **string { return &f.setPath })},
	{names: "--add-rpath", values: "PATH", help: "add what is not there yet to the end of the run path", set: keepText(func(f *patchelfFlags) **string { return &f.addPath })},
	{names: "--remove-rpath", help: "remove the run path", set: on(func(f *patchelfFlags) *bool { return &f.removePath })},
	{names: "--shrink-rpath", help: "remove directories that have none of the libraries needed", set: on(func(f *patchelfFlags) *bool { return &f.shrinkPath })},
	{names: "--allowed-rpath-prefixes", values: "PREFIXES", raw: true, help: "with --shrink-rpath, remove absolute ones that start otherwise", set: func(f *patchelfFlags, v []string) error {
		f.prefixes = splitPath(v[0])
		return nil
	}},
	{names: "--force-rpath", help: "make it DT_RPATH where the run path is edited, not DT_RUNPATH", set: on(func(f *patchelfFlags) *bool { return &f.force })},
	{names: "--add-needed", values: "LIBRARY", help: "need a library, before the others", set: more(func(f *patchelfFlags) *[]string { return &f.addNeeded })},
	{names: "--remove-needed", values: "LIBRARY", help: "do not need a library", set: more(func(f *patchelfFlags) *[]string { return &f.removeNeeded })},
	{names: "--replace-needed", values: "LIBRARY NEW", raw: true, help: "need another library instead, symbol versions included", set: func(f *patchelfFlags, v []string) error {
		if f.replaceNeeded == nil {
			f.replaceNeeded = map[string]string{}
		}
		f.replaceNeeded[v[0]] = v[1]
		return nil
	}},
	{names: "--no-default-lib", help: "do not search the default directories (DF_1_NODEFLIB)", set: on(func(f *patchelfFlags) *bool { return &f.noDefaultLib })},
	{names: "--add-debug-tag", help: "add DT_DEBUG", set: on(func(f *patchelfFlags) *bool { return &f.debugTag })},
	{names: "--clear-execstack", help: "ask for a stack that is not executable", set: on(func(f *patchelfFlags) *bool { return &f.clearStack })},
	{names: "--set-execstack", help: "ask for an executable stack", set: on(func(f *patchelfFlags) *bool { return &f.xStack })},
	{names: "--output", values: "FILE", help: "leave the input, write the result to FILE", set: func(f *patchelfFlags, v []string) error {
		f.output = v[0]
		return nil
	}},
	{names: "--page-size", values: "SIZE", raw: true, help: "checked, without effect: the file's own alignment is kept", set: pageSizeFlag},
	{names: "--no-sort", help: "without effect: nothing is sorted", set: ignored},
	{names: "--no-clobber-old-sections", help: "without effect: nothing is clobbered", set: ignored},
	{names: "--debug -v --verbose", help: "say how an edit is made", set: on(func(f *patchelfFlags) *bool { return &f.debug })},
	{names: "--version", help: "print the version", set: on(func(f *patchelfFlags) *bool { return &f.versionAsk })},
	{names: "--help -h", help: "print this help", set: on(func(f *patchelfFlags) *bool { return &f.helpMe })},

	{names: "--atomic", help: "edit a copy and rename it: for files in use", set: on(func(f *patchelfFlags) *bool { return &f.atomic })},
	{names: "--sync", help: "do not return before it is on disk", set: on(func(f *patchelfFlags) *bool { return &f.sync })},
	{names: "--follow", help: "follow symbolic links to the file to edit", set: on(func(f *patchelfFlags) *bool { return &f.follow })},
	{names: "--break-links", help: "with --atomic or --output, replace one name of a file with several", set: on(func(f *patchelfFlags) *bool { return &f.breakLinks })},
	{names: "--touch", help: "do not keep the modification time of what changes", set: on(func(f *patchelfFlags) *bool { return &f.touch })},
	{names: "--resolve-origin", help: "with --shrink-rpath, look into $ORIGIN entries too", set: on(func(f *patchelfFlags) *bool { return &f.resolveOrigin })},
	{names: "--move-headers", help: "where nothing else helps, accept a program that kernels before 5.18 may not run", set: on(func(f *patchelfFlags) *bool { return &f.moveHeaders })},
	{names: "--json", help: "print one JSON value on standard output", set: on(func(f *patchelfFlags) *bool { return &f.json })},
	{names: "--quiet -q", help: "print no warnings", set: on(func(f *patchelfFlags) *bool { return &f.quiet })},
}

// patchelfLacks are flags of patchelf that this verb refuses.
var patchelfLacks = []string{"--build-resolution-cache", "--clear-symbol-version", "--rename-dynamic-symbols", "--set-os-abi"}

// patchelfFlagsByName is the table, by each name.
func patchelfFlagsByName() map[string]patchelfFlag {
	by := map[string]patchelfFlag{}
	for _, flag := range patchelfFlagTable {
		for _, name := range strings.Fields(flag.names) {
			by[name] = flag
		}
	}
	return by
}

// parsePatchelf reads a command line as patchelf does: flags and files in any
// order, a value in an argument of its own, and nothing abbreviated. Where
// patchelf takes a flag that it does not know for a file, this is an error;
// behind -- all are files.
//
// Where it ends early, at an error or a question for the version, a --json
// behind that counts too: whoever asks for JSON gets it.
func parsePatchelf(args []string) (*patchelfFlags, error) {
	f := &patchelfFlags{}
	rest, err := f.parse(args)
	f.json = f.json || slices.Contains(rest, "--json")
	return f, err
}

// parse returns the arguments that it has not looked at.
func (f *patchelfFlags) parse(args []string) (rest []string, err error) {
	by := patchelfFlagsByName()
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			f.files = append(f.files, args[i+1:]...)
			break
		}
		flag, known := by[arg]
		switch {
		case !known && len(arg) > 1 && arg[0] == '-':
			return args[i+1:], unknownPatchelf(arg, by)
		case !known:
			f.files = append(f.files, arg)
			continue
		}
		n := len(strings.Fields(flag.values))
		if len(args)-i-1 < n {
			return nil, patchelfUsage("missing argument" + strings.Repeat("(s)", n-1))
		}
		v, err := f.values(flag, args[i+1:i+1+n])
		i += n
		if err == nil {
			err = flag.set(f, v)
		}
		if err != nil || f.helpMe || f.versionAsk {
			return args[i+1:], err
		}
	}
	return nil, f.check()
}

func unknownPatchelf(arg string, by map[string]patchelfFlag) error {
	for _, name := range patchelfLacks {
		if arg == name {
			return usage(fmt.Errorf("%s: this flag of patchelf is not supported", arg))
		}
	}
	if name, _, is := strings.Cut(arg, "="); is && by[name].names != "" {
		return usage(fmt.Errorf("unknown flag: %s: the value of %s is the next argument", arg, name))
	}
	return usage(fmt.Errorf("unknown flag: %s (a file of that name comes behind --)", arg))
}

// values reads the values that are files.
func (f *patchelfFlags) values(flag patchelfFlag, args []string) ([]string, error) {
	v := append([]string(nil), args...)
	for i, s := range v {
		if flag.raw || !strings.HasPrefix(s, "@") {
			continue
		}
		text, err := argumentFile(s[1:])
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(text, "\n") {
			f.notes = append(f.notes, fmt.Sprintf("'%s' ends in a newline, which is part of the value", s[1:]))
		}
		v[i] = text
	}
	return v, nil
}

const maxArgument = 1 << 20 // bytes of a value in a file

func argumentFile(name string) (string, error) {
	if _, err := os.Stat(name); err != nil {
		return "", peerError("getting info about", name, err)
	}
	file, err := os.Open(name)
	if err != nil {
		return "", peerError("opening", name, err)
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxArgument+1))
	if err != nil {
		return "", peerError("reading", name, err)
	}
	if len(b) > maxArgument {
		return "", fmt.Errorf("'%s' has more than %d bytes", name, maxArgument)
	}
	return string(b), nil
}

// check looks at the flags together.
func (f *patchelfFlags) check() error {
	switch {
	case len(f.files) == 0:
		return patchelfUsage("missing filename")
	case f.output != "" && len(f.files) != 1:
		return patchelfUsage("--output option only allowed with single input file")
	case f.json && isStandardOutput(f.output):
		return usage(errors.New("--json and --output would both write to standard output"))
	case f.setPath != nil && f.addPath != nil:
		return patchelfUsage("--set-rpath option not allowed with --add-rpath")
	}
	// patchelf does the first of these and says nothing of the others.
	f.only([]bool{f.shrinkPath, f.removePath, f.setPath != nil, f.addPath != nil}, "--shrink-rpath", "--remove-rpath", "--set-rpath", "--add-rpath")
	f.only([]bool{f.printStack, f.clearStack, f.xStack}, "--print-execstack", "--clear-execstack", "--set-execstack")
	return nil
}

func isStandardOutput(name string) bool {
	return slices.Contains([]string{"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}, name)
}

// only notes the flags that another one makes idle.
func (f *patchelfFlags) only(given []bool, names ...string) {
	first := ""
	for i, is := range given {
		switch {
		case is && first == "":
			first = names[i]
		case is:
			f.notes = append(f.notes, fmt.Sprintf("%s has no effect beside %s", names[i], first))
		}
	}
}

// edits tells whether the flags ask for any change.
func (f *patchelfFlags) edits() bool {
	return f.interp != "" || f.soname != nil || f.setPath != nil || f.addPath != nil || f.removePath || f.shrinkPath ||
		len(f.addNeeded)+len(f.removeNeeded)+len(f.replaceNeeded) > 0 || f.noDefaultLib || f.debugTag ||
		((f.clearStack || f.xStack) && !f.printStack)
}

// pageSizeFlag checks the size: a power of two, as page sizes are.
func pageSizeFlag(_ *patchelfFlags, v []string) error {
	n, err := strconv.Atoi(v[0])
	if err != nil || n <= 0 || n&(n-1) != 0 {
		return patchelfUsage("invalid argument to --page-size")
	}
	return nil
}

// splitPath splits a list at its colons. One at the end ends the last element.
func splitPath(s string) []string {
	if s = strings.TrimSuffix(s, ":"); s == "" {
		return nil
	}
	return strings.Split(s, ":")
}
