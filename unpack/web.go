package unpack

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// maxExpand bounds how many symlinks one name may lead through, as the kernel does.
const maxExpand = 40

var (
	errEscape  = errors.New("leads out of the tree")
	errMissing = errors.New("leads to nothing in the tree")
	errWaits   = errors.New("leads through an absolute link that is not settled")
)

// web answers where a name leads, from memory: the disk is not asked, so that
// no link is ever followed.
type web struct {
	nodes map[string]*manifest.File
	links map[string]*link
	hurry bool // absolute links that are not settled count as nothing
	steps int  // what may still be walked
}

// stepsEach is how many components may be walked for each link, on average, and
// stepsAll what any archive may have. A real link needs a few dozen; an
// archive made to waste time is stopped.
const (
	stepsEach = 300
	stepsAll  = 1_000_000
	stepBytes = 256 // of a name that cost as much as a component more
)

func newWeb(nodes map[string]*manifest.File, links map[string]*link) *web {
	return &web{nodes: nodes, links: links, steps: stepsEach*len(links) + stepsAll}
}

// absolute says whether l is a symlink that names a place on the build machine.
func (l *link) absolute() bool { return !l.hard && strings.HasPrefix(l.target, "/") }

// settle finds for each absolute link what it means, or that it is gone. An
// absolute link may lead through others: it waits until those are settled.
// Each round judges by what the rounds before it settled, so that the order
// of the archive makes no difference. Links that wait for one another, or at
// the end of a longer chain than the kernel would follow, are judged as if
// what they wait for were nothing.
func (w *web) settle(ctx context.Context, todo []*link) error {
	for round := 0; len(todo) > 0; round++ {
		var now, waiting []*link
		var means []string
		for _, l := range todo {
			if err := ctx.Err(); err != nil {
				return err
			}
			m, err := w.inTree(l)
			switch {
			case errors.Is(err, errWaits):
				waiting = append(waiting, l)
			case errors.Is(err, ErrRefused):
				return &EntryError{l.path, err}
			default:
				now, means = append(now, l), append(means, m)
			}
		}
		for i, l := range now {
			l.means, l.gone = means[i], means[i] == ""
		}
		w.hurry = len(now) == 0 || round == maxExpand
		todo = waiting
	}
	return nil
}

// hostRoots are directories of every Linux. An absolute link below one means
// the machine's own file; that the last words of it also exist in the tree
// (/usr/lib and lib) is chance.
var hostRoots = []string{"bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "run", "sbin", "sys", "usr", "var"}

// inTree finds what an absolute link of the build machine means: the longest
// end of its target that exists in the tree, "" if there is none.
func (w *web) inTree(l *link) (string, error) {
	target := strings.TrimPrefix(path.Clean(l.target), "/")
	first, _, _ := strings.Cut(target, "/")
	if slices.Contains(hostRoots, first) {
		return "", nil
	}
	for target != "" {
		end, err := w.resolve(target, l)
		switch {
		case err == nil && end != ".":
			return target, nil
		case errors.Is(err, errWaits), errors.Is(err, ErrRefused):
			return "", err
		}
		_, target, _ = strings.Cut(target, "/")
	}
	return "", nil
}

// walk is one name on its way through the tree.
type walk struct {
	at       string   // where it has come, never a link
	todo     []string // the components that are left
	expanded int      // links gone through
	// lost says that something on the way is missing. The walk goes on as if it
	// were a directory, below components under at: the name dangles, but must
	// not lead out of the tree should somebody fill the gap.
	lost  bool
	below int
}

// resolve follows name through the tree's symlinks, component by component as
// the kernel does, and returns where it ends. What leads through self, which
// may be nil, is a loop.
func (w *web) resolve(name string, self *link) (string, error) {
	k := walk{at: ".", todo: strings.Split(name, "/")}
	if err := w.pay(k.todo); err != nil {
		return "", err
	}
	for len(k.todo) > 0 && !k.over() {
		part := k.todo[0]
		k.todo = k.todo[1:]
		if err := w.step(&k, part, self); err != nil {
			return "", err
		}
	}
	if k.lost {
		return "", errMissing
	}
	return k.at, nil
}

// over says that a walk is lost and does not come back to what there is.
func (k *walk) over() bool { return k.lost && k.below > 0 && !slices.Contains(k.todo, "..") }

// lose goes on below something that is missing in at.
func (k *walk) lose() { k.lost, k.below = true, 1 }

// step takes one component.
func (w *web) step(k *walk, part string, self *link) error {
	switch part {
	case "", ".":
		return nil
	case "..":
		if k.below > 0 {
			k.below--
			return nil
		}
		if k.at == "." {
			return errEscape
		}
		k.at = k.at[:max(0, strings.LastIndexByte(k.at, '/'))]
		if k.at == "" {
			k.at = "."
		}
		return nil
	}
	if k.below > 0 {
		k.below++
		return nil
	}
	next := part
	if k.at != "." {
		next = k.at + "/" + part // what path.Join does in a tenth of the time
	}
	w.steps -= len(next) / stepBytes
	if l := w.links[next]; l != nil && !l.hard {
		return w.expand(k, l, self)
	}
	if w.nodes[next] == nil {
		k.lose()
		return nil
	}
	k.at = next
	return nil
}

// expand puts the text of a link in its place.
func (w *web) expand(k *walk, l, self *link) error {
	if k.expanded++; k.expanded > maxExpand || l == self {
		return endless(k.todo)
	}
	text, err := w.text(l)
	if errors.Is(err, errMissing) || k.lost && errors.Is(err, errWaits) {
		k.lose()
		return nil
	}
	if err != nil {
		return err
	}
	if l.absolute() {
		k.at = "."
	}
	k.todo = append(strings.Split(text, "/"), k.todo...)
	return w.pay(k.todo)
}

// endless decides about a name behind a loop, or behind more links than the
// kernel follows: where it would go up from is not known, and there are
// programs that follow more.
func endless(rest []string) error {
	if slices.Contains(rest, "..") {
		return errEscape
	}
	return errMissing
}

// text is what stands in place of a link: for an absolute one the path in the
// tree that it means.
func (w *web) text(l *link) (string, error) {
	switch {
	case !l.absolute():
		return l.target, nil
	case l.means != "":
		return l.means, nil
	case l.gone || w.hurry:
		return "", errMissing
	}
	return "", errWaits
}

// pay takes the components that are to be walked from what may be walked.
func (w *web) pay(todo []string) error {
	if w.steps -= len(todo); w.steps < 0 {
		return fmt.Errorf("%w: the archive's links lead through too many others", ErrRefused)
	}
	return nil
}
