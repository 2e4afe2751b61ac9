package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// tarballs is the JSON form of what is kept.
type tarballs struct {
	Schema   int             `json:"schema"`
	Count    int             `json:"count"`
	Bytes    int64           `json:"bytes"`
	Tarballs []keptTarball   `json:"tarballs"`
	Damaged  []damagedRecord `json:"damaged,omitempty"` // without a record that can be read
}

type damagedRecord struct {
	Dir   string `json:"dir"`
	Error string `json:"error"`
}

// keptTarball is the JSON form of one.
type keptTarball struct {
	Schema  int            `json:"schema"`
	Path    string         `json:"path,omitempty"` // where it was written, - for standard output
	Dir     string         `json:"dir"`            // where its parts are
	Name    string         `json:"name"`
	Channel string         `json:"channel"`
	Family  string         `json:"family"`
	Version string         `json:"version"`
	URL     string         `json:"url"`
	Size    int64          `json:"size"`
	Digest  release.Digest `json:"digest"`
	Hex     string         `json:"hex"`
	SRI     string         `json:"sri"`
	Nix32   string         `json:"nix32"`
	Kept    string         `json:"kept"`                   // when a slot last installed it
	Slots   []string       `json:"slots"`                  // those that want it
	Here    bool           `json:"already_here,omitempty"` // the file was there
	Whole   *bool          `json:"whole,omitempty"`        // --verify: its digest is right
	Damaged []string       `json:"damaged,omitempty"`      // --verify: the parts whose digests are not
	Error   string         `json:"error,omitempty"`
}

func keptOf(t *store.Tarball) keptTarball {
	e := t.Entry()
	return keptTarball{
		Schema: 1, Dir: t.Dir, Name: t.Name, Channel: t.Channel, Family: e.Family, Version: e.Version, URL: e.URL, Size: t.Size,
		Digest: t.Digest, Hex: t.Digest.Encoded(), SRI: release.SRI(t.Digest), Nix32: release.Nix32(t.Digest),
		Kept: t.Kept.Format("2006-01-02T15:04:05Z"), Slots: append([]string{}, t.Slots...),
	}
}

// tarballsKept lists what is kept, and checks it if that is wanted.
func (a *app) tarballsKept(ctx context.Context, st *store.Store, verify bool) error {
	all, err := st.Tarballs()
	if err != nil {
		return err
	}
	bad, err := st.DamagedTarballs()
	if err != nil {
		return err
	}
	if verify {
		return a.printTarballs(a.checked(ctx, all, bad))
	}
	return a.printTarballs(tarballList(all, bad), nil)
}

func tarballList(all []store.Tarball, bad []*store.TarballError) *tarballs {
	out := &tarballs{Schema: 1, Tarballs: []keptTarball{}}
	for i := range all {
		out.Tarballs = append(out.Tarballs, keptOf(&all[i]))
		out.Count++
		out.Bytes += all[i].Size
	}
	for _, b := range bad {
		out.Damaged = append(out.Damaged, damagedRecord{b.Dir, b.Err.Error()})
	}
	return out
}

// checked reads every tarball to its end.
func (a *app) checked(ctx context.Context, all []store.Tarball, bad []*store.TarballError) (*tarballs, error) {
	out := tarballList(all, bad)
	var failed error
	for i := range all {
		err := all[i].Check(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		t := &out.Tarballs[i]
		whole := err == nil
		t.Whole = &whole
		var damaged *store.TarballError
		if errors.As(err, &damaged) {
			t.Damaged = damaged.Parts
		}
		if err != nil {
			t.Error = err.Error()
			failed = errors.Join(failed, fmt.Errorf("%w (fetch it again, if AMD still lists it: rocm-nightly tarball %s --version %s --fetch)", err, firstSlot(t), t.Version))
		}
	}
	for _, b := range bad {
		if errors.Is(b, store.ErrNewer) { // which says itself what to try
			failed = errors.Join(failed, b)
			continue
		}
		failed = errors.Join(failed, fmt.Errorf("%w (it serves nobody: remove the directory)", b))
	}
	return out, failed
}

func firstSlot(t *keptTarball) string {
	if len(t.Slots) > 0 {
		return t.Slots[0]
	}
	return t.Family
}

// printTarballs prints what is kept; failed is what was found wrong with it.
func (a *app) printTarballs(out *tarballs, failed error) error {
	switch {
	case out == nil:
		return failed
	case a.json:
		a.printJSON(out)
		return failed
	}
	if out.Count == 0 && len(out.Damaged) == 0 {
		fmt.Fprintln(a.stderr, "no tarballs are kept; keep_tarballs in the config says how many are to be")
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, t := range out.Tarballs {
		state := ""
		switch {
		case t.Whole != nil && *t.Whole:
			state = "\twhole"
		case t.Whole != nil:
			state = "\tdamaged " + strings.Join(t.Damaged, " ")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s%s\n", t.Name, diskspace.Text(t.Size), t.SRI, strings.Join(t.Slots, ","), state)
	}
	for _, b := range out.Damaged {
		fmt.Fprintf(w, "! %s\t%s\n", b.Dir, printable(b.Error))
	}
	return errors.Join(failed, w.Flush())
}
