package bump

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/bump/body"
	"github.com/rocm-nightly/rocm-nightly/bump/forge"
)

// errKilled is what a call gives after which the run is taken for dead.
var errKilled = errors.New("killed here")

// memForge is a forge in memory, with the commits of a Trees.
type memForge struct {
	owner, name string
	login       string
	now         *time.Time
	world       *memWorld
	branches    map[string]string // branch -> commit
	pulls       []*forge.Pull
	comments    map[int64][]forge.Comment
	issues      []*forge.Issue
	info        forge.Info
	required    bool
	checkState  string
	conflicts   map[int64]bool
	forks       map[string]*memForge
	upstream    *memForge
	// killAfter counts down the changes until one is the last; 0: never.
	killAfter int
	changes   []string
	limit     error // every change gives it
	before    func(doing string)
	autoMerge map[int64]string
	asked     map[int64][]string
}

// memWorld is what forks share.
type memWorld struct {
	commits map[string]forge.Commit
	trees   map[string]map[string]forge.File
	serial  int
}

func newMemForge(now *time.Time, files map[string]string) *memForge {
	f := &memForge{
		owner: "me", name: "flake", login: "bot", now: now, branches: map[string]string{}, comments: map[int64][]forge.Comment{},
		world: &memWorld{commits: map[string]forge.Commit{}, trees: map[string]map[string]forge.File{}},
		forks: map[string]*memForge{}, conflicts: map[int64]bool{}, autoMerge: map[int64]string{}, asked: map[int64][]string{},
	}
	f.info = forge.Info{Owner: "me", Name: "flake", Default: "main", Push: true, Requests: true, Issues: true, Login: "bot", Page: "https://forge.example/me/flake"}
	f.commitAs("main", "Ada <ada@example.org>", "first", files)
	return f
}

func (f *memForge) repo() string { return f.owner + "/" + f.name }

// commitAs is a person's commit on top of a branch.
func (f *memForge) commitAs(branch, who, message string, files map[string]string) string {
	parent := f.branches[branch]
	tree := maps.Clone(f.world.trees[f.world.commits[parent].Tree])
	if tree == nil {
		tree = map[string]forge.File{}
	}
	for path, text := range files {
		tree[path] = forge.File{Path: path, Mode: "100644", Text: []byte(text)}
	}
	name, rest, _ := strings.Cut(who, " <")
	mail := strings.TrimSuffix(rest, ">")
	c := forge.Commit{Tree: f.world.tree(tree), AuthorName: name, AuthorEmail: mail, CommitterName: name, CommitterAdr: mail, Message: message}
	if parent != "" {
		c.Parents = []string{parent}
	}
	f.branches[branch] = f.world.commit(c)
	return f.branches[branch]
}

func (w *memWorld) tree(files map[string]forge.File) string {
	h := sha256.New()
	for _, path := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%s %s %q\n", path, files[path].Mode, files[path].Text)
	}
	id := fmt.Sprintf("%x", h.Sum(nil))[:40]
	w.trees[id] = files
	return id
}

func (w *memWorld) commit(c forge.Commit) string {
	w.serial++
	c.ID = fmt.Sprintf("%040x", w.serial)
	w.commits[c.ID] = c
	return c.ID
}

func (f *memForge) text(branch, path string) string {
	return string(f.world.trees[f.world.commits[f.branches[branch]].Tree][path].Text)
}

// change notes a change; after the last that is allowed, the run is dead.
func (f *memForge) change(doing string) error {
	f.changes = append(f.changes, doing)
	if f.killAfter > 0 {
		if f.killAfter--; f.killAfter == 0 {
			f.killAfter = -1
			return fmt.Errorf("%s: %w", doing, errKilled)
		}
	}
	return nil
}

func (f *memForge) root() *memForge {
	if f.upstream != nil {
		return f.upstream
	}
	return f
}

func (f *memForge) refuse(doing string) error {
	if f.before != nil {
		f.before(doing)
	}
	if f.root().killAfter < 0 {
		return fmt.Errorf("%s by a dead run: %w", doing, errKilled)
	}
	return f.root().limit
}

func (f *memForge) Info(context.Context) (forge.Info, error) { return f.info, nil }

func (f *memForge) Pulls(_ context.Context, q forge.Query) ([]forge.Pull, error) {
	var out []forge.Pull
	for _, p := range slices.Backward(f.pulls) {
		state := q.State == "" || (q.State == forge.Opened) == (p.State == forge.Opened)
		if state && (q.Head == "" || q.Head == p.Head) && (q.HeadRepo == "" || q.HeadRepo == p.HeadRepo) && (q.Base == "" || q.Base == p.Base) {
			out = append(out, *p)
		}
	}
	return out, nil
}

func (f *memForge) find(number int64) (*forge.Pull, error) {
	for _, p := range f.pulls {
		if p.Number == number {
			return p, nil
		}
	}
	return nil, forge.ErrNotFound
}

func (f *memForge) Pull(_ context.Context, number int64) (forge.Pull, error) {
	p, err := f.find(number)
	if err != nil {
		return forge.Pull{}, err
	}
	c := *p
	c.Conflicts = f.conflicts[number]
	return c, nil
}

func (f *memForge) OpenPull(_ context.Context, n forge.NewPull) (forge.Pull, error) {
	if err := f.refuse("open"); err != nil {
		return forge.Pull{}, err
	}
	repo := n.HeadRepo
	if repo == "" {
		repo = f.repo()
	}
	for _, p := range f.pulls {
		if p.State == forge.Opened && p.Head == n.Head && p.HeadRepo == repo && p.Base == n.Base {
			return *p, forge.ErrExists
		}
	}
	p := f.addPull("bot", n.Title, n.Body, n.Base, n.Head, repo)
	p.Draft = n.Draft
	return *p, f.change("open")
}

func (f *memForge) addPull(author, title, text, base, head, repo string) *forge.Pull {
	number := int64(len(f.pulls) + 1)
	p := &forge.Pull{
		Number: number, Page: fmt.Sprintf("https://forge.example/me/flake/pulls/%d", number), Title: title, Body: text, State: forge.Opened,
		Base: base, Head: head, HeadRepo: repo, Author: author, Created: *f.now, Updated: *f.now,
	}
	f.pulls = append(f.pulls, p)
	return p
}

func (f *memForge) EditPull(_ context.Context, number int64, e forge.PullEdit) (forge.Pull, error) {
	if err := f.refuse("edit"); err != nil {
		return forge.Pull{}, err
	}
	p, err := f.find(number)
	if err != nil {
		return forge.Pull{}, err
	}
	if e.Title != nil {
		p.Title = *e.Title
	}
	if e.Body != nil {
		p.Body = *e.Body
	}
	if e.State != nil {
		p.State, p.Ended = *e.State, *f.now
	}
	p.Updated = *f.now
	return *p, f.change("edit")
}

func (f *memForge) Diff(_ context.Context, number int64, _ int) (string, error) {
	p, err := f.find(number)
	if err != nil {
		return "", err
	}
	at := f
	if p.HeadRepo != f.repo() {
		owner, _, _ := strings.Cut(p.HeadRepo, "/")
		at = f.forks[owner]
	}
	tip := f.world.commits[at.branches[p.Head]]
	old := f.world.trees[f.world.commits[tip.Parents[0]].Tree]
	out := ""
	for path, file := range f.world.trees[tip.Tree] {
		out += unified(path, old[path].Text, file.Text)
	}
	return out, nil
}

func (f *memForge) AddLabels(_ context.Context, number int64, labels []string) error {
	p, err := f.find(number)
	if err != nil {
		return err
	}
	p.Labels = append(slices.Clone(p.Labels), labels...)
	return f.change("label")
}

func (f *memForge) RemoveLabel(_ context.Context, number int64, label string) error {
	p, err := f.find(number)
	if err != nil {
		return err
	}
	p.Labels = slices.DeleteFunc(slices.Clone(p.Labels), func(s string) bool { return s == label })
	return f.change("unlabel")
}

func (f *memForge) Ask(_ context.Context, number int64, users, teams []string) error {
	p, err := f.find(number)
	if err != nil {
		return err
	}
	p.Reviewers = append(p.Reviewers, users...)
	f.asked[number] = append(f.asked[number], slices.Concat(users, teams)...)
	return f.change("ask")
}

func (f *memForge) Assign(_ context.Context, number int64, users []string) error {
	p, err := f.find(number)
	if err != nil {
		return err
	}
	p.Assignees = append(p.Assignees, users...)
	return f.change("assign")
}

func (f *memForge) AutoMerge(_ context.Context, number int64, _ string, _ bool, method string) error {
	if !f.info.AutoMerge {
		return fmt.Errorf("merge when checks pass: %w", forge.ErrUnsupported)
	}
	p, err := f.find(number)
	if err != nil {
		return err
	}
	p.AutoMerge = true
	f.autoMerge[number] = method
	return f.change("automerge")
}

func (f *memForge) Merge(_ context.Context, number int64, head, _ string) error {
	p, err := f.find(number)
	if err != nil {
		return err
	}
	if f.branches[p.Head] != head {
		return forge.ErrMoved
	}
	f.merge(p)
	return f.change("merge")
}

// merge brings the request's files to its base.
func (f *memForge) merge(p *forge.Pull) {
	at := f
	if p.HeadRepo != f.repo() {
		owner, _, _ := strings.Cut(p.HeadRepo, "/")
		at = f.forks[owner]
	}
	tip := f.world.commits[at.branches[p.Head]]
	files := map[string]string{}
	old := f.world.trees[f.world.commits[tip.Parents[0]].Tree]
	for path, file := range f.world.trees[tip.Tree] {
		if string(old[path].Text) != string(file.Text) {
			files[path] = string(file.Text)
		}
	}
	f.commitAs(p.Base, "Ada <ada@example.org>", "merge", files)
	p.State, p.Ended = forge.Merged, *f.now
}

func (f *memForge) Checks(context.Context, string, string) (forge.Checks, error) {
	return forge.Checks{State: f.checkState, Required: f.required, Total: 1}, nil
}

func (f *memForge) Comments(_ context.Context, number int64) ([]forge.Comment, error) {
	return slices.Clone(f.comments[number]), nil
}

func (f *memForge) AddComment(_ context.Context, number int64, text string) (forge.Comment, error) {
	if err := f.refuse("comment"); err != nil {
		return forge.Comment{}, err
	}
	c := forge.Comment{ID: int64(len(f.comments[number]) + 1), Author: f.login, Body: text, Created: *f.now}
	f.comments[number] = append(f.comments[number], c)
	return c, f.change("comment")
}

func (f *memForge) EditComment(context.Context, int64, int64, string) error { return nil }

func (f *memForge) Issues(_ context.Context, title string) ([]forge.Issue, error) {
	var out []forge.Issue
	for _, i := range f.issues {
		if i.Title == title && i.Open {
			out = append(out, *i)
		}
	}
	return out, nil
}

func (f *memForge) OpenIssue(_ context.Context, title, text string, _ []string) (forge.Issue, error) {
	i := &forge.Issue{Number: int64(1000 + len(f.issues)), Title: title, Body: text, Open: true, Author: f.login}
	f.issues = append(f.issues, i)
	return *i, f.change("issue")
}

func (f *memForge) EditIssue(_ context.Context, number int64, _, text *string, open *bool) error {
	for _, i := range f.issues {
		if i.Number == number && text != nil {
			i.Body = *text
		}
		if i.Number == number && open != nil {
			i.Open = *open
		}
	}
	return f.change("edit issue")
}

func (f *memForge) Fork(_ context.Context, owner string) (forge.Forge, error) {
	if owner == "" {
		owner = f.login
	}
	if f.forks[owner] == nil {
		fork := newMemForge(f.now, nil)
		fork.owner, fork.world, fork.upstream = owner, f.world, f
		fork.branches = maps.Clone(f.branches)
		fork.info.Owner = owner
		f.forks[owner] = fork
	}
	return f.forks[owner], nil
}

func (f *memForge) Tip(_ context.Context, branch string) (forge.Commit, error) {
	id, ok := f.branches[branch]
	if !ok {
		return forge.Commit{}, fmt.Errorf("branch %s: %w", branch, forge.ErrNotFound)
	}
	return f.world.commits[id], nil
}

func (f *memForge) File(_ context.Context, commit, path string, _ int64) (forge.File, error) {
	file, ok := f.world.trees[f.world.commits[commit].Tree][path]
	if !ok {
		return file, fmt.Errorf("file %s: %w", path, fs.ErrNotExist)
	}
	return file, nil
}

func (f *memForge) Tree(_ context.Context, n forge.NewCommit) (string, error) {
	tree := maps.Clone(f.world.trees[f.world.commits[n.Parent].Tree])
	for _, file := range n.Files {
		tree[file.Path] = file
	}
	return f.world.tree(tree), nil
}

func (f *memForge) Commit(_ context.Context, n forge.NewCommit, tree string) (forge.Commit, error) {
	c := forge.Commit{Tree: tree, Parents: []string{n.Parent}, Message: n.Message}
	c.AuthorName, c.AuthorEmail, c.CommitterName, c.CommitterAdr = n.Author, n.Email, n.Author, n.Email
	if n.Email == "" && f.info.Signs {
		c.AuthorName, c.AuthorEmail, c.Login, c.Verified = f.login, f.info.Email, f.login, true
		c.CommitterName, c.CommitterAdr = "GitHub", webFlow
	}
	return f.world.commits[f.world.commit(c)], f.root().change("commit")
}

func (f *memForge) Move(_ context.Context, branch, from, to string) error {
	if err := f.refuse("move"); err != nil {
		return err
	}
	if f.branches[branch] != from {
		return fmt.Errorf("move %s: %w", branch, forge.ErrMoved)
	}
	f.branches[branch] = to
	for _, p := range f.root().pulls {
		if p.Head == branch && p.HeadRepo == f.repo() && p.State == forge.Opened {
			p.HeadCommit, p.Updated = to, *f.now
			delete(f.root().conflicts, p.Number)
		}
	}
	return f.root().change("move")
}

func (f *memForge) Remove(_ context.Context, branch, from string) error {
	if err := f.refuse("remove"); err != nil {
		return err
	}
	if f.branches[branch] != from {
		return fmt.Errorf("remove %s: %w", branch, forge.ErrMoved)
	}
	delete(f.branches, branch)
	return f.root().change("remove")
}

// openOnes are the requests of branch that are open.
func (f *memForge) openOnes(branch string) []*forge.Pull {
	var out []*forge.Pull
	for _, p := range f.pulls {
		if p.Head == branch && p.State == forge.Opened {
			out = append(out, p)
		}
	}
	return out
}

// marked counts comments of a kind.
func (f *memForge) marked(number int64, kind string) int {
	n := 0
	for _, c := range f.comments[number] {
		if body.Marked(c.Body) == kind {
			n++
		}
	}
	return n
}

// noTrees hides that a memForge takes commits, so that git is used.
type noTrees struct{ forge.Forge }
