package store

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// model is what a slot should be, in memory.
type model struct {
	gens    []string // oldest first
	active  string
	history []string // only what is still installed
	left    []string // versions newer than the active one, or equal to it
	byRun   bool     // a run has made the last switch, and nobody by hand
}

func (m *model) install(version string) string {
	name, next := version, 1
	for r := 1; r < 100; r++ {
		full := version
		if r > 1 {
			full = fmt.Sprintf("%s-r%d", version, r)
		}
		if slices.Contains(m.gens, full) {
			next = r + 1
		}
	}
	if next > 1 {
		name = fmt.Sprintf("%s-r%d", version, next)
	}
	m.gens = append(m.gens, name)
	return name
}

func (m *model) activate(name string) {
	m.left = slices.DeleteFunc(m.left, func(l string) bool { return l <= versionIn(name) })
	m.byRun = m.byRun || m.active != name
	m.point(name)
}

func (m *model) point(name string) {
	if m.active != name {
		m.active = name
		m.history = append(m.history, name)
	}
}

// leave is what Rollback and Use do. The versions of this test have one
// length, so that their order is that of the bytes.
func (m *model) leave(to string) {
	from := versionIn(m.active)
	if m.active == to {
		from = ""
	}
	m.left = slices.DeleteFunc(m.left, func(l string) bool { return l <= versionIn(to) })
	if from >= versionIn(to) && !slices.Contains(m.left, from) {
		m.left = append(m.left, from)
	}
	m.byRun = m.byRun && m.active == to
	m.point(to)
}

func (m *model) previous() string {
	for _, h := range slices.Backward(m.history) {
		if h != m.active {
			return h
		}
	}
	return ""
}

func (m *model) rollback() (to string, ok bool) {
	if to = m.previous(); to == "" {
		for _, g := range m.gens {
			if g != m.active {
				to = g
			}
		}
	}
	return to, to != ""
}

func (m *model) use(version string) (to string) {
	for _, g := range m.gens {
		if versionIn(g) != version {
			continue
		}
		_, r := versionOf(g)
		if _, best := versionOf(to); to == "" || r > best {
			to = g
		}
	}
	return to
}

func (m *model) prune(keep int) {
	previous := m.previous()
	old := slices.Clone(m.gens[:max(0, len(m.gens)-keep)])
	waits := m.waits()
	for _, g := range old {
		if g != m.active && g != previous && g != waits {
			m.drop(g)
		}
	}
}

// waits is what the next run would activate, which is nothing that a run has
// replaced; where nothing is active the newest stays in any case.
func (m *model) waits() string {
	best := m.active
	for _, g := range m.gens {
		if m.byRun && slices.Contains(m.history, g) {
			continue
		}
		if !m.skip(versionIn(g)) && (best == "" || m.newer(g, best)) {
			best = g
		}
	}
	if best == "" {
		return m.gens[len(m.gens)-1]
	}
	return best
}

// newer orders the names of this test, whose revisions have one digit.
func (m *model) newer(a, b string) bool {
	va, ra := versionOf(a)
	vb, rb := versionOf(b)
	return va > vb || va == vb && ra > rb
}

func (m *model) drop(name string) {
	is := func(s string) bool { return s == name }
	m.gens = slices.DeleteFunc(m.gens, is)
	m.history = slices.DeleteFunc(m.history, is)
}

func (m *model) skip(version string) bool {
	return slices.ContainsFunc(m.left, func(l string) bool { return version <= l })
}

func TestSlotFollowsTheModel(t *testing.T) {
	t.Parallel()
	root := scratch(t)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		s, err := Open(fmt.Sprintf("%s/%d", root, n))
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(s.Root())
		sl, m := s.Slot("nightly", "gfx1151"), &model{}
		version := rapid.Custom(func(t *rapid.T) string { return night(rapid.IntRange(1, 4).Draw(t, "night")) })
		t.Repeat(map[string]func(*rapid.T){
			"commit":  func(t *rapid.T) { commitSmall(t, sl, m, version.Draw(t, "version")) },
			"install": func(t *rapid.T) { activateSmall(t, sl, m, commitSmall(t, sl, m, version.Draw(t, "version"))) },
			"activate": func(t *rapid.T) {
				if len(m.gens) > 0 {
					activateSmall(t, sl, m, rapid.SampledFrom(m.gens).Draw(t, "generation"))
				}
			},
			"rollback": func(t *rapid.T) {
				if len(m.gens) == 0 {
					return
				}
				_, to, err := sl.Rollback(t.Context())
				want, ok := m.rollback()
				if !ok {
					if !errors.Is(err, ErrNoOther) {
						t.Fatalf("%v, %v", to, err)
					}
					return
				}
				if err != nil || to.Name != want {
					t.Fatalf("rolled back to %+v, %v, want %s", to, err, want)
				}
				m.leave(want)
			},
			"use": func(t *rapid.T) {
				v := version.Draw(t, "version")
				_, to, err := sl.Use(t.Context(), v)
				want := m.use(v)
				var ge *GenerationError
				if want == "" {
					if !errors.As(err, &ge) {
						t.Fatalf("%v, %v", to, err)
					}
					return
				}
				if err != nil || to.Name != want {
					t.Fatalf("use %s: %+v, %v, want %s", v, to, err, want)
				}
				m.leave(want)
			},
			"prune": func(t *rapid.T) {
				if len(m.gens) == 0 {
					return
				}
				keep := rapid.IntRange(0, 4).Draw(t, "keep")
				if _, err := sl.Prune(t.Context(), Keep{Last: keep}); err != nil {
					t.Fatal(err)
				}
				m.prune(keep)
			},
			"remove": func(t *rapid.T) {
				if len(m.gens) == 0 {
					return
				}
				name := rapid.SampledFrom(m.gens).Draw(t, "generation")
				full := name
				if name == versionIn(name) {
					full += "-r1"
				}
				err := sl.Remove(t.Context(), full)
				if name == m.active || len(m.gens) == 1 {
					if !errors.Is(err, ErrActive) {
						t.Fatal(err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				m.drop(name)
			},
			"": func(t *rapid.T) { compare(t, sl, m) },
		})
	})
}

func commitSmall(t *rapid.T, sl *Slot, m *model, version string) string {
	st, err := sl.Stage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(st.Dir()+"/opt", 0o555); err != nil {
		t.Fatal(err)
	}
	g, err := st.Commit(version)
	want := m.install(version)
	if err != nil || g.Name != want {
		t.Fatalf("committed %+v, %v, want %s", g, err, want)
	}
	return want
}

func activateSmall(t *rapid.T, sl *Slot, m *model, name string) {
	if err := sl.Activate(t.Context(), name, "update"); err != nil {
		t.Fatal(err)
	}
	m.activate(name)
}

// compare is the invariant.
func compare(t *rapid.T, sl *Slot, m *model) {
	gens, err := sl.Generations()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range gens {
		got = append(got, g.Name)
		if g.Active != (g.Name == m.active) {
			t.Fatalf("%+v, active should be %s", g, m.active)
		}
	}
	if !slices.Equal(got, m.gens) {
		t.Fatalf("generations %q, want %q", got, m.gens)
	}
	g, err := sl.Current()
	if err != nil || (g == nil) != (m.active == "") || g != nil && g.Name != m.active {
		t.Fatalf("current %+v, %v, want %s", g, err, m.active)
	}
	st, err := sl.State()
	if err != nil {
		t.Fatal(err)
	}
	for n := range 6 {
		if got := st.skips(night(n)); got != m.skip(night(n)) {
			t.Fatalf("skip %s: %v; left %q", night(n), got, m.left)
		}
	}
}
