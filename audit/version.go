package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// rockManifest is where a tree says what it was built from.
const rockManifest = "share/therock/therock_manifest.json"

// versions checks that the tree is the version that it was published as: a name
// can be overwritten with another night's bytes.
func versions(_ context.Context, a *auditor) error {
	t := a.tree
	want := a.version
	if want == "" && a.prefix != nil {
		want = a.prefix.Version
	}
	if want != "" {
		a.infoVersion(want)
	}
	e := t.follow(".", t.inROCm(rockManifest)).entry
	if e == nil || !e.isFile() || want == "" {
		return nil
	}
	a.checked["version"]++
	f := Finding{Rule: RuleVersion, Severity: Warning, Path: e.path}
	var m struct {
		Package string `json:"rocm_package_version"`
		ROCm    string `json:"rocm_version"`
	}
	if err := t.readJSON(e.path, &m); err != nil {
		f.Detail = "cannot be read: " + err.Error()
		a.file(f)
		return nil
	}
	if has := disagrees(want, m.Package, m.ROCm); has != "" {
		f.Subject = has
		f.Detail = fmt.Sprintf("says that this is %s, but it was published as %s", has, want)
		f.Hint = "the release may have been replaced; compare its digest with that of others"
		a.file(f)
	}
	return nil
}

// disagrees returns what the tree says when that is not want. A full version is
// compared as such, X.Y.Z with the base of want.
func disagrees(want, pkg, rocm string) string {
	w, err := release.ParseVersion(want)
	if err != nil {
		return ""
	}
	for _, has := range []string{pkg, rocm} {
		v, err := release.ParseVersion(strings.TrimSpace(has))
		switch {
		case err != nil:
		case v.String() == v.Base():
			if v.Base() != w.Base() {
				return has
			}
		case !isRelease(w, v):
			return has
		}
	}
	return ""
}

// isRelease tells whether a tree that says has may have been published as want.
// A final release is a candidate of it that was promoted as it was, and a best
// known configuration is made of a night: their trees may say so.
func isRelease(want, has release.Version) bool {
	if want.Kind() == release.Final && has.Kind() == release.RC {
		return want.Base() == has.Base()
	}
	if want.Kind() == release.Dev && has.Kind() == release.Dev {
		return sameCommit(want.String(), has.String())
	}
	night, _, _ := strings.Cut(want.String(), "+")
	return has.Compare(want) == 0 || want.Kind() == release.BKC && has.String() == night
}

// sameCommit compares development builds, which are alike but for the commit;
// one may be written shorter.
func sameCommit(want, has string) bool {
	a, x, okA := strings.Cut(want, "+")
	b, y, okB := strings.Cut(has, "+")
	return a == b && (!okA || !okB || strings.HasPrefix(x, y) || strings.HasPrefix(y, x))
}

// infoVersion compares .info/version, which has X.Y.Z, perhaps with more behind
// a dash.
func (a *auditor) infoVersion(want string) {
	t := a.tree
	e := t.follow(".", t.inROCm(".info/version")).entry
	w, err := release.ParseVersion(want)
	if e == nil || !e.isFile() || err != nil {
		return
	}
	f, err := t.open(e.path)
	if err != nil {
		return // reported as unreadable
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 256))
	if err != nil {
		return
	}
	line, _, _ := strings.Cut(string(b), "\n")
	has, _, _ := strings.Cut(strings.TrimSpace(line), "-")
	v, err := release.ParseVersion(has)
	if err == nil && v.Base() != w.Base() {
		a.file(Finding{Rule: RuleVersion, Severity: Warning, Path: e.path, Subject: has,
			Detail: fmt.Sprintf("says that this is %s, but it was published as %s", has, want),
			Hint:   "the release may have been replaced; compare its digest with that of others"})
	}
}

func (t *tree) readJSON(name string, v any) error {
	f, err := t.open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return json.NewDecoder(io.LimitReader(f, maxText)).Decode(v)
}
