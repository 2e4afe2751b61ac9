package pinfile

import (
	"fmt"
	"maps"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/lockfile"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// lockDoc is a rocm-nightly.lock: JSON whose pins are named by their target,
// gfx1151.version, or by channel and target where a target is pinned twice,
// nightly-gfx1151.version. What it says must hold together, so that all of a
// pin is set at once: version, url, size and a digest at least.
type lockDoc struct {
	*tree
}

func parseLock(src []byte, _ Options) (document, error) {
	t, err := readJSON(src, false)
	if err != nil {
		return nil, err
	}
	d := &lockDoc{tree: t}
	if err := d.verify(); err != nil {
		return nil, err
	}
	return d, nil
}

// verify implements verifier.
func (d *lockDoc) verify() error {
	_, err := lockfile.Parse(d.src)
	return err
}

// find takes TARGET.FIELD, CHANNEL-TARGET.FIELD, and whatever names a value of
// JSON.
func (d *lockDoc) find(key string) ([]Site, []Near, error) {
	k, err := readKey(key)
	if err != nil {
		return nil, nil, err
	}
	if len(k.steps) == 2 && !k.whole && k.steps[0].kind == stepName && k.steps[1].kind == stepName {
		var sites []Site
		for _, l := range d.all {
			if item := l.path.parent; l.path.name == k.steps[1].name && item != nil && item.item && d.isPin(item, k.steps[0].name) {
				sites = append(sites, l.site())
			}
		}
		if len(sites) > 0 {
			return sites, nil, nil
		}
	}
	return d.tree.find(key)
}

// isPin reports whether the pin at item is called so.
func (d *lockDoc) isPin(item *attrNode, name string) bool {
	if d.has(item, "target", name) {
		return true
	}
	channel, target, ok := strings.Cut(name, "-")
	return ok && d.has(item, "channel", channel) && d.has(item, "target", target)
}

// implied implements implier: a digest is written in two forms, and the name
// and the time of a tarball follow from what is set.
func (d *lockDoc) implied(set map[string]string) map[string]string {
	out := maps.Clone(set)
	for key, value := range set {
		head, field, ok := cutLast(key)
		if !ok {
			continue
		}
		switch field {
		case "digest", "sri":
			other := map[string]string{"digest": "sri", "sri": "digest"}[field]
			if text, err := d.otherForm(value, other); err == nil {
				d.imply(out, head+other, text)
			}
		case "url":
			if name := value[strings.LastIndexByte(value, '/')+1:]; name != "" {
				d.imply(out, head+"name", name)
			}
		}
	}
	return out
}

// imply sets key if the file has it and nobody has set it.
func (d *lockDoc) imply(set map[string]string, key, value string) {
	if _, given := set[key]; given {
		return
	}
	if sites, _, err := d.find(key); err == nil && len(sites) == 1 {
		set[key] = value
	}
}

func (d *lockDoc) otherForm(digest, form string) (string, error) {
	sum, err := release.ParseDigest(digest)
	if err != nil {
		return "", fmt.Errorf("read digest: %w", err)
	}
	if form == "sri" {
		return release.SRI(sum), nil
	}
	return string(sum), nil
}

// cutLast splits a key before its last name: gfx1151. and version.
func cutLast(key string) (head, last string, ok bool) {
	i := max(strings.LastIndexByte(key, '.'), strings.LastIndexByte(key, '/'))
	return key[:i+1], key[i+1:], i > 0
}
