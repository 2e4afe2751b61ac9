package doctor

import (
	"path"
	"regexp"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/hostpkg"
)

var plainWord = regexp.MustCompile(`\A[A-Za-z0-9_@%+=:,./-]+\z`)

// me stands for the user where passwd has no name for it.
const me = "$USER"

// quote is a word of a shell command.
func quote(s string) string {
	if s == me {
		return `"` + me + `"`
	}
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// kernelParameter is how this distribution adds to the kernel command line.
func (x *exam) kernelParameter(p string) []string {
	again := "sudo reboot"
	key, _, _ := strings.Cut(p, "=")
	for _, word := range strings.Fields(x.text("/proc/cmdline")) {
		if strings.HasPrefix(word, key+"=") {
			return []string{"change " + word + " to " + p + " where the configuration of the boot loader has it", again}
		}
	}
	if x.distro.ID == "pop" {
		return []string{"sudo kernelstub -a " + p, again}
	}
	switch x.distro.Family {
	case hostpkg.Debian:
		return []string{"sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&" + p + " /' /etc/default/grub && sudo update-grub", again}
	case hostpkg.Fedora:
		if x.distro.Image {
			return []string{"sudo rpm-ostree kargs --append=" + p, again}
		}
		return []string{"sudo grubby --update-kernel=ALL --args=" + p, again}
	case hostpkg.SUSE:
		return []string{"sudo update-bootloader --add-option " + p + " && sudo update-bootloader --config", again}
	case hostpkg.NixOS:
		return []string{"boot.kernelParams = [ \"" + p + "\" ];   # in configuration.nix", "sudo nixos-rebuild boot", again}
	case hostpkg.Arch, hostpkg.Void, hostpkg.Gentoo:
		return []string{"add " + p + " to GRUB_CMDLINE_LINUX in /etc/default/grub, then: sudo grub-mkconfig -o /boot/grub/grub.cfg (systemd-boot: to options in /boot/loader/entries)", again}
	}
	return []string{"add " + p + " to the kernel command line, in the configuration of the boot loader", again}
}

// initramfs is how this distribution makes it anew.
func (x *exam) initramfs() string {
	switch x.distro.Family {
	case hostpkg.Debian:
		return "sudo update-initramfs -u"
	case hostpkg.Fedora, hostpkg.SUSE:
		return "sudo dracut --force"
	case hostpkg.Arch:
		return "sudo mkinitcpio -P"
	case hostpkg.NixOS:
		return "sudo nixos-rebuild boot"
	}
	return "make the initramfs anew"
}

// firmware is how this distribution installs the firmware of GPUs.
func (x *exam) firmware() string {
	name := "linux-firmware"
	switch {
	case x.distro.ID == "debian":
		name = "firmware-amd-graphics" // of non-free-firmware
	case x.distro.ID == "fedora":
		name = "amd-gpu-firmware" // its kin have one package
	case x.distro.Family == hostpkg.SUSE:
		name = "kernel-firmware-amdgpu"
	case x.distro.ID == "arch":
		name = "linux-firmware-amdgpu"
	case x.distro.Family == hostpkg.NixOS:
		return "hardware.enableRedistributableFirmware = true;   # in configuration.nix"
	case x.distro.Family == hostpkg.Gentoo:
		name = "sys-kernel/linux-firmware"
	case x.distro.Family == hostpkg.Void:
		name = "linux-firmware-amd"
	}
	if c := x.distro.Command(name); c != "" {
		return c
	}
	return "install the firmware of AMD's GPUs (" + name + ")"
}

// join is how a user is put into a group.
func (x *exam) join(user, group string) []string {
	switch x.distro.Family {
	case hostpkg.NixOS:
		return []string{"users.users." + user + ".extraGroups = [ \"" + group + "\" ];   # in configuration.nix", "sudo nixos-rebuild switch", "log out and in again"}
	case hostpkg.Alpine:
		return []string{"sudo addgroup " + quote(user) + " " + quote(group), "log out and in again"}
	}
	if x.distro.Image && nameOf(parseGroups(x.text("/etc/group")), x.gidOf(group)) == "" {
		// usermod knows the groups of /etc alone.
		return []string{"getent group " + quote(group) + " | sudo tee -a /etc/group", "sudo usermod -aG " + quote(group) + " " + quote(user), "log out and in again"}
	}
	return []string{"sudo usermod -aG " + quote(group) + " " + quote(user), "log out and in again (a program at once: sg " + quote(group) + " -c COMMAND)"}
}

// gidOf is the number of a group, -1 if it is not known.
func (x *exam) gidOf(name string) int {
	for _, g := range x.groups() {
		if g.name == name {
			return g.gid
		}
	}
	return -1
}

// newKernel is how a newer kernel comes to this distribution.
func (x *exam) newKernel() string {
	switch {
	case x.distro.ID == "debian":
		return "sudo apt install -t " + debianBackports(x) + " linux-image-amd64   # with backports in the sources of apt"
	case x.distro.ID == "ubuntu" && longTerm.MatchString(x.distro.Version):
		return "sudo apt install linux-generic-hwe-" + x.distro.Version
	case x.distro.Image && x.distro.Family == hostpkg.Fedora:
		return "sudo rpm-ostree upgrade"
	case x.distro.Image && x.distro.Family == hostpkg.SUSE:
		return "sudo transactional-update dup"
	case x.distro.Family == hostpkg.Fedora:
		return "sudo dnf upgrade kernel"
	case x.distro.Family == hostpkg.SUSE:
		return "sudo zypper update kernel-default"
	case x.distro.ID == "arch":
		return "sudo pacman -Syu linux"
	case x.distro.Family == hostpkg.NixOS:
		return "boot.kernelPackages = pkgs.linuxPackages_latest;   # in configuration.nix"
	}
	return "install a newer kernel of this distribution"
}

// longTerm matches the releases of Ubuntu that have kernels of later ones (HWE):
// those of April in even years.
var longTerm = regexp.MustCompile(`\A[0-9]?[02468]\.04\z`)

func debianBackports(x *exam) string {
	for line := range strings.Lines(x.text("/etc/os-release")) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "VERSION_CODENAME="); ok && plainWord.MatchString(v) {
			return v + "-backports"
		}
	}
	return "backports"
}

// unset takes a variable out of this shell, and says where it comes from.
func (x *exam) unset(name string) []string {
	out := []string{"unset " + quote(name)}
	for _, s := range x.settings() {
		if s.name == name {
			out = append(out, "delete line "+s.where()+", so that it stays so")
		}
	}
	return out
}

// below reports whether a clean path is dir or in it.
func below(p, dir string) bool {
	dir = path.Clean(dir)
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}
