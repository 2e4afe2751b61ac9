package githubtest

import (
	"sort"
	"strings"
	"time"
)

// Repo is a repository. Its methods are what people do.
type Repo struct {
	s           *Server
	id          int64
	owner       *user
	name        string
	net         *network
	refs        map[string]string // commits, by branch
	private     bool
	archived    bool
	noIssues    bool
	autoMerge   bool
	of          *Repo             // whose fork it is
	readyAt     int               // how many requests from now it is there
	permissions map[string]string // pull, push or admin, by login
	items       []*item
	statuses    map[string][]check // by commit
	required    map[string][]string
	rules       map[string][]string // required checks, as rulesets have them
	protected   map[string]string   // why pushes are refused, by branch
	labels      map[string]int64
}

// check is a status or a run of a check.
type check struct{ name, state, conclusion string }

// item is an issue or a pull request.
type item struct {
	id                      int64
	number                  int
	title, body             string
	open                    bool
	author                  *user
	labels, assignees       []string
	comments                []*comment
	created, updated, ended time.Time
	pull                    *pull
}

type comment struct {
	id      int64
	author  *user
	body    string
	created time.Time
}

type pull struct {
	base, head  string
	from        *Repo // of the head
	sha         string
	draft       bool
	merged      *user
	commit      string // of the merge
	auto        string // how it merges itself; "" if it does not
	reviewers   []string
	reviewed    []string
	maintainers bool
}

// Repo adds a repository "owner/name" with a branch main that holds files, all
// of mode 100644. The owner is made if need be, and may do everything.
func (s *Server) Repo(fullName string, files map[string]string) *Repo {
	s.mu.Lock()
	defer s.mu.Unlock()
	owner, name, _ := strings.Cut(fullName, "/")
	r := s.add(s.user(owner, "User"), name, s.network())
	if files != nil {
		r.push("main", r.owner, "first", files)
	}
	return r
}

func (s *Server) add(owner *user, name string, n *network) *Repo {
	r := &Repo{
		refs: map[string]string{}, s: s, id: s.id(), owner: owner, name: name, net: n, permissions: map[string]string{strings.ToLower(owner.login): "admin"},
		statuses: map[string][]check{}, required: map[string][]string{}, rules: map[string][]string{}, protected: map[string]string{}, labels: map[string]int64{},
	}
	s.repos[strings.ToLower(r.full())] = r
	return r
}

// Find returns the repository "owner/name", nil if there is none.
func (s *Server) Find(fullName string) *Repo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.repos[strings.ToLower(fullName)]
}

func (r *Repo) full() string { return r.owner.login + "/" + r.name }

func (r *Repo) ready() bool {
	if r.readyAt > 0 {
		r.readyAt--
		return false
	}
	return true
}

var ranks = map[string]int{"pull": 1, "push": 2, "admin": 3}

// may reports whether who has a permission. Everyone may read what is public.
func (r *Repo) may(who *actor, permission string) bool {
	if who == nil {
		return false
	}
	if who.bot {
		return permission == "pull" || who.perms["contents"] == "write"
	}
	if who.scopes != nil && permission != "pull" && !has(who.scopes, "repo") && (r.private || !has(who.scopes, "public_repo")) {
		return false
	}
	rank := ranks[r.permissions[strings.ToLower(who.user.login)]]
	if !r.private {
		rank = max(rank, ranks["pull"])
	}
	return rank >= ranks[permission]
}

func has(list []string, one string) bool {
	for _, s := range list {
		if strings.EqualFold(s, one) {
			return true
		}
	}
	return false
}

// Allow gives login a permission: pull, push or admin.
func (r *Repo) Allow(login, permission string) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.user(login, "User")
	r.permissions[strings.ToLower(login)] = permission
}

// Set changes what kind of repository it is.
func (r *Repo) Set(private, archived, autoMerge bool) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.private, r.archived, r.autoMerge = private, archived, autoMerge
}

// DisableIssues turns issues off.
func (r *Repo) DisableIssues() {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.noIssues = true
}

// Protect has every change of a branch by the API refused, with a reason as
// GitHub words it; "" lifts that.
func (r *Repo) Protect(branch, reason string) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.protected[branch] = reason
}

// Require sets the checks that a branch requires, by its protection and by
// rulesets.
func (r *Repo) Require(branch string, protection, rules []string) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.required[branch], r.rules[branch] = protection, rules
}

// Status sets a commit status: state is pending, success, failure or error.
func (r *Repo) Status(commit, name, state string) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.statuses[commit] = append(r.statuses[commit], check{name: name, state: state})
}

// Check sets a check run; conclusion is "" while it runs.
func (r *Repo) Check(commit, name, conclusion string) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	state := "completed"
	if conclusion == "" {
		state, conclusion = "in_progress", "-"
	}
	r.statuses[commit] = append(r.statuses[commit], check{name, state, conclusion})
}

func (r *Repo) tip(branch string) string { return r.refs[branch] }

// set moves a branch and what hangs on it; "" deletes it.
func (r *Repo) set(branch, commit string) {
	if commit == "" {
		delete(r.refs, branch)
	} else {
		r.refs[branch] = commit
	}
	for _, base := range r.s.repos {
		for _, i := range base.items {
			if i.pull == nil || !i.open || i.pull.from != r || i.pull.head != branch {
				continue
			}
			if commit == "" {
				i.close()
			} else {
				i.pull.sha, i.updated = commit, time.Now()
			}
		}
	}
}

func (i *item) close() {
	i.open, i.ended, i.updated = false, time.Now(), time.Now()
	if i.pull != nil {
		i.pull.auto = ""
	}
}

// Tip returns the commit that a branch is at, "" if there is none.
func (r *Repo) Tip(branch string) string {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return r.tip(branch)
}

// Branches lists the branches.
func (r *Repo) Branches() []string {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	var all []string
	for branch := range r.refs {
		all = append(all, branch)
	}
	sort.Strings(all)
	return all
}

// Read returns a file of a branch or commit, "" if there is none.
func (r *Repo) Read(at, path string) string {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if tip := r.tip(at); tip != "" {
		at = tip
	}
	out, err := r.net.run(nil, nil, "cat-file", "blob", at+":"+path)
	if err != nil {
		return ""
	}
	return out
}

// Log returns the subjects of a branch's commits, the newest first.
func (r *Repo) Log(branch string) []string {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return strings.Split(r.net.line("log", "--format=%s", r.tip(branch)), "\n")
}

// Push commits files on top of a branch, as login, and returns the commit; a new
// branch begins at main. A text that begins with "symlink:" makes a symlink.
func (r *Repo) Push(branch, login, message string, files map[string]string) string {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return r.push(branch, r.s.user(login, "User"), message, files)
}

func (r *Repo) push(branch string, who *user, message string, files map[string]string) string {
	parent := r.tip(branch)
	if parent == "" {
		parent = r.tip("main")
	}
	parents := []string{}
	if parent != "" {
		parents = append(parents, parent)
	}
	var changes []change
	for path, text := range files {
		mode := "100644"
		if target, ok := strings.CutPrefix(text, "symlink:"); ok {
			mode, text = "120000", target
		}
		id, err := r.net.blob([]byte(text))
		if err != nil {
			r.s.t.Errorf("githubtest: %v", err)
		}
		changes = append(changes, change{path, mode, id})
	}
	tree, err := r.net.tree(parent, changes)
	if err != nil {
		r.s.t.Errorf("githubtest: %v", err)
	}
	commit, err := r.net.commit(tree, parents, message, who.signature(), who.signature())
	if err != nil {
		r.s.t.Errorf("githubtest: %v", err)
	}
	r.set(branch, commit)
	return commit
}

// Branch makes a branch at a commit.
func (r *Repo) Branch(name, commit string) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.set(name, commit)
}

// Delete deletes a branch; pull requests from it are closed.
func (r *Repo) Delete(branch string) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.set(branch, "")
}
