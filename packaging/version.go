package main

import (
	"fmt"
	"regexp"
	"strings"
)

// semver is a version of a release or of Go (v0.0.0-20260930063000-c0ffee000000).
var semver = regexp.MustCompile(`^v?(\d+\.\d+\.\d+)(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?$`)

// versions are how the kinds of packages write one version, so that each of them has
// it before the release of that number, and after what came earlier.
type versions struct{ deb, rpm, arch string }

// packageVersions: deb and rpm sort what begins with ~ before the end of a version;
// pacman does so with letters (vercmp(8)). + marks what was built of changed files.
func packageVersions(v string) (versions, error) {
	m := semver.FindStringSubmatch(v)
	if m == nil {
		return versions{}, fmt.Errorf("version %q is not like v1.2.3", v)
	}
	tilde, letters := m[1], m[1]
	if pre := strings.ReplaceAll(m[2], "-", "."); pre != "" {
		tilde += "~" + pre
		if pre[0] <= '9' {
			pre = "pre" + pre
		}
		letters += pre
	}
	if m[3] != "" {
		meta := strings.ReplaceAll(m[3], "-", ".")
		tilde += "+" + meta
		letters += "+" + meta
	}
	return versions{deb: tilde, rpm: tilde, arch: letters}, nil
}
