package pinfile

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The first entry of a changelog, as deb-changelog(5) has it.
var (
	debianHead = regexp.MustCompile(`^([a-z0-9][a-z0-9+.-]*) \(([^() \t]+)\)((?: [A-Za-z0-9.-]+)+); *(.*)$`)
	debianTail = regexp.MustCompile(`^ -- (.*>)  (.+)$`)
	// debianVersion is [epoch:]upstream[-revision] of Debian Policy §5.6.12.
	debianVersion    = regexp.MustCompile(`^(?:[0-9]{1,9}:)?[0-9][A-Za-z0-9.+~-]*$`)
	debianMaintainer = regexp.MustCompile(`^[^<>]*[^<> ] <[^<>@ ]+@[^<>@ ]+>$`)
	debianDist       = regexp.MustCompile(`^[A-Za-z0-9.-]+$`)
	debianUrgency    = regexp.MustCompile(`(?i)\burgency=([a-z]+)`)
	debianUrgencies  = []string{"low", "medium", "high", "emergency", "critical"}
)

// debianDoc is a debian/changelog. Nothing in it is ever changed: a new version
// is a new entry on top.
type debianDoc struct {
	*codeTree
	entry map[string]string // the first entry, by key
}

// parseDebianChangelog reads the first entry: package, version, distribution,
// urgency, change (its first line), maintainer and date (as YYYY-MM-DD).
func parseDebianChangelog(src []byte, _ Options) (document, error) {
	d := &debianDoc{newCodeTree(src), map[string]string{}}
	state, off := 0, 0
	for off < len(src) && state < 2 {
		n := lineLen(src[off:])
		line := bytes.TrimRight(src[off:off+n], "\r")
		switch {
		case state == 0 && len(bytes.TrimSpace(line)) == 0:
		case state == 0:
			m := debianHead.FindSubmatchIndex(line)
			if m == nil {
				return nil, syntaxAt(src, off, "an entry begins with package (version) distribution; urgency=…")
			}
			d.head(line, off, m)
			state = 1
		case bytes.HasPrefix(line, []byte("  ")):
			d.change(line, off)
		case bytes.HasPrefix(line, []byte(" -- ")):
			if err := d.tail(line, off); err != nil {
				return nil, err
			}
			state = 2
		case len(bytes.TrimSpace(line)) > 0:
			return nil, syntaxAt(src, off, "a line of an entry begins with two blanks")
		}
		off += n + 1
	}
	if state < 2 {
		return nil, syntaxAt(src, min(off, len(src)), "the first entry does not end with ' -- Name <address>  date'")
	}
	return d, nil
}

func (d *debianDoc) add(key, value string, start, end int) {
	d.entry[key] = value
	d.value(d.child(d.root, key, start), Site{Start: start, End: end, Value: value, Encode: func(v string) ([]byte, error) {
		if v != value {
			return nil, errors.New("an entry of a changelog is not changed (set version, and a new entry is added)")
		}
		return d.src[start:end], nil
	}})
}

func (d *debianDoc) head(line []byte, off int, m []int) {
	d.add("package", string(line[m[2]:m[3]]), off+m[2], off+m[3])
	d.add("version", string(line[m[4]:m[5]]), off+m[4], off+m[5])
	d.add("distribution", string(line[m[6]+1:m[7]]), off+m[6]+1, off+m[7])
	if u := debianUrgency.FindSubmatchIndex(line[m[8]:]); u != nil {
		at := m[8]
		d.add("urgency", string(line[at+u[2]:at+u[3]]), off+at+u[2], off+at+u[3])
	}
}

func (d *debianDoc) change(line []byte, off int) {
	text, ok := bytes.CutPrefix(line, []byte("  * "))
	if _, have := d.entry["change"]; ok && !have {
		d.add("change", string(text), off+4, off+len(line))
	}
}

func (d *debianDoc) tail(line []byte, off int) error {
	m := debianTail.FindSubmatchIndex(line)
	if m == nil {
		return syntaxAt(d.src, off, "an entry ends with ' -- Name <address>  date'")
	}
	d.add("maintainer", string(line[m[2]:m[3]]), off+m[2], off+m[3])
	date := string(line[m[4]:m[5]])
	if when, err := time.Parse("Mon, _2 Jan 2006 15:04:05 -0700", date); err == nil {
		date = when.Format(time.DateOnly)
	}
	d.add("date", date, off+m[4], off+m[5])
	return nil
}

// rewrite returns the file with an entry for set's version on top, or as it is
// when that is the version of the first entry.
func (d *debianDoc) rewrite(set map[string]string) ([]byte, error) {
	e := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(set)) {
		name := strings.TrimPrefix(key, ".")
		if _, known := d.entry[name]; !known && name != "change" && name != "urgency" || name == "package" {
			return nil, &MatchError{Attr: key, Lines: []Place{{Line: 1, Column: 1, Note: "a changelog has version, distribution, urgency, change, maintainer and date"}}}
		}
		if err := oneLine(set[key]); err != nil {
			return nil, d.refuse(key, err.Error())
		}
		e[name] = set[key]
	}
	version, ok := e["version"]
	if !ok {
		return nil, d.refuse("version", "nothing sets the version, and only a new version makes a new entry")
	}
	if version == d.entry["version"] {
		return d.src, nil
	}
	for _, name := range []string{"package", "distribution", "urgency", "maintainer"} {
		if _, ok := e[name]; !ok {
			e[name] = d.entry[name]
		}
	}
	if e["urgency"] == "" {
		e["urgency"] = "medium"
	}
	if _, ok := e["change"]; !ok {
		e["change"] = "New upstream version " + upstreamOf(version) + "."
	}
	when, err := d.check(e)
	if err != nil {
		return nil, err
	}
	eol := "\n"
	if i := bytes.IndexByte(d.src, '\n'); i > 0 && d.src[i-1] == '\r' {
		eol = "\r\n"
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s (%s) %s; urgency=%s%s%s", e["package"], version, e["distribution"], e["urgency"], eol, eol)
	fmt.Fprintf(&out, "  * %s%s%s", e["change"], eol, eol)
	fmt.Fprintf(&out, " -- %s  %s%s%s", e["maintainer"], when.Format("Mon, 02 Jan 2006 15:04:05 -0700"), eol, eol)
	out.Write(d.src)
	return out.Bytes(), nil
}

// check refuses what an entry cannot say.
func (d *debianDoc) check(e map[string]string) (time.Time, error) {
	if v := e["version"]; !debianVersion.MatchString(v) || strings.HasSuffix(v, "-") {
		return time.Time{}, d.refuse("version", fmt.Sprintf("%.100q is no version of Debian (want [epoch:]upstream[-revision], of letters, digits and . + ~ -)", v))
	}
	if old := epochOf(d.entry["version"]); epochOf(e["version"]) < old {
		return time.Time{}, d.refuse("version", fmt.Sprintf("the epoch is %d, and %.100q would be the older version (write the epoch before it: %d:)", old, e["version"], old))
	}
	for _, dist := range strings.Split(e["distribution"], " ") {
		if !debianDist.MatchString(dist) {
			return time.Time{}, d.refuse("distribution", fmt.Sprintf("%.100q is no distribution", dist))
		}
	}
	if !slices.Contains(debianUrgencies, e["urgency"]) {
		return time.Time{}, d.refuse("urgency", fmt.Sprintf("%.100q is no urgency", e["urgency"]))
	}
	if !debianMaintainer.MatchString(e["maintainer"]) {
		return time.Time{}, d.refuse("maintainer", fmt.Sprintf("%.100q is no maintainer (want Name <address>)", e["maintainer"]))
	}
	if c := e["change"]; c == "" || strings.TrimSpace(c) != c {
		return time.Time{}, d.refuse("change", "the change is empty or has blanks around it")
	}
	when, err := time.Parse(time.DateOnly, e["date"])
	if err != nil {
		return time.Time{}, d.refuse("date", `a new entry has a date, YYYY-MM-DD (set date: "{{.Date}}")`)
	}
	return when, nil
}

func (d *debianDoc) refuse(key, problem string) error {
	p := placeOf(d.src, 0)
	for _, n := range d.values {
		if n.name == strings.TrimPrefix(key, ".") {
			p = placeOf(d.src, n.at)
		}
	}
	return &ValueError{Attr: key, Line: p.Line, Column: p.Column, Problem: problem}
}

// epochOf is the number before a version's colon, 0 if there is none.
func epochOf(version string) int {
	epoch, _, _ := strings.Cut(version, ":")
	n, err := strconv.Atoi(epoch)
	if err != nil || !strings.Contains(version, ":") {
		return 0
	}
	return n
}

// upstreamOf drops a version's epoch and revision.
func upstreamOf(version string) string {
	if _, rest, ok := strings.Cut(version, ":"); ok {
		version = rest
	}
	if i := strings.LastIndexByte(version, '-'); i > 0 {
		version = version[:i]
	}
	return version
}
