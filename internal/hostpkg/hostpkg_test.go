package hostpkg

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestInstall(t *testing.T) {
	libs := []string{"libelf.so.1", "libatomic.so.1", "libpython3.12.so.1.0"}
	for _, c := range []struct{ release, command, rest string }{
		{"ID=debian\nVERSION_ID=\"12\"", "sudo apt install libatomic1 libelf1 libpython3.12", ""},
		{"ID=debian\nVERSION_ID=\"13\"", "sudo apt install libatomic1 libelf1t64 libpython3.12t64", ""},
		{"ID=debian\nPRETTY_NAME=sid", "sudo apt install libatomic1 libelf1t64 libpython3.12t64", ""},
		{"ID=ubuntu\nID_LIKE=debian\nVERSION_ID=\"22.04\"", "sudo apt install libatomic1 libelf1 libpython3.12", ""},
		{"ID=ubuntu\nID_LIKE=debian\nVERSION_ID=\"24.04\"", "sudo apt install libatomic1 libelf1t64 libpython3.12t64", ""},
		{"ID=fedora\nVERSION_ID=43", "sudo dnf install 'libpython3.12.so.1.0()(64bit)' elfutils-libelf libatomic", ""},
		{"ID=rocky\nID_LIKE=\"rhel centos fedora\"\nVERSION_ID=9.4", "sudo dnf install 'libpython3.12.so.1.0()(64bit)' elfutils-libelf libatomic", ""},
		{"ID=fedora\nVARIANT_ID=silverblue", "sudo rpm-ostree install 'libpython3.12.so.1.0()(64bit)' elfutils-libelf libatomic", ""},
		{"ID=\"opensuse-tumbleweed\"\nID_LIKE=\"opensuse suse\"", "sudo zypper install libatomic1 libelf1 libpython3_12-1_0", ""},
		{"ID=arch", "sudo pacman -S gcc-libs libelf", "libpython3.12.so.1.0"},
		{"ID=gentoo", "sudo emerge --ask --noreplace dev-lang/python:3.12 sys-devel/gcc virtual/libelf", ""},
		{"ID=void", "sudo xbps-install -S libatomic libelf", "libpython3.12.so.1.0"},
		{"ID=nixos", "nix-shell -p elfutils gcc.cc.lib python312", ""},
		{"ID=alpine", "", "libelf.so.1 libatomic.so.1 libpython3.12.so.1.0"},
		{"", "", "libelf.so.1 libatomic.so.1 libpython3.12.so.1.0"},
	} {
		command, rest := Parse(c.release).Install(libs...)
		if command != c.command || strings.Join(rest, " ") != c.rest {
			t.Errorf("%q: %q, rest %q", c.release, command, rest)
		}
	}
}

// What comes from a tree never reaches a command line as it is.
func TestNamesAreNotInvented(t *testing.T) {
	for _, id := range []string{"debian", "fedora", "opensuse", "arch", "gentoo", "void", "nixos", "alpine", "plan9"} {
		d := Parse("ID=" + id)
		for _, hostile := range []string{"libx.so.1; rm -rf ~", "$(id).so", "'.so.1", "-y.so\n", "lib x.so", "", "libedit.so.2\x00"} {
			if command, rest := d.Install(hostile); command != "" || !slices.Equal(rest, []string{hostile}) {
				t.Errorf("%s: %q: %q", id, hostile, command)
			}
		}
	}
	if c, _ := Parse("ID=fedora").Install("libnew.so.3"); c != "sudo dnf install 'libnew.so.3()(64bit)'" {
		t.Errorf("unknown library on Fedora: %q", c)
	}
	if c, _ := Parse("ID=fedora").Install("libedit.so.2"); c != "" {
		t.Errorf("a library that Fedora does not have: %q", c)
	}
}

// Every row has a name for Debian, which the corpus is made of.
func TestTable(t *testing.T) {
	for name, n := range packages {
		for _, p := range []string{n.debian, n.fedora, n.suse, n.arch, n.gentoo, n.void, n.nix} {
			if strings.ContainsAny(p, " ;&|$'\"") {
				t.Errorf("%s: odd package %q", name, p)
			}
		}
		if n.debian == "" {
			t.Errorf("%s has no package of Debian", name)
		}
	}
}

func TestHint(t *testing.T) {
	for _, c := range []struct{ release, name, want string }{
		{"ID=debian\nVERSION_ID=12", "libatomic.so.1", "install it on this host: apt install libatomic1"},
		{"ID=slackware", "libatomic.so.1", "install it on this host (Debian and Ubuntu have it in libatomic1)"},
		{"ID=debian", "libown.so.1", "install the package of this host that has libown.so.1"},
	} {
		if got := Parse(c.release).Hint(c.name); got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("ID=debian\nVERSION_ID=\"12\"\nID_LIKE='a b'\n# x\n", "libatomic.so.1")
	f.Fuzz(func(t *testing.T, text, name string) {
		d := Parse(text)
		command, _ := d.Install(name)
		if strings.ContainsAny(command, "\n;|&$`") {
			t.Errorf("%q gives %q", name, command)
		}
	})
}

func ExampleDistro_Install() {
	d := Parse("ID=ubuntu\nID_LIKE=debian\nVERSION_ID=\"24.04\"\n")
	command, rest := d.Install("libelf.so.1", "libnuma.so.1", "libmine.so.2")
	fmt.Println(command)
	fmt.Println(rest)
	// Output:
	// sudo apt install libelf1t64 libnuma1
	// [libmine.so.2]
}
