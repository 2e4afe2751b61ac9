package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/amd"
	"github.com/rocm-nightly/rocm-nightly/internal/environ"
	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	"github.com/rocm-nightly/rocm-nightly/internal/lockfile"
	"github.com/rocm-nightly/rocm-nightly/internal/omit"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// Validate reports everything that makes no sense, each with its key.
func (c *Config) Validate() error {
	v := &validator{}
	v.check(c.Root == "" || filepath.IsAbs(c.Root), "root", "%q is not an absolute path", c.Root)
	c.channels(v)
	c.installs(v)
	c.policy(v)
	c.trust(v)
	c.limits(v)
	v.repack("repack", c.Repack)
	v.env("env", c.Env)
	v.audit("audit", c.Audit)
	v.keep("keep", c.Keep)
	v.keepTarballs("keep_tarballs", c.KeepTarballs)
	c.host(v)
	v.oneOf("activate", c.Activate, "auto", "idle", "manual")
	v.health(c.Health)
	c.bumps(v)
	v.oneOf("dedup", c.Dedup, "auto", "reflink", "hardlink", "off")
	c.daemon(v)
	c.serve(v)
	c.metrics(v)
	c.notify(v)
	return errors.Join(v.errs...)
}

// keyError is a complaint of Validate, which knows no files.
type keyError struct {
	key string
	err error
}

func (e *keyError) Error() string { return e.key + ": " + e.err.Error() }

func (e *keyError) Unwrap() error { return e.err }

type validator struct{ errs []error }

func (v *validator) check(ok bool, key, format string, args ...any) {
	if !ok {
		v.errs = append(v.errs, &keyError{key, fmt.Errorf(format, args...)})
	}
}

func (v *validator) oneOf(key, value string, allowed ...string) {
	v.check(slices.Contains(allowed, value), key, "%q is not one of %s", value, strings.Join(allowed, ", "))
}

// ChannelNames lists the channels that AMD publishes.
func ChannelNames() []string { return amd.ChannelNames() }

func (c *Config) channels(v *validator) {
	for name, ch := range c.Channels {
		key := "channels." + name
		v.oneOf(key, name, ChannelNames()...)
		v.check(len(ch.Indexes) > 0, key, "no indexes")
		seen := map[string]bool{}
		for i, ix := range ch.Indexes {
			ikey := fmt.Sprintf("%s.indexes[%d]", key, i)
			v.index(ikey, ix)
			v.check(!seen[ix.URL], ikey, "%s is there twice", redactURL(ix.URL))
			seen[ix.URL] = true
		}
	}
}

func (v *validator) index(key string, ix Index) {
	v.route(key, ix)
	u, err := url.Parse(ix.URL)
	if err == nil && u.Scheme == "file" {
		v.check(u.Host == "" && filepath.IsAbs(u.Path), key, "a mirror on disk is file:///DIRECTORY/")
		v.check(!ix.secured(), key, "headers_file, ca_file, client_cert and allow_hosts mean nothing for a directory")
		return
	}
	if err != nil || u.Host == "" {
		v.check(false, key, "url is not of the form https://host/path/")
		return
	}
	switch u.Scheme {
	case "https":
	case "http":
		v.check(ix.Insecure || loopback(u.Hostname()), key, "http:// to %s: nothing is signed, so only TLS protects it; set insecure: true to take it all the same", u.Hostname())
	default:
		v.check(false, key, "scheme %q is neither https nor file", u.Scheme)
	}
	v.origin(key, u, ix)
}

// secured reports whether ix says anything about how its host is spoken to.
func (ix Index) secured() bool {
	return ix.HeadersFile != "" || ix.CAFile != "" || ix.ClientCert != "" || ix.ClientKey != "" || len(ix.AllowHosts) > 0
}

// origin checks what is said about the host of an index.
func (v *validator) origin(key string, u *url.URL, ix Index) {
	for name, file := range map[string]string{"headers_file": ix.HeadersFile, "ca_file": ix.CAFile, "client_cert": ix.ClientCert, "client_key": ix.ClientKey} {
		v.check(file == "" || filepath.IsAbs(file), key+"."+name, "%q is not an absolute path", file)
	}
	v.check(ix.ClientKey == "" || ix.ClientCert != "", key+".client_key", "is there without client_cert")
	plain := u.Scheme == "http" && !loopback(u.Hostname())
	v.check(!plain || ix.HeadersFile == "", key+".headers_file", "over http:// everybody on the way could read it")
	for i, host := range ix.AllowHosts {
		name := strings.TrimPrefix(host, "*.")
		v.check(name != "" && !strings.ContainsAny(name, "/*@ "), fmt.Sprintf("%s.allow_hosts[%d]", key, i), "%q is neither a host name nor *.suffix", host)
	}
}

// route checks which versions an index is said to serve.
func (v *validator) route(key string, ix Index) {
	from, errFrom := release.ParseBound(ix.From)
	v.check(errFrom == nil, key+".from", "%q is neither a ROCm version nor a series", ix.From)
	until, errUntil := release.ParseBound(ix.Until)
	v.check(errUntil == nil, key+".until", "%q is neither a ROCm version nor a series", ix.Until)
	if errFrom == nil && errUntil == nil && !from.IsZero() && !until.IsZero() {
		v.check(from.Compare(until) < 0, key+".until", "%s is not after from, %s: no version is", ix.Until, ix.From)
	}
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (c *Config) installs(v *validator) {
	seen := map[string]bool{}
	links := map[string]bool{}
	for i, in := range c.Installs {
		key := fmt.Sprintf("installs[%d]", i)
		target, known := c.GFX.Canonical(in.Target)
		if in.Target == gfx.Auto {
			target, known = in.Target, true
		}
		v.check(known, key+".target", "%q is no GPU target: use auto, a gfx name, a family, a product name or multiarch", in.Target)
		v.oneOf(key+".channel", in.Channel, ChannelNames()...)
		id := in.Channel + " " + target
		v.check(!seen[id], key, "%s of %s is there twice", in.Target, in.Channel)
		seen[id] = true
		if in.Link != "" {
			v.check(filepath.IsAbs(in.Link), key+".link", "%q is not an absolute path", in.Link)
			link := filepath.Clean(in.Link)
			v.check(!links[link], key+".link", "%s is another install's link", in.Link)
			v.check(c.Root == "" || link != filepath.Clean(c.Root) && !strings.HasPrefix(link, filepath.Clean(c.Root)+"/"), key+".link", "%s is inside root", in.Link)
			links[link] = true
		}
		if in.Repack != nil {
			v.repack(key+".repack", *in.Repack)
		}
		if known && target != gfx.Auto {
			err := omit.CheckTarget(c.RepackOf(in).Leaves(), target)
			v.check(err == nil, key+".target", "%v", err)
		}
		v.env(key+".env", in.Env)
		if in.Audit != nil {
			v.audit(key+".audit", *in.Audit)
		}
		if in.Activate != "" {
			v.oneOf(key+".activate", in.Activate, "auto", "idle", "manual")
		}
		if in.Keep != nil {
			v.keep(key+".keep", *in.Keep)
		}
		if in.KeepTarballs != nil {
			v.keepTarballs(key+".keep_tarballs", *in.KeepTarballs)
		}
	}
}

// host checks whose files are linked.
func (c *Config) host(v *validator) {
	h := c.Host
	v.check(h.Etc == "" || filepath.IsAbs(h.Etc), "host.etc", "%q is not an absolute path", h.Etc)
	if h.Install == "" {
		return
	}
	var have []string
	for _, in := range c.Installs {
		target, _ := c.GFX.Canonical(in.Target)
		if in.Target == gfx.Auto || h.Install == in.Target || h.Install == target || h.Install == in.Channel+"-"+target {
			return
		}
		have = append(have, in.Channel+"-"+target)
	}
	v.check(false, "host.install", "%q is none of the installs: %s", h.Install, strings.Join(have, ", "))
}

var seriesRE = regexp.MustCompile(`^[0-9]+(\.[0-9]+)*$`)

func (c *Config) policy(v *validator) {
	v.oneOf("policy.prefer", c.Policy.Prefer, "version", "date")
	v.check(c.Policy.Series == "" || seriesRE.MatchString(c.Policy.Series), "policy.series", "%q is not how versions begin: write their first numbers, such as 10.2", c.Policy.Series)
	v.oneOf("policy.multiarch", c.Policy.Multiarch, "never", "fallback")
	for i, g := range c.Policy.Deny {
		_, err := path.Match(g, "")
		v.check(err == nil && g != "", fmt.Sprintf("policy.deny[%d]", i), "%q is not a glob", g)
	}
}

// trust checks who is asked before a release may become active.
func (c *Config) trust(v *validator) {
	p := c.Policy
	v.oneOf("policy.verify", p.Verify, "observed", "agreed", "signed")
	v.place("policy.lock", Index{URL: p.Lock})
	signed := p.Lock != "" && p.LockKey != ""
	v.check(p.LockKey == "" || p.Lock != "", "policy.lock_key", "is there without policy.lock")
	v.key("policy.lock_key", p.LockKey)
	seen := map[string]bool{}
	for i, t := range c.Trust {
		key := fmt.Sprintf("trust[%d]", i)
		// One source is one voice, however it is spelled.
		at := source(t.URL)
		v.check(t.URL != "", key+".url", "is missing")
		v.check(t.URL == "" || !seen[at], key+".url", "%q is there twice", redactURL(t.URL))
		seen[at] = true
		v.place(key, Index{URL: t.URL, HeadersFile: t.HeadersFile, CAFile: t.CAFile, AllowHosts: t.AllowHosts})
		v.key(key+".key", t.Key)
		signed = signed || t.Key != ""
	}
	v.check(p.Verify != "agreed" || p.Quorum >= 1 && p.Quorum <= len(c.Trust), "policy.quorum", "%d of the %d sources under trust can never agree", p.Quorum, len(c.Trust))
	v.check(p.Quorum >= 1, "policy.quorum", "%d is less than 1", p.Quorum)
	v.check(p.Verify != "signed" || signed, "policy.verify", "signed wants policy.lock with policy.lock_key, or a lock under trust with its key")
}

// source is what two spellings of where a lock or a ledger is have in common:
// the path of a file, or the URL without a fragment and without the user, in
// front of a host in lower case.
func source(at string) string {
	if filepath.IsAbs(at) {
		return filepath.Clean(at)
	}
	u, err := url.Parse(at)
	if err != nil {
		return at
	}
	if u.Scheme == "file" {
		return filepath.Clean(u.Path)
	}
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	u.Host = strings.TrimSuffix(strings.ToLower(u.Host), ":443")
	return u.String()
}

// redactURL is a URL for people, without who is to be let in.
func redactURL(raw string) string {
	if !strings.Contains(raw, "://") {
		return raw // a path
	}
	u, err := url.Parse(raw)
	if err != nil {
		return "(a URL that cannot be parsed)"
	}
	if u.User != nil {
		u.User = url.User("xxxxx")
	}
	return u.String()
}

// place checks where a lock or a ledger is read from.
func (v *validator) place(key string, at Index) {
	switch {
	case at.URL == "":
	case filepath.IsAbs(at.URL):
		v.check(!at.secured(), key, "headers_file, ca_file and allow_hosts mean nothing for a file")
	case !strings.Contains(at.URL, "://"):
		v.check(false, key, "%q is neither an absolute path nor a URL", at.URL)
	default:
		v.index(key, at)
	}
}

func (v *validator) key(key, text string) {
	if text == "" {
		return
	}
	_, err := lockfile.ParseKey(text)
	v.check(err == nil, key, "is no minisign public key: %v", err)
}

// maxMaxRatio is far above what any compressor reaches; .inf is no limit, and no JSON.
const maxMaxRatio = 1e6

func (c *Config) limits(v *validator) {
	d := c.Download
	v.check(d.Connections >= 1 && d.Connections <= 64, "download.connections", "%d is not between 1 and 64", d.Connections)
	v.check(d.Retries >= 0 && d.Retries <= 1000, "download.retries", "%d is not between 0 and 1000", d.Retries)
	v.check(d.IdleTimeout > 0, "download.idle_timeout", "must be more than 0s")
	u := c.Unpack
	v.check(u.MaxBytes > 0, "unpack.max_bytes", "must be more than 0")
	v.check(u.MaxEntries > 0, "unpack.max_entries", "must be more than 0")
	v.check(u.MaxRatio >= 1 && u.MaxRatio <= maxMaxRatio, "unpack.max_ratio", "%v is not between 1 and %d", u.MaxRatio, int(maxMaxRatio))
	v.oneOf("unpack.decompressor", u.Decompressor, "auto", "klauspost")
}

func (v *validator) repack(key string, r Repack) {
	v.oneOf(key+".profile", r.Profile, "fhs", "nix")
	v.oneOf(key+".run_path", r.RunPath, "rpath", "runpath")
	v.check(r.Interpreter == "" || filepath.IsAbs(r.Interpreter), key+".interpreter", "%q is not an absolute path", r.Interpreter)
	for i, dir := range r.InterpreterPath {
		v.check(filepath.IsAbs(dir), fmt.Sprintf("%s.interpreter_path[%d]", key, i), "%q is not an absolute path", dir)
	}
	for i, dir := range r.AddRPath {
		ok := (filepath.IsAbs(dir) || strings.HasPrefix(dir, "$ORIGIN")) && !strings.ContainsAny(dir, ":\x00\n")
		v.check(ok, fmt.Sprintf("%s.add_rpath[%d]", key, i), "%q is neither an absolute path nor begins with $ORIGIN", dir)
	}
	v.check(r.Profile != "nix" || len(r.InterpreterPath) > 0, key+".interpreter_path", "profile nix finds script interpreters only here, and it is empty")
	err := omit.Check(r.Leaves())
	v.check(err == nil, key+".omit", "%v", err)
}

// maxEnv bounds how many variables one map may hold.
const maxEnv = 64

// env checks variables that programs are to find in their environment.
func (v *validator) env(key string, env map[string]string) {
	v.check(len(env) <= maxEnv, key, "%d variables are more than %d", len(env), maxEnv)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		err := environ.Configurable(name)
		v.check(err == nil, key, "%v", err)
		err = environ.CheckValue(env[name])
		v.check(err == nil, key+"."+name, "%q %v", env[name], err)
	}
}

func (v *validator) audit(key string, a Audit) {
	v.oneOf(key+".scope", a.Scope, "host", "tree")
	v.oneOf(key+".refuse", a.Refuse, "regression", "all", "never")
	for i, al := range a.Allow {
		_, err := path.Match(al.Path, "")
		v.check(al.Rule != "" && al.Path != "" && err == nil, fmt.Sprintf("%s.allow[%d]", key, i), "wants a rule and a glob for the path")
	}
}

// maxDays bounds an age, in days: a hundred years.
const maxDays = 36500

func (v *validator) keep(key string, k Keep) {
	v.check(k.Last >= 2, key+".last", "%d: at least 2 must stay, or there is no way back", k.Last)
	v.check(k.Days >= 0 && k.Days <= maxDays, key+".days", "%d is not between 0 and %d", k.Days, maxDays)
	v.check(k.Bytes >= 0, key+".bytes", "must not be less than 0")
}

// maxKeepTarballs is more tarballs than a year of nights.
const maxKeepTarballs = 1000

func (v *validator) keepTarballs(key string, n int) {
	v.check(n >= 0 && n <= maxKeepTarballs, key, "%d is not between 0 and %d", n, maxKeepTarballs)
}

// maxHealth bounds how long the health command may take each time.
const maxHealth = Duration(24 * time.Hour)

// health checks what is started of a new generation, and the user's own check.
func (v *validator) health(h Health) {
	v.oneOf("health.smoke", h.Smoke, "auto", "off", "cpu", "gpu")
	v.oneOf("health.sandbox", h.Sandbox, "on", "off")
	v.check(h.Timeout > 0 && h.Timeout <= maxHealth, "health.timeout", "%s is not between 1ns and %s", h.Timeout, maxHealth)
	if len(h.Command) == 0 {
		return
	}
	name := h.Command[0]
	named := name != "" && name != "." && name != ".." && !strings.Contains(name, "/")
	v.check(named || filepath.IsAbs(name) && filepath.Clean(name) == name, "health.command", "%q is neither the whole path of a program nor a plain name: write each argument as an item of its own, [/usr/local/bin/check, --fast]", name)
	for _, arg := range h.Command {
		v.check(!strings.Contains(arg, "\x00"), "health.command", "%q holds a zero byte", arg)
	}
}
