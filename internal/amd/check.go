package amd

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/environ"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// problem is something in a data file that makes no sense.
type problem struct {
	path []string // keys and list positions from the top
	what string
}

type checker struct{ problems []problem }

// want records a problem at path unless ok.
func (c *checker) want(ok bool, at []string, format string, args ...any) {
	if !ok {
		c.problems = append(c.problems, problem{slices.Clone(at), fmt.Sprintf(format, args...)})
	}
}

var (
	targetRE = regexp.MustCompile(`^gfx[0-9]{1,4}[0-9a-f]{2}$`)
	slugRE   = regexp.MustCompile(`^gfx[0-9a-f]{2,8}X?(-[a-z]+)?$`)
	kernelRE = regexp.MustCompile(`^[0-9]{1,4}\.[0-9]{1,4}(\.[0-9]{1,6})?$`)
	hostRE   = regexp.MustCompile(`^(\*\.)?[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*(:[0-9]{1,5})?$`)
)

// check reports everything in d that makes no sense. A whole file must have
// its version, every channel and every table; one that is laid over another
// may leave out what it does not change.
func check(d *Data, whole bool) []problem {
	c := &checker{}
	c.want(d.Schema == Schema || !whole && d.Schema == 0, []string{"schema"}, "%d is not a schema; this program reads %d", d.Schema, Schema)
	if whole || d.Version != "" {
		_, err := parseFacts(d.Version)
		c.want(err == nil, []string{"version"}, "%v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Channels)) {
		c.channel(name, d.Channels[name], whole)
	}
	c.tables(d)
	c.deny(d)
	if whole {
		c.complete(d)
	}
	return c.problems
}

func (c *checker) channel(name string, ch Channel, whole bool) {
	at := []string{"channels", name}
	c.want(slices.Contains(ChannelNames(), name), at, "no such channel; they are %s", strings.Join(ChannelNames(), ", "))
	c.want(ch.Retention >= 0, append(at, "retention"), "%d days is less than none", ch.Retention)
	c.want(ch.StaleAfter >= 0, append(at, "stale_after"), "%s is less than none", ch.StaleAfter)
	c.want(len(ch.Indexes) > 0 || !whole && ch.Indexes == nil, append(at, "indexes"), "no indexes")
	seen := map[string]bool{}
	for i, ix := range ch.Indexes {
		c.index(append(at, "indexes", strconv.Itoa(i)), ix)
		c.want(!seen[ix.URL], append(at, "indexes", strconv.Itoa(i), "url"), "%q is there twice", ix.URL)
		seen[ix.URL] = true
	}
}

func (c *checker) index(at []string, ix Index) {
	c.want(goodURL(ix.URL), append(at, "url"), "%q is not of the form https://host/path/ (or file:///directory/)", withoutUser(ix.URL))
	from, errFrom := release.ParseBound(ix.From)
	c.want(errFrom == nil, append(at, "from"), "%v", errFrom)
	until, errUntil := release.ParseBound(ix.Until)
	c.want(errUntil == nil, append(at, "until"), "%v", errUntil)
	if errFrom == nil && errUntil == nil && !from.IsZero() && !until.IsZero() {
		c.want(from.Compare(until) < 0, append(at, "until"), "%s is not after from, %s", ix.Until, ix.From)
	}
	if ix.Ended != "" {
		_, err := time.Parse(time.DateOnly, ix.Ended)
		c.want(err == nil, append(at, "ended"), "%q is not a day such as 2026-08-22", ix.Ended)
	}
	for i, host := range ix.AllowHosts {
		c.want(hostRE.MatchString(host), append(at, "allow_hosts", strconv.Itoa(i)), "%q is neither a host name (with its port, if need be) nor *.suffix", host)
	}
}

// goodURL reports whether s is the address of an index. http:// to another
// machine is not for this file: the configuration has a word for taking it.
func goodURL(s string) bool {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.User != nil || u.Fragment != "" || u.Opaque != "":
		return false
	case u.Scheme == "file":
		return u.Host == "" && path.IsAbs(u.Path)
	case u.Scheme == "http":
		return u.Hostname() == "localhost" || u.Hostname() == "127.0.0.1" || u.Hostname() == "::1"
	}
	return u.Scheme == "https" && u.Hostname() != ""
}

// withoutUser is a URL for people: an error may end in a log.
func withoutUser(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.User == nil {
		return s
	}
	u.User = url.User("xxxxx")
	return u.String()
}

func (c *checker) tables(d *Data) {
	for _, slug := range slices.Sorted(maps.Keys(d.Families)) {
		at := []string{"families", slug}
		c.want(slugRE.MatchString(slug), at, "not a slug such as gfx110X-all")
		c.want(len(d.Families[slug]) > 0, at, "no targets")
		c.targets(at, d.Families[slug])
	}
	spelled := map[string]string{} // by what two spellings have in common
	for _, product := range slices.Sorted(maps.Keys(d.Products)) {
		at := []string{"products", product}
		other, twice := spelled[letters(product)]
		c.want(!twice || d.Products[other] == d.Products[product], at, "is %s here, and %s as %q", d.Products[product], d.Products[other], other)
		spelled[letters(product)] = product
		c.want(strings.TrimSpace(product) != "" && len(product) <= 100, at, "not a product's name")
		c.want(targetRE.MatchString(d.Products[product]), at, "%q is not a target such as gfx1100", d.Products[product])
	}
	for _, name := range slices.Sorted(maps.Keys(d.Targets)) {
		at, t := []string{"targets", name}, d.Targets[name]
		c.want(targetRE.MatchString(name), at, "not a target such as gfx1100")
		c.want(t.Kernel == "" || kernelRE.MatchString(t.Kernel), append(at, "kernel"), "%q is not a Linux version such as 6.10", t.Kernel)
		c.want(!slices.Contains(t.Nearest, name), append(at, "nearest"), "%s is not near itself", name)
		c.targets(append(at, "nearest"), t.Nearest)
		for _, variable := range slices.Sorted(maps.Keys(t.Env)) {
			at, v := append(at, "env", variable), t.Env[variable]
			err := errors.Join(environ.Configurable(variable), environ.CheckValue(v.Value))
			c.want(err == nil, at, "%v", err)
			c.want(strings.TrimSpace(v.Source) != "", at, "a source is missing: somebody will ask who says so")
		}
	}
}

func (c *checker) targets(at []string, names []string) {
	for i, t := range names {
		c.want(targetRE.MatchString(t), append(at, strconv.Itoa(i)), "%q is not a target such as gfx1100", t)
	}
}

func (c *checker) deny(d *Data) {
	for i, e := range d.Deny {
		at := []string{"deny", strconv.Itoa(i)}
		_, err := path.Match(e.Pattern, "")
		c.want(err == nil && e.Pattern != "", append(at, "pattern"), "%q is not a pattern over file names", e.Pattern)
		c.want(e.Reason != "", append(at, "reason"), "a reason is missing: somebody will ask")
		if e.URL != "" {
			c.want(goodURL(e.URL), append(at, "url"), "%q is not an address", e.URL)
		}
	}
}

// complete reports the tables and channels that a whole file lacks.
func (c *checker) complete(d *Data) {
	for _, name := range ChannelNames() {
		_, there := d.Channels[name]
		c.want(there, []string{"channels"}, "%s is missing", name)
	}
	c.want(len(d.Families) > 0, []string{"families"}, "missing or empty")
	c.want(len(d.Products) > 0, []string{"products"}, "missing or empty")
	c.want(len(d.Targets) > 0, []string{"targets"}, "missing or empty")
}
