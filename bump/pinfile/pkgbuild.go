package pinfile

import (
	"errors"
	"fmt"
	"regexp"
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

// implied resets pkgrel where pkgver changes: PKGBUILD(5) wants it to begin
// at 1 again with every new version.
func (d *pkgbuildDoc) implied(set map[string]string) map[string]string {
	for key, value := range set {
		k, err := parseCodeKey(key)
		if err != nil {
			continue
		}
		if len(k.parts) == 1 && k.last() == "pkgrel" {
			return nil
		}
		if len(k.parts) != 1 || k.last() != "pkgver" {
			continue
		}
		if ver, _, err := d.find(key); err != nil || len(ver) != 1 || ver[0].Value == value {
			return nil
		}
		if rel, _, err := d.find("pkgrel"); err != nil || len(rel) != 1 || rel[0].Problem != "" || rel[0].Value == "1" {
			return nil
		}
		for other := range set {
			if ok, err := parseCodeKey(other); err == nil && ok.last() == "pkgrel" {
				return nil
			}
		}
		return map[string]string{"pkgrel": "1"}
	}
	return nil
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
