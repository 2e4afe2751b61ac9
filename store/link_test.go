package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// linked is a store with one slot that has something active, and a path for a
// link beside it.
func linked(t testing.TB) (s *Store, sl *Slot, path string) {
	t.Helper()
	s = open(t)
	sl = s.Slot("nightly", "gfx1151")
	install(t, sl, night(1))
	return s, sl, filepath.Join(scratch(t), "rocm")
}

func onRecord(t testing.TB, s *Store) []Link {
	t.Helper()
	links, err := s.Links()
	if err != nil {
		t.Fatal(err)
	}
	return links
}

func textOf(t testing.TB, path string) string {
	t.Helper()
	text, err := os.Readlink(path)
	if err != nil {
		return ""
	}
	return text
}

func verb(path string) LinkOptions { return LinkOptions{Path: path, By: LinkByVerb} }

func TestLinkIsOnRecord(t *testing.T) {
	s, sl, path := linked(t)
	for range 2 {
		if _, err := s.MakeLink(t.Context(), sl, verb(path+"/")); err != nil {
			t.Fatal(err)
		}
	}
	links := onRecord(t, s)
	if len(links) != 1 || links[0].Path != path || links[0].Slot != sl.Name() || links[0].By != LinkByVerb || textOf(t, path) != sl.CurrentPath() {
		t.Fatalf("%+v", links)
	}
	// The config's wish for the same link takes the record over; another slot's moves it.
	other := s.Slot("rc", "gfx1151")
	install(t, other, night(2))
	if err := s.Link(path, other); err != nil {
		t.Fatal(err)
	}
	if links := onRecord(t, s); len(links) != 1 || links[0].By != LinkByConfig || links[0].Slot != other.Name() || textOf(t, path) != other.CurrentPath() {
		t.Errorf("%+v", links)
	}
	u, err := s.DropLink(t.Context(), path)
	if err != nil || !u.Removed || u.Restored != "" || len(onRecord(t, s)) != 0 {
		t.Errorf("%+v, %v", u, err)
	}
	equal(t, "directory", entries(t, filepath.Dir(path)), nil)
	// One that somebody has removed is forgotten without a word.
	if _, err := s.MakeLink(t.Context(), sl, verb(path)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if u, err := s.DropLink(t.Context(), path); err != nil || u.Removed || len(onRecord(t, s)) != 0 {
		t.Errorf("%+v, %v", u, err)
	}
}

// One place has one record, whichever way it is spelled, and the store is known
// behind links too.
func TestLinkBehindOtherNames(t *testing.T) {
	s, sl, path := linked(t)
	alias := filepath.Join(scratch(t), "alias")
	if err := errors.Join(os.Symlink(filepath.Dir(path), alias), os.Symlink(s.Root(), alias+"2")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.MakeLink(t.Context(), sl, verb(filepath.Join(alias, "rocm"))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.MakeLink(t.Context(), sl, verb(path)); err != nil || len(onRecord(t, s)) != 1 {
		t.Errorf("%+v, %v", onRecord(t, s), err)
	}
	if _, err := s.DropLink(t.Context(), path); err != nil || len(onRecord(t, s)) != 0 {
		t.Errorf("%+v, %v", onRecord(t, s), err)
	}
	var le *LinkError
	for _, bad := range []string{alias + "2/rocm", alias + "2", s.Root() + "/slots/x"} {
		if _, err := s.MakeLink(t.Context(), sl, LinkOptions{Path: bad, By: LinkByVerb, TakeOver: true}); !errors.As(err, &le) && bad != alias+"2" {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := os.Lstat(s.Root() + "/rocm"); err == nil {
		t.Error("a link was made in the store")
	}
	for _, bad := range []string{"rocm", "", "/", "/opt/ro\x00cm", "/" + strings.Repeat("x/", 3000)} {
		if _, err := s.MakeLink(t.Context(), sl, verb(bad)); err == nil {
			t.Errorf("linked %.20q", bad)
		}
	}
}

func TestTakeOverIsUndone(t *testing.T) {
	s, sl, path := linked(t)
	dir := filepath.Dir(path)
	const amd = "/etc/alternatives/rocm" // leads to nothing here
	if err := os.Symlink(amd, path); err != nil {
		t.Fatal(err)
	}
	var le *LinkError
	if _, err := s.MakeLink(t.Context(), sl, verb(path)); !errors.As(err, &le) || !strings.Contains(le.What, "update-alternatives --display rocm") || !strings.Contains(le.Hint, "--take-over") {
		t.Errorf("%v", err)
	}
	take := verb(path)
	take.TakeOver = true
	for range 2 { // a second time is no news
		if l, err := s.MakeLink(t.Context(), sl, take); err != nil || l.Before != amd || l.Pending != "" || textOf(t, path) != sl.CurrentPath() {
			t.Fatalf("%+v, %v", l, err)
		}
	}
	// The next update moves the link, and what was there is not forgotten.
	other := s.Slot("rc", "gfx1151")
	install(t, other, night(2))
	if err := errors.Join(s.Link(path, other), s.Link(path, sl)); err != nil {
		t.Fatal(err)
	}
	u, err := s.DropLink(t.Context(), path)
	if err != nil || !u.Removed || u.Restored != amd || textOf(t, path) != amd || len(onRecord(t, s)) != 0 {
		t.Errorf("%+v, %v", u, err)
	}
	equal(t, "directory", entries(t, dir), []string{"rocm"})
	// Directories and files are never touched.
	for name, make := range map[string]func() error{
		"a directory": func() error { return os.Mkdir(path, 0o755) },
		"a file":      func() error { return os.WriteFile(path, nil, 0o600) },
		"a pipe":      func() error { return unix.Mkfifo(path, 0o600) },
	} {
		if err := errors.Join(os.RemoveAll(path), make()); err != nil {
			t.Fatal(err)
		}
		before, _ := os.Lstat(path)
		if _, err := s.MakeLink(t.Context(), sl, take); !errors.As(err, &le) {
			t.Errorf("%s: %v", name, err)
		}
		if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) || len(onRecord(t, s)) != 0 {
			t.Errorf("%s was touched: %v", name, err)
		}
		equal(t, "directory", entries(t, dir), []string{"rocm"})
	}
}

// What somebody else has put there since is theirs.
func TestUnlinkLeavesWhatOthersHaveChanged(t *testing.T) {
	s, sl, path := linked(t)
	for name, c := range map[string]struct {
		change   func() error
		restored string
		left     string
	}{
		"other link": {func() error { return os.Symlink("/opt/rocm-7", path) }, "", "a link to /opt/rocm-7"},
		"directory":  {func() error { return os.Mkdir(path, 0o755) }, "", "a directory"},
		"put back":   {func() error { return os.Symlink("/opt/rocm-6", path) }, "/opt/rocm-6", ""},
	} {
		if err := errors.Join(os.RemoveAll(path), os.Symlink("/opt/rocm-6", path)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.MakeLink(t.Context(), sl, LinkOptions{Path: path, By: LinkByVerb, TakeOver: true}); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Remove(path), c.change()); err != nil {
			t.Fatal(err)
		}
		before, _ := os.Lstat(path)
		u, err := s.DropLink(t.Context(), path)
		after, lerr := os.Lstat(path)
		if err != nil || lerr != nil || u.Removed || u.Restored != c.restored || u.Left != c.left || !os.SameFile(before, after) || len(onRecord(t, s)) != 0 {
			t.Errorf("%s: %+v, %v, %v", name, u, err, lerr)
		}
	}
}

// A take-over and a removal are killed before and after each of their steps,
// which are states of the disk that this makes by hand. Whatever comes next, the
// link ends where it was to be, and nothing is left beside it.
func TestInterruptedLinksAreFinished(t *testing.T) {
	const amd = "/opt/rocm-6.4.0"
	for name, c := range map[string]struct {
		pending     string
		path, aside string // "": nothing, "ours", "amd"
		want        string // after FinishLinks
	}{
		"recorded":            {pendingTake, "amd", "", "ours"},
		"symlink beside":      {pendingTake, "amd", "ours", "ours"},
		"exchanged":           {pendingTake, "ours", "amd", "ours"},
		"cleared":             {"", "ours", "amd", "ours"},
		"somebody else came":  {pendingTake, "other", "", "other"},
		"drop recorded":       {pendingDrop, "ours", "", "amd"},
		"drop, beside":        {pendingDrop, "ours", "amd", "amd"},
		"drop, exchanged":     {pendingDrop, "amd", "ours", "amd"},
		"drop, moved away":    {pendingDrop, "", "ours", ""},
		"drop, but not saved": {pendingDrop, "amd", "", "amd"},
	} {
		t.Run(name, func(t *testing.T) {
			s, sl, path := linked(t)
			texts := map[string]string{"ours": sl.CurrentPath(), "amd": amd, "other": "/opt/mine"}
			temp := filepath.Join(filepath.Dir(path), aside(s, path))
			for at, what := range map[string]string{path: c.path, temp: c.aside} {
				if what != "" {
					if err := os.Symlink(texts[what], at); err != nil {
						t.Fatal(err)
					}
				}
			}
			err := s.withLinks(t.Context(), func(b *linkBook) error {
				return b.put(Link{Path: path, Slot: sl.Name(), By: LinkByVerb, Before: amd, Pending: c.pending})
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.FinishLinks(t.Context()); err != nil {
				t.Fatal(err)
			}
			if c.pending == "" { // nothing says so, but the next to come by cleans up
				if _, err := s.MakeLink(t.Context(), sl, verb(path)); err != nil {
					t.Fatal(err)
				}
			}
			if got := textOf(t, path); got != texts[c.want] {
				t.Errorf("it leads to %q", got)
			}
			links := onRecord(t, s)
			if ours := c.want == "ours"; ours != (len(links) == 1) || ours && (links[0].Pending != "" || links[0].Before != amd) {
				t.Errorf("%+v", links)
			}
			if _, err := os.Lstat(temp); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is still there", temp)
			}
		})
	}
}

// What is put at the path between the look and the exchange comes out of it,
// and goes back.
func TestAnExchangeMeetsSomebodyElse(t *testing.T) {
	d := realDisk()
	for name, make := range map[string]func(path string) error{
		"directory": func(path string) error { return os.MkdirAll(path+"/deep", 0o755) },
		"file":      func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) },
		"link":      func(path string) error { return os.Symlink("/other", path) },
	} {
		dir := scratch(t)
		path := filepath.Join(dir, "rocm")
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		before, _ := os.Lstat(path)
		for _, err := range []error{d.swapLink(dir, "rocm", ".aside", "/old", "/new", false), d.swapLink(dir, "rocm", ".aside", "/old", "/new", true), d.removeLink(dir, "rocm", ".aside", "/old")} {
			if !errors.Is(err, errChanged) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s was touched: %v", name, err)
		}
		equal(t, name, entries(t, dir), []string{"rocm"})
	}
}

// Something of others under the name beside is left, and named.
func TestWhatIsBesideIsLeft(t *testing.T) {
	s, sl, path := linked(t)
	temp := filepath.Join(filepath.Dir(path), aside(s, path))
	if err := os.WriteFile(temp, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	var le *LinkError
	if _, err := s.MakeLink(t.Context(), sl, verb(path)); !errors.As(err, &le) || !strings.Contains(le.What, temp) {
		t.Errorf("%v", err)
	}
	if b, err := os.ReadFile(temp); err != nil || string(b) != "mine" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestLinkWithoutPermission(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to become somebody else")
	}
	s, sl, path := linked(t)
	if err := errors.Join(os.Chmod(filepath.Dir(path), 0o755), os.Chmod(filepath.Dir(s.Root()), 0o755), os.Chown(s.Root(), 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	asNobody(t, func() {
		var le *LinkError
		if _, err := s.MakeLink(context.Background(), sl, verb(path)); !errors.As(err, &le) || !strings.Contains(le.Hint, "root") {
			t.Errorf("%v", err)
		}
	})
	if len(onRecord(t, s)) != 0 {
		t.Errorf("%+v", onRecord(t, s))
	}
	if err := linkTrouble("/opt/rocm", unix.EROFS); !strings.Contains(err.Error(), "ReadWritePaths=/opt") {
		t.Error(err)
	}
}

func TestLinksJSON(t *testing.T) {
	s, sl, path := linked(t)
	if _, err := s.MakeLink(t.Context(), sl, verb(path)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.Root(), linksName)
	if fi, err := os.Stat(file); err != nil || fi.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(`{"schema": 2, "links": []}`), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = s.MakeLink(t.Context(), sl, verb(path+"2"))
	if !errors.Is(err, ErrNewer) {
		t.Errorf("newer: %v", err)
	}
	if _, err := s.Links(); !errors.Is(err, ErrNewer) {
		t.Errorf("newer: %v", err)
	}
	// Of a damaged one what can be read counts, and it is kept beside.
	damaged := strings.Replace(string(good), `"links": [`, `"links": [{"path": "../x", "slot": "nightly-gfx1151"}, 7,`, 1)
	if err := os.WriteFile(file, []byte(damaged), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.MakeLink(t.Context(), sl, verb(path+"2")); err != nil || len(onRecord(t, s)) != 2 {
		t.Errorf("%v, %+v", err, onRecord(t, s))
	}
	if b, err := os.ReadFile(file + ".broken"); err != nil || string(b) != damaged {
		t.Errorf("%q, %v", b, err)
	}
	for _, bad := range []string{"", "{", `{"links":[]}`, `[]`, "\x00"} {
		if err := os.WriteFile(file, []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := s.MakeLink(t.Context(), sl, verb(path)); err != nil {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestManyLinkAtOnce(t *testing.T) {
	s, sl, path := linked(t)
	s.Now = nil // the clock of these tests is for one goroutine
	done := make(chan error)
	for n := range 16 {
		go func() {
			_, err := s.MakeLink(context.Background(), sl, verb(fmt.Sprintf("%s%d", path, n%8)))
			done <- err
		}()
	}
	for range 16 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if links := onRecord(t, s); len(links) != 8 {
		t.Errorf("%d on record", len(links))
	}
}

func FuzzParseLinks(f *testing.F) {
	f.Add([]byte(`{"schema": 1, "links": [{"path": "/opt/rocm", "slot": "nightly-gfx1151", "by": "link", "before": "/etc/alternatives/rocm", "made": ["/opt"], "file": "etc/env.sh"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		links, _ := parseLinks(b)
		for _, l := range links {
			target := l.target(&Store{root: "/srv/r"})
			if !filepath.IsAbs(l.Path) || !strings.HasPrefix(target, "/srv/r/slots/"+l.Slot+"/current") {
				t.Errorf("%+v leads to %s", l, target)
			}
		}
	})
}

func ExampleStore_MakeLink() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	s, err := Open(filepath.Join(dir, "root"))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = s.MakeLink(context.Background(), s.Slot("nightly", "gfx1151"), LinkOptions{Path: "/opt/rocm", By: LinkByVerb})
	fmt.Println(err)
	// Output: link /opt/rocm: nothing is active in nightly-gfx1151 (try: update, or activate)
}
