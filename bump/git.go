package bump

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Where the fetched commits stand in the scratch repository.
const (
	baseRef = "refs/rocm-nightly/base"
	tipRef  = "refs/rocm-nightly/tip"
)

// job is one run of a bump.
type job struct {
	repo   Repo
	o      Options
	remote remote
	plan   *plan
	git    *git
	base   string // commit on Result.Base
	tip    string // commit on Result.Branch; "" if there is no such branch
	res    *Result
}

func run(ctx context.Context, repo Repo, pins map[string]Pin, o Options) (_ *Result, err error) {
	j, err := newJob(repo, pins, o)
	if err != nil {
		return nil, fmt.Errorf("bump %.60s: %w", oneLine(repo.Name), err)
	}
	if j.waits() {
		return j.res, nil
	}
	scratch, err := os.MkdirTemp(j.o.WorkDir, "rocm-nightly-bump-*")
	if err != nil {
		return nil, fmt.Errorf("bump %s: make scratch directory: %w", repo.Name, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	if err := j.do(ctx, scratch); err != nil {
		return nil, fmt.Errorf("bump %s: %w", repo.Name, err)
	}
	return j.res, nil
}

func (j *job) do(ctx context.Context, scratch string) error {
	if err := j.startGit(ctx, scratch); err != nil {
		return err
	}
	j.event("fetch", "fetch "+j.remote.shown)
	if err := j.fetch(ctx); err != nil {
		return err
	}
	j.event("edit", fmt.Sprintf("edit %d files on %s", len(j.plan.wants), j.res.Base))
	tree, err := j.edit(ctx)
	if err != nil || tree == "" {
		return err
	}
	return j.publish(ctx, tree)
}

// publish brings tree to the branch, unless it is there or the branch is
// somebody's.
func (j *job) publish(ctx context.Context, tree string) error {
	same, err := j.inspectTip(ctx, tree)
	if err != nil {
		return err
	}
	j.res.URL = j.remote.compareURL(j.repo.Forge, j.res.Base, j.res.Branch)
	switch {
	case same:
		j.res.Commit = j.tip
		j.res.Message = fmt.Sprintf("branch %s has it already", j.res.Branch) + j.next()
		return nil
	case j.o.DryRun:
		j.res.Message = fmt.Sprintf("would push %s to branch %s", j.res.Title, j.res.Branch)
		return nil
	}
	commit, err := j.commit(ctx, tree)
	if err != nil {
		return err
	}
	j.event("push", "push "+j.res.Branch)
	if err := j.push(ctx, commit); err != nil {
		return err
	}
	j.res.Commit, j.res.Pushed = commit, true
	j.res.Message = fmt.Sprintf("pushed %s to branch %s", j.res.Title, j.res.Branch) + j.next()
	return nil
}

// next says what is left to do by hand.
func (j *job) next() string {
	switch {
	case j.repo.Forge == "git":
		return ""
	case j.res.URL == "":
		return "; open the pull request on the forge"
	}
	return "; open the pull request at " + j.res.URL
}

func (j *job) event(kind, message string) {
	if j.o.Event != nil {
		j.o.Event(Event{Kind: kind, Repo: j.repo.Name, Message: message})
	}
}

// waits reports whether missing pins leave nothing to do, and notes them.
func (j *job) waits() bool {
	missing := strings.Join(j.plan.missing, ", ")
	switch {
	case len(j.plan.missing) == 0:
		return false
	case j.repo.Require == "all":
		j.res.Waiting = j.plan.missing
		j.res.Message = "waiting for " + missing + ", for require is all"
		return true
	}
	j.res.Skipped = j.plan.missing
	j.res.Message = "nothing to do: no tarball for " + missing
	return len(j.plan.wants) == 0
}

// startGit makes an empty bare repository in scratch. Its hash is that of the
// remote, which is asked first.
func (j *job) startGit(ctx context.Context, scratch string) error {
	bin, err := findGit(ctx, j.o.Env)
	if err != nil {
		return err
	}
	token, err := j.token()
	if err != nil {
		return err
	}
	j.git = &git{
		bin: bin, dir: scratch, shown: j.remote.shown,
		env:     gitEnv(j.o.Env, j.remote, j.repo.Forge, token, scratch),
		secrets: secretsOf(j.repo.Forge, j.remote.user, token),
	}
	if err := j.lookAtRemote(ctx); err != nil {
		return err
	}
	dir := filepath.Join(scratch, "repo.git")
	format := "sha1"
	if len(j.base) == 64 {
		format = "sha256"
	}
	if _, err := j.git.run(ctx, nil, "init", "-q", "--bare", "--template=", "--object-format="+format, dir); err != nil {
		return err
	}
	j.git.dir = dir
	return nil
}

// lookAtRemote finds the base branch and whether ours exists.
func (j *job) lookAtRemote(ctx context.Context) error {
	refs := []string{"HEAD", "refs/heads/" + j.res.Branch}
	if j.repo.Base != "" {
		refs = append(refs, "refs/heads/"+j.repo.Base)
	}
	out, err := j.git.run(ctx, nil, append([]string{"ls-remote", "--symref", "--", j.remote.url}, refs...)...)
	if err != nil {
		return err
	}
	oids, head := parseRefs(string(out))
	if j.repo.Base == "" {
		if head == "" {
			return fmt.Errorf("find base of %s: its HEAD names no branch (write base: in the config)", j.remote.shown)
		}
		if err := checkBranch(head); err != nil {
			return err
		}
		j.res.Base = head
		oids["refs/heads/"+head] = oids["HEAD"]
	}
	if j.res.Base == j.res.Branch {
		return fmt.Errorf("find base of %s: base and branch are both %s", j.remote.shown, j.res.Base)
	}
	j.base, j.tip = oids["refs/heads/"+j.res.Base], oids["refs/heads/"+j.res.Branch]
	if j.base == "" {
		return fmt.Errorf("find base of %s: there is no branch %s", j.remote.shown, j.res.Base)
	}
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

// fetch brings the base's commit, and the branch's, without their history.
// What arrives counts: the branches may have moved since they were looked at.
func (j *job) fetch(ctx context.Context) error {
	args := []string{"fetch", "-q", "--depth=1", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--", j.remote.url, "+refs/heads/" + j.res.Base + ":" + baseRef}
	if j.tip != "" {
		args = append(args, "+refs/heads/"+j.res.Branch+":"+tipRef)
	}
	if _, err := j.git.run(ctx, nil, args...); err != nil {
		return err
	}
	var err error
	if j.base, err = j.git.line(ctx, nil, "rev-parse", "--verify", "-q", baseRef+"^{commit}"); err != nil {
		return err
	}
	if j.tip != "" {
		j.tip, err = j.git.line(ctx, nil, "rev-parse", "--verify", "-q", tipRef+"^{commit}")
	}
	return err
}

// edit makes the wanted tree from the base's and fills the result with what
// differs; "" when nothing does.
func (j *job) edit(ctx context.Context) (tree string, err error) {
	var index bytes.Buffer
	var pins []Pin
	for _, w := range j.plan.wants {
		mode, src, err := j.readFile(ctx, w.path)
		if err != nil {
			return "", err
		}
		out, edits, err := w.edit(src)
		if err != nil {
			return "", err
		}
		if bytes.Equal(src, out) {
			continue
		}
		oid, err := j.git.line(ctx, out, "hash-object", "-w", "--no-filters", "--stdin")
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&index, "%s %s\t%s\x00", mode, oid, w.path)
		j.res.Edits = append(j.res.Edits, edits...)
		for _, pin := range w.pins {
			if !slices.Contains(pins, pin) {
				pins = append(pins, pin)
			}
		}
	}
	if len(j.res.Edits) == 0 {
		j.res.Message = fmt.Sprintf("%s is up to date", j.res.Base)
		return "", nil
	}
	slices.SortFunc(pins, func(a, b Pin) int { return strings.Compare(a.Target, b.Target) })
	j.res.Changed = true
	j.res.Title = titleOf(j.res.Edits, pins)
	j.res.Body = bodyOf(j.res.Edits, pins, j.res.Skipped, j.o.Verified)
	return j.writeTree(ctx, index.Bytes())
}

// readFile reads a file of the base. Only a regular file has a blob's mode,
// and a symlink on the way to it has no entry below it, so nothing outside of
// the tree can be named.
func (j *job) readFile(ctx context.Context, path string) (mode string, src []byte, err error) {
	out, err := j.git.run(ctx, nil, "ls-tree", "-z", j.base, "--", path)
	if err != nil {
		return "", nil, err
	}
	meta, name, _ := strings.Cut(strings.TrimSuffix(string(out), "\x00"), "\t")
	fields := strings.Fields(meta)
	if len(fields) != 3 || name != path {
		return "", nil, fmt.Errorf("read %s: no such file on branch %s", path, j.res.Base)
	}
	if mode = fields[0]; mode != "100644" && mode != "100755" {
		return "", nil, fmt.Errorf("read %s: on branch %s it is a %s, not a regular file", path, j.res.Base, modeName(mode))
	}
	size, err := j.git.line(ctx, nil, "cat-file", "-s", fields[2])
	if err != nil {
		return "", nil, err
	}
	if len(size) > len("9999999") {
		return "", nil, fmt.Errorf("read %s: it has %s bytes, too many for a file of pins", path, size)
	}
	src, err = j.git.run(ctx, nil, "cat-file", "blob", fields[2])
	return mode, src, err
}

func modeName(mode string) string {
	switch mode {
	case "120000":
		return "symlink"
	case "160000":
		return "submodule"
	case "040000":
		return "directory"
	}
	return "file of mode " + mode
}

// writeTree writes the base's tree with the entries of index in it, and the
// diff into the result.
func (j *job) writeTree(ctx context.Context, index []byte) (string, error) {
	if _, err := j.git.run(ctx, nil, "read-tree", j.base); err != nil {
		return "", err
	}
	if _, err := j.git.run(ctx, index, "update-index", "-z", "--index-info"); err != nil {
		return "", err
	}
	tree, err := j.git.line(ctx, nil, "write-tree")
	if err != nil {
		return "", err
	}
	diff, err := j.git.run(ctx, nil, "diff-tree", "-p", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--full-index", j.base, tree)
	j.res.Diff = string(diff)
	return tree, err
}

// commit writes the one commit on top of the base.
func (j *job) commit(ctx context.Context, tree string) (string, error) {
	date := fmt.Sprintf("@%d +0000", j.o.Now().Unix())
	a := j.repo.Author
	env := []string{
		"GIT_AUTHOR_NAME=" + a.Name, "GIT_AUTHOR_EMAIL=" + a.Email, "GIT_AUTHOR_DATE=" + date,
		"GIT_COMMITTER_NAME=" + a.Name, "GIT_COMMITTER_EMAIL=" + a.Email, "GIT_COMMITTER_DATE=" + date,
	}
	message := j.res.Title + "\n\n" + j.res.Body
	out, err := j.git.runEnv(ctx, env, []byte(message), "commit-tree", tree, "-p", j.base, "-F", "-")
	return strings.TrimSpace(string(out)), err
}

// push replaces the commit that was looked at with commit, or fails when the
// branch has moved since. An empty lease means that there is no such branch.
func (j *job) push(ctx context.Context, commit string) error {
	ref := "refs/heads/" + j.res.Branch
	_, err := j.git.run(ctx, nil, "push", "--porcelain", "--no-verify", "--no-follow-tags", "--no-signed",
		"--force-with-lease="+ref+":"+j.tip, "--", j.remote.url, commit+":"+ref)
	return err
}
