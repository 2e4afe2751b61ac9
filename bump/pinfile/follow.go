package pinfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
)

// Follow returns the files that have to change along with an edited one, by
// path: the .SRCINFO beside a PKGBUILD. read returns a file of the repository;
// its error matches fs.ErrNotExist where there is none.
//
// A PKGBUILD that SrcInfo cannot work out has its versions, sources and sums
// changed inside the .SRCINFO that is there; where that is not enough either,
// the error says to run makepkg.
func Follow(file string, edited []byte, o Options, read func(path string) ([]byte, error)) (map[string][]byte, error) {
	if o.Format != "pkgbuild" && (o.Format != "" || path.Base(file) != "PKGBUILD") {
		return nil, nil
	}
	beside := path.Join(path.Dir(file), ".SRCINFO")
	old, err := read(beside)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s, which follows %s: %w", beside, file, err)
	}
	next, why := SrcInfo(edited)
	if why != nil {
		why = InFile(file, why)
		if next, err = patchSrcinfo(old, edited); err != nil {
			return nil, fmt.Errorf("bring %s up to date: %w; nor can the values be changed in place: %w (run makepkg --printsrcinfo > .SRCINFO beside the PKGBUILD)", beside, why, err)
		}
	}
	if bytes.Equal(next, old) {
		return nil, nil
	}
	return map[string][]byte{beside: next}, nil
}

// pinnedAttrs are the attributes of a base that a new version changes.
var pinnedAttrs = regexp.MustCompile(`^(pkgver|pkgrel|epoch|(source|(ck|md5|sha1|sha224|sha256|sha384|sha512|b2)sums)(_.*)?)$`)

// patchSrcinfo changes in old what edited says about versions, sources and
// sums, as far as it says it.
func patchSrcinfo(old, edited []byte) ([]byte, error) {
	p, err := evalPkgbuild(edited)
	if err != nil {
		return nil, err
	}
	doc, err := parseSrcinfo(old, Options{})
	if err != nil {
		return nil, InFile(".SRCINFO", err)
	}
	was, err := only(doc, ".pkgbase.pkgver")
	if err != nil {
		return nil, err
	}
	out, shift := bytes.Clone(old), 0
	var known string
	for _, n := range doc.(*codeTree).values {
		if n.parent.name != "pkgbase" || n.parent.parent == nil || !pinnedAttrs.MatchString(n.name) {
			continue
		}
		values, err := p.attr("", n.name, true)
		if err != nil {
			return nil, InFile("PKGBUILD", err)
		}
		if len(values) != n.parent.names[n.name] {
			return nil, fmt.Errorf("the PKGBUILD has %d of %s and the .SRCINFO %d", len(values), n.name, n.parent.names[n.name])
		}
		if n.name == "pkgver" {
			known = values[0]
		}
		text, err := n.site.Encode(oneSpaced(values[n.index]))
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", n.path(), err)
		}
		out = append(out[:n.site.Start+shift], append(text, out[n.site.End+shift:]...)...)
		shift += len(text) - (n.site.End - n.site.Start)
	}
	if was.Value != known && bytes.Contains(out, []byte(was.Value)) {
		line := placeOf(out, bytes.Index(out, []byte(was.Value))).Line
		return nil, errors.New("the old version " + strconv.Quote(was.Value) + " also stands in line " + strconv.Itoa(line))
	}
	return out, nil
}

// only is the one value that key names.
func only(doc document, key string) (Site, error) {
	sites, _, err := doc.find(key)
	if err == nil && len(sites) != 1 {
		err = fmt.Errorf("find %s: %d values have that key", key, len(sites))
	}
	if err != nil {
		return Site{}, err
	}
	return sites[0], nil
}
