package hostpkg

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// pythonRE matches the names that carry a version of Python.
var pythonRE = regexp.MustCompile(`\A(lib)?python3\.([0-9]{1,3})(?:\.so\.1\.0)?\z`)

// sonameRE is what a package tool is asked for by SONAME: such names need no
// quoting but for the parentheses behind them.
var sonameRE = regexp.MustCompile(`\A[A-Za-z0-9_+-][A-Za-z0-9_.+-]*\.so(\.[A-Za-z0-9_.]+)*\z`)

// Package returns the package of d that has a library (by SONAME) or a command,
// "" if that is not known or there is none.
func (d Distro) Package(name string) string {
	if m := pythonRE.FindStringSubmatch(name); m != nil {
		return d.python(m[1] != "", m[2])
	}
	n, known := packages[name]
	if p := d.pick(n); known && p != "-" {
		return p
	}
	return ""
}

// pick takes the name for d's family.
func (d Distro) pick(n names) string {
	switch d.Family {
	case Debian:
		return d.debian(n.debian)
	case Fedora:
		return n.fedora
	case SUSE:
		return n.suse
	case Arch:
		return n.arch
	case Gentoo:
		return n.gentoo
	case Void:
		return n.void
	case NixOS:
		return n.nix
	}
	return ""
}

// debian gives a name its form in this release.
func (d Distro) debian(p string) string {
	base, changed := strings.CutSuffix(p, "+")
	if changed && d.time64() {
		return base + "t64"
	}
	return base
}

// python names one version of Python, of which a release has one or a few.
func (d Distro) python(library bool, minor string) string {
	v := "3." + minor
	switch d.Family {
	case Debian:
		n, _ := strconv.Atoi(minor)
		switch {
		case library && d.time64() && n <= 12:
			return "libpython" + v + "t64"
		case library:
			return "libpython" + v
		}
		return "python" + v
	case Fedora:
		if library {
			return "" // by SONAME: the package is called otherwise for the system's own Python
		}
		return "python" + v
	case SUSE:
		if library {
			return "libpython3_" + minor + "-1_0"
		}
		return "python3" + minor
	case Gentoo:
		return "dev-lang/python:" + v
	case NixOS:
		return "python3" + minor
	}
	return ""
}

// Install is the command line that installs what has the named libraries and
// commands, "" if there is none for any. Names that are unknown are in rest.
func (d Distro) Install(wanted ...string) (command string, rest []string) {
	var have []string
	for _, name := range wanted {
		p := d.Package(name)
		if p == "" && (d.Family == Fedora || d.Family == SUSE) && sonameRE.MatchString(name) && packages[name].known(d) {
			p = "'" + name + "()(64bit)'" // rpm's own name for it
		}
		if p == "" {
			rest = append(rest, name)
		} else if !slices.Contains(have, p) {
			have = append(have, p)
		}
	}
	slices.Sort(have)
	if len(have) == 0 {
		return "", rest
	}
	return d.Command(have...), rest
}

// known reports whether it is not known that a distribution lacks it.
func (n names) known(d Distro) bool { return d.pick(n) != "-" }

// Command is the command line that installs packages, "" where no tool is known.
func (d Distro) Command(packages ...string) string {
	all := strings.Join(packages, " ")
	switch {
	case d.ID == "steamos" || d.Family == Unknown:
		return ""
	case d.Image && d.Family == Fedora:
		return "sudo rpm-ostree install " + all
	case d.Image && d.Family == SUSE:
		return "sudo transactional-update pkg install " + all
	}
	switch d.Family {
	case Debian:
		return "sudo apt install " + all
	case Fedora:
		return "sudo dnf install " + all
	case SUSE:
		return "sudo zypper install " + all
	case Arch:
		return "sudo pacman -S " + all
	case Alpine:
		return "sudo apk add " + all
	case Gentoo:
		return "sudo emerge --ask --noreplace " + all
	case Void:
		return "sudo xbps-install -S " + all
	case NixOS:
		return "nix-shell -p " + all
	}
	return ""
}

// Hint says, for people, how to get a library or a command.
func (d Distro) Hint(name string) string {
	if c, _ := d.Install(name); c != "" {
		return "install it on this host: " + strings.TrimPrefix(c, "sudo ")
	}
	if p := (Distro{Family: Debian}).Package(name); p != "" {
		return "install it on this host (Debian and Ubuntu have it in " + p + ")"
	}
	return "install the package of this host that has " + name
}
