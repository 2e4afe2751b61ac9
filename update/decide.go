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
	// What the index lists does not hide what waits here.
	if g, rel := t.waiting(); g != nil && fetch.Compare(t.r.o.Policy.Prefer, rel, t.rel) >= 0 {
		t.take(rel)
		return g, "", nil
	}
	if t.from != nil {
		same, err := t.sameRecipe(t.from)
		if err != nil {
			return nil, "", err
		}
		listed := t.from.Version == t.rel.Version.String()
		switch {
		case listed && same:
			return nil, "up to date: " + t.from.Name, nil
		case listed:
			if err := t.refusedBefore(); heldBefore(err) {
				return nil, fmt.Sprintf("%s stays, made with other options: %v", t.from.Name, err), nil
			} else if err != nil {
				return nil, "", err
			}
		case t.older() && !told && !t.r.o.Policy.AllowDowngrade:
			why := fmt.Sprintf("nothing newer than %s is admissible (the newest is %s; set policy.allow_downgrade to take it)", t.from.Name, t.rel.Version)
			if !same {
				return t.again(why)
			}
			return nil, why, nil
		}
	}
	if !explicit && t.slot.Skip(t.rel.Version.String()) {
		return nil, fmt.Sprintf("%s was left by rollback or use; waiting for something newer (or: rocm-nightly use %s %s)", t.rel.Version, t.slot.Name(), t.rel.Version), nil
	}
	gen, err = t.present()
	return gen, "", err
}

// waiting returns the newest generation that was staged and not activated, made
// as it would be made now and still admissible, and its release: the index may
// not list that any more. nil if there is none.
func (t *task) waiting() (*store.Generation, release.Release) {
	if t.r.o.Version != "" || t.by != nil {
		return nil, release.Release{}
	}
	g, err := t.slot.Pending()
	if err != nil || g == nil {
		return nil, release.Release{}
	}
	if same, err := t.sameRecipe(g); err != nil || !same {
		return nil, release.Release{}
	}
	pin, err := t.r.pinOf(g)
	if err != nil || pin == nil || !t.admissible(pin.Release) {
		return nil, release.Release{}
	}
	if t.r.o.Policy.AllowDowngrade && g.Version != t.rel.Version.String() {
		return nil, release.Release{} // what the index lists is to be followed back, too
	}
	return g, pin.Release
}

// admissible reports whether the policy would take a release, were it listed.
func (t *task) admissible(rel release.Release) bool {
	p := t.r.policy()
	p.MinAge, p.Settle = 0, 0 // it has waited here
	_, err := fetch.Select(&fetch.Listing{Channel: t.in.Channel, Releases: []release.Release{rel}}, rel.Family, p)
	return err == nil
}

// again decides about a generation that is active, would be made in another way
// now, and is not listed any more: it is made again of what is here. Otherwise
// it stays, and why says so.
func (t *task) again(why string) (*store.Generation, string, error) {
	listed := t.rel
	stays := func(because string) (*store.Generation, string, error) {
		t.take(listed)
		return nil, why + "; it was made with other options, and " + because, nil
	}
	pin, err := t.r.pinOf(t.from)
	if err != nil {
		return nil, "", err
	}
	if pin == nil || !t.admissible(pin.Release) || t.slot.Skip(t.from.Version) {
		return stays("is not made anew")
	}
	t.take(pin.Release)
	if err := t.refusedBefore(); heldBefore(err) {
		return stays(err.Error())
	} else if err != nil {
		return nil, "", err
	}
	if gen, err := t.present(); err != nil || gen != nil {
		return gen, "", err
	}
	kept, err := t.r.o.Store.KeptTarball(t.in.Channel, pin.Name)
	if err != nil {
		t.r.o.Log.Warn("what is kept of a tarball is not known", "release", pin.Name, "error", err)
	}
	if twin, _ := t.twin(); kept != nil && kept.Digest == pin.Digest || twin != nil {
		return nil, "", nil
	}
	return stays(goneWords)
}

// goneWords say why a generation cannot be made anew.
const goneWords = "AMD does not offer it any more and its tarball was not kept"

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

// newBytesKey marks, among the refusals of a slot, those for new bytes.
const newBytesKey = "new bytes: "

// refusalKey changes when anything changes that was asked for when new bytes were
// found.
func (t *task) refusalKey(rel release.Release) string {
	o := t.in.Repack
	key := fmt.Sprintf("%s %d %v %s %s %v", rel.Name, rel.MTime.Unix(), o.Audit, o.Profile, o.RunPath, o.AddRPath)
	if len(o.Omit) > 0 {
		key += fmt.Sprintf(" %v", o.Omit)
	}
	return key
}
