package audit

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFollowAgreesWithTheKernel makes trees of links at random and asks both.
func TestFollowAgreesWithTheKernel(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		dir := real(t, t.TempDir())
		names := []string{"a", "b", "c", "d"}
		parts := append([]string{"..", ".", ".."}, names...)
		for range 12 {
			at := filepath.Join(dir, names[rnd.IntN(4)], names[rnd.IntN(4)])
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				continue // a link or a file is in the way
			}
			switch rnd.IntN(4) {
			case 0:
				_ = os.Mkdir(at, 0o755)
			case 1:
				_ = os.WriteFile(at, []byte("x"), 0o644)
			default:
				var to []string
				for range 1 + rnd.IntN(4) {
					to = append(to, parts[rnd.IntN(len(parts))])
				}
				target := strings.Join(to, "/")
				if rnd.IntN(6) == 0 {
					target = dir + "/" + target
				}
				_ = os.Symlink(target, at) // where something is, it stays
			}
		}
		compareWithKernel(t, seed, dir)
	}
}

func compareWithKernel(t *testing.T, seed uint64, dir string) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	tr := newTree(root, dir, nil)
	if err := tr.read(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	for _, e := range tr.all {
		p := tr.follow(".", e.path)
		name := filepath.Join(dir, e.path)
		_, err := os.Stat(name)
		where, _ := filepath.EvalSymlinks(name)
		inside := where == dir || strings.HasPrefix(where, dir+"/")
		what := fmt.Sprintf("seed %d: %s -> %s: ours %q outside %q, kernel %q %v", seed, e.path, e.link, p.path, p.outside, where, err)
		switch {
		case p.outside != "":
			// Leaving and coming back by the root's own name counts as outside.
		case p.found() != (err == nil && inside):
			t.Error(what)
		case p.found() && filepath.Join(dir, p.path) != where:
			t.Error(what)
		}
		if err == nil && !inside && p.outside == "" {
			t.Error(what)
		}
	}
}

func TestATreeOfLinksIsReadInBoundedTime(t *testing.T) {
	f := newFixture(t)
	// Each link leads through the one before it twice: 2^60 steps, if all were
	// taken.
	f.link(rocm+"share/l0", ".")
	for i := 1; i <= 60; i++ {
		f.link(fmt.Sprintf("%sshare/l%d", rocm, i), fmt.Sprintf("l%d/l%d", i-1, i-1))
	}
	r := f.audit(f.options())
	if r.Counts.Fatal != 0 || r.Counts.Required != 0 || r.Counts.Rules[RuleLink] == 0 {
		t.Errorf("%+v", r.Counts)
	}
}
