package fetch

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// maxSide is the largest file of digests that is read, in bytes.
const maxSide = 1 << 20

// sumsName is the file that lists the digests of a whole directory.
const sumsName = "SHA256SUMS"

// SideDigests asks for the digests of rel that stand beside it, in
// NAME.sha256, NAME.sha256sum and SHA256SUMS: one request each, no more. What
// is not there, or cannot be had or read, yields no expectation; what is odd
// about it is a note for people. It is an error when one file has two
// different digests of rel, or when ctx ends.
func (c *Client) SideDigests(ctx context.Context, rel release.Release) ([]release.Expectation, []string, error) {
	u, err := c.parseURL(rel.URL)
	if err != nil {
		return nil, nil, fmt.Errorf("look beside %s: %w", rel.Name, err)
	}
	files := []string{rel.Name + ".sha256", rel.Name + ".sha256sum", sumsName}
	found := make([]sideFile, len(files))
	var wg sync.WaitGroup
	for i, file := range files {
		wg.Go(func() { found[i] = c.readSide(ctx, u, file) })
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, nil, fmt.Errorf("look beside %s: %w", rel.Name, context.Cause(ctx))
	}
	var wants []release.Expectation
	var notes []string
	for i, file := range files {
		digest, note, err := found[i].digest(rel.Name, file)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("look beside %s: %s: %w", rel.Name, file, err)
		case digest != "":
			wants = append(wants, release.Expectation{Digest: digest, Source: file + " beside the tarball"})
		}
		if note != "" {
			notes = append(notes, fmt.Sprintf("%s beside the tarball %s", file, note))
		}
	}
	return wants, notes, nil
}

// sideFile is what there is of one file beside a tarball.
type sideFile struct {
	body []byte
	html bool
	err  error
}

// readSide reads the file beside the tarball at u.
func (c *Client) readSide(ctx context.Context, u *url.URL, file string) sideFile {
	if isFile(u) {
		body, err := readBeside(filepath.Dir(filepath.Clean(u.Path)), file)
		return sideFile{body: body, err: err}
	}
	dir := u.EscapedPath()
	at, err := url.Parse(joinURL(u, dir[:strings.LastIndexByte(dir, '/')+1], file))
	if err != nil {
		return sideFile{err: err}
	}
	at.User = u.User
	body, html, err := c.getOnce(ctx, at, maxSide)
	return sideFile{body, html, err}
}

// readBeside reads a file of a directory of this machine. A link does not
// lead out of it.
func readBeside(dir, file string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readRegular(f, "file://"+filepath.Join(dir, file), maxSide)
}

// digest returns what the file says of name, and what is odd about it.
func (s sideFile) digest(name, file string) (release.Digest, string, error) {
	switch {
	case IsGone(s.err):
		return "", "", nil
	case s.err != nil:
		return "", fmt.Sprintf("was not read: %v", s.err), nil
	case s.html || bytes.HasPrefix(bytes.TrimSpace(s.body), []byte("<")):
		return "", "is a web page, not a list of digests", nil
	}
	sums, err := parseSums(s.body, name, file != sumsName)
	if err != nil {
		return "", "", err
	}
	switch {
	case sums.digest != "" && sums.unread > 0:
		return sums.digest, fmt.Sprintf("has %d lines that are no digests", sums.unread), nil
	case sums.digest != "":
		return sums.digest, "", nil
	case sums.unread > 0:
		return "", "is not a list of SHA-256 digests", nil
	}
	return "", "has no SHA-256 digest of it", nil
}

// sums is what a file of digests says of one file.
type sums struct {
	digest release.Digest // "" if it does not say
	unread int            // lines of no known form
}

var (
	// gnuRE is a line of sha256sum: the digest, a space, then a space or a
	// star (text or binary), and the name. A backslash before all of it says
	// that the name is escaped. BSD's reversed form has but one space.
	gnuRE = regexp.MustCompile(`^(\\?)([0-9A-Fa-f]{64})[ \t]+\*?(.+)$`)
	// bsdRE is a line of shasum --tag, BSD's sha256 or openssl dgst.
	bsdRE = regexp.MustCompile(`^(\\?)SHA(?:2-|-)?256 ?\((.+)\) ?= ?([0-9A-Fa-f]{64})$`)
	// otherRE is a line of the same forms for another algorithm.
	otherRE = regexp.MustCompile(`^\\?(?:[0-9A-Fa-f]{32,56}[ \t]+\*?.+|[0-9A-Fa-f]{96,128}[ \t]+\*?.+|[A-Z][A-Za-z0-9/-]* ?\(.+\) ?= ?[0-9A-Fa-f]{32,128})$`)
)

// parseSums reads a file of digests for what it says of name. If own, the
// file is named after that one alone: a digest without a name is of it, and a
// directory before its name is where it was made.
func parseSums(body []byte, name string, own bool) (sums, error) {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	if own {
		if d, err := release.ParseDigest(string(bytes.TrimSpace(body))); err == nil {
			return sums{digest: d}, nil
		}
	}
	var s sums
	for line := range bytes.SplitSeq(body, []byte("\n")) {
		text := strings.TrimRight(string(line), " \t\r") // no name of AMD's ends so
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		listed, digest, ok := parseSumLine(text)
		if !ok {
			s.unread++
			continue
		}
		if digest == "" || !isNamed(listed, name, own) {
			continue
		}
		if s.digest != "" && s.digest != digest {
			return sums{}, fmt.Errorf("it has two different digests of %s, %s and %s; ask whoever publishes it", name, s.digest, digest)
		}
		s.digest = digest
	}
	return s, nil
}

// parseSumLine reads one line; the digest is "" if it is not a SHA-256.
func parseSumLine(text string) (name string, digest release.Digest, ok bool) {
	var escaped, enc string
	if m := gnuRE.FindStringSubmatch(text); m != nil {
		escaped, enc, name = m[1], m[2], m[3]
	} else if m := bsdRE.FindStringSubmatch(text); m != nil {
		escaped, name, enc = m[1], m[2], m[3]
	} else {
		return "", "", otherRE.MatchString(text)
	}
	if escaped != "" {
		name = unescapeName.Replace(name)
	}
	digest, err := release.ParseDigest(enc)
	return name, digest, err == nil
}

// unescapeName undoes what sha256sum does to a name with such bytes.
var unescapeName = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r")

// isNamed reports whether a listed name is that of the file called name.
// Below another directory there may be another file of the same name: AMD's
// ASan builds are called as the others.
func isNamed(listed, name string, own bool) bool {
	if own && listed == "-" {
		return true // sha256sum was given the bytes, and no name
	}
	if own {
		listed = path.Base(strings.ReplaceAll(listed, `\`, "/"))
	}
	return strings.TrimPrefix(listed, "./") == name
}
