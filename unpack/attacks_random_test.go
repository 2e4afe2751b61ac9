package unpack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Whatever links an archive has, none that comes out leads out of the tree, and
// neither the outcome nor the tree depends on the order of the entries.
func TestRandomLinks(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 2026))
	y := newYard(t)
	before := y.outside(t)
	count := map[string]int{}
	for i := range 60 {
		entries := randomEntries(r)
		one := y.unpack(t, fmt.Sprintf("root-a%d", i), entries)
		slices.Reverse(entries)
		two := y.unpack(t, fmt.Sprintf("root-b%d", i), entries)
		r.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
		three := y.unpack(t, fmt.Sprintf("root-c%d", i), entries)
		if one != two || one != three {
			t.Errorf("archive %d is, by order,\n%s\n%s\n%s", i, one, two, three)
		}
		count[strings.SplitN(one, ":", 2)[0]]++
	}
	if after := y.outside(t); after != before {
		t.Errorf("outside the roots there was\n%s\nand is\n%s", before, after)
	}
	if count["refused"] < 9 || count["taken"] < 9 {
		t.Errorf("the archives are of one kind: %v", count)
	}
}

// outside is what look says, but for the directory that the roots are made in,
// whose times they change.
func (y *yard) outside(t *testing.T) string {
	t.Helper()
	return (&yard{dir: y.beside}).look(t)
}

// unpack returns what comes of an archive, and removes it.
func (y *yard) unpack(t *testing.T, name string, entries []string) string {
	t.Helper()
	root, dir := y.root(t, name)
	defer os.RemoveAll(dir)
	defer root.Close()
	res, err := Tree(context.Background(), bytes.NewReader(stored(t, tarball(entries...))), root, Options{Writers: 1})
	if err != nil {
		if !errors.Is(err, ErrRefused) {
			t.Errorf("error %v", err)
		}
		return "refused: an entry"
	}
	checkLinks(t, res, dir)
	return fmt.Sprintf("taken: %s %v", describe(t, dir), res.Dropped)
}

// randomEntries are some files and directories, and links between them.
func randomEntries(r *rand.Rand) []string {
	words := []string{"a", "b", "c", "d"}
	path := func(n int, more ...string) string {
		var parts []string
		for range 1 + r.IntN(n) {
			all := append(slices.Clone(words), more...)
			parts = append(parts, all[r.IntN(len(all))])
		}
		return strings.Join(parts, "/")
	}
	used := map[string]bool{}
	var entries []string
	for range 3 + r.IntN(6) {
		name := path(3)
		if used[name] {
			continue
		}
		used[name] = true
		switch r.IntN(10) {
		case 0:
			entries = append(entries, aDir(name+"/"))
		case 1, 2:
			entries = append(entries, aFile(name, "x"))
		case 3:
			entries = append(entries, aHard(name, path(3)))
		case 4:
			entries = append(entries, aSym(name, "/"+filepath.Join("build", path(4))))
		default:
			up := strings.Repeat("../", r.IntN(1+strings.Count(name, "/")))
			entries = append(entries, aSym(name, up+path(4, "..", ".", "nothing")))
		}
	}
	return entries
}
