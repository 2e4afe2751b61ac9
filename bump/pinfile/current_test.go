package pinfile

import (
	"maps"
	"slices"
)

// current returns the values that keys name.
func (f format) current(src []byte, keys []string, o Options) (map[string]string, error) {
	doc, err := f.read(src, o)
	if err != nil {
		return nil, err
	}
	found, err := chooseAll(src, doc, keys)
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(found))
	for _, c := range found {
		out[c.key] = c.Value
	}
	return out, nil
}

// editNix is Edit of a file of Nix, for bytes without a name.
func editNix(src []byte, set map[string]string) ([]byte, error) {
	res, err := nixFormat().edit(src, set, Options{})
	if err != nil {
		return nil, err
	}
	return res.Text, nil
}

// currentNix returns the values that the keys of set name in src, a file of Nix.
func currentNix(src []byte, set map[string]string) (map[string]string, error) {
	return nixFormat().current(src, slices.Sorted(maps.Keys(set)), Options{})
}
