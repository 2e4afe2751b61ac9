package forge

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/githubtest"
	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

// hubClock is a machine's clock that goes on only when somebody sleeps.
type hubClock struct {
	mu    sync.Mutex
	at    time.Time
	slept []time.Duration
}

func hubNewClock() *hubClock { return &hubClock{at: time.Now()} }

func (c *hubClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *hubClock) sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
	c.slept = append(c.slept, d)
	return ctx.Err()
}

// longest is the longest sleep.
func (c *hubClock) longest() (d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.slept {
		d = max(d, s)
	}
	return d
}

// hubAt opens owner/name on a server of GitHub's kind.
func hubAt(t *testing.T, c Config, api, repo string) *hub {
	t.Helper()
	c.Kind, c.API = GitHub, api
	c.Owner, c.Name, _ = strings.Cut(repo, "/")
	if c.Now == nil {
		k := hubNewClock()
		c.Now, c.Sleep = k.now, k.sleep
	}
	f, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return f.(*hub)
}

func hubToken(text string) Config { return Config{Auth: Auth{Token: secret.New(text)}} }

// hubWorld is a server with a repository that bot may push to.
type hubWorld struct {
	s    *githubtest.Server
	repo *githubtest.Repo
	bot  string // token
	hub  *hub
	k    *hubClock
}

func hubNewWorld(t *testing.T) *hubWorld {
	t.Helper()
	w := &hubWorld{s: githubtest.New(t), k: hubNewClock()}
	w.repo = w.s.Repo("me/flake", map[string]string{"pin.nix": "version = \"1\";\n", "dir/a": "a\n", "dir/sub/b": "b\n"})
	w.bot = w.s.User("bot")
	w.repo.Allow("bot", "push")
	w.hub = w.as(t, w.bot)
	return w
}

func (w *hubWorld) as(t *testing.T, text string) *hub {
	c := hubToken(text)
	c.Now, c.Sleep = w.k.now, w.k.sleep
	return hubAt(t, c, w.s.URL, "me/flake")
}

// commit makes a commit of one file on top of main, and a branch at it.
func hubMake(t *testing.T, f Forge, branch, text string) Commit {
	t.Helper()
	ctx := t.Context()
	trees := f.(Trees)
	tip, err := trees.Tip(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	n := NewCommit{Parent: tip.ID, Message: "bump\n\nwith a body", Files: []File{{Path: "pin.nix", Mode: "100644", Text: []byte(text)}}}
	tree, err := trees.Tree(ctx, n)
	if err != nil {
		t.Fatal(err)
	}
	c, err := trees.Commit(ctx, n, tree)
	if err != nil {
		t.Fatal(err)
	}
	if err := trees.Move(ctx, branch, "", c.ID); err != nil {
		t.Fatal(err)
	}
	return c
}
