package update

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
)

// disk is a file system of tests, as statfs tells it.
type disk struct {
	bytes, inodes int64
	asked         int
	later         *disk // what it is from the second look on, or nil
}

func (d *disk) space(dir string) (diskspace.Space, error) {
	d.asked++
	if d.asked > 1 && d.later != nil {
		d = d.later
	}
	return diskspace.Space{Path: dir, Mount: "/small", Dev: 7, Bytes: d.bytes, Inodes: d.inodes}, nil
}

func on(d *disk) func(*Options) { return func(o *Options) { o.Space = d.space } }

const plenty = 1 << 40

// What cannot fit is refused before a byte of it is fetched, in words and in
// numbers; what was installed stays.
func TestPromiseAFullDiskIsForeseen(t *testing.T) {
	w := newWorld(t)
	fi, err := os.Stat(w.publish(oldNight, 2))
	if err != nil {
		t.Fatal(err)
	}
	size := fi.Size()
	out := w.run(on(&disk{bytes: 2*size - 1, inodes: plenty}))
	if out.Exit != ExitFailed || !errors.Is(out.Err, unix.ENOSPC) || w.bodies.Load() != 0 || w.active() != "" {
		t.Fatalf("%d downloads: %+v", w.bodies.Load(), out)
	}
	for _, want := range []string{"not enough room", "unpacking it takes about", "are free at /small", "keep.last", "--root"} {
		if !strings.Contains(out.Error, want) {
			t.Errorf("%q is not in %v", want, out.Error)
		}
	}
	text, err := json.Marshal(out)
	if err != nil || !strings.Contains(string(text), `"space":{"fits":"no","basis":"guess","bytes":`) {
		t.Errorf("%v %s", err, text)
	}
	if left, _ := filepath.Glob(filepath.Join(w.root, "spool/nightly/*")); len(left) > 0 {
		t.Errorf("%v was left", left)
	}

	// A guess that leaves a doubt is tried, and said.
	var log bytes.Buffer
	out = w.run(on(&disk{bytes: 2 * size, inodes: 100}), func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	if out.Exit != 0 || w.active() != oldNight || out.Space.Fits != "perhaps" || strings.Count(log.String(), "not be enough room") != 1 {
		t.Fatalf("%+v %+v\n%s", out, out.Space, log.String())
	}
}

// Once one of the family is installed, the next is judged by it; the very same
// tarball, by what it became.
func TestTheNeedIsKnownByWhatIsInstalled(t *testing.T) {
	w := newWorld(t)
	w.publish(oldNight, 2)
	w.run()
	used, inodes, err := diskspace.Used(filepath.Join(w.root, "slots/nightly-gfx1151/generations", oldNight))
	if err != nil || used == 0 || inodes < 50 {
		t.Fatal(used, inodes, err)
	}
	fi, err := os.Stat(w.publish(newNight, 1))
	if err != nil {
		t.Fatal(err)
	}
	size := fi.Size()
	again := func(o *Options) { o.AcceptNewBytes = true }
	before := w.bodies.Load()
	out := w.run(on(&disk{bytes: size + used/2, inodes: plenty}))
	if out.Exit != ExitFailed || out.Space.Basis != basisLast || out.Space.Fits != "no" || w.bodies.Load() != before {
		t.Errorf("%+v %+v", out, out.Space)
	}
	if out = w.run(on(&disk{bytes: plenty, inodes: inodes / 2})); out.Exit != ExitFailed || out.Space.Fits != "no" {
		t.Errorf("%+v %+v", out, out.Space)
	}
	// With other options the earlier one says less: what is left out now may be
	// what makes it fit.
	runpath := func(o *Options) {
		in := o.Installs[0]
		in.Repack.RunPath = "runpath"
		o.Installs = []Install{in}
	}
	if out = w.run(on(&disk{bytes: 2 * size, inodes: plenty}), runpath, func(o *Options) { o.DryRun = true }); out.Space.Fits != "perhaps" {
		t.Errorf("%+v %+v", out, out.Space)
	}
	if out = w.run(); out.Exit != 0 || w.active() != newNight {
		t.Fatalf("%+v", out)
	}
	used, inodes, err = diskspace.Used(filepath.Join(w.root, "slots/nightly-gfx1151/generations", newNight))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []*disk{{bytes: size + used - 1, inodes: plenty}, {bytes: plenty, inodes: inodes - 1}} {
		if out = w.run(on(d), again); out.Exit != ExitFailed || out.Space.Basis != basisKnown {
			t.Errorf("%+v: %+v %+v", d, out, out.Space)
		}
	}
	if out = w.run(on(&disk{bytes: size + used + diskspace.Reserve(used), inodes: inodes}), again); out.Exit != 0 || out.Space.Fits != "yes" {
		t.Errorf("%+v %+v", out, out.Space)
	}
}

// Room that goes between the download and the unpacking is missed before
// anything is unpacked, and what was fetched stays for the next run.
func TestRoomIsLookedAtAgain(t *testing.T) {
	w := newWorld(t)
	path := w.publish(oldNight, 1)
	// Two looks for the download, one of each place.
	d := &disk{bytes: plenty, inodes: plenty}
	staged := false
	out := w.run(func(o *Options) {
		o.Space = func(dir string) (diskspace.Space, error) {
			s, err := d.space(dir)
			if d.asked > 2 {
				s.Bytes = 10
			}
			return s, err
		}
		o.Event = func(e Event) { staged = staged || e.Stage == "unpack" }
	})
	if out.Exit != ExitFailed || !errors.Is(out.Err, unix.ENOSPC) || staged {
		t.Errorf("unpacking %v: %+v", staged, out)
	}
	if _, err := os.Stat(filepath.Join(w.o.Store.SpoolDir("nightly", filepath.Base(path)), "state.json")); err != nil {
		t.Errorf("the download was not kept: %v", err)
	}
	if out = w.run(); out.Exit != 0 || w.active() != oldNight {
		t.Errorf("%+v", out)
	}
}

// What nobody needs any more gives way before an install is refused.
func TestWhatNobodyNeedsGivesWay(t *testing.T) {
	w := newWorld(t)
	for i, night := range []string{"10.2.0a20260926", "10.2.0a20260927", "10.2.0a20260928", oldNight} {
		w.publish(night, 5-i)
		w.run(func(o *Options) {
			in := o.Installs[0]
			in.Keep = 9
			o.Installs = []Install{in}
		})
	}
	w.publish(newNight, 1)
	slot := filepath.Join(w.root, "slots/nightly-gfx1151")
	if err := os.Mkdir(filepath.Join(slot, ".staging-OFTHEDEAD"), 0o755); err != nil {
		t.Fatal(err)
	}
	names := func() []string {
		var names []string
		for _, dir := range []string{slot, filepath.Join(slot, "generations")} {
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				names = append(names, e.Name())
			}
		}
		return names
	}
	out := w.run(on(&disk{bytes: 10, inodes: plenty}), func(o *Options) { o.DryRun = true })
	if out.Exit != 0 || !strings.HasSuffix(out.Message, ": it does not fit") || !slices.Contains(names(), ".staging-OFTHEDEAD") {
		t.Errorf("a dry run: %+v, %v", out, names())
	}
	out = w.run(on(&disk{bytes: 10, inodes: plenty}))
	if out.Exit != ExitFailed || w.active() != oldNight {
		t.Errorf("%+v", out)
	}
	left := names()
	if slices.Contains(left, ".staging-OFTHEDEAD") || slices.Contains(left, "10.2.0a20260926") || !slices.Contains(left, "10.2.0a20260927") {
		t.Errorf("%v was left", left)
	}
	// A look that finds room again goes on.
	if out = w.run(on(&disk{bytes: 10, inodes: plenty, later: &disk{bytes: plenty, inodes: plenty}})); out.Exit != 0 || w.active() != newNight {
		t.Errorf("%+v", out)
	}
}

// The parts of a download that are there already are not needed twice, and a
// tarball that another target has unpacked needs next to nothing.
func TestWhatIsThereIsNotNeededTwice(t *testing.T) {
	w := newWorld(t)
	w.publishFamily(oldNight, "gfx103X-all")
	var spaces []*Room
	rep, n := w.twins()
	for _, out := range rep.Installs {
		spaces = append(spaces, out.Space)
	}
	if rep.Exit != 0 || n != 1 || spaces[0] == nil || spaces[1] == nil || spaces[1].Bytes > spaces[0].Bytes/2 {
		t.Fatalf("%d downloads, %+v %+v", n, spaces[0], spaces[1])
	}

	v := newWorld(t)
	path := v.publish(oldNight, 1)
	v.broken.Store(true)
	v.run()
	v.broken.Store(false)
	c, err := v.o.Client(nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := c.List(context.Background(), "nightly", v.o.Channels["nightly"].Indexes)
	if err != nil {
		t.Fatal(err)
	}
	spool := v.o.Store.SpoolDir("nightly", filepath.Base(path))
	dl, err := c.Download(context.Background(), l.Releases[0], spool)
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	if _, err := all.ReadFrom(dl); err != nil {
		t.Fatal(err)
	}
	if err := dl.Close(); err != nil {
		t.Fatal(err)
	}
	a, err := c.Ahead(context.Background(), l.Releases[0], spool)
	if err != nil || a.Bytes() != 0 || a.Kept != int64(all.Len()) || a.Size != a.Kept {
		t.Errorf("%+v, %v", a, err)
	}
	// Of another object everything goes first.
	if err := os.WriteFile(path, append(all.Bytes(), 0), 0o644); err != nil {
		t.Fatal(err)
	}
	a, err = c.Ahead(context.Background(), l.Releases[0], spool)
	if err != nil || a.Kept != 0 || a.Stale != int64(all.Len()) || a.Bytes() != 1 {
		t.Errorf("%+v, %v", a, err)
	}
}

// Needs on one file system add up, those on two do not; what cannot be looked
// at is left to writing.
func TestTheSpoolMayBeElsewhere(t *testing.T) {
	w := newWorld(t)
	fi, err := os.Stat(w.publish(oldNight, 1))
	if err != nil {
		t.Fatal(err)
	}
	size := fi.Size()
	for name, c := range map[string]struct {
		spool, slots int64
		together     bool
		fits, mount  string
	}{
		"room in both":       {size, 10 * size, false, "yes", ""},
		"the spool is full":  {size - 1, 10 * size, false, "no", "/spool"},
		"the slots are full": {size, size - 1, false, "no", "/slots"},
		"both are one":       {2*size - 1, 2*size - 1, true, "no", ""},
		"neither is known":   {0, 0, false, "", ""},
	} {
		out := w.run(func(o *Options) {
			o.DryRun = true
			o.Space = func(dir string) (diskspace.Space, error) {
				s := diskspace.Space{Dev: 1, Mount: "/slots", Bytes: c.slots, Inodes: diskspace.Unknown}
				if strings.Contains(dir, "/spool/") && !c.together {
					s.Dev, s.Mount, s.Bytes = 2, "/spool", c.spool
				}
				if c.fits == "" {
					return s, unix.EIO
				}
				return s, nil
			}
		})
		switch {
		case c.fits == "":
			if out.Space != nil || out.Exit != 0 {
				t.Errorf("%s: %+v", name, out.Space)
			}
		case out.Space.Fits != c.fits || c.mount != "" && out.Space.Mount != c.mount:
			t.Errorf("%s: %+v", name, out.Space)
		}
	}
}

// What is left out may be most of a tarball: that the tree is as large as the
// tarball, or as that of another target, is no reason to refuse then.
func TestWhatIsLeftOutMayMakeItFit(t *testing.T) {
	w := newWorld(t)
	w.publishFamily(oldNight, "gfx103X-all")
	fi, err := os.Stat(filepath.Join(w.amd, "therock-dist-linux-gfx103X-all-"+oldNight+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	of := func(target string) func(*Options) {
		return func(o *Options) {
			o.Installs[0].Target, o.Installs[0].Repack.Omit = target, []string{"kernels"}
			o.Installs = o.Installs[:1]
		}
	}
	dry := func(o *Options) { o.DryRun = true }
	small := on(&disk{bytes: fi.Size() + 1, inodes: plenty})
	if out := w.run(of("gfx1030"), small, dry); out.Space.Basis != basisGuess || out.Space.Fits != "perhaps" {
		t.Errorf("%+v %+v", out, out.Space)
	}
	if out := w.run(of("gfx1030")); out.Exit != 0 {
		t.Fatalf("%+v", out)
	}
	if out := w.run(of("gfx1031"), small, dry); out.Space.Basis != basisLast || out.Space.Fits != "perhaps" {
		t.Errorf("%+v %+v", out, out.Space)
	}
}
