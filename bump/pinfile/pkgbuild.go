package pinfile

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// pkgbuildDoc is a PKGBUILD: the assignments outside its functions.
type pkgbuildDoc struct{ *codeTree }

func parsePkgbuild(src []byte, _ Options) (document, error) {
	r, err := readShell(src, true)
	if err != nil {
		return nil, err
	}
	for _, n := range r.values {
		if n.parent == r.root && n.site.Problem == "" {
			checked(n.site, n.name)
		}
	}
	return &pkgbuildDoc{r.codeTree}, nil
}

// implied resets pkgrel where pkgver changes, by itself or with a name that it
// is made of: PKGBUILD(5) wants it to begin at 1 again with every new version.
func (d *pkgbuildDoc) implied(set map[string]string) map[string]string {
	for key := range set {
		if k, err := parseCodeKey(key); err == nil && k.last() == "pkgrel" {
			return nil
		}
	}
	if rel, _, err := d.find("pkgrel"); err != nil || len(rel) != 1 || rel[0].Problem != "" || rel[0].Value == "1" {
		return nil
	}
	ver, _, err := d.find("pkgver")
	if err != nil || len(ver) != 1 {
		return nil
	}
	for key, value := range set {
		sites, _, err := d.find(key)
		if err != nil || len(sites) != 1 || sites[0].Value == value {
			continue
		}
		if sites[0].Start == ver[0].Start || d.pkgverNames(sites[0], value) {
			return map[string]string{"pkgrel": "1"}
		}
	}
	return nil
}

// pkgverNames reports whether pkgver, which is no value of its own, is another
// one when s is value.
func (d *pkgbuildDoc) pkgverNames(s Site, value string) bool {
	text, err := s.Encode(value)
	if err != nil {
		return false
	}
	was, before := pkgverOf(d.src)
	now, after := pkgverOf(slices.Concat(d.src[:s.Start], text, d.src[s.End:]))
	return before && after && was != now
}

// pkgverOf works out the pkgver of a PKGBUILD.
func pkgverOf(src []byte) (string, bool) {
	p, err := evalPkgbuild(src)
	if err != nil {
		return "", false
	}
	v, err := p.attr("", "pkgver", false)
	if err != nil || len(v) != 1 {
		return "", false
	}
	return v[0], true
}

var (
	pkgrelRE = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)
	epochRE  = regexp.MustCompile(`^[0-9]*$`)
)

// checkPacman refuses what PKGBUILD(5) does not allow in name.
func checkPacman(name, value string) error {
	switch name {
	case "pkgver":
		if value == "" || strings.ContainsAny(value, ":/- \t") {
			return fmt.Errorf("%q is no pkgver: it is empty or holds a hyphen, colon, slash or blank", value)
		}
		for _, r := range value {
			if r > 0x7e {
				return fmt.Errorf("%q is no pkgver: it is not ASCII", value)
			}
		}
	case "pkgrel":
		if !pkgrelRE.MatchString(value) {
			return fmt.Errorf("%q is no pkgrel (want a number, such as 1)", value)
		}
	case "epoch":
		if !epochRE.MatchString(value) {
			return errors.New("an epoch is a whole number")
		}
	}
	return nil
}

func checked(s *Site, name string) {
	encode := s.Encode
	s.Encode = func(value string) ([]byte, error) {
		if err := checkPacman(name, value); err != nil {
			return nil, err
		}
		return encode(value)
	}
}
