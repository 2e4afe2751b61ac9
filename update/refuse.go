package update

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/repack"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// The kinds of refusals, as state.json and status name them.
const (
	kindAudit  = "audit"  // the audit refused it
	kindOmit   = "omit"   // what is to be left out cannot be
	kindDamage = "damage" // two downloads could not be unpacked
	kindSmoke  = "smoke"  // something of it did not start
	kindHealth = "health" // the health command failed

	// KindOnce is that of a tarball that could not be unpacked once: it is
	// downloaded again, and nothing is refused yet.
	KindOnce = "damaged-once"
)

// Why a night is not tried again.
var (
	errRefusedBefore  = errors.New("the audit refused this night before")
	errFailedBefore   = errors.New("this night could not be made into a prefix before")
	errSmokedBefore   = errors.New("this night failed its health check before")
	errHealthBefore   = errors.New("this night failed the health command before")
	errNewBytesBefore = errors.New("this night has new bytes under a known name")
)

// heldBefore reports whether an error is one of them, new bytes aside.
func heldBefore(err error) bool {
	return errors.Is(err, errRefusedBefore) || errors.Is(err, errFailedBefore) || errors.Is(err, errSmokedBefore) || errors.Is(err, errHealthBefore)
}

// PassedOver is a release that would have been taken, had it not failed before.
type PassedOver struct {
	Version string `json:"version"`
	Reason  string `json:"reason"`
}

// verdictKey names a verdict on the release by all that it rests on: what is
// known of the tarball from outside, what shapes the prefix, what the audit
// and the unpacking are told, and the program that judges. When one of them
// changes it is tried again.
func (t *task) verdictKey(kind string) string {
	o := t.in.Repack
	shape, err := repack.Recipe("", o) // of the options and rules alone
	text, jerr := json.Marshal(struct {
		MTime   time.Time
		Size    int64
		Shape   string
		Audit   repack.AuditOptions
		Limits  any
		Decoder string
		Program string
	}{t.asked.MTime.UTC(), t.asked.Size, shape.String(), o.Audit, o.Limits, o.Decompressor, t.r.o.Program})
	if err != nil || jerr != nil {
		text = fmt.Appendf(nil, "%v %v", t.asked.MTime.Unix(), o.Audit)
	}
	return fmt.Sprintf("%s: %s %x", kind, t.rel.Name, sha256.Sum256(text))
}

// smokeKey is the verdictKey of a health check. Another mode, or none, tries again.
func (t *task) smokeKey(mode string) string { return t.verdictKey(kindSmoke + " " + mode) }

// healthKey names a failure of the health command: by what the generation was
// made of, which has the digest of the tarball in it, by the settings, and by the
// files that they name.
func (t *task) healthKey(recipe string) string {
	h := t.r.o.Health
	text, err := json.Marshal(struct {
		Command []string
		Timeout time.Duration
		Sandbox string
		Files   []string
	}{h.Command, h.timeout(), h.Sandbox, t.r.commandFiles()})
	if err != nil { // of strings, which cannot be
		text = fmt.Append(nil, h)
	}
	return fmt.Sprintf("%s: %s %x", kindHealth, recipe, sha256.Sum256(text))
}

// ownKeys are those of everything that may be held against the release with
// the present settings.
func (t *task) ownKeys() []string {
	keys := []string{t.verdictKey(kindAudit), t.verdictKey(kindOmit), t.verdictKey(kindDamage), t.verdictKey(KindOnce)}
	if mode := t.r.smokeMode(); mode != "" {
		keys = append(keys, t.smokeKey(mode))
	}
	if recipe := t.knownRecipe(); t.r.o.Health.on() && recipe != "" {
		keys = append(keys, t.healthKey(recipe))
	}
	return keys
}

// knownRecipe is the recipe that the release would have, "" while nobody has
// seen its bytes.
func (t *task) knownRecipe() string {
	digest, ok := t.want()
	if !ok {
		pins, err := t.r.pins(t.in.Channel, t.rel.Name)
		if err != nil || len(pins) == 0 {
			return ""
		}
		digest = pins[len(pins)-1].Digest
	}
	recipe, err := repack.Recipe(digest, t.in.Repack)
	if err != nil {
		return ""
	}
	return recipe.String()
}

// refuse remembers that this release failed by its own content, so that it is
// not tried again every night. gen is its generation, "" if there is none.
func (t *task) refuse(ctx context.Context, kind, key, gen string, err error) error {
	r := store.Refusal{Kind: kind, Version: t.rel.Version.String(), Generation: gen, Reason: err.Error()}
	return errors.Join(err, t.slot.RefuseAs(ctx, key, r))
}

// damaged remembers a tarball that could not be unpacked. Once may be the
// network's fault, or a cache's; twice is the tarball's.
func (t *task) damaged(ctx context.Context, err error, etag string) error {
	st, serr := t.slot.State()
	if serr != nil {
		return serr
	}
	once := t.verdictKey(KindOnce)
	etag = fmt.Sprintf("ETag %s: ", etag) // another one is another upload
	if was, again := st.Refused[once]; again && strings.HasPrefix(was.Reason, etag) {
		r := store.Refusal{Kind: kindDamage, Version: t.rel.Version.String(), Reason: fmt.Sprintf("it was downloaded twice and is damaged: %v", err)}
		return errors.Join(t.slot.RefuseAs(ctx, t.verdictKey(kindDamage), r), t.slot.Forgive(ctx, once))
	}
	return t.slot.RefuseAs(ctx, once, store.Refusal{Kind: KindOnce, Version: t.rel.Version.String(), Reason: etag + err.Error()})
}

// refusedBefore says that a night was tried before and why it was not taken.
// Who names a version, or asks for it by --retry, tries it again.
func (t *task) refusedBefore() error {
	if t.r.o.Version != "" || t.r.o.AcceptNewBytes {
		return nil
	}
	st, err := t.slot.State()
	if err != nil {
		return err
	}
	if r, ok := st.Refused[newBytesKey+t.refusalKey(t.rel)]; ok {
		return fmt.Errorf("%w (seen %s: %s); if AMD says that it was replaced: rocm-nightly update --accept-new-bytes",
			errNewBytesBefore, r.At.Format(time.DateOnly), r.Reason)
	}
	if t.r.o.Retry {
		return nil
	}
	for _, key := range t.ownKeys() {
		r, ok := st.Refused[key]
		if !ok || r.Kind == KindOnce {
			continue
		}
		kind := map[string]error{kindSmoke: errSmokedBefore, kindHealth: errHealthBefore, kindOmit: errFailedBefore, kindDamage: errFailedBefore}[r.Kind]
		if kind == nil {
			kind = errRefusedBefore
		}
		until := "waiting for a newer one"
		if t.by != nil {
			until = "no other may be taken, for policy.lock names it"
		}
		return fmt.Errorf("%w (%s: %s); %s; to try it all the same: rocm-nightly update --version %s",
			kind, r.At.Format(time.DateOnly), r.Reason, until, t.rel.Version)
	}
	return nil
}
