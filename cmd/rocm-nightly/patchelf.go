package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/update"
)

// patchelfVersion is the patchelf whose flags these are. Scripts ask for it
// and want to know that it is not older than some version.
const patchelfVersion = "0.19.0"

const patchelfLong = `Edit ELF programs and libraries, with the flags of patchelf: any order, several
edits at once, several files, @FILE for the text of a value, files that start
with a dash behind --.

A file is edited in place: only the bytes that change are written, in an order
in which it loads after each write. The inode, its hard links, the mode and the
modification time stay. What is there already is not written again, and what
cannot be done safely is refused before the first byte. Processes that map the
file see the new bytes: for a file in use take --atomic, which edits a copy
(sharing blocks where the file system can) and renames it. --sync makes either
way survive a power cut.

Exit codes: 0 done or nothing to do, 1 failed, 2 a flag that is not known. At
the first file that fails it ends; those before it are done.`

func (a *app) patchelfCmd() *cobra.Command {
	c := &cobra.Command{
		Use:                "patchelf FLAG... FILE...",
		Short:              "Edit the run path and other entries of ELF files, as patchelf does",
		Long:               patchelfLong,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			a.patchelf(args)
			return nil
		},
	}
	c.SetHelpFunc(func(*cobra.Command, []string) { fmt.Fprint(a.stdout, patchelfHelpText()) })
	return c
}

// patchelf runs the verb. Its errors go the way of patchelf's, not of the
// other verbs'.
func (a *app) patchelf(args []string) {
	if len(args) == 0 {
		a.patchelfSyntax()
		a.code = update.ExitFailed
		return
	}
	flags, err := parsePatchelf(args)
	if a.getenv("PATCHELF_DEBUG") != "" {
		flags.debug = true
	}
	r := &patchelfRun{app: a, patchelfFlags: flags}
	switch {
	case err != nil:
		r.fail("", err)
	case flags.helpMe:
		r.say(patchelfHelpText())
	case flags.versionAsk:
		r.say(fmt.Sprintf("patchelf %s (flags of; rocm-nightly %s)\n", patchelfVersion, version().Version))
	default:
		r.files()
	}
	if flags.json {
		a.printJSON(r.report())
	}
}

func (a *app) patchelfSyntax() {
	fmt.Fprint(a.stderr, "syntax: rocm-nightly patchelf\n")
	for _, flag := range patchelfFlagTable {
		name, _, _ := strings.Cut(flag.names, " ")
		fmt.Fprintf(a.stderr, "  [%s]\n", strings.TrimSpace(name+" "+flag.values))
	}
	fmt.Fprint(a.stderr, "  FILENAME...\n")
}

func patchelfHelpText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage:\n  rocm-nightly patchelf FLAG... FILE...\n\nFlags:\n", patchelfLong)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, flag := range patchelfFlagTable {
		names := strings.ReplaceAll(flag.names, " ", ", ")
		fmt.Fprintf(w, "  %s\t%s\n", strings.TrimSpace(names+" "+flag.values), flag.help)
	}
	w.Flush()
	fmt.Fprintf(&b, "\nNot supported: %s\n", strings.Join(patchelfLacks, ", "))
	return b.String()
}

// patchelfRun is one run over its files.
type patchelfRun struct {
	*app
	*patchelfFlags
	done   []*patchelfFile
	failed error
	text   string // that was asked for, for the JSON form
}

// say prints a text, unless there is JSON to come.
func (r *patchelfRun) say(text string) {
	if r.text = text; !r.patchelfFlags.json {
		fmt.Fprint(r.stdout, text)
	}
}

// patchelfFile is what became of one file.
type patchelfFile struct {
	File    string `json:"file"`
	Output  string `json:"output,omitempty"`
	Changed bool   `json:"changed"`
	How     string `json:"how,omitempty"`
	Written int64  `json:"written"`
	Growth  int64  `json:"growth"`

	Interpreter *string  `json:"interpreter,omitempty"`
	OSABI       *string  `json:"os_abi,omitempty"`
	Soname      *string  `json:"soname,omitempty"`
	RPath       *string  `json:"rpath,omitempty"`
	Needed      []string `json:"needed,omitempty"`
	ExecStack   *string  `json:"execstack,omitempty"`
	Warnings    []string `json:"warnings,omitempty"`
}

// patchelfReport is the JSON form of a run.
type patchelfReport struct {
	Schema int             `json:"schema"`
	Files  []*patchelfFile `json:"files"`
	Error  string          `json:"error,omitempty"`
	Detail string          `json:"detail,omitempty"`
	Hint   string          `json:"hint,omitempty"`
	Text   string          `json:"text,omitempty"` // of --help or --version
	Exit   int             `json:"exit"`
}

func (r *patchelfRun) report() patchelfReport {
	rep := patchelfReport{Schema: 1, Files: r.done, Text: r.text, Exit: r.code}
	if r.failed != nil {
		rep.Error, rep.Detail, rep.Hint = r.failed.Error(), patchelfDetail(r.failed), patchelfHint(r.failed)
	}
	if rep.Files == nil {
		rep.Files = []*patchelfFile{}
	}
	return rep
}

// files does one file after the other, until one fails.
func (r *patchelfRun) files() {
	for _, note := range r.notes {
		r.warn(nil, note)
	}
	for _, name := range r.patchelfFlags.files {
		out := &patchelfFile{File: name, Output: r.output}
		r.done = append(r.done, out)
		if err := r.file(name, out); err != nil {
			r.fail(name, err)
			return
		}
	}
}

// fail says that something failed, in patchelf's form, and of which file.
func (r *patchelfRun) fail(name string, err error) {
	r.failed = err
	r.code = update.ExitFailed
	var bad *usageError
	if errors.As(err, &bad) {
		r.code = update.ExitUsage
	}
	fmt.Fprintf(r.stderr, "patchelf: %s\n", printable(err.Error()))
	if name != "" && !strings.Contains(err.Error(), "'"+name+"'") {
		fmt.Fprintf(r.stderr, "  file: %s\n", printable(name))
	}
	if detail := patchelfDetail(err); detail != "" {
		fmt.Fprintf(r.stderr, "  detail: %s\n", printable(detail))
	}
	if hint := patchelfHint(err); hint != "" {
		fmt.Fprintf(r.stderr, "  hint: %s\n", hint)
	}
}

func (r *patchelfRun) warn(out *patchelfFile, text string) {
	if out != nil {
		out.Warnings = append(out.Warnings, text)
		text = out.File + ": " + text
	}
	if !r.patchelfFlags.quiet {
		fmt.Fprintf(r.stderr, "patchelf: warning: %s\n", printable(text))
	}
}

func (r *patchelfRun) debugf(format string, args ...any) {
	if r.debug {
		fmt.Fprintf(r.stderr, format+"\n", args...)
	}
}

// open opens the file to read and tells its size.
func (r *patchelfRun) open(name string) (*os.File, int64, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, 0, peerError("getting info about", name, err)
	}
	if info.IsDir() {
		return nil, 0, &saidError{text: fmt.Sprintf("reading '%s': Is a directory", name), err: errors.New("is a directory")}
	}
	if !info.Mode().IsRegular() {
		// To patchelf it is a file without content.
		return nil, 0, &saidError{text: errNoHeader.Error(), detail: "not a regular file", err: errNoHeader}
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, peerError("opening", name, err)
	}
	return f, info.Size(), nil
}
