package diff

import (
	"regexp"
	"strings"
)

// forge is a site whose pages of differences are known.
type forge struct {
	host    string
	compare string // between the repository and OLD...NEW
	commit  string // between the repository and a commit
}

// forges are the sites that links are made to. What is elsewhere gets none: the
// URL in a tarball is whoever's who made it.
var forges = []forge{
	{"github.com", "/compare/", "/commit/"},
	{"gitlab.com", "/-/compare/", "/-/commit/"},
	{"gitlab.freedesktop.org", "/-/compare/", "/-/commit/"},
	{"gitlab.kitware.com", "/-/compare/", "/-/commit/"},
}

// repositoryRE takes apart the URLs that git knows: https, ssh and git, and
// scp's form with a colon. Groups of GitLab may have subgroups.
var repositoryRE = regexp.MustCompile(`\A(?:(?:https?|git|ssh)://(?:git@)?([a-z0-9.-]+)/|git@([a-z0-9.-]+):)((?:[A-Za-z0-9_][A-Za-z0-9._-]*/){1,5}[A-Za-z0-9_.][A-Za-z0-9._-]*?)(?:\.git)?/?\z`)

// commitRE is a whole commit id, SHA-1 or SHA-256.
var commitRE = regexp.MustCompile(`\A(?:[0-9a-f]{40}|[0-9a-f]{64})\z`)

// repository is the page of a repository, "" where the URL is not one of a
// known forge.
func repository(url string) (string, *forge) {
	m := repositoryRE.FindStringSubmatch(url)
	if m == nil || len(url) > maxWord || strings.Contains(m[3], "..") {
		return "", nil
	}
	host := m[1] + m[2]
	for i := range forges {
		f := &forges[i]
		if f.host == host && (f.host != "github.com" || strings.Count(m[3], "/") == 1) {
			return "https://" + host + "/" + m[3], f
		}
	}
	return "", nil
}

// sameRepository tells whether two URLs mean one repository of a known forge.
func sameRepository(a, b string) bool {
	pa, fa := repository(a)
	pb, fb := repository(b)
	return fa != nil && fa == fb && strings.EqualFold(pa, pb)
}

// rangeLink is a page that shows what lies between two commits of a repository,
// or the new commit where there is nothing to compare it with; "" where no link
// is known to be safe.
func rangeLink(urlA, a, urlB, b string) string {
	page, f := repository(urlB)
	if f == nil || !commitRE.MatchString(b) || a == b {
		return ""
	}
	if commitRE.MatchString(a) && sameRepository(urlA, urlB) {
		return page + f.compare + a + "..." + b
	}
	return page + f.commit + b
}
