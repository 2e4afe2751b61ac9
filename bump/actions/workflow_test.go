package actions

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const (
	action   = "../../.github/actions/bump/action.yml"
	workflow = "../../docs/examples/github-workflow.yml"
)

type step struct {
	Name, ID, If, Uses, Shell, Run string
	Env                            map[string]string
	With                           map[string]string
}

type input struct {
	Description string
	Default     *string
	Required    bool
}

type composite struct {
	Name, Description, Author string
	Inputs                    map[string]input
	Outputs                   map[string]struct{ Description, Value string }
	Runs                      struct {
		Using string
		Steps []step
	}
}

type flow struct {
	Name        string
	On          map[string]any
	Permissions map[string]string
	Concurrency struct {
		Group            string
		CancelInProgress bool `yaml:"cancel-in-progress"`
	}
	Jobs map[string]struct {
		RunsOn      string `yaml:"runs-on"`
		Timeout     int    `yaml:"timeout-minutes"`
		Permissions map[string]string
		Steps       []step
	}
}

// load reads a file strictly: a key that is misspelt is an error.
func load(t *testing.T, name string, into any) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.NewDecoder(bytes.NewReader(b), yaml.Strict()).Decode(into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// pinnedRE matches actions that nobody can change afterwards. COMMIT stands for
// what the reader of the example writes there.
var pinnedRE = regexp.MustCompile(`\A(?:actions/[a-z-]+@[0-9a-f]{40}|rocm-nightly/rocm-nightly/\.github/actions/bump@COMMIT)\z`)

func checkSteps(t *testing.T, steps []step) {
	t.Helper()
	if len(steps) == 0 {
		t.Fatal("no steps")
	}
	for _, s := range steps {
		if strings.Contains(s.Run, "${{") {
			t.Errorf("%s: an expression stands in a script, which would run what it holds", s.Name)
		}
		if s.Uses != "" && !pinnedRE.MatchString(s.Uses) {
			t.Errorf("%s is not pinned by its commit", s.Uses)
		}
		if (s.Uses == "") == (s.Run == "") {
			t.Errorf("step %q does nothing, or two things", s.Name+s.Uses)
		}
	}
}

func TestActionIsSound(t *testing.T) {
	var a composite
	load(t, action, &a)
	if a.Runs.Using != "composite" {
		t.Errorf("using %q", a.Runs.Using)
	}
	checkSteps(t, a.Runs.Steps)
	text, err := os.ReadFile(action)
	if err != nil {
		t.Fatal(err)
	}
	for name, in := range a.Inputs {
		if in.Description == "" || in.Default == nil && !in.Required {
			t.Errorf("input %s has no description or no default", name)
		}
		if !strings.Contains(string(text), "inputs."+name+" ") && !strings.Contains(string(text), "inputs."+name+"\n") {
			t.Errorf("input %s does nothing", name)
		}
	}
	got, err := outputs([]Outcome{{}}, bytes.NewReader(make([]byte, 1000)))
	if err != nil {
		t.Fatal(err)
	}
	told := read(t, got)
	for name, out := range a.Outputs {
		if _, ok := told[name]; !ok || out.Value != "${{ steps.run.outputs."+name+" }}" || out.Description == "" {
			t.Errorf("output %s is %q, and is written: %v", name, out.Value, ok)
		}
		delete(told, name)
	}
	if len(told) > 0 {
		t.Errorf("outputs that the action does not pass on: %v", told)
	}
	for _, s := range a.Runs.Steps {
		if s.Run != "" && s.Shell != "bash" {
			t.Errorf("%s: shell %q", s.Name, s.Shell)
		}
	}
}

func TestWorkflowIsSound(t *testing.T) {
	var w flow
	load(t, workflow, &w)
	if len(w.Permissions) != 0 || w.Concurrency.Group == "" || w.Concurrency.CancelInProgress {
		t.Errorf("permissions %v, concurrency %+v", w.Permissions, w.Concurrency)
	}
	for name, job := range w.Jobs {
		checkSteps(t, job.Steps)
		for right := range job.Permissions {
			if !slices.Contains([]string{"contents", "pull-requests", "issues"}, right) {
				t.Errorf("%s asks for %s", name, right)
			}
		}
		if job.Timeout == 0 {
			t.Errorf("%s may run for ever", name)
		}
	}
	var a composite
	load(t, action, &a)
	for _, s := range w.Jobs["bump"].Steps {
		if !strings.Contains(s.Uses, "/bump@") {
			continue
		}
		for key := range s.With {
			if _, ok := a.Inputs[key]; !ok {
				t.Errorf("the example passes %s, which the action does not take", key)
			}
		}
	}
}

// scripts are the shell scripts of both files, by step.
func scripts(t *testing.T) map[string]string {
	t.Helper()
	var a composite
	var w flow
	load(t, action, &a)
	load(t, workflow, &w)
	out := map[string]string{}
	for _, s := range append(a.Runs.Steps, w.Jobs["bump"].Steps...) {
		if s.Run != "" {
			out[s.Name] = s.Run
		}
	}
	return out
}

func TestScriptsAreSound(t *testing.T) {
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Skip("shellcheck is missing: install the package shellcheck")
	}
	for name, script := range scripts(t) {
		cmd := exec.Command("shellcheck", "--norc", "--shell=bash", "--enable=quote-safe-variables", "-")
		cmd.Stdin = strings.NewReader(script)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %s", name, out)
		}
	}
}

// The step runs the program with what the caller passes, each as one word.
func TestActionRuns(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is missing: install the package bash")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nprintf '%s\\n' \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	evil := "x; touch " + dir + "/harm; $(touch " + dir + "/harm) `touch " + dir + "/harm` '\" --no-such"
	common := "--config\nc d.yaml\n--root\n" + dir + "/rocm-nightly\n--progress\nplain\n--github-output\n"
	for _, c := range []struct {
		name string
		env  []string
		want string
		code int
	}{
		{"default", []string{"BUMP_COMMAND=update", "BUMP_DRY_RUN=false", "BUMP_CONFIG=c d.yaml"}, "update\n--no-install\n" + common, 0},
		{"bump, dry", []string{"BUMP_COMMAND=bump", "BUMP_DRY_RUN=true", "BUMP_CONFIG=c d.yaml"}, "bump\n" + common + "--dry-run\n", 0},
		{"all hostile", []string{"BUMP_COMMAND=update", "BUMP_CONFIG=" + evil, "BUMP_STATE=" + evil, "BUMP_VERSION=" + evil},
			"update\n--no-install\n--config\n" + evil + "\n--root\n" + evil + "\n--progress\nplain\n--github-output\n--version=" + evil + "\n", 0},
		{"hostile command", []string{"BUMP_COMMAND=" + evil}, "", 2},
		{"hostile dry run", []string{"BUMP_COMMAND=bump", "BUMP_DRY_RUN=" + evil}, "", 2},
	} {
		cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", scripts(t)["Bump"])
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "RUNNER_TEMP=" + dir, "BUMP_BINARY=" + program, "BUMP_CONFIG=", "BUMP_DRY_RUN=", "BUMP_STATE=", "BUMP_VERSION="}, c.env...)
		out, _ := cmd.Output()
		if string(out) != c.want || cmd.ProcessState.ExitCode() != c.code {
			t.Errorf("%s: exit %d, arguments\n%s", c.name, cmd.ProcessState.ExitCode(), out)
		}
		if _, err := os.Stat(filepath.Join(dir, "harm")); err == nil {
			t.Fatalf("%s: a value was run", c.name)
		}
	}
}
