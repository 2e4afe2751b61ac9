package update

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/lockfile"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// The values of Options.Verify.
const (
	VerifyObserved = "observed" // our own observation is enough; the default
	VerifyAgreed   = "agreed"   // Quorum of the sources under Trust must have the same digest
	VerifySigned   = "signed"   // a signed lock, or another signed source, must name it
)

// Place is where a lock or a ledger is kept, and who must have signed it.
type Place struct {
	URL string // https://, http:// of this machine, file://, or an absolute path
	Key string // minisign public key; "": no signature is asked for
}

// maxWords bounds a lock or a ledger of somebody else, in bytes.
const maxWords = 32 << 20

// word is what one Place says.
type word struct {
	place Place
	what  string                    // "the lock", "the ledger"
	lock  *lockfile.File            // or nil
	by    map[string]release.Digest // by key
}

// key is what a digest is known by: names are unique in a channel alone.
func key(channel, name string) string { return channel + " " + name }

// expects is w's digest as an expectation.
func (w *word) expects(d release.Digest) release.Expectation {
	kind := trustedKind + w.what
	return release.Expectation{Digest: d, Source: kind + " at " + redacted(w.place.URL), Kind: kind}
}

// Kinds of expectations. A digest that disagrees with one of them means that
// one name has had two contents, which is exit 5.
const (
	ledgerKind  = "the ledger"
	lockKind    = "the lock"
	trustedKind = "trusted: "
)

// knownBytes reports whether an expectation knows a name by its bytes from
// before.
func knownBytes(e release.Expectation) bool {
	kind := e.Vouch()
	return kind == ledgerKind || kind == lockKind || strings.HasPrefix(kind, trustedKind)
}

// read reads what a place says, and checks who signed it.
func (p Place) read(ctx context.Context, c *fetch.Client) (*word, error) {
	at := p.URL
	if filepath.IsAbs(at) {
		at = (&url.URL{Scheme: "file", Path: at}).String()
	}
	raw, err := c.Get(ctx, at, maxWords)
	if err != nil {
		return nil, err
	}
	if p.Key != "" {
		if err := p.verify(ctx, c, at, raw); err != nil {
			return nil, err
		}
	}
	w, err := parseWord(raw)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", redacted(p.URL), err)
	}
	w.place = p
	return w, nil
}

func (p Place) verify(ctx context.Context, c *fetch.Client, at string, raw []byte) error {
	key, err := lockfile.ParseKey(p.Key)
	if err != nil {
		return err
	}
	sig, err := c.Get(ctx, at+".minisig", 64<<10)
	if err != nil {
		return fmt.Errorf("read the signature of %s: %w", redacted(p.URL), err)
	}
	if err := lockfile.Verify(key, raw, sig); err != nil {
		return fmt.Errorf("verify the signature of %s: %w", redacted(p.URL), err)
	}
	return nil
}

// parseWord reads a lock or a ledger, whichever it is.
func parseWord(raw []byte) (*word, error) {
	var head struct {
		Pins json.RawMessage `json:"pins"`
	}
	w := &word{by: map[string]release.Digest{}}
	if json.NewDecoder(bytes.NewReader(raw)).Decode(&head) == nil && head.Pins != nil {
		lock, err := lockfile.Parse(raw)
		if err != nil {
			return nil, err
		}
		w.what, w.lock = "the lock", lock
		for _, pin := range lock.Pins {
			k := key(pin.Channel, pin.Name)
			if d, known := w.by[k]; known && d != pin.Digest {
				return nil, fmt.Errorf("it has two digests for %s: one of its pins is out of date", pin.Name)
			}
			w.by[k] = pin.Digest
		}
		return w, nil
	}
	entries, skipped, err := store.ParseLedger(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 && skipped > 0 {
		return nil, errors.New("it is neither a lock nor a ledger")
	}
	w.what = "the ledger"
	for _, e := range entries {
		w.by[key(e.Channel, e.Name)] = e.Digest // the last word counts
	}
	return w, nil
}

// words reads every source under Trust once. One that cannot be read says nothing.
func (r *run) words(ctx context.Context) []*word {
	if r.trusted != nil || len(r.o.Trust) == 0 {
		return r.trusted
	}
	r.trusted = []*word{}
	c, err := r.client()
	if err != nil {
		return r.trusted
	}
	for _, p := range r.o.Trust {
		w, err := p.read(ctx, c)
		if err != nil {
			r.o.Log.Warn("a source that is trusted could not be read", "url", redacted(p.URL), "error", err)
			continue
		}
		r.trusted = append(r.trusted, w)
	}
	return r.trusted
}

// lock reads the lock that Options names, once; nil if it names none.
func (r *run) lock(ctx context.Context) (*word, error) {
	if r.o.Lock.URL == "" || r.locked != nil || r.lockErr != nil {
		return r.locked, r.lockErr
	}
	c, err := r.client()
	if err == nil {
		r.locked, err = r.o.Lock.read(ctx, c)
	}
	if err == nil && r.locked.lock == nil {
		err = fmt.Errorf("%s is a ledger, not a rocm-nightly.lock", redacted(r.o.Lock.URL))
	}
	if err != nil {
		r.locked, r.lockErr = nil, fmt.Errorf("read policy.lock: %w; nothing is installed without it", err)
	}
	return r.locked, r.lockErr
}

// waits says what is still missing before the tarball called name, with this
// digest, may become active; "" if nothing is. A source that knows other bytes
// under the name is an error.
func (r *run) waits(ctx context.Context, channel, name string, digest release.Digest) (string, error) {
	lock, err := r.lock(ctx)
	if err != nil {
		return "", err
	}
	signed, agreeing := false, 0
	for _, w := range append([]*word{lock}, r.words(ctx)...) {
		if w == nil {
			continue
		}
		says, knows := w.by[key(channel, name)]
		switch {
		case !knows:
		case says != digest:
			return "", &release.MismatchError{Got: digest, Want: w.expects(says)}
		default:
			signed = signed || w.place.Key != ""
			if w != lock {
				agreeing++
			}
		}
	}
	switch {
	case r.o.Verify == VerifyAgreed && agreeing < r.o.Quorum:
		return fmt.Sprintf("%d of the %d trusted sources that must agree know this digest", agreeing, r.o.Quorum), nil
	case r.o.Verify == VerifySigned && !signed:
		return "no signed lock names it", nil
	}
	return "", nil
}

// redacted is a URL for people: without the secrets that it may hold.
func redacted(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(an unreadable URL)"
	}
	u.User, u.RawQuery = nil, ""
	return u.String()
}
