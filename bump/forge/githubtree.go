package forge

import (
	"context"
	"crypto/sha1" //nolint:gosec // what git names objects by
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/google/go-github/v92/github"
)

const (
	// hubInlineText bounds the text that goes into the request for a tree, in
	// bytes; what is larger becomes a blob first.
	hubInlineText = 256 << 10
	// hubKeptTrees bounds the listings that are kept; several files of one commit
	// share most of theirs.
	hubKeptTrees   = 64
	hubWorkflows   = ".github/workflows/"
	hubModeTree    = "040000"
	hubModeRegular = "100644"
	hubModeProgram = "100755"
)

func (h *hub) at(commit string) string { return h.repo() + "@" + hubShort(commit) }

// Tip returns the commit that a branch is at.
func (h *hub) Tip(ctx context.Context, branch string) (Commit, error) {
	ctx = h.t.call(ctx)
	doing := "look at branch " + branch + " of " + h.repo()
	id, err := h.ref(ctx, branch)
	if err != nil {
		return Commit{}, h.fail(doing, err)
	}
	if id == "" {
		return Commit{}, fmt.Errorf("%s: %w", doing, ErrNotFound)
	}
	// Of the files that changed, one is enough.
	c, _, err := h.client.Repositories.GetCommit(ctx, h.owner, h.name, id, &github.ListOptions{PerPage: 1})
	if err != nil {
		return Commit{}, h.fail(doing, err)
	}
	commit := hubCommitOf(c.GetCommit(), c.Parents)
	commit.ID = c.GetSHA()
	commit.Login = c.GetAuthor().GetLogin()
	if commit.ID != id {
		return Commit{}, fmt.Errorf("%s: %w: it was at %s", doing, ErrMoved, hubShort(id))
	}
	h.keepRoot(commit.ID, commit.Tree)
	return commit, nil
}

func hubCommitOf(c *github.Commit, parents []*github.Commit) Commit {
	commit := Commit{
		ID: c.GetSHA(), Tree: c.GetTree().GetSHA(), Message: c.GetMessage(),
		AuthorName: c.GetAuthor().GetName(), AuthorEmail: c.GetAuthor().GetEmail(),
		CommitterName: c.GetCommitter().GetName(), CommitterAdr: c.GetCommitter().GetEmail(),
		Verified: c.GetVerification().GetVerified(),
	}
	for _, p := range parents {
		commit.Parents = append(commit.Parents, p.GetSHA())
	}
	return commit
}

// ref returns where a branch is; "" if there is none, or no commit yet.
func (h *hub) ref(ctx context.Context, branch string) (string, error) {
	if branch == "" || strings.Contains(branch, "..") {
		return "", fmt.Errorf("%q is no name of a branch", branch)
	}
	ref, _, err := h.client.Git.GetRef(ctx, h.owner, h.name, "heads/"+branch)
	switch {
	case hubStatus(err) == http.StatusNotFound, hubStatus(err) == http.StatusConflict && hubSays(err, "empty"):
		return "", nil
	case err != nil:
		return "", err
	case ref.GetRef() != "refs/heads/"+branch:
		return "", nil
	}
	return ref.GetObject().GetSHA(), nil
}

// root returns the tree of a commit.
func (h *hub) root(ctx context.Context, commit string) (string, error) {
	if !hubID.MatchString(commit) {
		return "", fmt.Errorf("%q is no commit", commit)
	}
	h.mu.Lock()
	tree, ok := h.roots[commit]
	h.mu.Unlock()
	if ok {
		return tree, nil
	}
	c, _, err := h.client.Git.GetCommit(ctx, h.owner, h.name, commit)
	if err != nil {
		return "", err
	}
	h.keepRoot(commit, c.GetTree().GetSHA())
	return c.GetTree().GetSHA(), nil
}

func (h *hub) keepRoot(commit, tree string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.roots) >= hubKeptTrees {
		clear(h.roots)
	}
	h.roots[commit] = tree
}

func (h *hub) tree(ctx context.Context, id string) (*github.Tree, error) {
	if !hubID.MatchString(id) {
		return nil, fmt.Errorf("%q is no tree", id)
	}
	h.mu.Lock()
	tree, ok := h.trees[id]
	h.mu.Unlock()
	if ok {
		return tree, nil
	}
	tree, _, err := h.client.Git.GetTree(ctx, h.owner, h.name, id, false)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.trees) >= hubKeptTrees {
		clear(h.trees)
	}
	h.trees[id] = tree
	return tree, nil
}

// File reads a file of a commit, tree by tree: the API for contents would follow
// symlinks.
func (h *hub) File(ctx context.Context, commit, name string, limit int64) (File, error) {
	ctx = h.t.call(ctx)
	doing := fmt.Sprintf("read %s of %s", name, h.at(commit))
	if !hubTreePath(name) {
		return File{}, fmt.Errorf("%s: %q is no path of a file in a repository", doing, name)
	}
	id, err := h.root(ctx, commit)
	if err != nil {
		return File{}, h.fail(doing, err)
	}
	steps := strings.Split(name, "/")
	for i, step := range steps {
		entry, err := h.entry(ctx, id, step)
		if err != nil {
			return File{}, h.fail(doing, err)
		}
		last := i == len(steps)-1
		switch {
		case entry == nil, !last && entry.GetType() != "tree" && entry.GetMode() != "120000":
			return File{}, fmt.Errorf("%s: %w", doing, ErrNotFound)
		case !last && entry.GetMode() == "120000":
			return File{}, fmt.Errorf("%s: %s is a symlink, which is not followed", doing, strings.Join(steps[:i+1], "/"))
		case !last:
			id = entry.GetSHA()
			continue
		}
		return h.blob(ctx, doing, name, entry, limit)
	}
	return File{}, fmt.Errorf("%s: %w", doing, ErrNotFound)
}

// hubTreePath reports whether name may be a file's path in a tree of git's.
func hubTreePath(name string) bool {
	if name == "" || path.Clean(name) != name || path.IsAbs(name) || name == "." || strings.ContainsRune(name, 0) {
		return false
	}
	for _, step := range strings.Split(name, "/") {
		if step == ".." || strings.EqualFold(step, ".git") {
			return false
		}
	}
	return true
}

func (h *hub) entry(ctx context.Context, tree, name string) (*github.TreeEntry, error) {
	t, err := h.tree(ctx, tree)
	if err != nil {
		return nil, err
	}
	for _, e := range t.Entries {
		if e.GetPath() == name {
			return e, nil
		}
	}
	if t.GetTruncated() {
		return nil, fmt.Errorf("a directory has more entries than GitHub lists, and %s is not among them: %w", name, ErrUnsupported)
	}
	return nil, nil
}

func (h *hub) blob(ctx context.Context, doing, name string, e *github.TreeEntry, limit int64) (File, error) {
	f := File{Path: name, Mode: e.GetMode()}
	if f.Mode != hubModeRegular && f.Mode != hubModeProgram {
		if e.GetType() == "tree" {
			f.Mode = hubModeTree
		}
		return f, nil
	}
	if int64(e.GetSize()) > limit {
		return File{}, fmt.Errorf("%s: it is %d bytes large, and %d are the limit", doing, e.GetSize(), limit)
	}
	if !hubID.MatchString(e.GetSHA()) {
		return File{}, fmt.Errorf("%s: GitHub names no object for it", doing)
	}
	b, _, err := h.client.Git.GetBlob(ctx, h.owner, h.name, e.GetSHA())
	if err != nil {
		return File{}, h.fail(doing, err)
	}
	text := []byte(b.GetContent())
	if b.GetEncoding() == "base64" {
		// Lines of it end as in mail.
		if text, err = base64.StdEncoding.DecodeString(strings.ReplaceAll(b.GetContent(), "\n", "")); err != nil {
			return File{}, fmt.Errorf("%s: GitHub's answer is no base64: %w", doing, err)
		}
	}
	if int64(len(text)) > limit {
		return File{}, fmt.Errorf("%s: it is %d bytes large, and %d are the limit", doing, len(text), limit)
	}
	if got := hubBlobID(text); got != e.GetSHA() {
		return File{}, fmt.Errorf("%s: GitHub's answer is not the file: its id is %s instead of %s", doing, hubShort(got), hubShort(e.GetSHA()))
	}
	f.Text = text
	return f, nil
}

// hubBlobID is the id that git gives a file's bytes.
func hubBlobID(text []byte) string {
	sum := sha1.New() //nolint:gosec // see the import
	fmt.Fprintf(sum, "blob %d\x00", len(text))
	sum.Write(text)
	return hex.EncodeToString(sum.Sum(nil))
}

// Tree makes the tree of n: that of its parent, and in it only the paths of
// n.Files, so that rules about other paths of the repository do not fire.
// Objects are named by their content, so it may be tried again.
func (h *hub) Tree(ctx context.Context, n NewCommit) (string, error) {
	ctx = repeatable(h.t.call(ctx))
	doing := "make a tree in " + h.repo()
	if err := h.mayWrite(doing, n.Files); err != nil {
		return "", err
	}
	id, err := h.makeTree(ctx, n)
	if code := hubStatus(err); h.upstream != nil && (code == http.StatusNotFound || code == http.StatusUnprocessableEntity) {
		if behind := h.catchUp(ctx); behind != nil {
			return "", h.fail("bring the fork "+h.repo()+" up to date", behind)
		}
		id, err = h.makeTree(ctx, n)
	}
	if err != nil {
		return "", h.fail(doing, err)
	}
	return id, nil
}

// mayWrite knows one right ahead: GitHub answers "not found" to who lacks it.
func (h *hub) mayWrite(doing string, files []File) error {
	h.mu.Lock()
	scope := h.scope
	h.mu.Unlock()
	for _, f := range files {
		if !hubTreePath(f.Path) {
			return fmt.Errorf("%s: %q is no path of a file in a repository", doing, f.Path)
		}
		if f.Mode != hubModeRegular && f.Mode != hubModeProgram {
			return fmt.Errorf("%s: %s: %w: mode %q is no regular file's", doing, f.Path, ErrUnsupported, f.Mode)
		}
		if strings.HasPrefix(f.Path, hubWorkflows) && scope != nil && !scope.has("workflow") {
			return &AuthError{Doing: doing, Missing: []string{"workflow"}, Hint: f.Path + " is a workflow of GitHub Actions, which takes a scope of its own"}
		}
	}
	return nil
}

func (h *hub) makeTree(ctx context.Context, n NewCommit) (string, error) {
	base, err := h.root(ctx, n.Parent)
	if err != nil {
		return "", err
	}
	var entries []*github.TreeEntry
	for _, f := range n.Files {
		e := &github.TreeEntry{Path: &f.Path, Mode: &f.Mode, Type: new("blob")}
		if len(f.Text) > 0 && len(f.Text) <= hubInlineText && utf8.Valid(f.Text) {
			e.Content = new(string(f.Text))
		} else {
			blob, err := h.makeBlob(ctx, f.Text)
			if err != nil {
				return "", err
			}
			e.SHA = &blob
		}
		entries = append(entries, e)
	}
	if len(entries) == 0 {
		return base, nil
	}
	tree, _, err := h.client.Git.CreateTree(ctx, h.owner, h.name, base, entries)
	if err != nil {
		return "", err
	}
	return tree.GetSHA(), nil
}

func (h *hub) makeBlob(ctx context.Context, text []byte) (string, error) {
	blob, _, err := h.client.Git.CreateBlob(ctx, h.owner, h.name, github.Blob{
		Content: new(base64.StdEncoding.EncodeToString(text)), Encoding: new("base64"),
	})
	if err != nil {
		return "", err
	}
	if want := hubBlobID(text); blob.GetSHA() != want {
		return "", fmt.Errorf("GitHub has stored other bytes than it was sent: their id is %s instead of %s", hubShort(blob.GetSHA()), hubShort(want))
	}
	return blob.GetSHA(), nil
}
