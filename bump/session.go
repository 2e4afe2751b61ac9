package bump

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/bump/forge"
	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

// session is one run of a bump.
type session struct {
	repo    Repo
	o       Options
	now     time.Time
	remote  remote
	scratch string
	token   string
	secrets []string // never to be shown

	git   *git        // nil until it is needed
	forge forge.Forge // nil for plain git
	info  forge.Info
	base  string // branch
	up    place  // where the base is
	head  place  // where the branch is: up, or a fork
	// headRepo is OWNER/NAME of the repository that the branch is in; "" for
	// plain git.
	headRepo string
	forked   bool
	forkURL  string // https address of the fork; "" where there is none yet
	// wouldFork says that a fork is missing which a dry run does not make.
	wouldFork bool
	board     board
}

func run(ctx context.Context, repo Repo, pins map[string]Pin, o Options) (_ *Result, err error) {
	s, all, err := newSession(repo, pins, o)
	if err != nil {
		return nil, fmt.Errorf("bump %.60s: %w", oneLine(repo.Name), err)
	}
	if s.idle(all) {
		return s.results(all, func(u *unit) (*Result, error) { return s.held(u), nil })
	}
	work, err := newScratch(s.o.WorkDir)
	if err != nil {
		return nil, fmt.Errorf("bump %s: make scratch directory: %w", repo.Name, err)
	}
	s.scratch = work.path
	defer func() { err = errors.Join(err, work.remove()) }()
	if err := s.open(ctx, all); err != nil {
		if res, waits := s.limited(all[0], err); waits {
			return res, nil
		}
		return nil, fmt.Errorf("bump %s: %w", repo.Name, err)
	}
	if err := s.readBoard(ctx); err != nil {
		return nil, fmt.Errorf("bump %s: read dashboard: %w", repo.Name, err)
	}
	res, err := s.results(all, func(u *unit) (*Result, error) { return s.live(ctx, u) })
	if err != nil {
		err = fmt.Errorf("bump %s: %w", repo.Name, err)
	}
	if dashErr := s.syncBoard(ctx); dashErr != nil {
		err = errors.Join(err, fmt.Errorf("bump %s: write dashboard: %w", repo.Name, dashErr))
	}
	return res, err
}

// removeAll removes a tree that check commands may have made unwritable.
func removeAll(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	walk := func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return nil
	}
	return errors.Join(filepath.WalkDir(dir, walk), os.RemoveAll(dir))
}

// newSession checks everything that can be checked without the network.
func newSession(repo Repo, pins map[string]Pin, o Options) (*session, []*unit, error) {
	repo, o = withDefaults(repo, o)
	if err := checkRepo(repo); err != nil {
		return nil, nil, err
	}
	if !slices.Contains([]string{DepthLookup, DepthDiff, DepthFull}, o.Depth) {
		return nil, nil, fmt.Errorf("read dry run: %.40q is not known (known: lookup, diff, full)", o.Depth)
	}
	r, err := parseRemote(repo.URL)
	if err != nil {
		return nil, nil, err
	}
	s := &session{repo: repo, o: o, now: o.Now(), remote: r, base: repo.Base}
	all, err := units(repo, pins, o, s.now)
	return s, all, err
}

// idle reports whether there is nothing to do that needs the network.
func (s *session) idle(all []*unit) bool {
	tended := s.repo.Forge != "git" && (s.repo.Dashboard != "" || s.o.Published != nil)
	return !tended && !slices.ContainsFunc(all, func(u *unit) bool { return u.waits == "" && u.gone == "" })
}

// results lives every unit's life and puts what came of them into one Result.
// One unit's error does not keep another from its life.
func (s *session) results(all []*unit, live func(*unit) (*Result, error)) (*Result, error) {
	var first *Result
	var errs []error
	for _, u := range all {
		res, err := live(u)
		s.board.note(u, res, err)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if first == nil {
			first = res
		} else {
			first.Others = append(first.Others, *res)
		}
	}
	return first, errors.Join(errs...)
}

// newResult is what is known of u before anything was looked at.
func (s *session) newResult(u *unit) *Result {
	res := &Result{Base: s.base, Branch: u.branch, Waiting: u.waiting, Skipped: u.skipped, Action: ActionNone}
	if s.repo.Mode == modePush {
		res.Branch = s.base
	}
	return res
}

// held is the result of a unit that has nothing to offer now.
func (s *session) held(u *unit) *Result {
	res := s.newResult(u)
	res.Action, res.Message = ActionWaits, u.waits
	if u.gone != "" {
		res.Action, res.Message = ActionIgnored, u.gone
	}
	return res
}

// limited makes a result of the forge's wish for fewer requests.
func (s *session) limited(u *unit, err error) (*Result, bool) {
	var limit *forge.LimitError
	if !errors.As(err, &limit) {
		return nil, false
	}
	res := s.newResult(u)
	res.Action, res.Message = ActionWaits, oneLine(limit.Error())
	return res, true
}

// open finds the repository, whoever acts there, and the place for commits.
func (s *session) open(ctx context.Context, all []*unit) error {
	var err error
	if s.token, err = readToken(s.repo, s.o.Env); err != nil {
		return err
	}
	s.secrets = secretsOf(s.repo.Forge, s.remote.user, s.token)
	var head forge.Forge
	if s.repo.Forge != "git" {
		if head, err = s.openForge(ctx); err != nil {
			return err
		}
	}
	s.event("fetch", "fetch "+s.remote.shown)
	if trees, is := s.forge.(forge.Trees); is {
		s.up, s.head = trees, trees
		if s.forked {
			if s.head, is = head.(forge.Trees); !is {
				return fmt.Errorf("open fork %s: %w", s.headRepo, forge.ErrUnsupported)
			}
		}
	} else if err := s.openGit(ctx, head); err != nil {
		return err
	}
	if s.base == "" {
		s.base = s.info.Default
	}
	return s.look(ctx, all...)
}

// openForge asks the forge about the repository and returns the one that the
// branch goes to.
func (s *session) openForge(ctx context.Context) (forge.Forge, error) {
	c, err := s.forgeConfig()
	if err != nil {
		return nil, err
	}
	open := s.o.Open
	if open == nil {
		open = forge.Open
	}
	if s.forge, err = open(ctx, c); err != nil {
		return nil, err
	}
	if s.info, err = s.forge.Info(ctx); err != nil {
		return nil, err
	}
	name := s.info.Owner + "/" + s.info.Name
	s.headRepo = name
	switch {
	case s.info.Archived:
		return nil, fmt.Errorf("open %s: it is archived, so nothing can be offered to it", name)
	case !s.info.Requests:
		return nil, fmt.Errorf("open %s: pull requests are off there (turn them on, or write forge: git for a branch alone)", name)
	case len(s.info.Missing) > 0 && !s.o.DryRun:
		return nil, &forge.AuthError{Doing: "bump " + name, Missing: s.info.Missing, Hint: "give the token what is missing"}
	}
	return s.openFork(ctx, name)
}

func (s *session) openFork(ctx context.Context, name string) (forge.Forge, error) {
	owner := s.repo.Fork
	if owner == "never" || owner == "" {
		if s.info.Push {
			return s.forge, nil
		}
		if owner == "never" && !s.o.DryRun {
			return nil, &forge.AuthError{Doing: "push to " + name, Hint: "fork is never: ask for the right to push, or leave fork out of the config"}
		}
		if owner == "never" {
			return s.forge, nil
		}
	}
	s.forked = true
	if s.o.DryRun {
		// A fork is made where there is none: that is more than a dry run does.
		s.wouldFork = true
		if owner == "" {
			owner = s.info.Login
		}
		s.headRepo = owner + "/" + s.info.Name
		return s.forge, nil
	}
	fork, err := s.forge.Fork(ctx, owner)
	if err != nil {
		return nil, err
	}
	info, err := fork.Info(ctx)
	if err != nil {
		return nil, err
	}
	s.headRepo, s.forkURL = info.Owner+"/"+info.Name, info.Clone
	if s.headRepo == name {
		return nil, fmt.Errorf("fork %s: the fork is the repository itself (leave fork out of the config)", name)
	}
	return fork, nil
}

// forgeConfig tells the forge's package where the repository is.
func (s *session) forgeConfig() (forge.Config, error) {
	c := forge.Config{Kind: s.repo.Forge, API: s.repo.API, Log: s.o.Log, Now: s.o.Now}
	i := strings.LastIndexByte(s.remote.path, '/')
	if s.remote.host == "" || i < 0 {
		return c, fmt.Errorf("read url %s: it does not name OWNER/NAME on a %s (write its https address, or forge: git)", s.remote.shown, s.repo.Forge)
	}
	host := s.remote.host
	scheme := s.remote.scheme
	if scheme == "" {
		scheme = "https"
		// The port of an ssh URL is not that of the web page.
		host, _, _ = strings.Cut(host, ":")
	}
	web := url.URL{Scheme: scheme, Host: host}
	c.Owner, c.Name = s.remote.path[:i], s.remote.path[i+1:]
	if j := strings.LastIndexByte(c.Owner, '/'); j >= 0 && s.repo.Forge != "gitlab" {
		// The forge is not at the root of its host.
		web.Path, c.Owner = "/"+c.Owner[:j], c.Owner[j+1:]
	}
	c.Web = web.String()
	c.Auth = forge.Auth{Token: secret.New(s.token), AppID: s.repo.App.ID, InstallationID: s.repo.App.Installation}
	if s.repo.App.ID != 0 {
		key, err := s.repo.App.Key.Read(s.o.Env)
		if err != nil {
			return c, fmt.Errorf("read app key: %w", err)
		}
		c.Auth.PrivateKey = key
	}
	return c, nil
}

func (s *session) event(kind, message string) {
	if s.o.Event != nil {
		s.o.Event(Event{Kind: kind, Repo: s.repo.Name, Message: message})
	}
}
