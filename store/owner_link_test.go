package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A record in the store of a service does not make root replace, or make, links
// that nobody but the service asks for.
func TestRootDoesNotBelieveTheLinksOfAnother(t *testing.T) {
	s, sl := servicesStore(t)
	path := filepath.Join(filepath.Dir(s.Root()), "python3")
	if err := os.Symlink("python3.13", path); err != nil {
		t.Fatal(err)
	}
	asNobody(t, func() {
		err := s.withLinks(t.Context(), func(b *linkBook) error {
			return b.put(Link{Path: path, Slot: sl.Name(), By: LinkByVerb, Before: "python3.13", Pending: pendingTake})
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	if err := s.FinishLinks(t.Context()); err != nil {
		t.Error(err)
	}
	if text, err := os.Readlink(path); err != nil || text != "python3.13" {
		t.Errorf("it leads to %s now, %v", text, err)
	}
	if links, err := s.Links(); err != nil || len(links) != 0 {
		t.Errorf("%+v, %v", links, err)
	}
}

// A service's store that root links to: the service goes on to keep the record.
func TestRootLinksTheStoreOfAnother(t *testing.T) {
	s, sl := servicesStore(t)
	path := filepath.Join(filepath.Dir(s.Root()), "rocm")
	if err := os.Symlink("/opt/rocm-6", path); err != nil {
		t.Fatal(err)
	}
	if _, err := s.MakeLink(t.Context(), sl, LinkOptions{Path: path, By: LinkByVerb, TakeOver: true}); err != nil {
		t.Fatal(err)
	}
	if found := roots(t, s); len(found) > 0 {
		t.Errorf("root's: %v", found)
	}
	asNobody(t, func() {
		own := filepath.Join(s.Root(), "..", "services")
		if err := errors.Join(os.Remove(filepath.Join(s.Root(), linksLock)), s.FinishLinks(t.Context())); err != nil {
			t.Error(err)
		}
		if _, err := s.MakeLink(t.Context(), sl, LinkOptions{Path: own, By: LinkByVerb}); err == nil {
			t.Error("it may write there")
		}
	})
	if _, err := s.MakeLink(t.Context(), sl, LinkOptions{Path: path + "2", By: LinkByVerb}); err != nil {
		t.Error(err)
	}
	if _, err := s.Uninstall(t.Context(), UninstallOptions{All: true, Ledger: true}); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(s.Root()); !errors.Is(err, fs.ErrNotExist) || textOf(t, path) != "/opt/rocm-6" {
		t.Errorf("%v", err)
	}
}

// What a service has written into its record makes root create, replace and
// remove nothing that was not a link of ours.
func TestAHostileRecordOfLinksGainsNothing(t *testing.T) {
	s, sl := servicesStore(t)
	dir := scratch(t)
	victim, empty := filepath.Join(dir, "python3"), filepath.Join(dir, "empty")
	if err := errors.Join(os.Symlink("python3.13", victim), os.Mkdir(empty, 0o755)); err != nil {
		t.Fatal(err)
	}
	b := &linkBook{store: s, links: []Link{
		{Path: victim, Slot: sl.Name(), File: "bin/evil", By: LinkByVerb, Before: "python3.13", Pending: pendingTake},
		{Path: filepath.Join(empty, "x"), Slot: sl.Name(), By: LinkByVerb, Made: []string{empty}, Pending: pendingDrop},
	}}
	asNobody(t, func() {
		if err := b.save(); err != nil {
			t.Fatal(err)
		}
	})
	if err := s.FinishLinks(t.Context()); err != nil {
		t.Error(err)
	}
	equal(t, "outside", contents(t, dir), []string{"empty", "python3"})
	if textOf(t, victim) != "python3.13" || len(onRecord(t, s)) != 0 {
		t.Errorf("%s, %+v", textOf(t, victim), onRecord(t, s))
	}
}

// What was refused is not done by a later run of somebody who could.
func TestARefusedUnlinkIsNotFinishedLater(t *testing.T) {
	s, sl := servicesStore(t)
	path := filepath.Join(filepath.Dir(s.Root()), "rocm")
	if err := s.Link(path, sl); err != nil {
		t.Fatal(err)
	}
	before := onRecord(t, s)
	asNobody(t, func() {
		var refused *LinkError
		if _, err := s.DropLink(t.Context(), path); !errors.As(err, &refused) {
			t.Errorf("%v", err)
		}
		if _, err := s.Uninstall(t.Context(), UninstallOptions{All: true}); !errors.As(err, &refused) {
			t.Errorf("%v", err)
		}
	})
	if err := s.FinishLinks(t.Context()); err != nil {
		t.Error(err)
	}
	if textOf(t, path) != sl.CurrentPath() || len(before) != 1 || len(onRecord(t, s)) != 1 || !sameLink(onRecord(t, s)[0], before[0]) {
		t.Errorf("%s, %+v", textOf(t, path), onRecord(t, s))
	}
}
