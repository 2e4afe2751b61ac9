package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	guard "github.com/rocm-nightly/rocm-nightly/internal/trusted"
	"github.com/rocm-nightly/rocm-nightly/repack"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// usageError is an error about the command line or the config: exit 2.
type usageError struct{ err error }

func usage(err error) error { return &usageError{err} }

func (e *usageError) Error() string { return e.err.Error() }

func (e *usageError) Unwrap() error { return e.err }

// emptyFlag is an error when one of the named flags was given without a value:
// in a script that is a variable that was not set.
func emptyFlag(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
			return usage(fmt.Errorf("%s: --%s is empty: give it a value, or leave it out", cmd.Name(), name))
		}
	}
	return nil
}

// failure is the JSON form of an error, for verbs that print JSON.
type failure struct {
	Schema   int        `json:"schema"`
	Error    string     `json:"error"`
	Hint     string     `json:"hint,omitempty"`
	Exit     int        `json:"exit"`
	Problems []wrongKey `json:"problems,omitempty"`
}

// wrongKey is one thing that is wrong with the config, for editors and checks of a CI.
type wrongKey struct {
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Variable string `json:"variable,omitempty"`
	Key      string `json:"key,omitempty"`
	Error    string `json:"error"`
}

// problems lists what is wrong with the config, where that is why err is there.
func problems(err error) []wrongKey {
	var wrong *config.Error
	if !errors.As(err, &wrong) {
		return nil
	}
	var all []wrongKey
	for _, c := range wrong.Complaints {
		all = append(all, wrongKey{c.File, c.Line, c.Column, c.Variable, c.Key, c.Err.Error()})
	}
	return all
}

// fail prints an error and returns its exit code.
func (a *app) fail(err error) int {
	code := exitCode(err)
	if a.json && !a.printed {
		a.printJSON(failure{1, err.Error(), hint(err), code, problems(err)})
	}
	fmt.Fprintf(a.stderr, "rocm-nightly: %s\n", printable(err.Error()))
	if h := hint(err); h != "" {
		fmt.Fprintf(a.stderr, "  hint: %s\n", h)
	}
	if a.verbose {
		for depth, e := 1, errors.Unwrap(err); e != nil; depth, e = depth+1, errors.Unwrap(e) {
			fmt.Fprintf(a.stderr, "  cause %d: %T: %s\n", depth, e, printable(e.Error()))
		}
	}
	return code
}

// printable replaces what could move a terminal's cursor: names in errors are
// AMD's, or whoever answered in AMD's place.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return '?'
		}
		return r
	}, s)
}

func exitCode(err error) int {
	var badUsage *usageError
	var badTarget *update.UsageError
	var refused *repack.RefusedError
	var run *runError
	switch {
	case errors.As(err, &run):
		return run.code
	case errors.As(err, &badUsage), errors.As(err, &badTarget):
		return update.ExitUsage
	case errors.As(err, &refused), errors.Is(err, errAuditRefused):
		return update.ExitRefused
	}
	return update.ExitOf(err)
}

// hint says what to try, where that is known and the error does not say it.
func hint(err error) string {
	var mismatch *release.MismatchError
	var badUsage *usageError
	var unreachable *net.OpError
	var unknownHost *net.DNSError
	switch {
	case errors.As(err, &mismatch) && mismatch.Want.Source == "--digest":
		return "the bytes are not those that were asked for: check the digest, and fetch the tarball again"
	case errors.As(err, &mismatch) && exitCode(err) == update.ExitNewBytes:
		return "one name has had two contents: ask AMD's issue tracker, compare with what others have seen, and take neither until it is clear"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "free some space or inodes (df -h, df -i), or work on another file system (--root, --prefix or -o), then run it again; what was in use is untouched"
	case errors.Is(err, syscall.EFBIG):
		return "files may not be so large here: raise the limit (ulimit -f), or work on another file system (--root, --prefix or -o)"
	case errors.Is(err, syscall.EROFS):
		return "the file system is read-only: work on another one (--root, --prefix or -o)"
	case errors.As(err, new(*runError)):
		return ""
	case errors.As(err, &unreachable) && unreachable.Op == "listen":
		return "" // it says what is there, and it is no network's fault
	case errors.Is(err, fs.ErrPermission):
		return "run it as the user that owns the files, or work elsewhere (--root, --prefix or -o)"
	case errors.Is(err, repack.ErrOccupied):
		return "name a directory that does not exist yet"
	case errors.Is(err, context.Canceled):
		return "it was interrupted; run it again to continue"
	case errors.As(err, &unreachable), errors.As(err, &unknownHost):
		return "check the network, and HTTPS_PROXY where there is a proxy, then run it again"
	case errors.As(err, new(*config.Error)):
		return "config.yaml of the source and docs/config.md describe every key; rocm-nightly config schema is for editors"
	case errors.As(err, new(*guard.Error)):
		return "docs/config.md says whose files count" // and the error what to try
	case errors.As(err, &badUsage):
		return "see rocm-nightly --help"
	}
	return ""
}

// printJSON prints the one JSON value of a run.
func (a *app) printJSON(v any) {
	a.printed = true
	enc := json.NewEncoder(a.stdout)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		fmt.Fprintf(a.stderr, "rocm-nightly: print JSON: %v\n", err)
	}
}
