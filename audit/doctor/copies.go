package doctor

import (
	"context"
	"path"
	"regexp"
	"slices"
	"strings"
)

// mainNames are the libraries that must be of one ROCm.
var mainNames = []string{"libamd_comgr.so", "libamdhip64.so", "libhsa-runtime64.so"}

// mainLibrary reports whether a file name is one of theirs.
func mainLibrary(base string) bool {
	for _, n := range mainNames {
		if base == n || strings.HasPrefix(base, n+".") {
			return true
		}
	}
	return false
}

// mainLibraries are those of a directory.
func (s *System) mainLibraries(dir string) []string {
	var found []string
	for _, n := range s.list(dir) {
		if mainLibrary(n) {
			found = append(found, n)
		}
	}
	return found
}

func (c *Copy) describe() string {
	v := c.Version
	if v == "" {
		v = "of unknown version"
	}
	return "ROCm " + v + " in " + c.Root
}

// checkCopies lists every ROCm of the machine.
func checkCopies(_ context.Context, x *exam) error {
	for _, c := range x.r.Copies {
		text := c.describe() + ", " + c.Kind
		if len(c.Names) > 0 {
			text += ", also " + strings.Join(c.Names, ", ")
		}
		x.fact("%s", text)
	}
	asked := slices.ContainsFunc(x.o.Links, func(l Link) bool { return l.Path == "/opt/rocm" })
	if to := x.link("/opt/rocm"); to != "" && x.gone("/opt/rocm") && !asked {
		x.find(Finding{Check: "link-dangling", Severity: Warning, Subject: "/opt/rocm", Detail: "it leads to " + to + ", which does not exist",
			Why:    "it is where CMake, PyTorch's builds and many scripts look for ROCm",
			Remedy: []string{"sudo rm /opt/rocm", "rocm-nightly update   # with link: /opt/rocm in the config, makes it anew"}})
	}
	x.first()
	return nil
}

// first looks which ROCm's programs PATH gives.
func (x *exam) first() {
	type place struct{ name, path string }
	var seen []place
	for _, name := range []string{"hipcc", "amdclang++", "rocminfo", "rocm_agent_enumerator"} {
		if p := x.command(name); p != "" {
			seen = append(seen, place{name, p})
		}
	}
	var before *Copy
	var first place
	for _, s := range seen {
		c := x.copyOf(x.real(s.path))
		switch {
		case c == nil:
		case before == nil:
			before, first = c, s
			x.fact("%s in PATH is that of %s", s.name, c.describe())
		case c.Root != before.Root:
			x.find(Finding{Check: "path-mixed", Severity: Warning, Subject: "PATH", Detail: first.name + " is that of " + before.describe() + ", and " + s.name + " is that of " + c.describe(),
				Why:    "what one is asked and what the other builds do not fit",
				Remedy: []string{"export PATH=" + quote(path.Dir(first.path)) + ":\"$PATH\""}})
			return
		}
	}
	if ours := x.activeCopy(); ours != nil && before != nil && before.Root != ours.Root {
		x.find(Finding{Check: "path-other", Severity: Note, Subject: "PATH", Detail: first.name + " is that of " + before.describe() + ", not that of " + ours.describe(),
			Why: "programs are built with the other ROCm", Remedy: []string{". " + quote(path.Join(x.stable(ours.Root), "etc/env.sh"))}})
	}
}

// command finds a program in PATH.
func (x *exam) command(name string) string {
	for dir := range strings.SplitSeq(x.env["PATH"], ":") {
		if !path.IsAbs(dir) {
			continue
		}
		p := path.Join(dir, name)
		if info, err := x.stat(p); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return p
		}
	}
	return ""
}

// findCopies looks where ROCms are put. Places that are one by a link count once.
func (x *exam) findCopies() []Copy {
	f := &finder{exam: x, at: map[string]int{}}
	for _, s := range x.slots {
		for _, g := range s.generations {
			f.tree(path.Join(s.dir, "generations", g), "installed by rocm-nightly")
		}
	}
	for i := range f.all {
		if c := &f.all[i]; c.Version == "" {
			c.Version = path.Base(c.Root)
		}
	}
	if x.o.Dir != "" {
		f.tree(x.o.Dir, "named here")
	}
	for _, p := range []string{"/opt/rocm*", "/opt/rocm/core*", "/usr/local/rocm*", "/opt/amdgpu"} {
		for _, dir := range x.glob(p) {
			f.tree(dir, x.maker(dir))
		}
	}
	for _, dir := range []string{"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib64/rocm/lib", "/usr/lib", "/usr/local/lib", "/usr/local/lib64", "/run/current-system/sw/lib"} {
		f.directory(dir, distribution)
	}
	for _, dir := range x.pythons() {
		f.wheels(dir)
	}
	for _, env := range []string{"CONDA_PREFIX", "ROCM_PATH", "HIP_PATH"} {
		if dir := x.env[env]; path.IsAbs(dir) {
			f.tree(dir, "named by "+env)
		}
	}
	if home := x.home(); home != "" {
		for _, p := range []string{"rocm*", ".local/rocm*", ".local/share/rocm*", "therock*"} {
			for _, dir := range x.glob(path.Join(home, p)) {
				f.tree(dir, "unpacked by hand")
			}
		}
	}
	f.nix()
	return f.all
}

// finder gathers copies, each once.
type finder struct {
	*exam
	all []Copy
	at  map[string]int // by real directory of its libraries
}

// distribution is the kind of a copy that is among the libraries of the system.
const distribution = "of the distribution"

// maxCopies bounds the list: a machine has a handful.
const maxCopies = 256

// tree adds a ROCm tree, or a prefix that has one in opt/rocm.
func (f *finder) tree(dir, kind string) {
	root := dir
	if f.isDir(path.Join(dir, "opt/rocm/lib")) {
		dir = path.Join(dir, "opt/rocm")
	}
	for _, lib := range []string{"lib", "lib64"} {
		f.add(root, dir, path.Join(dir, lib), kind)
	}
}

// directory adds a directory of libraries.
func (f *finder) directory(dir, kind string) { f.add(dir, dir, dir, kind) }

func (f *finder) add(name, root, lib, kind string) {
	real := f.real(lib)
	if real == "" {
		return
	}
	if i, have := f.at[real]; have {
		c := &f.all[i]
		if name != c.Root && !slices.Contains(c.Names, name) && f.real(name) != "" && len(c.Names) < 8 {
			c.Names = append(c.Names, name)
		}
		return
	}
	libs := f.mainLibraries(real)
	if len(libs) == 0 || len(f.all) >= maxCopies {
		return
	}
	c := Copy{Root: name, Version: f.version(root, libs), Kind: kind, lib: real, dirs: []string{f.real(root), f.real(name)}}
	if at := f.real(name); at != name {
		c.Root, c.Names = at, []string{name}
	}
	f.at[real] = len(f.all)
	f.all = append(f.all, c)
}

// hipVersion matches the full version in the name of HIP's library.
var hipVersion = regexp.MustCompile(`\Alibamdhip64\.so\.([0-9]+\.[0-9]+[0-9.]*)\z`)

// manifestVersion finds the version in AMD's manifest, or in ours.
var manifestVersion = regexp.MustCompile(`"(?:rocm_package_version|version)"\s*:\s*"([0-9][0-9A-Za-z.+]{2,60})"`)

// torchVersion finds HIP's version in what PyTorch's wheel says of itself.
var torchVersion = regexp.MustCompile(`(?m)^hip\b[^=\n]*=\s*['"]([0-9][0-9.]{2,30})`)

// version is what a tree says of itself: the manifest has all of it, .info the
// numbers alone.
func (f *finder) version(root string, libs []string) string {
	for _, name := range []string{"share/therock/therock_manifest.json", "../../manifest.json"} {
		if m := manifestVersion.FindStringSubmatch(f.text(path.Join(root, name))); m != nil {
			return m[1]
		}
	}
	for _, name := range []string{".info/version", ".info/version-rocm"} {
		if v := f.line(path.Join(root, name)); v != "" && len(v) < 64 {
			return v
		}
	}
	if m := torchVersion.FindStringSubmatch(f.text(path.Join(root, "version.py"))); m != nil {
		return "with HIP " + m[1]
	}
	for _, l := range libs {
		if m := hipVersion.FindStringSubmatch(l); m != nil {
			return "with HIP " + m[1]
		}
	}
	return ""
}

// maker tells whose a directory in /opt is, by what packages list.
func (x *exam) maker(dir string) string {
	for _, p := range []string{"/var/lib/dpkg/info/rocm-core*.list", "/var/lib/dpkg/info/hip-runtime-amd*.list", "/var/lib/dpkg/info/amdrocm*.list"} {
		for _, list := range x.glob(p) {
			if real := x.real(dir); real != "" && strings.Contains(x.text(list), real+"/") {
				return "of the package " + strings.TrimSuffix(path.Base(list), ".list")
			}
		}
	}
	for _, p := range []string{"/var/lib/pacman/local/rocm-*", "/var/lib/pacman/local/hip-runtime-amd-*"} {
		for _, pkg := range x.glob(p) {
			if strings.Contains(x.text(path.Join(pkg, "files")), strings.TrimPrefix(dir, "/")+"/") {
				return "of the package " + path.Base(pkg)
			}
		}
	}
	return "by hand, or of a package"
}

// pythons are the site-packages that wheels are looked for in.
func (x *exam) pythons() []string {
	patterns := []string{"/usr/lib/python3*/*-packages", "/usr/lib64/python3*/site-packages", "/usr/local/lib/python3*/*-packages", "/usr/local/lib64/python3*/*-packages", "/opt/venv/lib/python3*/site-packages"}
	for _, env := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if dir := x.env[env]; path.IsAbs(dir) {
			patterns = append(patterns, path.Join(dir, "lib/python3*/site-packages"))
		}
	}
	if home := x.home(); home != "" {
		for _, p := range []string{".local", ".venv", "venv", ".pyenv/versions/*", "*conda3", "*conda3/envs/*", "*forge*", "*forge*/envs/*"} {
			patterns = append(patterns, path.Join(home, p, "lib/python3*/site-packages"))
		}
	}
	var all []string
	for _, p := range patterns {
		all = append(all, x.glob(p)...)
	}
	return all
}

// wheels adds what pip installed: rocm-sdk's packages, of which core has the
// libraries that must fit, and what PyTorch's older wheels bundle.
func (f *finder) wheels(site string) {
	for _, name := range f.list(site) {
		switch {
		case strings.HasPrefix(name, "_rocm_sdk_"):
			f.add(path.Join(site, name), path.Join(site, name), path.Join(site, name, "lib"), "of the wheel "+strings.TrimPrefix(name, "_"))
		case name == "torch":
			f.add(path.Join(site, name), path.Join(site, name), path.Join(site, name, "lib"), "of the wheel torch")
		}
	}
}

// nix adds what is in the store of Nix: many, of which each program has its own.
func (f *finder) nix() {
	for _, name := range f.list("/nix/store") {
		if strings.Contains(name, "-clr-") || strings.Contains(name, "-rocm-") || strings.Contains(name, "-rocclr-") {
			f.tree(path.Join("/nix/store", name), "in the store of Nix")
		}
	}
}

// copyOf is the copy that a real path belongs to, nil if none. The copy whose
// tree holds it most closely wins.
func (x *exam) copyOf(p string) *Copy {
	var best *Copy
	length := 0
	for i := range x.r.Copies {
		c := &x.r.Copies[i]
		for _, dir := range append(c.dirs, c.lib) {
			if below(p, dir) && len(dir) > length {
				best, length = c, len(dir)
			}
		}
	}
	return best
}

// stable is a path into a generation by the name that outlives it.
func (x *exam) stable(p string) string {
	for _, s := range x.slots {
		dir := path.Join(s.dir, "generations", s.active)
		for _, d := range []string{dir, x.real(dir)} {
			if s.active != "" && d != "" && below(p, d) {
				return path.Join(s.dir, "current") + strings.TrimPrefix(p, d)
			}
		}
	}
	return p
}

// activeCopy is the ROCm that is in use here: the one that was asked for, or the
// active generation of the only slot; nil otherwise.
func (x *exam) activeCopy() *Copy {
	if x.o.Dir != "" {
		return x.copyOf(x.real(path.Join(x.o.Dir, "lib")))
	}
	var active []string
	for _, s := range x.slots {
		if s.active != "" {
			active = append(active, path.Join(s.dir, "generations", s.active, "opt/rocm/lib"))
		}
	}
	if len(active) != 1 {
		return nil
	}
	return x.copyOf(x.real(active[0]))
}
