package fetch

import (
	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// route is the versions that an index is known to serve: from is in, until is
// out, and the zero Version leaves an end open.
type route struct{ from, until release.Version }

func routesOf(indexes []Source) ([]route, error) {
	out := make([]route, len(indexes))
	for i, ix := range indexes {
		var err error
		if out[i].from, err = release.ParseBound(ix.From); err != nil {
			return nil, badBound(ix, "from", err)
		}
		if out[i].until, err = release.ParseBound(ix.Until); err != nil {
			return nil, badBound(ix, "until", err)
		}
	}
	return out, nil
}

func badBound(ix Source, key string, err error) error {
	return &SettingError{URL: redact(ix.URL), Key: key, Reason: "write a version as in 10.1.0a20260823, or a series as in 10.1", Err: err}
}

func (r route) holds(v release.Version) bool {
	return (r.from.IsZero() || v.Compare(r.from) >= 0) && (r.until.IsZero() || v.Compare(r.until) < 0)
}
