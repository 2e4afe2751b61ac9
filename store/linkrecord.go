package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// The record of links, and its lock, in ROOT. The lock is held for
// milliseconds by whatever makes or removes a link.
const (
	linksName   = "links.json"
	linksLock   = "links.lock"
	linksSchema = 1
)

// Bounds of links.json.
const (
	maxLinks    = 1000
	maxLinksLen = 4 << 20 // bytes
	maxLinkText = 4095    // PATH_MAX without its NUL
)

// Who wants a link: the By of a Link.
const (
	LinkByConfig = "config" // an install's link
	LinkByVerb   = "link"   // rocm-nightly link PATH
	LinkByHost   = "host"   // the config's host: a file of etc/ where shells and loaders look
)

// What an interrupted step was about to do: the Pending of a Link.
const (
	pendingTake = "take" // Before is what the path was, and is to be replaced
	pendingDrop = "drop"
)

// Link is a symlink outside the store that leads into one of its slots. It is
// on record before it is made, so that whatever interrupts that leaves nothing
// that is not known.
type Link struct {
	Path    string    `json:"path"`                 // absolute
	Slot    string    `json:"slot"`                 // name of the slot that it leads to
	File    string    `json:"file,omitempty"`       // what it leads to below current; "" is current itself
	By      string    `json:"by"`                   // one of the LinkBy constants
	Instead string    `json:"instead_of,omitempty"` // the path that was asked for, and is taken
	Before  string    `json:"before,omitempty"`     // text of the symlink that was there, which is put back in the end
	Made    []string  `json:"made,omitempty"`       // directories that were made for it, the outermost first
	Pending string    `json:"pending,omitempty"`    // what was interrupted, if it was: take or drop
	At      time.Time `json:"at"`                   // UTC
}

// check refuses what this package does not write.
func (l Link) check() error {
	channel, target, _ := strings.Cut(l.Slot, "-")
	err := errors.Join(checkChannel(channel), checkName("target", target))
	if !cleanPath(l.Path) {
		err = errors.Join(err, fmt.Errorf("%.100q is no path", l.Path))
	}
	if l.File != "" && (!fs.ValidPath(l.File) || l.File == "." || strings.ContainsRune(l.File, 0)) {
		err = errors.Join(err, fmt.Errorf("%.100q is no path below a prefix", l.File))
	}
	if len(l.Before) > maxLinkText || strings.ContainsRune(l.Before, 0) {
		err = errors.Join(err, errors.New("what was there before is no link's text"))
	}
	for _, dir := range l.Made {
		if _, ok := within(dir, l.Path); !ok || !cleanPath(dir) {
			err = errors.Join(err, fmt.Errorf("%.100q is not above it", dir))
		}
	}
	return err
}

func cleanPath(p string) bool {
	return filepath.IsAbs(p) && filepath.Clean(p) == p && p != "/" && len(p) <= maxLinkText && !strings.ContainsRune(p, 0)
}

type linksJSON struct {
	Schema int    `json:"schema"`
	Links  []Link `json:"links"`
}

// LinksType is the type of a links.json, for those who describe it.
func LinksType() reflect.Type { return reflect.TypeFor[linksJSON]() }

// parseLinks decodes a links.json. An error that matches ErrNewer means that it
// must be left alone; any other, that it is damaged: then links are those that
// could be read.
func parseLinks(b []byte) (links []Link, err error) {
	if b, err = linksFormat.Read(b); err != nil {
		return nil, err
	}
	var raw struct {
		Links []json.RawMessage `json:"links"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return nil, err
	}
	if len(raw.Links) > maxLinks {
		raw.Links, err = raw.Links[:maxLinks], fmt.Errorf("more than %d links", maxLinks)
	}
	for _, text := range raw.Links {
		var l Link
		lerr := json.Unmarshal(text, &l)
		if lerr == nil {
			lerr = l.check()
		}
		if lerr == nil && slices.ContainsFunc(links, func(have Link) bool { return have.Path == l.Path }) {
			lerr = fmt.Errorf("%s is there twice", l.Path)
		}
		if lerr != nil {
			err = errors.Join(err, lerr)
			continue
		}
		links = append(links, l)
	}
	return links, err
}

// readLinks reads links.json; the error matches ErrNewer or errDamaged, or is
// that of the disk. Where it is damaged, links are those that could be read.
func (s *Store) readLinks() (links []Link, err error) {
	path := filepath.Join(s.root, linksName)
	b, err := readFile(path, maxLinksLen)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read links: %w", err)
	}
	links, err = parseLinks(b)
	switch {
	case errors.Is(err, ErrNewer):
		return nil, fmt.Errorf("read %s: %w", path, err)
	case err != nil:
		return links, fmt.Errorf("read %s: %w: %w", path, errDamaged, err)
	}
	return links, nil
}

// Links returns the links on record, in the order of their paths, whatever is
// at those paths now (see LinkStatus). It takes no lock. Where links.json is
// damaged, those are returned that can be read.
func (s *Store) Links() ([]Link, error) {
	links, err := s.readLinks()
	if errors.Is(err, errDamaged) {
		s.event(EventState, "", filepath.Join(s.root, linksName), "%v: %d links of it could be read", err, len(links))
		err = nil
	}
	return links, err
}

// linkBook is links.json under its lock.
type linkBook struct {
	store   *Store
	links   []Link
	damaged bool
}

// withLinks runs do under the lock of the record of links. The record and the
// lock are the owner's of the store; links are made with the rights of who asks.
func (s *Store) withLinks(ctx context.Context, do func(*linkBook) error) error {
	path := filepath.Join(s.root, linksLock)
	err := s.disk.mkdirAll(s.root)
	if err == nil {
		err = s.giveBack(linksLock, linksName)
	}
	var fl *flock.Flock
	if err == nil {
		err = s.asOwner(func() (err error) {
			fl, err = s.waitLock(ctx, path, "link")
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("lock links: %w", s.ownerHint(lockHint(err)))
	}
	b := &linkBook{store: s}
	b.links, err = s.readLinks()
	if err == nil {
		err = sweepHalves(s.root, "."+linksName)
	}
	if errors.Is(err, errDamaged) {
		s.event(EventState, "", filepath.Join(s.root, linksName), "%v: kept as %s.broken; %d links of it could be read", err, linksName, len(b.links))
		b.damaged, err = true, nil
	}
	if err == nil {
		err = do(b)
	}
	_ = s.asOwner(func() error { return eraseHolder(path) }) // a courtesy, as in a slot
	return errors.Join(err, unlock(fl))
}

// find returns the record of path, which may be spelled by way of another
// directory; nil if there is none.
func (b *linkBook) find(path string) *Link {
	for i := range b.links {
		if b.links[i].Path == path {
			return &b.links[i]
		}
	}
	real := canonical(path)
	for i := range b.links {
		if canonical(b.links[i].Path) == real {
			return &b.links[i]
		}
	}
	return nil
}

// put records l in place of what its path had on record, and saves.
func (b *linkBook) put(l Link) error {
	if err := l.check(); err != nil {
		return fmt.Errorf("record link: %w", err)
	}
	if len(b.links) >= maxLinks {
		return fmt.Errorf("record link %s: %d are more than there can be", l.Path, len(b.links)+1)
	}
	b.drop(l.Path)
	b.links = append(b.links, l)
	slices.SortFunc(b.links, func(x, y Link) int { return strings.Compare(x.Path, y.Path) })
	return b.save()
}

// drop forgets the record of path; it does not save.
func (b *linkBook) drop(path string) {
	if l := b.find(path); l != nil {
		gone := l.Path
		b.links = slices.DeleteFunc(b.links, func(l Link) bool { return l.Path == gone })
	}
}

// save writes links.json. A damaged one is kept beside it.
func (b *linkBook) save() error {
	out := linksJSON{Schema: linksSchema, Links: b.links}
	if out.Links == nil {
		out.Links = []Link{}
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return fmt.Errorf("record links: %w", err)
	}
	path := filepath.Join(b.store.root, linksName)
	err = b.store.asOwner(func() error {
		if b.damaged {
			if err := os.Rename(path, path+".broken"); err != nil {
				return err
			}
			b.damaged = false
		}
		return b.store.disk.writeFile(path, append(text, '\n'))
	})
	if err != nil {
		return fmt.Errorf("record links: %w", err)
	}
	return nil
}

// canonical is path with the links in its directory followed: one name for
// one place, whatever is there.
func canonical(path string) string {
	return filepath.Join(realPath(filepath.Dir(path)), filepath.Base(path))
}
