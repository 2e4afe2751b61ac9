package update

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/schema"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// Bounds of looks.json.
const (
	maxLooks     = 200
	maxIndexes   = 200
	maxLookError = 2000 // bytes of one text
)

// looksFormat is that of looks.json.
var looksFormat = schema.Format{Name: store.LooksFile, Else: "remove it: it is made anew"}

// ReadLooked returns what is known of the indexes from the last looks and updates
// of all installs, each with its own time: looks.json. The error matches
// fs.ErrNotExist where nobody has looked yet.
func ReadLooked(st *store.Store) (*Looked, error) {
	var l Looked
	if err := readService(st, store.LooksFile, looksFormat, &l); err != nil {
		return nil, err
	}
	return &l, nil
}

// readService decodes one of the files in ROOT.
func readService(st *store.Store, name string, format schema.Format, v any) error {
	b, err := st.ReadService(name)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if b, err = format.Read(b); err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

// writeService encodes one of the files in ROOT.
func writeService(st *store.Store, name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	return st.WriteService(name, append(b, '\n'))
}

// indexes is what each index said that this run has asked.
func (r *run) indexes() []LookedIndex {
	out := []LookedIndex{}
	for _, channel := range slices.Sorted(maps.Keys(r.listings)) {
		l := r.listings[channel]
		if errors.Is(l.err, context.Canceled) {
			continue // the run was told to end: what was known of them holds
		}
		if l.err != nil {
			out = append(out, r.silent(channel, l)...)
		} else {
			for _, s := range l.l.Sources {
				ix := LookedIndex{Channel: channel, URL: s.URL, Tried: l.at, Frozen: s.Source.Frozen || s.Until != ""}
				switch {
				case s.Err != nil:
					ix.Error = cut(s.Err.Error())
				default:
					ix.At, ix.Unchanged, ix.Newest = l.at, s.Unchanged, utc(s.Newest)
				}
				out = append(out, ix)
			}
		}
	}
	return out
}

// silent are the indexes of a channel none of which has answered.
func (r *run) silent(channel string, l *listed) (out []LookedIndex) {
	sources := r.o.Channels[channel].Indexes
	var each interface{ Unwrap() []error }
	var errs []error
	if errors.As(l.err, &each) {
		errs = each.Unwrap()
	}
	for i, s := range sources {
		ix := LookedIndex{Channel: channel, URL: redacted(s.URL), Tried: l.at, Frozen: s.Frozen || s.Until != "", Error: cut(l.err.Error())}
		if len(errs) == len(sources) {
			ix.Error = cut(errs[i].Error())
		}
		out = append(out, ix)
	}
	return out
}

func cut(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxLookError)], "") }

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}

// keepLook brings what was found together with what was known, in l too: an index
// that did not answer, and an install of which nothing could be found out, keep
// what was said before, beside the error. That this cannot be written down, because
// there is no store yet or it is another user's, is no failure of a look.
func (r *run) keepLook(l *Looked) {
	if r.o.Store == nil {
		return
	}
	before, err := ReadLooked(r.o.Store)
	switch {
	case errors.Is(err, schema.ErrNewer):
		r.o.Log.Debug("what was found is not kept", "error", err)
		return
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		r.o.Log.Warn("what was known of the indexes is lost, and begun anew", "error", err)
	}
	if before == nil {
		before = &Looked{}
	}
	for i := range l.Installs {
		l.Installs[i].after(before)
	}
	for i := range l.Indexes {
		l.Indexes[i].after(before)
	}
	kept := &Looked{Schema: looksFormat.Now(), At: l.At, Exit: l.Exit, Installs: l.Installs, Indexes: l.Indexes}
	for _, in := range before.Installs {
		if !slices.ContainsFunc(l.Installs, func(n LookedAt) bool { return n.Install == in.Install }) {
			kept.Installs = append(slices.Clone(kept.Installs), in)
		}
	}
	for _, ix := range before.Indexes {
		// Of a channel that was asked, those that are left were taken out of the config.
		if !slices.ContainsFunc(l.Indexes, func(n LookedIndex) bool { return n.Channel == ix.Channel }) {
			kept.Indexes = append(slices.Clone(kept.Indexes), ix)
		}
	}
	kept.trim()
	err = writeService(r.o.Store, store.LooksFile, kept)
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		r.o.Log.Debug("what was found is not kept", "error", err)
	default:
		r.o.Log.Warn("what was found of the indexes could not be kept", "error", err)
	}
}

// trim keeps what was looked at last.
func (l *Looked) trim() {
	if len(l.Installs) > maxLooks {
		l.Installs = slices.Clone(l.Installs)
		slices.SortStableFunc(l.Installs, func(a, b LookedAt) int { return b.At.Compare(a.At) })
		l.Installs = l.Installs[:maxLooks]
	}
	if len(l.Indexes) > maxIndexes {
		l.Indexes = slices.Clone(l.Indexes)
		slices.SortStableFunc(l.Indexes, func(a, b LookedIndex) int { return b.Tried.Compare(a.Tried) })
		l.Indexes = l.Indexes[:maxIndexes]
	}
	for i := range l.Installs {
		l.Installs[i].Error, l.Installs[i].Message = cut(l.Installs[i].Error), cut(l.Installs[i].Message)
	}
}

// after takes over what was known before of what is not known now.
func (at *LookedAt) after(before *Looked) {
	i := slices.IndexFunc(before.Installs, func(b LookedAt) bool { return b.Install == at.Install })
	if i < 0 {
		return
	}
	was := before.Installs[i]
	if was.Success.After(at.Success) {
		at.Success = was.Success
	}
	if at.Err == nil || at.Newest != "" {
		return
	}
	at.Newest, at.URL, at.Published, at.Size = was.Newest, was.URL, was.Published, was.Size
	at.State, at.Until, at.Stale = was.State, was.Until, cmp.Or(at.Stale, was.Stale)
}

// after takes over what an index said before that has not answered.
func (ix *LookedIndex) after(before *Looked) {
	i := slices.IndexFunc(before.Indexes, func(b LookedIndex) bool { return b.Channel == ix.Channel && b.URL == ix.URL })
	if i < 0 || ix.Error == "" {
		return
	}
	was := before.Indexes[i]
	ix.At, ix.Unchanged, ix.Newest = was.At, was.Unchanged, was.Newest
}

// keepRun writes down what a run has found of the indexes, so that who runs it by a
// timer has that too.
func (r *run) keepRun(rep *Report) {
	if r.o.DryRun || r.o.Version != "" {
		return // a run about one version did not look at what else there is
	}
	l := &Looked{Schema: Schema, At: r.o.Now().UTC(), Installs: []LookedAt{}, Indexes: r.indexes()}
	for _, out := range rep.Installs {
		if out.looked != nil {
			l.Installs = append(l.Installs, *out.looked)
		}
	}
	l.Exit = rep.Exit
	r.keepLook(l)
}

// noteLook remembers what an update has found of the index, and how it ended.
func (t *task) noteLook(err error) {
	if t.slot == nil || t.r.o.DryRun || t.r.o.Version != "" {
		return
	}
	from, now := t.from, verdict{err: err, wait: t.out.Waits}
	if cur, cerr := t.slot.Current(); cerr == nil {
		t.from = cur
	}
	if err == nil && now.wait == nil {
		now.why = t.out.Message
	}
	at := t.lookedAt(now)
	t.from = from
	at.Admits, at.Message = false, t.out.Message
	if err != nil && at.State == "" && t.early.newest != nil {
		at.State = StateNewer // it is known, and could not be installed
	}
	if err != nil {
		at.Exit = gravest(at.Exit, exitOf(err))
	}
	if err == nil && (at.Exit == ExitOK || at.Exit == ExitStale) {
		at.Success = at.At
	}
	t.out.looked = &at
}
