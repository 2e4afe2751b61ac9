package doctor

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/audit"
	"github.com/rocm-nightly/rocm-nightly/internal/ldcache"
)

// checkLoader looks what programs without a run path of their own get.
func checkLoader(_ context.Context, x *exam) error {
	cache, err := x.cache()
	if err != nil {
		if x.exists(ldcache.Path) {
			x.find(Finding{Check: "cache-damaged", Severity: Warning, Subject: ldcache.Path, Detail: err.Error(),
				Why: "the loader passes over it: libraries in directories of ld.so.conf are not found", Remedy: []string{"sudo ldconfig"}})
		}
		return nil
	}
	winners := map[string]*Copy{}
	order := []string{}
	seen := map[string]bool{}
	for _, e := range cache.Entries {
		if !mainLibrary(e.Name) || !e.X8664() || strings.HasSuffix(e.Name, ".so") || seen[e.Name] {
			continue
		}
		seen[e.Name] = true
		paths := cache.Lookup(e.Name, audit.HWCaps())
		if len(paths) == 0 {
			continue // for processors that this one is none of
		}
		first := paths[0]
		real := x.real(first)
		if real == "" && !x.gone(first) {
			continue
		}
		if real == "" {
			x.find(Finding{Check: "cache-stale", Severity: Warning, Subject: first, Detail: "ld.so.cache has it, and it does not exist",
				Why: "programs that need " + e.Name + " and have no run path do not start", Remedy: []string{"sudo ldconfig"}})
			continue
		}
		x.fact("ld.so.cache gives %s as %s", e.Name, first)
		if c := x.copyOf(real); c != nil {
			winners[e.Name] = c
			order = append(order, e.Name)
		}
	}
	x.cacheMixed(winners, order)
	return nil
}

// cacheMixed finds a ROCm of which the cache gives one main library, and for
// another, by the same name, that of a second ROCm. Those whose names differ, as
// libamdhip64.so.6 and .7, live side by side.
func (x *exam) cacheMixed(winners map[string]*Copy, order []string) {
	for _, name := range order {
		for _, other := range order {
			a, b := winners[name], winners[other]
			if a.Root == b.Root || a.Version == b.Version && a.Version != "" || !slices.Contains(x.mainLibraries(a.lib), other) {
				continue
			}
			extra := b
			if b.Kind == distribution {
				extra = a
			}
			x.find(Finding{Check: "cache-mixed", Severity: Broken, Subject: ldcache.Path, Detail: name + " is that of " + a.describe() + ", and " + other + " is that of " + b.describe(),
				Why:    "a program without a run path gets both: hipErrorOutOfMemory at the first stream, or wrong code in silence",
				Remedy: []string{"grep -rl -e " + quote(extra.lib) + " /etc/ld.so.conf.d /etc/ld.so.conf   # take it out there, or remove the other", "sudo ldconfig"}})
			return
		}
	}
}

// cache reads ld.so.cache.
func (s *System) cache() (*ldcache.Cache, error) {
	f, err := s.open(ldcache.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, ldcache.MaxSize+1))
	if err != nil {
		return nil, err
	}
	return ldcache.Parse(data)
}
