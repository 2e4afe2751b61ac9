package store

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// snapshooter copies a store at one of the instants before and after the calls
// that make something durable: what a kill or a power cut leaves then, with all
// that came since the last of those calls or without it.
type snapshooter struct {
	from, to string
	at, n    int
	taken    bool
	err      error
}

func (p *snapshooter) tick() {
	if p.n++; p.n != p.at {
		return
	}
	out, err := exec.Command("cp", "-a", p.from, p.to).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	p.taken, p.err = err == nil, err
}

// around is real, watched.
func (p *snapshooter) around(real disk) disk {
	return disk{
		replace: func(path string, data []byte) error {
			p.tick()
			defer p.tick()
			return real.replace(path, data)
		},
		syncFS: func(path string) error {
			p.tick()
			defer p.tick()
			return real.syncFS(path)
		},
		syncDir: func(path string) error {
			p.tick()
			defer p.tick()
			return real.syncDir(path)
		},
	}
}

// crashing is a slot that crashes, and what it should be.
type crashing struct {
	root  string
	n     int // stores that there were
	sl    *Slot
	m     *model
	holds string // the generation that is held
}

func (c *crashing) open(t *rapid.T) {
	s, err := Open(fmt.Sprintf("%s/%d", c.root, c.n))
	if err != nil {
		t.Fatal(err)
	}
	c.sl = s.Slot("nightly", "gfx1151")
}

// operations do something to the slot and to the model.
func (c *crashing) operations() map[string]func(*rapid.T) {
	night := func(t *rapid.T) string { return night(rapid.IntRange(1, 4).Draw(t, "night")) }
	return map[string]func(*rapid.T){
		"commit":  func(t *rapid.T) { commitSmall(t, c.sl, c.m, night(t)) },
		"install": func(t *rapid.T) { activateSmall(t, c.sl, c.m, commitSmall(t, c.sl, c.m, night(t))) },
		"rollback": func(t *rapid.T) {
			if to, ok := c.m.rollback(); ok {
				if _, got, err := c.sl.Rollback(t.Context()); err != nil || got.Name != to {
					t.Fatalf("rolled back to %+v, %v, want %s", got, err, to)
				}
				c.m.leave(to)
			}
		},
		"use": func(t *rapid.T) {
			version := night(t)
			if to := c.m.use(version); to != "" {
				if _, got, err := c.sl.Use(t.Context(), version); err != nil || got.Name != to {
					t.Fatalf("use %s: %+v, %v, want %s", version, got, err, to)
				}
				c.m.leave(to)
			}
		},
		"hold": func(t *rapid.T) {
			if c.m.active != "" {
				if err := c.sl.Hold(t.Context(), time.Time{}, "a reason"); err != nil {
					t.Fatal(err)
				}
				if c.holds == "" { // else it goes on
					c.holds = c.m.active
				}
			}
		},
		"unhold": func(t *rapid.T) {
			if len(c.m.gens) > 0 {
				if err := c.sl.Unhold(t.Context()); err != nil {
					t.Fatal(err)
				}
				c.holds, c.m.left = "", nil
			}
		},
		"remove": func(t *rapid.T) {
			if len(c.m.gens) == 0 {
				return
			}
			name := rapid.SampledFrom(c.m.gens).Draw(t, "generation")
			_, revision := versionOf(name)
			err := c.sl.Remove(t.Context(), fmt.Sprintf("%s-r%d", versionIn(name), revision))
			if name == c.m.active || name == c.holds || len(c.m.gens) == 1 {
				if err == nil {
					t.Fatalf("%s was removed of %q: %s is active, %s is held", name, c.m.gens, c.m.active, c.holds)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			c.m.drop(name)
		},
	}
}

// crash does something, at an instant of which everything ends.
func (c *crashing) crash(t *rapid.T) {
	operations := c.operations()
	do := rapid.SampledFrom(slices.Sorted(maps.Keys(operations))).Draw(t, "operation")
	p := &snapshooter{from: c.sl.store.root, to: fmt.Sprintf("%s/%d", c.root, c.n+1), at: rapid.IntRange(1, 16).Draw(t, "instant")}
	before := *c.m
	before.gens = slices.Clone(c.m.gens) // drop works in place
	c.sl.store.disk = p.around(realDisk())
	operations[do](t)
	c.sl.store.disk = realDisk()
	if p.err != nil {
		t.Fatal(p.err)
	}
	if !p.taken {
		return // it was done before that
	}
	after := *c.m
	if err := os.RemoveAll(p.from); err != nil {
		t.Fatal(err)
	}
	c.n++
	c.open(t)
	c.between(t, do, before, after)
}

// between holds what the crash left against before and after, has the next run
// clean it, and goes on from it.
func (c *crashing) between(t *rapid.T, did string, before, after model) {
	gens, err := c.sl.Generations()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	active := ""
	for _, g := range gens {
		got = append(got, g.Name)
		if g.Active {
			active = g.Name
		}
	}
	old, made := slices.Equal(got, before.gens) && active == before.active, slices.Equal(got, after.gens)
	if !old && (!made || active != before.active && active != after.active) {
		t.Fatalf("a crash in %s left %q with %q active; before: %q, %q, after: %q, %q", did, got, active, before.gens, before.active, after.gens, after.active)
	}
	if len(got) > 0 || active != "" {
		c.clean(t)
	}
	st, err := c.sl.State()
	if err != nil {
		t.Fatal(err)
	}
	m := &model{gens: got, active: active, left: st.Left}
	for _, a := range st.History {
		if !a.Gone {
			m.history = append(m.history, a.Generation)
		}
	}
	c.m, c.holds = m, ""
	if st.Hold != nil {
		c.holds = st.Hold.Generation
	}
}

// clean is what the next run does first.
func (c *crashing) clean(t *rapid.T) {
	st, err := c.sl.Stage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Abort(); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(c.sl.Dir())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if strings.HasPrefix(e.Name(), ".") {
			t.Fatalf("after the next run there is %s", e.Name())
		}
	}
}

// TestTheModelHoldsThroughCrashes: whatever was done before, and wherever it
// ended, the slot is what it was before or after, and all goes on from there.
func TestTheModelHoldsThroughCrashes(t *testing.T) {
	t.Parallel()
	root := scratch(t)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n += 1000
		c := &crashing{root: root, n: n, m: &model{}}
		c.open(t)
		defer func() { os.RemoveAll(c.sl.store.root) }()
		operations := c.operations()
		operations["crash"] = c.crash
		operations[""] = func(t *rapid.T) { compare(t, c.sl, c.m) }
		t.Repeat(operations)
	})
}
