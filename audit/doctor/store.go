package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// slot is one channel and target that is installed; docs/architecture.md has how
// they lie on disk.
type slot struct {
	name        string
	dir         string
	active      string // generation that current leads to; "" for none
	lost        string // what current says, where that does not exist
	generations []string
}

func findSlots(s *System, o Options) []slot {
	if o.Root == "" || o.Dir != "" {
		return nil
	}
	var all []slot
	for _, name := range s.list(path.Join(o.Root, "slots")) {
		dir := path.Join(o.Root, "slots", name)
		if strings.HasPrefix(name, ".") || !s.isDir(dir) || o.Slot != "" && name != o.Slot {
			continue
		}
		sl := slot{name: name, dir: dir}
		for _, g := range s.list(path.Join(dir, "generations")) {
			if s.isDir(path.Join(dir, "generations", g)) && !strings.HasPrefix(g, ".") {
				sl.generations = append(sl.generations, g)
			}
		}
		if to := s.link(path.Join(dir, "current")); to != "" {
			if g := path.Base(to); s.isDir(path.Join(dir, "current")) {
				sl.active = g
			} else if s.gone(path.Join(dir, "current")) {
				sl.lost = to
			}
		}
		all = append(all, sl)
	}
	return all
}

// checkStore looks at what is installed, and at what leads there.
func checkStore(_ context.Context, x *exam) error {
	if slots := path.Join(x.o.Root, "slots"); x.o.Root != "" && x.o.Dir == "" && x.closed(slots) {
		x.fact("not looked at: %s, which this user may not read", slots)
	}
	for _, s := range x.slots {
		x.slot(s)
	}
	if len(x.slots) > 0 {
		x.fileSystem(x.o.Root)
	}
	for _, l := range x.o.Links {
		x.configured(l)
	}
	x.leftovers()
	if len(x.slots) > 0 {
		x.oldProcesses()
	}
	return nil
}

func (x *exam) slot(s slot) {
	switch {
	case s.lost != "":
		remedy := []string{"rocm-nightly update"}
		if len(s.generations) > 0 {
			remedy = []string{"rocm-nightly use " + quote(s.name) + " " + quote(s.generations[len(s.generations)-1])}
		}
		x.find(Finding{Check: "store-current", Severity: Broken, Subject: path.Join(s.dir, "current"), Detail: "it leads to " + s.lost + ", which does not exist",
			Why: "what is found through it, /opt/rocm and the wrappers in PATH, is gone", Remedy: remedy})
	case s.active == "":
		x.fact("%s: nothing is active", s.name)
	default:
		x.fact("%s: %s is active, of %d", s.name, s.active, len(s.generations))
	}
}

// lowRoom is what a night takes at most, about: download, tree and reserve.
const lowRoom = 20 << 30

// fileSystem judges the file system that generations are on.
func (x *exam) fileSystem(root string) {
	real := x.real(root)
	if real == "" {
		return
	}
	if m, ok := x.mountOf(real); ok {
		if m.has("noexec") {
			x.find(Finding{Check: "store-noexec", Severity: Broken, Subject: m.at, Detail: "it is mounted noexec, and " + root + " is on it",
				Why: "no program of an install starts: \"permission denied\"", Remedy: []string{"sudo mount -o remount,exec " + quote(m.at), "take noexec out of its line in /etc/fstab; or keep generations elsewhere, with root: in the config"}})
		}
		if strings.HasPrefix(m.kind, "nfs") {
			x.find(Finding{Check: "store-nfs", Severity: Note, Subject: m.at, Detail: "it is NFS (" + m.source + ")",
				Why: "with root_squash root cannot write there, and replacing a file that runs elsewhere ends those programs with SIGBUS", Remedy: []string{"run updates on the server, or as the user that owns " + quote(root)}})
		}
	}
	if x.Space == nil {
		return
	}
	if s, err := x.Space(root); err == nil && s.Bytes >= 0 && s.Bytes < lowRoom {
		x.find(Finding{Check: "store-room", Severity: Note, Subject: s.Mount, Detail: size(s.Bytes) + " are free",
			Why: "the next night may not fit: it is refused before anything is downloaded, and what is installed stays", Remedy: []string{"keep: {last: 2} in the config, then: rocm-nightly update"}})
	}
}

// configured judges a link of the config.
func (x *exam) configured(l Link) {
	want := path.Join(x.o.Root, "slots", l.Slot, "current")
	to, real := x.link(l.Path), x.real(l.Path)
	f := Finding{Check: "store-link", Severity: Warning, Subject: l.Path, Why: "builds and scripts that look for ROCm there get another one, or none"}
	switch {
	case real == "" && !x.gone(l.Path):
		return // not to be looked at
	case real == "" && to == "":
		f.Detail, f.Remedy = "the config asks for a link there, and there is none", []string{"rocm-nightly update"}
	case real != "" && real == x.real(want):
		x.fact("%s leads to %s", l.Path, l.Slot)
		return
	case to == "":
		f.Detail, f.Remedy = "a directory or file is there, which is not ours", []string{"sudo mv " + quote(l.Path) + " " + quote(l.Path+".old"), "rocm-nightly update"}
	case l.Slot == "" && below(real, x.real(x.o.Root)):
		x.fact("%s leads to %s", l.Path, to)
		return
	default:
		f.Detail, f.Remedy = "it leads to "+to, []string{"sudo rm " + quote(l.Path), "rocm-nightly update"}
	}
	x.find(f)
}

// rocmPath matches a path in which a ROCm is, or was.
var rocmPath = regexp.MustCompile(`/[A-Za-z0-9_./+@-]*(?:/slots/[A-Za-z0-9_.-]+/(?:current|generations)|/opt/rocm[A-Za-z0-9_.-]*)[A-Za-z0-9_./+@-]*|/opt/rocm[A-Za-z0-9_.-]*[A-Za-z0-9_./+@-]*`)

// leftovers are settings of the system that name a ROCm that is gone.
func (x *exam) leftovers() {
	for _, p := range []string{"/etc/profile.d/*", "/etc/ld.so.conf.d/*", "/etc/OpenCL/vendors/*"} {
		for _, file := range x.glob(p) {
			text := x.text(file)
			if len(text) > 64<<10 {
				continue
			}
			named := namedROCms(uncommented(text))
			there := func(p string) bool { return !x.gone(p) }
			if len(named) == 0 || slices.ContainsFunc(named, there) {
				continue // AMD's own name lib64 too, which is rarely there
			}
			remedy := []string{"sudo rm " + quote(file)}
			if strings.Contains(file, "ld.so.conf.d") {
				remedy = append(remedy, "sudo ldconfig")
			}
			x.find(Finding{Check: "leftover", Severity: Warning, Subject: file, Detail: "it names " + named[0] + ", which does not exist",
				Why: "it was left by a ROCm that was removed; logins and the loader go on following it", Remedy: remedy})
		}
	}
}

// conditionRE matches a question for a file, in the shells that logins have.
var conditionRE = regexp.MustCompile(`(?:\[|\btest|\bif\s*\()\s*(?:!\s*)?\(?\s*-[a-z]`)

// namedROCms lists the paths of ROCms in a text; none where the text looks itself
// whether they exist, or names them by a pattern.
func namedROCms(text string) []string {
	if conditionRE.MatchString(text) {
		return nil
	}
	var all []string
	for _, at := range rocmPath.FindAllStringIndex(text, 64) {
		if rest := text[at[1]:]; rest != "" && strings.ContainsRune("*?[{$", rune(rest[0])) {
			return nil
		}
		all = append(all, text[at[0]:at[1]])
	}
	return all
}

func uncommented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// maxProcesses bounds what is looked at.
const maxProcesses = 1 << 15

// oldProcesses finds processes that run a generation that is not the active one,
// or that is deleted.
func (x *exam) oldProcesses() {
	unseen, root := 0, x.real(x.o.Root)
	all := x.list("/proc")
	for _, name := range all[:min(len(all), maxProcesses)] {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		text, err := x.read(path.Join("/proc", name, "maps"))
		if errors.Is(err, fs.ErrPermission) {
			unseen++
		}
		x.oldProcess(root, name, text)
	}
	if unseen > 0 {
		x.fact("not looked at: the processes of other users (%d)", unseen)
	}
}

func (x *exam) oldProcess(root, pid, maps string) {
	for _, m := range parseMaps(maps) {
		s, g, ok := generationOf(root, m.path)
		if !ok {
			continue
		}
		active := ""
		for _, sl := range x.slots {
			if sl.name == s {
				active = sl.active
			}
		}
		if g == active && !m.deleted {
			continue
		}
		f := Finding{Check: "process-old", Severity: Note, Subject: "process " + pid + " (" + x.line("/proc/"+pid+"/comm") + ")", Detail: fmt.Sprintf("it runs %s of %s, and %s is active", g, s, orNone(active)),
			Why: "it stays with what it began with until it is started again", Remedy: []string{"start it again"}}
		if m.deleted {
			f.Severity, f.Detail = Warning, fmt.Sprintf("it runs %s of %s, which was deleted", g, s)
			f.Why = "kernels and databases that it has not loaded yet are gone: it fails at some later call"
		}
		x.find(f)
		return
	}
}

// generationOf takes a path below root apart.
func generationOf(root, p string) (slot, generation string, ok bool) {
	rest, ok := strings.CutPrefix(p, strings.TrimSuffix(root, "/")+"/slots/")
	parts := strings.SplitN(rest, "/", 4)
	if !ok || root == "" || len(parts) < 4 || parts[1] != "generations" {
		return "", "", false
	}
	return parts[0], parts[2], true
}
