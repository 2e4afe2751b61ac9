package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/internal/demo"
)

func (a *app) demoCmd() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show the whole job in seconds, offline",
		Long: `Show the whole job in seconds, offline: an index page in AMD's format and small
but real tarballs are served from this program, installed, used, updated, rolled
back, and the pin of a flake in a git repository is bumped. Everything happens
in one directory, which is printed and may be removed afterwards.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context(), dir) },
	}
	c.Flags().StringVar(&dir, "dir", "", "use this new or empty `directory` in place of a temporary one")
	return c
}

// story is one demo on its way.
type story struct {
	a       *app
	dir     string
	nights  string // the directory that is served
	config  string
	old     string // versions
	new     string
	current string // the active prefix
	repo    string
}

func (a *app) demo(ctx context.Context, dir string) error {
	if _, err := exec.LookPath("git"); err != nil {
		return fmt.Errorf("demo: git is needed to show the bump: %w (apt install git)", err)
	}
	dir, err := demoDir(dir)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	fmt.Fprintf(a.stdout, "everything happens in %s; remove it when you have seen enough\n", dir)
	s := &story{a: a, dir: dir, nights: filepath.Join(dir, "amd"), config: filepath.Join(dir, "config.yaml"), repo: filepath.Join(dir, "flake.git")}
	s.current = filepath.Join(dir, "root", "slots", "nightly-gfx1151", "current")
	if err := s.tell(ctx); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	return nil
}

// demoDir makes the one directory that the demo lives in.
func demoDir(dir string) (string, error) {
	if dir == "" {
		return os.MkdirTemp("", "rocm-nightly-demo-")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	if len(entries) > 0 {
		return "", fmt.Errorf("%s is not empty", dir)
	}
	return filepath.Abs(dir)
}

func (s *story) tell(ctx context.Context) error {
	if err := os.Mkdir(s.nights, 0o755); err != nil {
		return err
	}
	url, stop, err := demo.Serve(ctx, s.nights)
	if err != nil {
		return err
	}
	defer stop()
	if err := s.repository(ctx); err != nil {
		return err
	}
	if err := os.WriteFile(s.config, []byte(s.settings(url)), 0o644); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{s.firstNight, s.secondNight, s.backAndForth, s.pushed} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintf(s.a.stdout, "\nthat was the whole job. To see what is there: ls %s\n", s.dir)
	return nil
}

// settings is the config of the demo, which is also a small example of one.
func (s *story) settings(url string) string {
	return fmt.Sprintf(`root: %q
channels:
  nightly:
    indexes:
      - url: %q
installs:
  - target: gfx1151
    link: %q
policy: {settle: 0s}
bump:
  - name: demo
    forge: git
    url: %q
    files:
      - path: flake.nix
        format: nix
        target: gfx1151
        set: {version: "{{.Version}}", src.url: "{{.URL}}", src.hash: "{{.SRI}}"}
`, filepath.Join(s.dir, "root"), url, filepath.Join(s.dir, "rocm"), s.repo)
}

// firstNight publishes a night, lists it, installs it and runs it.
func (s *story) firstNight(ctx context.Context) (err error) {
	if s.old, err = s.publish(ctx, 2); err != nil {
		return err
	}
	s.head("AMD has published a night")
	if err := s.verb(ctx, "list"); err != nil {
		return err
	}
	s.head("install it")
	if err := s.verb(ctx, "update"); err != nil {
		return err
	}
	s.head("it works, with an empty environment")
	return s.programs(ctx, s.old)
}

// secondNight publishes a newer one: the daily case.
func (s *story) secondNight(ctx context.Context) (err error) {
	s.head("nothing newer: nothing is done")
	if err := s.verb(ctx, "update"); err != nil {
		return err
	}
	if s.new, err = s.publish(ctx, 1); err != nil {
		return err
	}
	s.head("the next night")
	if err := s.verb(ctx, "update"); err != nil {
		return err
	}
	return s.programs(ctx, s.new)
}

// backAndForth rolls back and shows that the night that was left stays away.
func (s *story) backAndForth(ctx context.Context) error {
	s.head("back to the night before: one rename, offline")
	if err := s.verb(ctx, "rollback"); err != nil {
		return err
	}
	if err := s.programs(ctx, s.old); err != nil {
		return err
	}
	if err := s.verb(ctx, "update"); err != nil {
		return err
	}
	if err := s.verb(ctx, "use", s.new); err != nil {
		return err
	}
	s.head("prove the prefix right without a GPU")
	if err := s.verb(ctx, "audit", s.current); err != nil {
		return err
	}
	return s.verb(ctx, "status")
}

// pushed shows what arrived in the packager's repository.
func (s *story) pushed(ctx context.Context) error {
	s.head("the flake's repository has the bump on a branch of its own")
	out, err := s.git(ctx, "--git-dir", s.repo, "show", "--format=%an: %s", "rocm-nightly/demo")
	if err != nil {
		return err
	}
	if !strings.Contains(out, s.new) {
		return fmt.Errorf("the branch does not hold %s", s.new)
	}
	fmt.Fprintln(s.a.stdout, out)
	return nil
}

func (s *story) head(text string) { fmt.Fprintf(s.a.stdout, "\n== %s\n", text) }

// publish makes the night of so many days ago.
func (s *story) publish(ctx context.Context, daysAgo int) (string, error) {
	day := time.Now().UTC().AddDate(0, 0, -daysAgo).Truncate(24 * time.Hour)
	version := "10.2.0a" + day.Format("20060102")
	_, err := demo.Night(ctx, s.nights, demo.NightOptions{Version: version, Family: "gfx1151", Date: day.Add(6 * time.Hour)})
	return version, err
}

// verb runs one of our own verbs, as a user would.
func (s *story) verb(ctx context.Context, args ...string) error {
	fmt.Fprintf(s.a.stdout, "$ rocm-nightly %s\n", strings.Join(args, " "))
	sub := &app{stdin: s.a.stdin, stdout: s.a.stdout, stderr: s.a.stderr, getenv: s.a.getenv, uid: s.a.uid}
	if code := sub.run(ctx, append([]string{"--config", s.config, "--progress", s.a.progress}, args...)); code != 0 {
		return fmt.Errorf("rocm-nightly %s ended with exit code %d", args[0], code)
	}
	return nil
}

// programs runs the programs of the night out of the active prefix.
func (s *story) programs(ctx context.Context, version string) error {
	for i, argv := range demo.Programs() {
		cmd := exec.CommandContext(ctx, filepath.Join(s.current, argv[0]), argv[1:]...)
		cmd.Env = []string{}
		fmt.Fprintf(s.a.stdout, "$ env -i %s\n", strings.Join(cmd.Args, " "))
		out, err := cmd.CombinedOutput()
		fmt.Fprintf(s.a.stdout, "%s", out)
		if err != nil {
			return fmt.Errorf("run %s: %w", argv[0], err)
		}
		if i == 0 && !strings.Contains(string(out), version) {
			return fmt.Errorf("%s does not print %s", argv[0], version)
		}
	}
	return nil
}

// repository makes a bare repository that holds a small flake.
func (s *story) repository(ctx context.Context) error {
	work := filepath.Join(s.dir, "flake")
	if err := os.Mkdir(work, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(work, "flake.nix"), []byte(demoFlake), 0o644); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main", work},
		{"-C", work, "add", "flake.nix"},
		{"-C", work, "-c", "user.name=Packager", "-c", "user.email=packager@localhost", "commit", "--quiet", "-m", "Package ROCm"},
		{"clone", "--quiet", "--bare", work, s.repo},
	} {
		if _, err := s.git(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_PAGER=cat")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return "", fmt.Errorf("git %s: %w: %s", args[0], err, exit.Stderr)
		}
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return string(out), nil
}

// demoFlake is the part of a packager's flake that a bump is about.
const demoFlake = `{
  description = "ROCm nightly for gfx1151";

  outputs = { self }:
    let
      gpuarch = "gfx1151";
      version = "10.1.0a20260822"; # bumped by rocm-nightly
      src = {
        url = "https://rocm.nightlies.amd.com/tarball/therock-dist-linux-gfx1151-10.1.0a20260822.tar.gz";
        hash = "sha256-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
      };
    in
    {
      lib = { inherit gpuarch version src; };
    };
}
`
