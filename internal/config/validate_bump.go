package config

import (
	"fmt"
	"net/mail"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// bumpName is what a bump may be called: its name is part of a branch's.
var bumpName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// bumps checks what can be told of a bump from the config alone. Templates, times
// and formats are read by those who use them.
func (c *Config) bumps(v *validator) {
	seen, boards := map[string]bool{}, map[[2]string]string{}
	for i, b := range c.Bump {
		key := fmt.Sprintf("bump[%d]", i)
		v.check(bumpName.MatchString(b.Name), key+".name", "%.100q is not a name: letters, digits, '.', '_' and '-', the first a letter or digit", b.Name)
		v.check(!seen[b.Name], key+".name", "%.100q is another bump's name too", b.Name)
		seen[b.Name] = true
		if board := [2]string{b.URL, b.Dashboard}; b.Dashboard != "" {
			v.check(boards[board] == "", key+".dashboard", "%.100q is the issue of the bump %s of this repository already: each writes the whole text of its own (choose another title)", b.Dashboard, boards[board])
			boards[board] = b.Name
		}
		v.choice(key+".forge", b.Forge, "git", "github", "gitea", "gitlab")
		v.check(b.URL != "", key+".url", "missing")
		v.check(!credentials(b.URL), key+".url", "holds a password: put the token into the environment and name it in token_env")
		v.api(key+".api", b)
		if b.Channel != "" {
			v.oneOf(key+".channel", b.Channel, ChannelNames()...)
		}
		v.secrets(key, b)
		v.ways(key, b)
		v.times(key, b)
		v.people(key, b)
		c.pins(v, key, b)
	}
}

// choice is oneOf where empty means the default.
func (v *validator) choice(key, value string, allowed ...string) {
	if value != "" {
		v.oneOf(key, value, allowed...)
	}
}

// api checks the base of the forge's API.
func (v *validator) api(key string, b Bump) {
	if b.API == "" {
		return
	}
	u, err := url.Parse(b.API)
	ok := err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname())) && u.User == nil && u.RawQuery == ""
	v.check(ok, key, "%q is not an https:// address without name, password and query", redactURL(b.API))
	v.check(b.Forge != "" && b.Forge != "git", key, "forge git has no API: name the forge")
}

// one reports that at most one place of a secret is named, and that it looks like a
// place and not like the secret.
func (v *validator) one(key, env, file, credential string) {
	n := 0
	for _, s := range []string{env, file, credential} {
		if s != "" {
			n++
		}
	}
	v.check(n <= 1, key, "is in several places: name one of %s_env, %s_file and %s_credential", last(key), last(key), last(key))
	v.check(env == "" || envName.MatchString(env), key+"_env", "is not the name of an environment variable: put the secret into one and write its name")
	v.check(file == "" || filepath.IsAbs(file) && !strings.ContainsAny(file, "\n\r"), key+"_file", "is not an absolute path of a file that holds the secret")
	v.check(credential == "" || credentialName.MatchString(credential), key+"_credential", "is not the name of a systemd credential")
}

// last is the last word of a key.
func last(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

var (
	envName        = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)
	credentialName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$`)

	// tokenShape is how tokens of the forges begin: one that stands where a name
	// should is not repeated in an error.
	tokenShape = regexp.MustCompile(`^(gh[pousr]_|github_pat_|glpat-|[0-9a-f]{40}$)`)
)

// secrets checks where tokens and keys are. What is wrong is never repeated: it may
// be the secret itself.
func (v *validator) secrets(key string, b Bump) {
	v.one(key+".token", b.TokenEnv, b.TokenFile, b.TokenCredential)
	v.check(!tokenShape.MatchString(b.TokenEnv), key+".token_env", "looks like a token itself: put it into the environment and write the variable's name here")
	v.one(key+".ssh_key", "", b.SSHKeyFile, b.SSHKeyCredential)
	v.one(key+".known_hosts", "", b.KnownHostsFile, b.KnownHostsCredential)
	if a := b.App; a != nil {
		v.check(b.Forge == "github", key+".app", "is for forge github")
		v.check(a.ID > 0 && a.Installation >= 0, key+".app.id", "is the number of a GitHub App")
		v.check(a.KeyEnv+a.KeyFile+a.KeyCredential != "", key+".app", "has no key: name key_env, key_file or key_credential")
		v.one(key+".app.key", a.KeyEnv, a.KeyFile, a.KeyCredential)
		v.check(b.TokenEnv+b.TokenFile+b.TokenCredential == "", key+".app", "and a token: one of them acts, remove the other")
	}
}

// ways checks how a bump is made.
func (v *validator) ways(key string, b Bump) {
	plain := b.Forge == "" || b.Forge == "git"
	v.choice(key+".mode", b.Mode, "pull", "push")
	v.check(b.Mode != "push" || plain, key+".mode", "push is for forge git: a forge takes a pull request")
	v.check(b.Mode != "push" || b.Branch == "", key+".branch", "mode push pushes to base: remove it")
	v.check(b.Mode != "push" || b.Group != "independent", key+".group", "mode push has one branch for all targets: independent needs mode pull")
	v.choice(key+".require", b.Require, "all", "available")
	v.choice(key+".group", b.Group, "lockstep", "independent")
	v.check(b.Fork == "" || bumpName.MatchString(b.Fork), key+".fork", "%.100q is neither never nor the name of an owner", b.Fork)
	v.choice(key+".merge_method", b.MergeMethod, "merge", "squash", "rebase")
	v.choice(key+".reopen", b.Reopen, "next", "always")
	if m := b.AutoMerge; m != "" && m != "off" && m != "platform" {
		d, err := time.ParseDuration(m)
		v.check(err == nil && d > 0, key+".auto_merge", "%.40q is neither off, platform nor a time such as 24h", m)
	}
	for _, only := range []struct {
		key string
		set bool
	}{
		{"auto_merge", b.AutoMerge != "" && b.AutoMerge != "off"}, {"draft", b.Draft}, {"dashboard", b.Dashboard != ""}, {"labels", len(b.Labels) > 0},
		{"reviewers", len(b.Reviewers) > 0}, {"teams", len(b.Teams) > 0}, {"assignees", len(b.Assignees) > 0}, {"reopen", b.Reopen != ""}, {"fork", b.Fork != "" && b.Fork != "never"},
	} {
		v.check(!only.set || !plain, key+"."+only.key, "forge git has no pull requests: name the forge")
	}
}

// maxWindow bounds a window, maxCheck what a check may take.
const (
	maxWindow = 7 * 24 * time.Hour
	maxCheck  = 24 * time.Hour
)

// times checks when a bump is made, and how much of it.
func (v *validator) times(key string, b Bump) {
	v.check(b.MaxWait >= 0, key+".max_wait", "%s is negative", time.Duration(b.MaxWait))
	v.check(b.MinAge >= 0, key+".min_age", "%s is negative", time.Duration(b.MinAge))
	v.check(b.CheckTimeout >= 0 && time.Duration(b.CheckTimeout) <= maxCheck, key+".check_timeout", "%s is not between 0s and %s", time.Duration(b.CheckTimeout), maxCheck)
	for i, w := range b.Windows {
		wkey := fmt.Sprintf("%s.windows[%d]", key, i)
		v.check(strings.TrimSpace(w.Cron) != "", wkey+".cron", "missing")
		v.check(w.Length > 0 && time.Duration(w.Length) <= maxWindow, wkey+".length", "%s is not a time of up to %s", time.Duration(w.Length), maxWindow)
	}
	if l := b.Limits; l != nil {
		v.check(min(l.Open, l.PullsPerHour, l.CommitsPerHour) >= 0, key+".limits", "a limit is negative")
	}
	for i, argv := range b.Check {
		v.check(len(argv) > 0 && argv[0] != "" && !slices.ContainsFunc(argv, func(s string) bool { return strings.ContainsRune(s, 0) }),
			fmt.Sprintf("%s.check[%d]", key, i), "is a list of words: a program and its arguments, such as [nix, flake, check]")
	}
}

// people checks names.
func (v *validator) people(key string, b Bump) {
	if a := b.Author; a != nil {
		addr, err := mail.ParseAddress("<" + a.Email + ">")
		v.check(a.Name != "" && !strings.ContainsAny(a.Name, "<>\n\r\x00"), key+".author.name", "%.100q is no name of an author", a.Name)
		v.check(err == nil && addr.Address == a.Email, key+".author.email", "%.100q is no address", a.Email)
	}
	for name, list := range map[string][]string{"labels": b.Labels, "reviewers": b.Reviewers, "teams": b.Teams, "assignees": b.Assignees} {
		for i, s := range list {
			v.check(strings.TrimSpace(s) != "" && !strings.ContainsAny(s, "\n\r\x00"), fmt.Sprintf("%s.%s[%d]", key, name, i), "%.100q is empty, or has several lines", s)
		}
	}
}

// pins checks where the pins stand.
func (c *Config) pins(v *validator, key string, b Bump) {
	v.check(len(b.Files) > 0, key+".files", "missing")
	for j, f := range b.Files {
		fkey := fmt.Sprintf("%s.files[%d]", key, j)
		v.check(filepath.IsLocal(f.Path), fkey+".path", "%q is not a path inside the repository", f.Path)
		v.check((f.Format == "regex") == (f.Pattern != ""), fkey+".pattern", "format regex needs it, and no other has one")
		if f.Pattern != "" {
			_, err := regexp.Compile(f.Pattern)
			v.check(err == nil, fkey+".pattern", "%v", err)
		}
		_, known := c.GFX.Canonical(f.Target)
		v.check(known, fkey+".target", "%q is no GPU target", f.Target)
		v.check(len(f.Set) > 0, fkey+".set", "missing")
	}
}

// credentials reports whether a URL holds a password, or the token that forges take
// in place of a name. ssh's user is neither.
func credentials(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.User == nil {
		return false
	}
	_, has := u.User.Password()
	return has || u.Scheme == "https" || u.Scheme == "http"
}
