package aur

import (
	"fmt"
	"strconv"
	"strings"
)

// marker is the line by which a PKGBUILD is known as one of ours.
const marker = "# Written by `rocm-nightly init aur`, which writes it anew when it is run again:"

// options keep makepkg from changing what the audit has seen: it would strip
// AMD's code for the GPU, and drop static libraries, .la files, Perl's manuals
// and empty directories.
var options = []string{"!strip", "!debug", "!lto", "!zipman", "!purge", "staticlibs", "libtool", "emptydirs", "docs"}

// field is a line of .SRCINFO, or several: a value of the PKGBUILD.
type field struct {
	name   string
	list   bool
	values []string // version stands for the version in them
}

// fields are the values of the PKGBUILD, in the order in which it has them.
func (p *Package) fields() []field {
	one := func(name, value string) field { return field{name, false, []string{value}} }
	return []field{
		one("pkgname", p.Name),
		one("pkgver", p.Version),
		one("pkgrel", strconv.Itoa(p.Release)),
		one("pkgdesc", "ROCm for "+p.Family+" as AMD builds it every night: compiler, runtime and libraries"),
		{"arch", true, []string{"x86_64"}},
		one("url", "https://github.com/ROCm/TheRock"),
		{"license", true, p.licenses},
		{"depends", true, p.depends},
		{"makedepends", true, []string{"rocm-nightly"}},
		{"optdepends", true, p.optdepends},
		{"provides", true, p.provides},
		{"conflicts", true, p.conflicts},
		{"options", true, options},
		one("install", p.installName()),
		{"source_x86_64", true, []string{p.source}},
		{"noextract", true, []string{p.tarball}},
		{"sha256sums_x86_64", true, []string{p.hex}},
	}
}

// PKGBUILD returns the text of the PKGBUILD.
func (p *Package) PKGBUILD() []byte {
	var b strings.Builder
	b.WriteString("# shellcheck shell=bash disable=SC2034,SC2154\n")
	for _, m := range p.maintainers {
		b.WriteString(m + "\n")
	}
	b.WriteString(marker + "\n# the lines \"# Maintainer:\" and \"# Contributor:\" stay, and so does pkgrel.\n\n")
	for _, f := range p.fields() {
		f.shell(&b)
	}
	b.WriteString(p.function())
	return []byte(b.String())
}

// shell writes an assignment; a list that is empty is left out.
func (f field) shell(b *strings.Builder) {
	switch {
	case !f.list:
		fmt.Fprintf(b, "%s=%s\n", f.name, word(f.values[0]))
	case len(f.values) == 1:
		fmt.Fprintf(b, "%s=(%s)\n", f.name, word(f.values[0]))
	case len(f.values) > 1:
		fmt.Fprintf(b, "%s=(\n", f.name)
		for _, v := range f.values {
			fmt.Fprintf(b, "  %s\n", word(v))
		}
		b.WriteString(")\n")
	}
}

// word quotes a value for the shell. Only version is left for it to expand.
func word(s string) string {
	if !strings.Contains(s, version) {
		if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-") == "" && s != "" {
			return s
		}
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteByte('"')
	for i, part := range strings.Split(s, version) {
		if i > 0 {
			b.WriteString(version)
		}
		b.WriteString(strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(part))
	}
	return b.String() + `"`
}

// function is package(). The digest is checked once more, of the bytes that are
// unpacked. No config of the machine has a say in what comes of them, and no
// library of it in the audit: a clean chroot gives the same package.
func (p *Package) function() string {
	var b strings.Builder
	fmt.Fprintf(&b, `
package() {
  rocm-nightly --config /dev/null repack "$srcdir/${noextract[0]}" \
    --digest "sha256:${sha256sums_x86_64[0]}" --arch %s \
    --layout tree --prefix "$pkgdir%s" --final-prefix %s \
    --etc "$pkgdir/etc" --audit-scope tree
`, word(p.Family), Prefix, Prefix)
	if len(p.terms) > 0 {
		b.WriteString("  install -d \"$pkgdir/usr/share/licenses/$pkgname\"\n")
	}
	for _, t := range p.terms {
		fmt.Fprintf(&b, "  ln -s %s/%s \"$pkgdir/usr/share/licenses/$pkgname/%s\"\n", Prefix, t.at, t.name)
	}
	b.WriteString("}\n")
	return b.String()
}

func (p *Package) installName() string { return p.Name + ".install" }

// Install returns the text of the .install file, which pacman sources.
func (p *Package) Install() []byte {
	return fmt.Appendf(nil, `# shellcheck shell=bash
%s
# pacman itself rebuilds the loader's cache after each transaction.

post_install() {
  cat <<'EOF'
==> ROCm is in %s. Log in again to have its programs in PATH, or
    . /etc/profile.d/rocm-nightly.sh
==> Who uses the GPU should be in the groups render and video:
    usermod -aG render,video USER
==> rocm-nightly doctor says what is missing if something does not work.
EOF
}

post_upgrade() {
  cat <<'EOF'
==> Programs that run go on with the libraries that they have loaded; start
    them again to use the new ones.
EOF
}
`, strings.TrimSuffix(marker, ", which writes it anew when it is run again:")+".", Prefix)
}
