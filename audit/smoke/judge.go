package smoke

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"syscall"

	"github.com/rocm-nightly/rocm-nightly/internal/cage"
)

// verdict is what became of a check.
type verdict struct{ status, detail string }

func passed(format string, args ...any) verdict { return verdict{Passed, fmt.Sprintf(format, args...)} }
func failed(format string, args ...any) verdict { return verdict{Failed, fmt.Sprintf(format, args...)} }
func notThere(format string, args ...any) verdict {
	return verdict{NotThere, fmt.Sprintf(format, args...)}
}
func notRun(format string, args ...any) verdict { return verdict{NotRun, fmt.Sprintf(format, args...)} }

// loaderRE matches what ld.so of glibc says when a program cannot start, and
// what dlerror says in a program.
var loaderRE = regexp.MustCompile(`(?m)^.*(error while loading shared libraries|symbol lookup error|relocation error|version .[^']+' not found|\.so[.0-9]*: undefined symbol: |cannot open shared object file|invalid ELF header|file too short|ELF load command|Inconsistency detected by ld\.so).*$`)

// ended judges how a program came to its end, whatever it printed: false where
// it did not do so by itself. In a hostile environment it names the other ROCm
// as the likely cause.
func (r *run) ended(res *cage.Result, env string) (verdict, bool) {
	said := string(res.Stderr) + "\n" + string(res.Stdout)
	switch {
	case res.TimedOut:
		return failed("it did not end within %v", r.limit), false
	case res.Exceeded != "":
		return failed("it was ended for using too much: %s", res.Exceeded), false
	case res.Signal != "":
		return failed("it was ended by %s", res.Signal), false
	case env == Hostile && res.ExitCode == decoyStatus:
		return failed("a library or a program of the other ROCm was used (%s)", r.blame(said)), false
	}
	if line := loaderRE.FindString(said); line != "" {
		if env == Hostile {
			return failed("with another ROCm in LD_LIBRARY_PATH the loader says: %s", short(line)), false
		}
		return failed("the loader says: %s", short(line)), false
	}
	if res.ExitCode == 126 || res.ExitCode == 127 {
		return failed("it did not start: exit status %d: %s", res.ExitCode, short(lastLine(said))), false
	}
	if env == Hostile && r.decoy != "" && strings.Contains(said, r.decoy) {
		return failed("it looked into the other ROCm: %s", short(lineWith(said, r.decoy))), false
	}
	return verdict{}, true
}

// blame says by which variables the other ROCm may have come in.
func (r *run) blame(said string) string {
	if strings.Contains(said, "a program of another ROCm was run") {
		said = "a program: PATH, ROCM_PATH, HIP_PATH or HIP_CLANG_PATH was followed"
		if !r.tree.wrapped {
			said += "; this tree has no wrappers, which set them"
		}
		return said
	}
	return "a library: LD_LIBRARY_PATH came before the run path, as it does with DT_RUNPATH; repack with run_path: rpath"
}

// notStarted judges an error of the cage. ok is false for one that is not about
// this program: the end of the context.
func notStarted(err error) (v verdict, ok bool) {
	var none *cage.NotRunError
	var start *cage.StartError
	switch {
	case errors.As(err, &none):
		return notRun("%s", short(none.Reason)), true
	case errors.As(err, &start) && errors.Is(start.Err, syscall.ENOENT):
		return failed("it cannot be started: it, or the interpreter or loader that it names, does not exist"), true
	case errors.As(err, &start):
		return failed("it cannot be started: %v", start.Err), true
	}
	return verdict{}, false
}

// lastLine is the last line that says something.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

func lineWith(text, part string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			return line
		}
	}
	return ""
}

// errorLine is the line of a compiler's output that says what is wrong.
var errorRE = regexp.MustCompile(`(?m)^.*\b(fatal error|error|undefined (reference|symbol)|cannot find)\b.*$`)

func errorLine(text string) string {
	if line := errorRE.FindString(text); line != "" {
		return short(line)
	}
	return short(lastLine(text))
}
