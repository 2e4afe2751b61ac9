package aur

import (
	"fmt"
	"strings"
)

// The order of the fields in .SRCINFO, which is makepkg's own (libmakepkg's
// srcinfo.sh): single values, lists, lists of an architecture.
var srcinfoOrder = []string{
	"pkgdesc", "pkgver", "pkgrel", "url", "install",
	"arch", "license", "makedepends", "depends", "optdepends", "provides", "conflicts", "noextract", "options",
	"source_x86_64", "sha256sums_x86_64",
}

// SRCINFO returns the text of .SRCINFO, as makepkg --printsrcinfo prints it of
// the PKGBUILD.
func (p *Package) SRCINFO() []byte {
	values := map[string][]string{}
	for _, f := range p.fields() {
		values[f.name] = f.values
	}
	var b strings.Builder
	fmt.Fprintf(&b, "pkgbase = %s\n", p.Name)
	for _, name := range srcinfoOrder {
		for _, v := range values[name] {
			fmt.Fprintf(&b, "\t%s = %s\n", name, strings.ReplaceAll(v, version, p.Version))
		}
	}
	fmt.Fprintf(&b, "\npkgname = %s\n", p.Name)
	return []byte(b.String())
}
