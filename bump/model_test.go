package bump

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rocm-nightly/rocm-nightly/bump/body"
	"github.com/rocm-nightly/rocm-nightly/bump/forge"
)

const twoPins = "{\n  gfx1103.version = \"10.2.0a20260101\";\n  gfx1151.version = \"10.2.0a20260101\";\n}\n"

// model is a repository whose people do what they like, at any time, while a
// bump is run that may die after any change to the forge.
type model struct {
	f       *memForge
	now     time.Time
	repo    Repo
	nights  map[string]int             // of each target, in days
	human   map[string]string          // branch -> a person's commit at its tip
	refused map[string]map[string]bool // branch -> pages of requests that people closed, and left closed
	scratch string
	opened  int
	settled bool // the last run ended, and nothing has happened since
}

func version(day int) string {
	return "10.2.0a" + time.Date(2026, 1, 1+day, 0, 0, 0, 0, time.UTC).Format("20060102")
}

func newModel(t *rapid.T, scratch string) *model {
	m := &model{now: time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC), nights: map[string]int{"gfx1103": 1, "gfx1151": 1}, human: map[string]string{}, refused: map[string]map[string]bool{}, scratch: scratch}
	m.f = newMemForge(&m.now, map[string]string{"pin.nix": twoPins, "README": "0"})
	m.f.info.Push = rapid.Bool().Draw(t, "push right")
	m.repo = Repo{Name: "flake", Forge: "gitea", URL: "https://forge.example/me/flake", Group: rapid.SampledFrom([]string{"lockstep", "independent"}).Draw(t, "group")}
	for _, target := range []string{"gfx1103", "gfx1151"} {
		m.repo.Files = append(m.repo.Files, File{Path: "pin.nix", Target: target, Set: map[string]string{target + ".version": "{{.Version}}"}, Fetches: fetches})
	}
	return m
}

func (m *model) pins() map[string]Pin {
	pins := map[string]Pin{}
	for target, day := range m.nights {
		pin := night(version(day))["gfx1151"]
		pin.Target = target
		pins[target] = pin
	}
	return pins
}

func (m *model) units() map[string][]string {
	if m.repo.Group == "independent" {
		return map[string][]string{branch + "-gfx1103": {"gfx1103"}, branch + "-gfx1151": {"gfx1151"}}
	}
	return map[string][]string{branch: {"gfx1103", "gfx1151"}}
}

// head is where the branches are.
func (m *model) head() *memForge {
	if m.f.info.Push {
		return m.f
	}
	if fork := m.f.forks["bot"]; fork != nil {
		return fork
	}
	return m.f
}

func (m *model) run(t *rapid.T, kill int) {
	m.f.killAfter, m.f.changes = kill, nil
	pulls := len(m.f.pulls)
	res, err := Run(context.Background(), m.repo, m.pins(), Options{
		WorkDir: m.scratch, Env: os.Getenv, Now: func() time.Time { return m.now },
		Open: func(context.Context, forge.Config) (forge.Forge, error) { return m.f, nil },
	})
	m.f.killAfter = 0
	for _, p := range m.f.pulls[pulls:] {
		m.opened++
		for page := range m.refused[p.Head] {
			m.notRefused(t, p, page)
		}
	}
	var human *HumanCommitsError
	if err != nil && !errors.Is(err, errKilled) && !errors.As(err, &human) {
		t.Fatalf("run: %v", err)
	}
	m.now = m.now.Add(3 * time.Hour)
	if !errors.Is(err, errKilled) {
		if m.settled && len(m.f.changes) != 0 {
			t.Fatalf("nothing has happened since, and yet: %v", m.f.changes)
		}
		m.settled = true
		m.right(t, res)
	} else {
		m.settled = false
	}
}

// notRefused holds a new request against one that a person closed.
func (m *model) notRefused(t *rapid.T, p *forge.Pull, page string) {
	for _, old := range m.f.pulls {
		if old.Page != page {
			continue
		}
		newerOnes := 0
		was := body.Versions(old.Body)
		for target, v := range body.Versions(p.Body) {
			if newer(v, was[target]) {
				newerOnes++
			}
		}
		if newerOnes == 0 {
			t.Fatalf("request %d brings again what a person closed: %s", p.Number, page)
		}
	}
}

// right holds the end of a run that was not killed against what it should be.
func (m *model) right(t *rapid.T, res *Result) {
	for b, targets := range m.units() {
		open := m.f.openOnes(b)
		if len(open) == 0 || m.human[b] != "" || !m.lockstep() {
			continue
		}
		head := m.head()
		want := map[string]string{"README": "*"}
		for _, target := range targets {
			want[target] = version(m.nights[target])
		}
		text := head.text(b, "pin.nix")
		for _, target := range targets {
			if !strings.Contains(text, fmt.Sprintf("%s.version = %q", target, want[target])) {
				t.Fatalf("branch %s lacks %s of %s (%+v):\n%s", b, want[target], target, res, text)
			}
		}
		tip := head.world.commits[head.branches[b]]
		if parent := head.world.commits[tip.Parents[0]]; hasTrailer(parent.Message) {
			t.Fatalf("branch %s holds more than one commit of ours", b)
		}
		for target, v := range body.Versions(open[0].Body) {
			if v != version(m.nights[target]) {
				t.Fatalf("the body speaks of %s %s", target, v)
			}
		}
	}
}

// lockstep reports whether nothing waits for a late target.
func (m *model) lockstep() bool {
	return m.repo.Group == "independent" || m.nights["gfx1103"] == m.nights["gfx1151"]
}

// always holds after everything.
func (m *model) always(t *rapid.T) {
	for b := range m.units() {
		if n := len(m.f.openOnes(b)); n > 1 {
			t.Fatalf("%d requests of %s are open", n, b)
		}
		if id := m.human[b]; id != "" && m.head().branches[b] != id {
			t.Fatalf("a person's commit on %s is gone", b)
		}
	}
}

// someOpen picks a branch and its open request.
func (m *model) someOpen(t *rapid.T) (string, *forge.Pull) {
	for _, b := range slices.Sorted(keysOf(m.units())) {
		if open := m.f.openOnes(b); len(open) > 0 && rapid.Bool().Draw(t, "this one") {
			return b, open[0]
		}
	}
	t.Skip("none is open")
	return "", nil
}

func keysOf(m map[string][]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// person says that somebody did something.
func (m *model) person(do func(t *rapid.T)) func(t *rapid.T) {
	return func(t *rapid.T) {
		do(t)
		m.settled = false
		m.now = m.now.Add(3 * time.Hour)
	}
}

func (m *model) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"":    m.always,
		"run": func(t *rapid.T) { m.run(t, 0) },
		"run twice": func(t *rapid.T) {
			m.run(t, 0)
			m.run(t, 0)
		},
		"killed": func(t *rapid.T) { m.run(t, rapid.IntRange(1, 9).Draw(t, "after")) },
		"night": m.person(func(*rapid.T) {
			day := max(m.nights["gfx1103"], m.nights["gfx1151"]) + 1
			m.nights["gfx1103"], m.nights["gfx1151"] = day, day
		}),
		"one late": m.person(func(*rapid.T) { m.nights["gfx1151"]++ }),
		"commit": m.person(func(t *rapid.T) {
			b, _ := m.someOpen(t)
			if m.head().branches[b] == "" {
				t.Skip("no branch")
			}
			m.human[b] = m.head().commitAs(b, "Eve <eve@example.org>", "fix", map[string]string{"fix": fmt.Sprint(m.now)})
		}),
		"close": m.person(func(t *rapid.T) {
			b, p := m.someOpen(t)
			p.State, p.Ended = forge.Closed, m.now
			if m.refused[b] == nil {
				m.refused[b] = map[string]bool{}
			}
			m.refused[b][p.Page] = true
		}),
		"reopen": m.person(func(t *rapid.T) {
			for _, p := range slices.Backward(m.f.pulls) {
				if p.State == forge.Closed && len(m.f.openOnes(p.Head)) == 0 {
					p.State, p.Ended = forge.Opened, time.Time{}
					delete(m.refused[p.Head], p.Page)
					return
				}
			}
			t.Skip("none is closed")
		}),
		"merge": m.person(func(t *rapid.T) {
			b, p := m.someOpen(t)
			if m.f.conflicts[p.Number] || m.head().branches[b] == "" || m.human[b] != "" {
				t.Skip("it cannot be merged")
			}
			m.f.merge(p)
		}),
		"by hand": m.person(func(*rapid.T) {
			text := m.f.text("main", "pin.nix")
			for target, day := range m.nights {
				at := strings.Index(text, target+".version = \"") + len(target+".version = \"")
				text = text[:at] + version(day) + text[at+len(version(day)):]
			}
			m.f.commitAs("main", "Ada <ada@example.org>", "by hand", map[string]string{"pin.nix": text})
		}),
		"elsewhere": m.person(func(*rapid.T) {
			m.f.commitAs("main", "Ada <ada@example.org>", "elsewhere", map[string]string{"README": fmt.Sprint(m.now)})
		}),
		"conflict": m.person(func(*rapid.T) {
			m.f.commitAs("main", "Ada <ada@example.org>", "here", map[string]string{"pin.nix": fmt.Sprintf("# %s\n", m.now) + m.f.text("main", "pin.nix")})
			for b := range m.units() {
				for _, p := range m.f.openOnes(b) {
					m.f.conflicts[p.Number] = true
				}
			}
		}),
		"delete branch": m.person(func(t *rapid.T) {
			b, _ := m.someOpen(t)
			delete(m.head().branches, b)
			delete(m.human, b)
		}),
	}
}

// TestAnyHistory: whatever people do, and wherever a run is killed, there is at
// most one request of ours for a branch, its commit is one and says what it
// shall, nobody's commit is lost, and what was closed stays closed.
func TestAnyHistory(t *testing.T) {
	scratch := t.TempDir()
	var opened int
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t, scratch)
		t.Repeat(m.actions())
		opened += m.opened
	})
	if opened == 0 {
		t.Error("no history had a request opened")
	}
}
