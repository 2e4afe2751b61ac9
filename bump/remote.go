package bump

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
)

// scpRE is git's short form of an ssh URL, user@host:path.
var scpRE = regexp.MustCompile(`^(?:[A-Za-z0-9._][A-Za-z0-9._-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*:[^:]`)

// remote is a repository's address.
type remote struct {
	url    string // as git gets it, free of secrets
	shown  string // as people see it
	user   string // of an https URL
	https  bool   // a token may be sent there: by https, or to this machine
	scheme string // of a url by http or https
	host   string // with port; "" for files
	path   string // on the host, without slashes around and without .git
}

// CheckURL reports what is wrong with a Repo.URL.
func CheckURL(raw string) error {
	_, err := parseRemote(raw)
	return err
}

// parseRemote reads Repo.URL.
func parseRemote(raw string) (remote, error) {
	if raw == "" {
		return remote{}, errors.New("no url is given")
	}
	if filepath.IsAbs(raw) && !strings.ContainsFunc(raw, isControl) {
		return remote{url: (&url.URL{Scheme: "file", Path: filepath.Clean(raw)}).String(), shown: raw}, nil
	}
	if strings.HasPrefix(raw, "-") || strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return remote{}, fmt.Errorf("read url %.200q: it begins with a dash or holds a space", scrubURLs(raw))
	}
	switch {
	case strings.Contains(raw, "://"):
		return parseURL(raw)
	case strings.Contains(raw, "::"):
	case scpRE.MatchString(raw):
		host, path, _ := strings.Cut(raw, ":")
		_, bare, at := strings.Cut(host, "@")
		if at {
			host = bare
		}
		return remote{url: raw, shown: raw, host: host, path: repoPath(path)}, nil
	}
	return remote{}, fmt.Errorf("read url %.200q: not an address of a repository (want https://, ssh://, file://, an absolute path, or user@host:path)", scrubURLs(raw))
}

func parseURL(raw string) (remote, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The error of url.Parse repeats the text, password and all.
		return remote{}, fmt.Errorf("read url %.200q: it cannot be parsed", scrubURLs(raw))
	}
	if _, has := u.User.Password(); has {
		return remote{}, fmt.Errorf("read url %.200q: it holds a password (take it out and use token_env)", scrubURLs(raw))
	}
	r := remote{url: raw, shown: scrubURLs(raw), host: u.Host, path: repoPath(u.Path)}
	switch u.Scheme {
	case "https":
		r.https, r.scheme = true, u.Scheme
		r.user = u.User.Username()
		u.User = nil
		r.url = u.String()
	case "ssh":
	case "file":
		r.host, r.path = "", ""
		if u.Host != "" {
			return remote{}, fmt.Errorf("read url %.200q: a file url has three slashes", raw)
		}
		return r, nil
	case "git":
	case "http":
		// Nothing protects what is sent: for this machine it is nobody's loss.
		if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return remote{}, fmt.Errorf("read url %.200q: http is for this machine only (use https, ssh or file)", r.shown)
		}
		r.https, r.scheme = true, u.Scheme
		r.user = u.User.Username()
		u.User = nil
		r.url = u.String()
	default:
		return remote{}, fmt.Errorf("read url %.200q: %s is not allowed (use https, ssh, git or file)", r.shown, u.Scheme)
	}
	if u.Hostname() == "" || strings.HasPrefix(u.Host, "-") || u.RawQuery != "" || u.Fragment != "" {
		return remote{}, fmt.Errorf("read url %.200q: it has no host, or more than a host and a path", r.shown)
	}
	return r, nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

func repoPath(p string) string {
	return strings.TrimSuffix(strings.Trim(p, "/"), ".git")
}

// compareURL is the page where a pull request from branch to base is opened;
// "" when the forge, or the repository's place on it, is not known.
func (r remote) compareURL(forge, base, branch string) string {
	if r.host == "" || strings.Count(r.path, "/") < 1 {
		return ""
	}
	host := r.host
	if !r.https {
		// The port of an ssh URL is not that of the web page.
		host, _, _ = strings.Cut(host, ":")
	}
	scheme := "https"
	if r.scheme != "" {
		scheme = r.scheme
	}
	page := (&url.URL{Scheme: scheme, Host: host, Path: "/" + r.path}).String()
	switch forge {
	case "github":
		return page + "/compare/" + escapeRef(base) + "..." + escapeRef(branch) + "?expand=1"
	case "gitea":
		return page + "/compare/" + escapeRef(base) + "..." + escapeRef(branch)
	case "gitlab":
		q := url.Values{}
		q.Set("merge_request[source_branch]", branch)
		q.Set("merge_request[target_branch]", base)
		return page + "/-/merge_requests/new?" + q.Encode()
	}
	return ""
}

// escapeRef escapes all of a branch but its slashes.
func escapeRef(ref string) string {
	return strings.ReplaceAll(url.PathEscape(ref), "%2F", "/")
}

// checkBranch accepts the names that git's check-ref-format would, less what
// no branch needs.
func checkBranch(name string) error {
	bad := name == "" || len(name) > 200 || strings.HasPrefix(name, "-") || strings.HasPrefix(name, "refs/") || name == "HEAD" || name == "@" ||
		strings.Contains(name, "..") || strings.Contains(name, "@{") || strings.Contains(name, "//") ||
		strings.ContainsAny(name, " ~^:?*[\\") || strings.ContainsFunc(name, isControl)
	for part := range strings.SplitSeq(name, "/") {
		bad = bad || part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".") || strings.HasSuffix(part, ".lock")
	}
	if bad {
		return fmt.Errorf("read branch %.200q: not a name for a branch", name)
	}
	return nil
}
