package bump

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// maxGitOutput bounds what is kept of git's output, in bytes. A diff or a
// blob never comes near it; stderr keeps its head.
const maxGitOutput = 16 << 20

// killDelay is how long the pipes of a killed git may stay open.
const killDelay = 5 * time.Second

// git runs the git command line in one scratch repository.
type git struct {
	bin     string
	dir     string // of the bare repository
	env     []string
	secrets []string // never to be shown
	shown   string   // the remote, for errors
	origin  string   // the address of the repository that is bumped
	ready   bool     // dir is a repository
}

// passedEnv are the variables of the caller that git may see: where programs,
// ssh's agent, certificates and proxies are. Nothing else gets through, GIT_*
// that trace, redirect or inject configuration least of all.
var passedEnv = []string{
	"PATH", "TMPDIR", "USER", "LOGNAME", "SSH_AUTH_SOCK", "GIT_SSH_COMMAND",
	"GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
}

// gitConfig is set on every git, over a configuration that is otherwise
// empty.
var gitConfig = [][2]string{
	{"core.hooksPath", "/dev/null"},
	{"core.fsmonitor", "false"},
	{"core.attributesFile", "/dev/null"},
	{"credential.helper", ""},
	{"gc.auto", "0"},
	{"maintenance.auto", "false"},
	{"submodule.recurse", "false"},
	{"push.recurseSubmodules", "no"},
	{"push.gpgSign", "false"},
	// A transfer below 100 bytes/s for two minutes is dead.
	{"http.lowSpeedLimit", "100"},
	{"http.lowSpeedTime", "120"},
	{"protocol.allow", "never"},
	{"protocol.file.allow", "always"},
	{"protocol.git.allow", "always"},
	{"protocol.http.allow", "always"}, // parseRemote takes it for this machine only
	{"protocol.https.allow", "always"},
	{"protocol.ssh.allow", "always"},
}

// gitEnv is the whole environment of git. Where there is a token, scratch is
// its HOME, so that a ~/.netrc adds no second one.
func gitEnv(lookup func(string) string, r remote, forge, token, scratch string) []string {
	env := []string{
		"LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_ATTR_NOSYSTEM=1", "GIT_LITERAL_PATHSPECS=1", "GIT_OPTIONAL_LOCKS=0",
	}
	for _, name := range passedEnv {
		if v := lookup(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	if lookup("GIT_SSH_COMMAND") == "" {
		env = append(env, "GIT_SSH_COMMAND=ssh -o BatchMode=yes -o ConnectTimeout=30")
	}
	home := scratch
	config := gitConfig
	if token == "" {
		if h := lookup("HOME"); h != "" {
			home = h
		}
	} else {
		config = append(config[:len(config):len(config)],
			// git would send the header on to wherever it is redirected.
			[2]string{"http.followRedirects", "false"},
			[2]string{"http." + r.scheme + "://" + r.host + "/.extraHeader", "Authorization: Basic " + basic(forge, r.user, token)})
	}
	env = append(env, "HOME="+home, "GIT_CONFIG_COUNT="+strconv.Itoa(len(config)))
	for i, kv := range config {
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+kv[0], "GIT_CONFIG_VALUE_"+n+"="+kv[1])
	}
	return env
}

// basic is the user and token as HTTP basic authentication takes them. GitHub
// and GitLab have a user name for the purpose; Gitea takes any.
func basic(forge, user, token string) string {
	if user == "" {
		user = "x-access-token"
		if forge == "gitlab" {
			user = "oauth2"
		}
	}
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + token))
}

// run runs git with args, feeds it input and returns what it printed.
func (g *git) run(ctx context.Context, input []byte, args ...string) ([]byte, error) {
	return g.runEnv(ctx, nil, input, args...)
}

func (g *git) runEnv(ctx context.Context, extra []string, input []byte, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, g.bin, args...)
	cmd.Dir = g.dir
	cmd.Env = append(append(g.env[:len(g.env):len(g.env)], "GIT_DIR="+g.dir), extra...)
	cmd.Stdin = bytes.NewReader(input)
	var stdout, stderr headBuffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// git starts ssh, git-remote-https and others: the group dies as one.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killDelay
	err := cmd.Run()
	if err == nil && stdout.dropped {
		err = fmt.Errorf("it printed more than %d bytes", maxGitOutput)
	}
	if ctxErr := ctx.Err(); err != nil && ctxErr != nil {
		return nil, fmt.Errorf("git %s %s: %w", args[0], g.shown, ctxErr)
	}
	if err != nil {
		return nil, g.failure(args[0], err, stdout.String()+stderr.String())
	}
	return stdout.Bytes(), nil
}

// line is run, for commands that print one line.
func (g *git) line(ctx context.Context, input []byte, args ...string) (string, error) {
	out, err := g.run(ctx, input, args...)
	return strings.TrimSpace(string(out)), err
}

// headBuffer keeps the first maxGitOutput bytes.
type headBuffer struct {
	bytes.Buffer
	dropped bool
}

func (b *headBuffer) Write(p []byte) (int, error) {
	if room := maxGitOutput - b.Len(); len(p) > room {
		b.dropped = true
		b.Buffer.Write(p[:max(room, 0)])
		return len(p), nil
	}
	return b.Buffer.Write(p)
}

// findGit looks git up in PATH. Versions before 2.31 ignore configuration in
// the environment, which is how the token travels and hooks are kept out.
func findGit(ctx context.Context, lookup func(string) string) (string, error) {
	bin, err := lookPath(lookup("PATH"), "git")
	if err != nil {
		return "", &GitError{Verb: "start", Cause: "git is not installed", Hint: "apt install git", err: err}
	}
	probe := &git{bin: bin, env: []string{"LC_ALL=C", "PATH=" + lookup("PATH")}, dir: "/"}
	out, err := probe.line(ctx, nil, "version")
	if err != nil {
		return "", err
	}
	var major, minor int
	if _, err := fmt.Sscanf(out, "git version %d.%d", &major, &minor); err != nil {
		return "", &GitError{Verb: "start", Cause: fmt.Sprintf("%.60q is not the version of a git", out), err: err}
	}
	if major < 2 || major == 2 && minor < 31 {
		return "", &GitError{Verb: "start", Cause: fmt.Sprintf("git %d.%d is too old", major, minor), Hint: "install git 2.31 or newer", err: errors.ErrUnsupported}
	}
	return bin, nil
}
