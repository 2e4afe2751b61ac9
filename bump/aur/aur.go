package aur

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/bump/pinfile"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// Prefix is where the package has its tree. It is where the packages of Arch
// have theirs, so that what is built for them finds it.
const Prefix = "/opt/rocm"

// Input is what a package is made of.
type Input struct {
	Name    string          // of the package; "" is NameOf the pin
	Pin     pinfile.Pin     // verified: it has a digest and an address
	Files   []manifest.File // of the prefix, or of the bare tree, that was made of it
	Depends []string        // packages to depend on, beside those that Files tell
}

// Package is a package of the AUR.
type Package struct {
	Name    string
	Version string // pkgver
	Release int    // pkgrel
	Family  string
	Notes   []string // what somebody should look at, one line each

	maintainers []string // comments that were in the PKGBUILD before
	source      string   // address of the tarball, with version for its version
	tarball     string   // its file name, likewise
	hex         string
	licenses    []string
	depends     []string
	optdepends  []string
	provides    []string // with version, where that is the package's
	conflicts   []string
	terms       []term
}

// version stands for the version in a value that is composed of it.
const version = "${pkgver}"

// Bounds and shapes of what comes from outside.
var (
	// nameRE is what makepkg's lint and the AUR take for a name of a package.
	nameRE    = regexp.MustCompile(`\A[a-z0-9@_+][a-z0-9@._+-]{0,99}\z`)
	versionRE = regexp.MustCompile(`\A[A-Za-z0-9][A-Za-z0-9._+]{0,99}\z`)
	familyRE  = regexp.MustCompile(`\A[A-Za-z0-9][A-Za-z0-9_-]{0,63}\z`)
	hexRE     = regexp.MustCompile(`\A[0-9a-f]{64}\z`)
	// addressRE leaves out whatever the shell, or makepkg's NAME::URL and #…,
	// would read something into.
	addressRE = regexp.MustCompile(`\A(?:https?://[A-Za-z0-9.-]+(?:\:[0-9]{1,5})?|file://)(?:/[A-Za-z0-9._~%+@=-]+)+\z`)
)

// NameOf returns the name of a package for p: rocm-nightly-gfx1151-bin, where
// the AUR asks for -bin behind the name of what was not built by the package.
func NameOf(p pinfile.Pin) string {
	channel := p.Channel
	if channel == "" {
		channel = "nightly"
	}
	return strings.ToLower("rocm-" + channel + "-" + p.Family + "-bin")
}

// Make returns the package for in. An error says what in it no package can be
// made of.
func Make(in Input) (*Package, error) {
	if in.Name == "" {
		in.Name = NameOf(in.Pin)
	}
	if err := in.check(); err != nil {
		return nil, fmt.Errorf("make a package of %.100q: %w", in.Pin.Name, err)
	}
	p := &Package{Name: in.Name, Version: in.Pin.Version, Release: 1, Family: in.Pin.Family, hex: in.Pin.Hex}
	if err := p.address(in.Pin.URL); err != nil {
		return nil, fmt.Errorf("make a package of %.100q: %w", in.Pin.Name, err)
	}
	t := newTree(in.Files)
	if len(t.objects) == 0 {
		return nil, fmt.Errorf("make a package of %.100q: its tree has no program or library that says what it needs", in.Pin.Name)
	}
	p.needs(t, in.Depends)
	p.offers(t)
	p.licenses, p.terms = t.licenses(), t.terms()
	return p, nil
}

func (in Input) check() error {
	switch {
	case !nameRE.MatchString(in.Name):
		return fmt.Errorf("%.100q is no name of a package: lower-case letters, digits and @._+-, no - or . in front (give one with --name)", in.Name)
	case !versionRE.MatchString(in.Pin.Version):
		return fmt.Errorf("version %.100q cannot be a pkgver: letters, digits and ._+ alone", in.Pin.Version)
	case !familyRE.MatchString(in.Pin.Family):
		return fmt.Errorf("family %.100q is no slug of AMD's", in.Pin.Family)
	case !hexRE.MatchString(in.Pin.Hex):
		return errors.New("its digest is not known, so that the package would take any bytes")
	}
	if _, err := release.ParseVersion(in.Pin.Version); err != nil {
		return err
	}
	for _, d := range in.Depends {
		if !nameRE.MatchString(d) {
			return fmt.Errorf("%.100q is no name of a package to depend on", d)
		}
	}
	return nil
}

// address sets where the tarball is, composed of the version, so that a newer
// night changes pkgver and the digest alone.
func (p *Package) address(text string) error {
	if !addressRE.MatchString(text) {
		return fmt.Errorf("%.200q is no address that a PKGBUILD can hold", text)
	}
	u, err := url.Parse(text)
	if err != nil || u.User != nil {
		return fmt.Errorf("%.200q is no address that a PKGBUILD can hold", text)
	}
	dir, file := text[:strings.LastIndexByte(text, '/')+1], text[strings.LastIndexByte(text, '/')+1:]
	if strings.Count(file, p.Version) != 1 || strings.Contains(file, "%") {
		return fmt.Errorf("the file name in %.200q does not hold the version %s once, so that it cannot be composed", text, p.Version)
	}
	p.tarball = strings.Replace(file, p.Version, version, 1)
	p.source = dir + p.tarball
	if u.Scheme != "https" {
		p.Notes = append(p.Notes, "the tarball is not fetched by https: "+text)
	}
	return nil
}

// add appends what is not there yet.
func add(list []string, more ...string) []string {
	for _, m := range more {
		if !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list
}
