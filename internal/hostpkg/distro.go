package hostpkg

import (
	"os"
	"strconv"
	"strings"
)

// Family is a group of distributions that share a package tool and its names.
type Family string

// The families that are known.
const (
	Debian  Family = "debian"
	Fedora  Family = "fedora" // and RHEL, Rocky, Alma, Oracle, Amazon
	SUSE    Family = "suse"
	Arch    Family = "arch"
	Alpine  Family = "alpine"
	NixOS   Family = "nixos"
	Gentoo  Family = "gentoo"
	Void    Family = "void"
	Unknown Family = ""
)

// Distro is a distribution, as its os-release says.
type Distro struct {
	ID      string // debian, fedora, …; "" if there is no os-release
	Version string // VERSION_ID; "" for those that roll
	Name    string // for people
	Family  Family
	// Image is set where /usr is not for package tools to change: Silverblue,
	// MicroOS, SteamOS.
	Image bool
}

// families maps ID and ID_LIKE.
var families = map[string]Family{
	"debian": Debian, "ubuntu": Debian, "linuxmint": Debian, "pop": Debian,
	"fedora": Fedora, "rhel": Fedora, "centos": Fedora, "rocky": Fedora, "almalinux": Fedora, "ol": Fedora, "amzn": Fedora,
	"suse": SUSE, "opensuse": SUSE, "opensuse-tumbleweed": SUSE, "opensuse-leap": SUSE, "sles": SUSE,
	"arch": Arch, "manjaro": Arch, "endeavouros": Arch, "cachyos": Arch, "steamos": Arch,
	"alpine": Alpine, "postmarketos": Alpine, "nixos": NixOS, "gentoo": Gentoo, "void": Void,
}

// images are the VARIANT_IDs and IDs of systems that are replaced as a whole.
var images = map[string]bool{
	"silverblue": true, "kinoite": true, "sericea": true, "onyx": true, "coreos": true, "iot": true,
	"bazzite": true, "bluefin": true, "aurora": true, "steamos": true, "steamdeck": true,
	"opensuse-microos": true, "opensuse-aeon": true,
}

// Parse reads the text of an os-release(5). It takes any text.
func Parse(text string) Distro {
	v := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && name != "" && name[0] != '#' {
			v[name] = unquote(value)
		}
	}
	d := Distro{ID: v["ID"], Version: v["VERSION_ID"], Name: v["PRETTY_NAME"]}
	if d.Name == "" {
		d.Name = strings.TrimSpace(v["NAME"] + " " + d.Version)
	}
	for _, id := range append([]string{d.ID}, strings.Fields(v["ID_LIKE"])...) {
		if f, ok := families[id]; ok {
			d.Family = f
			break
		}
	}
	d.Image = images[d.ID] || images[v["VARIANT_ID"]]
	return d
}

// unquote undoes the shell quoting that os-release(5) allows.
func unquote(s string) string {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		s = s[1 : len(s)-1]
	}
	return strings.NewReplacer(`\"`, `"`, `\$`, `$`, "\\`", "`", `\\`, `\`).Replace(s)
}

// Host is the distribution of this machine. It has no ID where there is no
// os-release.
func Host() Distro {
	for _, name := range []string{"/etc/os-release", "/usr/lib/os-release"} {
		if text, err := os.ReadFile(name); err == nil {
			return Parse(string(text))
		}
	}
	return Distro{}
}

// time64 reports whether libraries that have a time in their interface have new
// names: Ubuntu 24.04 and Debian 13.
func (d Distro) time64() bool {
	major, _, _ := strings.Cut(d.Version, ".")
	n, err := strconv.Atoi(major)
	switch {
	case d.ID == "debian":
		return err != nil && d.Version == "" || n >= 13 // testing and unstable have no VERSION_ID
	case d.ID == "ubuntu", d.ID == "pop":
		return n >= 24
	case d.ID == "linuxmint":
		return n >= 22
	}
	return false
}
