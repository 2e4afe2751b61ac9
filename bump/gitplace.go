package bump

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/bump/forge"
)

// gitPlace is a place of git's own: a bare repository in the scratch
// directory, to which a remote's branches are fetched. No file is checked out.
type gitPlace struct {
	git    *git
	remote remote
	space  string // names the refs that hold what was fetched
	// seen are the branches that were looked at, by name; "" where there is none.
	seen map[string]string
	head string // the branch that the remote's HEAD names; "" if none
}

func newGitPlace(g *git, r remote, space string) *gitPlace {
	return &gitPlace{git: g, remote: r, space: space, seen: map[string]string{}}
}

// look finds out where branches are now, and fetches their commits with those
// before them. What arrives counts: a branch may have moved since it was listed.
func (g *gitPlace) look(ctx context.Context, branches ...string) error {
	g.seen = map[string]string{}
	refs := []string{"HEAD"}
	for _, b := range branches {
		if b != "" {
			refs = append(refs, "refs/heads/"+b)
		}
	}
	out, err := g.git.run(ctx, nil, append([]string{"ls-remote", "--symref", "--", g.remote.url}, refs...)...)
	if err != nil {
		return err
	}
	oids, head := parseRefs(string(out))
	g.head = head
	if slices.Contains(branches, "") && head != "" {
		branches = append(slices.Clone(branches), head)
		oids["refs/heads/"+head] = oids["HEAD"]
	}
	if err := g.git.init(ctx, oids); err != nil {
		return err
	}
	return g.fetch(ctx, branches, oids)
}

func (g *gitPlace) fetch(ctx context.Context, branches []string, oids map[string]string) error {
	// Two commits deep: the parent of a branch's commit tells what it changed.
	args := []string{"fetch", "-q", "--depth=2", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--", g.remote.url}
	var there []string
	for _, b := range branches {
		if b == "" || slices.Contains(there, b) {
			continue
		}
		g.seen[b] = ""
		if oids["refs/heads/"+b] != "" {
			args = append(args, "+refs/heads/"+b+":"+g.ref(b))
			there = append(there, b)
		}
	}
	if len(there) == 0 {
		return nil
	}
	if _, err := g.git.run(ctx, nil, args...); err != nil {
		return err
	}
	for _, b := range there {
		oid, err := g.git.line(ctx, nil, "rev-parse", "--verify", "-q", g.ref(b)+"^{commit}")
		if err != nil {
			return err
		}
		g.seen[b] = oid
	}
	return nil
}

func (g *gitPlace) ref(branch string) string { return "refs/rocm-nightly/" + g.space + "/" + branch }

// Tip implements place. It tells what the last look saw.
func (g *gitPlace) Tip(ctx context.Context, branch string) (forge.Commit, error) {
	oid, seen := g.seen[branch]
	if !seen {
		was := g.seen
		if err := g.look(ctx, branch); err != nil {
			return forge.Commit{}, err
		}
		oid = g.seen[branch]
		for b, id := range was {
			g.seen[b] = id
		}
	}
	if oid == "" {
		return forge.Commit{}, fmt.Errorf("find branch %s of %s: %w", branch, g.remote.shown, forge.ErrNotFound)
	}
	return g.read(ctx, oid)
}

func (g *gitPlace) read(ctx context.Context, oid string) (forge.Commit, error) {
	raw, err := g.git.run(ctx, nil, "cat-file", "commit", oid)
	if err != nil {
		return forge.Commit{}, err
	}
	c := parseCommit(string(raw))
	c.ID = oid
	return c, nil
}

// File implements place. Only a regular file has a blob's mode, and a symlink
// on the way to it has no entry below it, so nothing outside of the tree can be
// named.
func (g *gitPlace) File(ctx context.Context, commit, path string, limit int64) (forge.File, error) {
	out, err := g.git.run(ctx, nil, "ls-tree", "-z", commit, "--", path)
	if err != nil {
		return forge.File{}, err
	}
	meta, name, _ := strings.Cut(strings.TrimSuffix(string(out), "\x00"), "\t")
	fields := strings.Fields(meta)
	if len(fields) != 3 || name != path {
		return forge.File{}, fmt.Errorf("read %s: %w", path, fs.ErrNotExist)
	}
	f := forge.File{Path: path, Mode: fields[0]}
	if !regular(f.Mode) {
		return f, nil
	}
	size, err := g.git.line(ctx, nil, "cat-file", "-s", fields[2])
	if err != nil {
		return forge.File{}, err
	}
	if n, err := strconv.ParseInt(size, 10, 64); err != nil || n > limit {
		return forge.File{}, fmt.Errorf("read %s: it has %s bytes, too many for a file of pins", path, size)
	}
	f.Text, err = g.git.run(ctx, nil, "cat-file", "blob", fields[2])
	return f, err
}

func regular(mode string) bool { return mode == "100644" || mode == "100755" }

// Tree implements place.
func (g *gitPlace) Tree(ctx context.Context, n forge.NewCommit) (string, error) {
	var index bytes.Buffer
	for _, f := range n.Files {
		oid, err := g.git.line(ctx, f.Text, "hash-object", "-w", "--no-filters", "--stdin")
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&index, "%s %s\t%s\x00", f.Mode, oid, f.Path)
	}
	if _, err := g.git.run(ctx, nil, "read-tree", n.Parent); err != nil {
		return "", err
	}
	if _, err := g.git.run(ctx, index.Bytes(), "update-index", "-z", "--index-info"); err != nil {
		return "", err
	}
	return g.git.line(ctx, nil, "write-tree")
}

// Commit implements place.
func (g *gitPlace) Commit(ctx context.Context, n forge.NewCommit, tree string) (forge.Commit, error) {
	date := fmt.Sprintf("@%d +0000", n.Committed.Unix())
	env := []string{
		"GIT_AUTHOR_NAME=" + n.Author, "GIT_AUTHOR_EMAIL=" + n.Email, "GIT_AUTHOR_DATE=" + date,
		"GIT_COMMITTER_NAME=" + n.Author, "GIT_COMMITTER_EMAIL=" + n.Email, "GIT_COMMITTER_DATE=" + date,
	}
	out, err := g.git.runEnv(ctx, env, []byte(n.Message), "commit-tree", tree, "-p", n.Parent, "-F", "-")
	if err != nil {
		return forge.Commit{}, err
	}
	return g.read(ctx, strings.TrimSpace(string(out)))
}

// Move implements place. An empty lease means that there is no such branch.
func (g *gitPlace) Move(ctx context.Context, branch, from, to string) error {
	err := g.push(ctx, branch, from, to)
	if err != nil && strings.Contains(err.Error(), "shallow update not allowed") {
		// A fork that lags behind lacks what is before our two commits.
		if _, err := g.git.run(ctx, nil, "fetch", "-q", "--unshallow", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--", g.git.origin); err != nil {
			return err
		}
		err = g.push(ctx, branch, from, to)
	}
	if err == nil {
		g.seen[branch] = to
	}
	return err
}

// Remove implements place.
func (g *gitPlace) Remove(ctx context.Context, branch, from string) error {
	err := g.push(ctx, branch, from, "")
	if err == nil {
		g.seen[branch] = ""
	}
	return err
}

// push replaces the commit that was looked at, or fails when the branch has
// moved since.
func (g *gitPlace) push(ctx context.Context, branch, from, to string) error {
	ref := "refs/heads/" + branch
	_, err := g.git.run(ctx, nil, "push", "--porcelain", "--no-verify", "--no-follow-tags", "--no-signed",
		"--force-with-lease="+ref+":"+from, "--", g.remote.url, to+":"+ref)
	return err
}

// init makes the empty bare repository, once. Its hash is that of the remote.
func (g *git) init(ctx context.Context, oids map[string]string) error {
	if g.ready {
		return nil
	}
	format := "sha1"
	for _, oid := range oids {
		if len(oid) == 64 {
			format = "sha256"
		}
	}
	dir := filepath.Join(g.dir, "repo.git")
	if _, err := g.run(ctx, nil, "init", "-q", "--bare", "--template=", "--object-format="+format, dir); err != nil {
		return err
	}
	g.dir, g.ready = dir, true
	return nil
}

// parseRefs reads what ls-remote --symref prints.
func parseRefs(out string) (oids map[string]string, head string) {
	oids = map[string]string{}
	for line := range strings.Lines(out) {
		left, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		switch symref, is := strings.CutPrefix(left, "ref: refs/heads/"); {
		case !ok:
		case is && name == "HEAD":
			head = symref
		case isOID(left):
			oids[name] = left
		}
	}
	return oids, head
}

func isOID(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// parseCommit reads a raw commit object: headers, an empty line, a message.
func parseCommit(raw string) forge.Commit {
	var c forge.Commit
	head, message, _ := strings.Cut(raw, "\n\n")
	c.Message = message
	for line := range strings.SplitSeq(head, "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "tree":
			c.Tree = value
		case "parent":
			c.Parents = append(c.Parents, value)
		case "author":
			c.AuthorName, c.AuthorEmail = identity(value)
		case "committer":
			c.CommitterName, c.CommitterAdr = identity(value)
		}
	}
	return c
}

// identity reads an author or committer line.
func identity(line string) (name, email string) {
	name, rest, _ := strings.Cut(line, "<")
	email, _, _ = strings.Cut(rest, ">")
	return strings.TrimSpace(name), email
}
