package smoke

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/cage"
)

func TestMain(m *testing.M) {
	if code, inside := cage.Main(); inside {
		os.Exit(code)
	}
	code := m.Run()
	if shared.dir != "" {
		os.RemoveAll(shared.dir)
	}
	os.Exit(code)
}

// shared is what is made once for all tests.
var shared struct {
	sync.Mutex
	dir     string
	prefix  string // of the corpus
	problem string
}

// corpus returns a prefix made of the corpus: real programs and libraries of
// AMD's and LLVM's, laid out as AMD does. Nobody may write to its files.
func corpus(t *testing.T) string {
	t.Helper()
	tarball := os.Getenv("ROCM_NIGHTLY_CORPUS_TARBALL")
	if _, err := os.Stat(tarball); err != nil {
		t.Skip("the corpus is not built: run scripts/corpus.sh, and set ROCM_NIGHTLY_CORPUS_TARBALL to what it prints")
	}
	shared.Lock()
	defer shared.Unlock()
	if shared.prefix == "" && shared.problem == "" {
		if err := repackCorpus(tarball); err != nil {
			shared.problem = err.Error()
		}
	}
	if shared.problem != "" {
		t.Fatal(shared.problem)
	}
	return shared.prefix
}

// repackCorpus does so with the program, which, unlike this test, is built
// without the race detector.
func repackCorpus(tarball string) (err error) {
	if shared.dir, err = os.MkdirTemp("", "smoke-test-"); err != nil {
		return err
	}
	binary, prefix := filepath.Join(shared.dir, "rocm-nightly"), filepath.Join(shared.dir, "prefix")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/rocm-nightly").CombinedOutput(); err != nil {
		return fmt.Errorf("build the program: %w\n%s", err, out)
	}
	if out, err := exec.Command(binary, "repack", tarball, "--prefix", prefix, "--arch", "gfx1030").CombinedOutput(); err != nil {
		return fmt.Errorf("repack the corpus: %w\n%s", err, out)
	}
	// Nothing that is checked needs these 4,000 files, which each clone would have.
	for _, pattern := range []string{
		"opt/rocm/lib/llvm/include", "opt/rocm/lib/llvm/lib/*.a", "opt/rocm/lib/llvm/lib/cmake", "opt/rocm/lib/llvm/share",
		"opt/rocm/share/doc", "opt/rocm/share/man", "share/licenses",
	} {
		names, err := filepath.Glob(filepath.Join(prefix, pattern))
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := os.RemoveAll(name); err != nil {
				return err
			}
		}
	}
	shared.prefix = prefix
	return nil
}

// clone returns a prefix whose files are those of the corpus. A file of it must
// be removed before it is written: see replace.
func clone(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "prefix")
	if out, err := exec.Command("cp", "-al", corpus(t), dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// replace gives a file of a clone other content, and makes it a program.
func replace(t *testing.T, file, content string) {
	t.Helper()
	must(t, os.RemoveAll(file))
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(t, os.WriteFile(file, []byte(content), 0o755))
}

// own gives a clone its own copy of a file, which may then be edited.
func own(t *testing.T, file string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(file)
	must(t, err)
	b, err := os.ReadFile(real)
	must(t, err)
	replace(t, real, string(b))
	return real
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// runChecks makes the named checks, or all.
func runChecks(t *testing.T, dir string, o Options, only ...string) *Report {
	t.Helper()
	if len(only) > 0 {
		o.only = only
	}
	rep, err := Run(t.Context(), dir, o)
	must(t, err)
	return rep
}

// statuses is the report as lines of name, target, environment and status.
func statuses(r *Report) []string {
	var list []string
	for _, c := range r.Checks {
		list = append(list, strings.Join(strings.Fields(c.Name+" "+c.Target+" "+c.Environment+" "+c.Status), " "))
	}
	return list
}

// want compares a report with lines of name, target, environment and status.
func want(t *testing.T, r *Report, lines ...string) {
	t.Helper()
	if got := statuses(r); !slices.Equal(got, lines) {
		t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(lines, "\n\t"))
		r.Table(os.Stderr)
	}
}

// runnerFunc is a Runner.
type runnerFunc func(context.Context, cage.Command) (*cage.Result, error)

func (f runnerFunc) Run(ctx context.Context, c cage.Command) (*cage.Result, error) { return f(ctx, c) }
