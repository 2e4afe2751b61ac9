package update

import (
	"errors"
	"fmt"

	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/repack"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// decide says why nothing is to be done, or which generation that is already
// here would do; neither means that the release must be fetched.
func (t *task) decide() (gen *store.Generation, why string, err error) {
	explicit := t.r.o.Version != ""
	told := explicit || t.by != nil // a lock may lead backwards
	if t.r.o.AcceptNewBytes {
		return nil, "", nil // only a download tells whether there are any
	}
	if t.r.o.NoInstall {
		return nil, t.recorded(), nil
	}
	if t.from != nil {
		same, err := t.sameRecipe(t.from)
		if err != nil {
			return nil, "", err
		}
		if t.from.Version == t.rel.Version.String() && same {
			return nil, "up to date: " + t.from.Name, nil
		}
		if t.older() && !told && !t.r.o.Policy.AllowDowngrade {
			return nil, fmt.Sprintf("nothing newer than %s is admissible (the newest is %s; set policy.allow_downgrade to take it)", t.from.Name, t.rel.Version), nil
		}
	}
	if !explicit && t.slot.Skip(t.rel.Version.String()) {
		return nil, fmt.Sprintf("%s was left by rollback or use; waiting for something newer (or: rocm-nightly use %s %s)", t.rel.Version, t.slot.Name(), t.rel.Version), nil
	}
	gen, err = t.present()
	return gen, "", err
}

// older reports whether the release is older than what is active. Builds of
// commits have no order of their own: the index's time decides.
func (t *task) older() bool {
	v, err := release.ParseVersion(t.from.Version)
	if err != nil {
		return false
	}
	active := release.Release{Version: v, MTime: t.rel.MTime}
	if pin, err := t.r.pinOf(t.from); err == nil && pin != nil {
		active.MTime, active.Name = pin.MTime, pin.Name
	}
	return fetch.Compare(t.r.o.Policy.Prefer, t.rel, active) < 0
}

// recorded says that a run without installing has verified and audited this
// very release before; then its pin is known without a download.
func (t *task) recorded() string {
	var rec Record
	if err := t.slot.ReadRun(t.rel.Version.String(), &rec); err != nil || rec.Exit != ExitOK || rec.Verified == nil || rec.URL != t.rel.URL {
		return ""
	}
	if recipe, err := repack.Recipe(rec.Verified.Digest, t.in.Repack); err != nil || recipe.String() != rec.Recipe {
		return ""
	}
	// Uploaded again since: only another download tells whether it is the same.
	pin := t.r.ledgerPin(t.in.Channel, t.rel.Name, rec.Verified.Digest)
	if pin == nil || !pin.MTime.Equal(t.rel.MTime) {
		return ""
	}
	t.out.pin = pin
	return "up to date: " + rec.Version + " was verified and audited before"
}

// want is the digest that the lock names for the release that it chose.
func (t *task) want() (release.Digest, bool) {
	if t.by == nil {
		return "", false
	}
	d, ok := t.by.by[key(t.rel.Channel, t.rel.Name)]
	return d, ok
}

// sameRecipe reports whether a generation was made the way it would be made
// now. One whose manifest is damaged was not: it is made anew.
func (t *task) sameRecipe(g *store.Generation) (bool, error) {
	m, err := g.Manifest()
	if errors.Is(err, store.ErrNewer) || errors.Is(err, manifest.ErrNewer) {
		return false, fmt.Errorf("read what %s was made of: %w", g.Name, err)
	}
	if err != nil {
		t.r.o.Log.Warn("a generation does not say what it was made of", "generation", g.Name, "error", err)
		return false, nil
	}
	if want, ok := t.want(); ok && m.Digest != want.String() {
		return false, nil // the lock names other bytes
	}
	recipe, err := repack.Recipe(release.Digest(m.Digest), t.in.Repack)
	return recipe.String() == m.Recipe, err
}

// present looks for the release among the generations that are here.
func (t *task) present() (*store.Generation, error) {
	gens, err := t.slot.Generations()
	if err != nil {
		return nil, err
	}
	for _, g := range gens {
		if g.Version != t.rel.Version.String() || g.Active {
			continue
		}
		if same, err := t.sameRecipe(&g); err == nil && same {
			return &g, nil
		}
	}
	return nil, nil
}

var (
	errRefusedBefore  = errors.New("the audit refused this night before")
	errSmokedBefore   = errors.New("this night failed its health check before")
	errNewBytesBefore = errors.New("this night has new bytes under a known name")
)

// newBytesKey marks, among the refusals of a slot, those for new bytes.
const newBytesKey = "new bytes: "

// refusalKey changes when anything changes that the audit's verdict on rel rests
// on.
func (t *task) refusalKey(rel release.Release) string {
	o := t.in.Repack
	key := fmt.Sprintf("%s %d %v %s %s %v", rel.Name, rel.MTime.Unix(), o.Audit, o.Profile, o.RunPath, o.AddRPath)
	if len(o.Omit) > 0 {
		key += fmt.Sprintf(" %v", o.Omit)
	}
	return key
}

// refusedBefore says that a night was tried before and why it was not taken.
func (t *task) refusedBefore() error {
	refusal, err := t.slot.Refused(newBytesKey + t.refusalKey(t.rel))
	if err != nil {
		return err
	}
	if refusal != nil {
		return fmt.Errorf("%w (seen %s: %s); if AMD says that it was replaced: rocm-nightly update --accept-new-bytes",
			errNewBytesBefore, refusal.At.Format("2006-01-02"), refusal.Reason)
	}
	if err := t.smokedBefore(); err != nil {
		return err
	}
	return t.heldBack(t.refusalKey(t.rel), errRefusedBefore)
}

// heldBack says, as an error of that kind, that this night was refused before
// under a key.
func (t *task) heldBack(key string, kind error) error {
	refusal, err := t.slot.Refused(key)
	if err != nil || refusal == nil {
		return err
	}
	return fmt.Errorf("%w (%s: %s); waiting for a newer one; to try it all the same: rocm-nightly update --version %s",
		kind, refusal.At.Format("2006-01-02"), refusal.Reason, t.rel.Version)
}
