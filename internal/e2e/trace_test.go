package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// call is one system call that changes what is on disk, or makes it durable.
// Times are in microseconds.
type call struct {
	name       string
	start, end int64
	paths      []string // absolute: of the file, or from and to
}

// traced are the calls that strace(1) is asked for.
const traced = "write,pwrite64,writev,pwritev,copy_file_range,ftruncate,fallocate,openat,mkdirat,mkdir,symlinkat,symlink,linkat,link,fchmod,fchmodat,chmod,utimensat," +
	"rename,renameat,renameat2,unlink,unlinkat,rmdir,fsync,fdatasync,sync_file_range,syncfs,sync"

var (
	// "1700000000.000001 fsync(3</tmp/x>) = 0 <0.000010>", as strace -ttt -T -y has it.
	lineRE = regexp.MustCompile(`^(\d+)\.(\d{6}) (\w+)\((.*)\) += (-?\d+)(.*?) <(\d+)\.(\d{6})>$`)
	fdRE   = regexp.MustCompile(`^(?:\d+|AT_FDCWD)<([^>]*)>$`)
)

// parseCall reads a line of strace; nil for one that changed nothing.
func parseCall(line string) *call {
	m := lineRE.FindStringSubmatch(line)
	if m == nil || strings.HasPrefix(m[5], "-") {
		return nil
	}
	number := func(s, micro string) int64 {
		a, _ := strconv.ParseInt(s, 10, 64)
		b, _ := strconv.ParseInt(micro, 10, 64)
		return a*1e6 + b
	}
	c := &call{name: m[3], start: number(m[1], m[2])}
	c.end = c.start + number(m[7], m[8])
	if c.name == "openat" && !strings.Contains(m[4], "O_CREAT") && !strings.Contains(m[4], "O_TRUNC") {
		return nil
	}
	var files, names []string // of descriptors, and by name
	for _, arg := range arguments(m[4]) {
		if fd := fdRE.FindStringSubmatch(arg); fd != nil {
			files = append(files, fd[1])
		} else if text, err := strconv.Unquote(arg); err == nil {
			if !filepath.IsAbs(text) && len(files) > 0 {
				text = filepath.Join(files[len(files)-1], text)
			}
			names = append(names, text)
		}
	}
	switch {
	case strings.HasPrefix(c.name, "symlink"):
		c.paths = names[1:] // the first is its text
	case len(names) == 0 || contents[c.name]:
		c.paths = files[max(0, len(files)-1):]
	default:
		c.paths = names
	}
	return c
}

// contents are the calls whose strings are bytes and no names.
var contents = map[string]bool{"write": true, "pwrite64": true, "writev": true, "pwritev": true}

// arguments splits what stands between the parentheses of a call.
func arguments(s string) (args []string) {
	depth, quoted, from := 0, false, 0
	for i := 0; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case quoted:
		case s[i] == '<' || s[i] == '[' || s[i] == '{':
			depth++
		case s[i] == '>' || s[i] == ']' || s[i] == '}':
			depth--
		case s[i] == ',' && depth == 0:
			args = append(args, strings.TrimSpace(s[from:i]))
			from = i + 1
		}
	}
	return append(args, strings.TrimSpace(s[from:]))
}

// order holds a trace against what has to be durable before what.
type order struct {
	root  string
	dirty map[string]int64 // when a path was last changed
	since map[string]int64 // since when a path is durable as it is
	names map[string]int64 // when a directory got, or lost, a final name that is not durable yet
	wrong []string
	seen  map[string]int // final names, by kind
}

// The final names of a store.
var finals = []struct {
	kind string
	is   *regexp.Regexp
}{
	{"generation", regexp.MustCompile(`^slots/[^/]+/generations/[^/]+$`)},
	{"current", regexp.MustCompile(`^slots/[^/]+/current$`)},
	{"state", regexp.MustCompile(`^slots/[^/]+/(state|checks)\.json$`)},
	{"run", regexp.MustCompile(`^slots/[^/]+/runs/[^/.][^/]*\.json$`)},
	{"spool", regexp.MustCompile(`^spool/[^/]+/[^/]+/state\.json$`)},
	{"segment", regexp.MustCompile(`^spool/[^/]+/[^/]+/\d{4,}$`)},
}

func (o *order) kind(path string) string {
	rel, err := filepath.Rel(o.root, path)
	if err != nil {
		return ""
	}
	for _, f := range finals {
		if f.is.MatchString(rel) {
			return f.kind
		}
	}
	return ""
}

func (o *order) fault(format string, args ...any) {
	o.wrong = append(o.wrong, strings.ReplaceAll(fmt.Sprintf(format, args...), o.root+"/", ""))
}

// violations says what of a trace has the wrong order.
func violations(root string, calls []*call) (wrong []string, seen map[string]int) {
	o := &order{root: root, dirty: map[string]int64{}, since: map[string]int64{}, names: map[string]int64{}, seen: map[string]int{}}
	slices.SortStableFunc(calls, func(a, b *call) int { return cmp.Compare(a.start, b.start) })
	for _, c := range calls {
		o.step(c)
	}
	for dir := range o.names {
		o.fault("in the end the names in %s are not durable", dir)
	}
	slices.Sort(o.wrong)
	return slices.Compact(o.wrong), o.seen
}

func (o *order) step(c *call) {
	switch c.name {
	case "fsync", "fdatasync":
		o.synced(c, func(path string) bool { return path == c.paths[0] })
	case "syncfs", "sync":
		o.synced(c, func(string) bool { return true })
	case "sync_file_range":
	case "rename", "renameat", "renameat2":
		if len(c.paths) == 2 {
			o.rename(c)
		}
	case "unlink", "unlinkat", "rmdir":
		o.unlink(c)
	default:
		path := ""
		if len(c.paths) > 0 {
			path = c.paths[len(c.paths)-1]
		}
		if !strings.HasPrefix(path, o.root+"/") {
			return
		}
		o.dirty[path] = max(o.dirty[path], c.end)
		delete(o.since, path)
		if k := o.kind(filepath.Dir(path)); k == "generation" || strings.Contains(path, "/generations/") && strings.Count(strings.TrimPrefix(path, o.root), "/") > 4 {
			o.fault("%s is changed under its final name by %s", path, c.name)
		}
	}
}

// synced makes durable what was changed before the call began.
func (o *order) synced(c *call, is func(string) bool) {
	for path, at := range o.dirty {
		if is(path) && at <= c.start && (o.since[path] == 0 || o.since[path] > c.end) {
			o.since[path] = c.end
		}
	}
	for dir, at := range o.names {
		if is(dir) && at <= c.start {
			delete(o.names, dir)
		}
	}
}

// rename checks what gets a final name.
func (o *order) rename(c *call) {
	from, to := c.paths[0], c.paths[1]
	if !strings.HasPrefix(from, o.root+"/") && !strings.HasPrefix(to, o.root+"/") {
		return
	}
	kind := o.kind(to)
	if kind != "" {
		o.seen[kind]++
	}
	if kind != "" && kind != "current" { // of a link the target is its name: one with the directory
		for path := range o.dirty {
			if path != from && !strings.HasPrefix(path, from+"/") {
				continue
			}
			if at := o.since[path]; at == 0 || at > c.start {
				o.fault("%s becomes %s before %s is durable", filepath.Base(from), to, path)
			}
		}
	}
	switch kind {
	case "generation":
		if ledger := filepath.Join(o.root, "ledger.jsonl"); o.dirty[ledger] > 0 && o.since[ledger] == 0 {
			o.fault("%s before the ledger is durable", to)
		}
	case "current":
		for dir := range o.names {
			if filepath.Base(dir) == "generations" {
				o.fault("%s is switched before the names in %s are durable", to, dir)
			}
		}
	}
	if !strings.HasPrefix(to, o.root+"/") && strings.HasPrefix(from, o.root+"/") {
		return
	}
	if kind != "" || o.kind(from) != "" {
		o.names[filepath.Dir(to)] = c.end
		if o.kind(from) != "" {
			o.names[filepath.Dir(from)] = c.end
		}
	}
	o.move(from, to)
}

// move has everything below a name follow it.
func (o *order) move(from, to string) {
	for _, m := range []map[string]int64{o.dirty, o.since} {
		for _, path := range slices.Collect(maps.Keys(m)) {
			if rest, ok := strings.CutPrefix(path, from); ok && (rest == "" || rest[0] == '/') {
				m[to+rest] = m[path]
				delete(m, path)
			}
		}
	}
}

// unlink checks what is thrown away: a download when what was made of it is
// durable, an old generation when it is out of sight for good.
func (o *order) unlink(c *call) {
	if len(c.paths) == 0 || !strings.HasPrefix(c.paths[0], o.root+"/") {
		return
	}
	path := c.paths[len(c.paths)-1]
	switch {
	case o.kind(path) == "segment" || strings.Contains(path, "/.dying-"):
		for dir := range o.names {
			if filepath.Base(dir) == "generations" {
				o.fault("%s is deleted before the names in %s are durable", path, dir)
			}
		}
	case o.kind(path) == "generation" || strings.Contains(path, "/generations/"):
		o.fault("%s is deleted under its final name", path)
	}
	delete(o.dirty, path)
	delete(o.since, path)
	delete(o.names, path)
}

// TestWrongOrdersAreFound: the checker itself, on traces that it must refuse.
func TestWrongOrdersAreFound(t *testing.T) {
	const slot = "/r/slots/s"
	at := int64(0)
	line := func(text string) string {
		at++
		return fmt.Sprintf("%d.000000 %s <0.000010>", at, text)
	}
	write := `write(5<` + slot + `/.staging-a/f>, "x"..., 10) = 10`
	sync := `syncfs(5<` + slot + `/.staging-a>) = 0`
	commit := `renameat2(AT_FDCWD</>, "` + slot + `/.staging-a", AT_FDCWD</>, "` + slot + `/generations/1", RENAME_NOREPLACE) = 0`
	fsyncGen := `fsync(6<` + slot + `/generations>) = 0`
	fsyncSlot := `fsync(6<` + slot + `>) = 0`
	point := `renameat(AT_FDCWD</>, "` + slot + `/.current-a", AT_FDCWD</>, "` + slot + `/current") = 0`
	segment := `write(7</r/spool/n/t/0001.part>, "x", 1) = 1`
	data := `fdatasync(8</r/spool/n/t/0001.part>) = 0`
	named := `renameat(AT_FDCWD</>, "/r/spool/n/t/0001.part", AT_FDCWD</>, "/r/spool/n/t/0001") = 0`
	spool := `fsync(9</r/spool/n/t>) = 0`
	drop := `unlinkat(9</r/spool/n/t>, "0001", 0) = 0`
	ledger := `write(5</r/ledger.jsonl>, "{}", 2) = 2`
	ledgered := `fsync(5</r/ledger.jsonl>) = 0`
	away := `renameat(AT_FDCWD</>, "` + slot + `/generations/0", AT_FDCWD</>, "` + slot + `/.dying-a") = 0`
	bury := `unlinkat(9<` + slot + `/.dying-a>, "f", 0) = 0`
	good := []string{segment, data, named, spool, write, ledger, ledgered, sync, commit, fsyncGen, fsyncSlot, point, fsyncSlot, away, fsyncGen, fsyncSlot, bury, drop}
	for what, c := range map[string]struct {
		trace []string
		want  string // "" for none
	}{
		"right":                             {good, ""},
		"no sync":                           {[]string{write, commit, fsyncGen, fsyncSlot}, "before slots/s/.staging-a/f is durable"},
		"sync before the last write":        {[]string{sync, write, commit, fsyncGen, fsyncSlot}, "before slots/s/.staging-a/f is durable"},
		"the switch before the name":        {[]string{write, sync, commit, point, fsyncGen, fsyncSlot}, "switched before the names"},
		"a directory that is never synced":  {[]string{write, sync, commit, fsyncSlot}, "in the end the names in slots/s/generations"},
		"a segment that is not on disk":     {[]string{segment, named, spool}, "0001.part becomes"},
		"another file that is synced":       {[]string{segment, ledgered, named, spool}, "0001.part becomes"},
		"a sync that failed":                {[]string{segment, strings.Replace(data, "= 0", "= -1 EIO (Input/output error)", 1), named, spool}, "0001.part becomes"},
		"a download thrown away too early":  {[]string{write, sync, commit, drop, fsyncGen, fsyncSlot}, "0001 is deleted before"},
		"a generation deleted in its place": {[]string{`unlinkat(9<` + slot + `/generations/0>, "f", 0) = 0`}, "deleted under its final name"},
		"deleted while it may come back":    {[]string{away, bury, fsyncGen, fsyncSlot}, "is deleted before the names"},
		"a write under the final name":      {[]string{`write(5<` + slot + `/generations/1/opt/f>, "x", 1) = 1`}, "changed under its final name"},
		"the ledger too late":               {[]string{write, ledger, commit, sync, fsyncGen, fsyncSlot, ledgered}, "before the ledger is durable"},
	} {
		var calls []*call
		for _, text := range c.trace {
			if parsed := parseCall(line(text)); parsed != nil {
				calls = append(calls, parsed)
			}
		}
		wrong, _ := violations("/r", calls)
		if got := strings.Join(wrong, "; "); c.want == "" && got != "" || c.want != "" && !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}
