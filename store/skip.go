package store

import (
	"os"
	"slices"
	"time"
)

// Skip reports whether version must not be installed by a scheduled run,
// because the user has left it, or something newer, by Rollback or Use. Only
// what is newer than the newest version left moves on; Unhold, or Activate of
// something at least as new, ends it. A version without an order among those
// left (a build of a commit) is skipped only if it is one of them.
func (sl *Slot) Skip(version string) bool {
	if sl.err != nil {
		return false
	}
	st, err := sl.State()
	if err != nil {
		return false // who installs will meet the same error, and say it
	}
	return st.skips(version)
}

func (st *State) skips(version string) bool {
	return slices.ContainsFunc(st.Left, func(l string) bool {
		c, ok := compareVersions(version, l)
		return ok && c <= 0
	})
}

// keepNewer forgets what is not newer than to: what an activation does.
func keepNewer(left []string, _, to string) []string {
	return slices.DeleteFunc(left, func(l string) bool {
		c, ok := compareVersions(l, to)
		return !ok || c <= 0
	})
}

// leave records that the user went from one version to another: what is not
// older than the goal is left, the goal itself is not. from may be empty.
func leave(left []string, from, to string) []string {
	left = slices.DeleteFunc(left, func(l string) bool {
		c, ok := compareVersions(l, to)
		return l == from || ok && c <= 0
	})
	if from == "" {
		return left
	}
	// Another revision of the same version is left too: the next run would
	// otherwise bring it back.
	if c, ok := compareVersions(from, to); !ok || c >= 0 {
		left = append(left, from)
	}
	return left
}

// leftBehind tells, where the record of it was lost, which versions the user has
// left: those newer than the active one that were here when current was made to
// point to it, at that time. One that came later is only waiting.
func (sl *Slot) leftBehind(current string, names []string, at time.Time) []string {
	var left []string
	to, rev := versionOf(current)
	for _, name := range names {
		version, r := versionOf(name)
		c, ok := compareVersions(version, to)
		if !ok || c < 0 || c == 0 && r <= rev {
			continue
		}
		if fi, err := os.Stat(sl.path(generationsName, name)); err == nil && fi.ModTime().Before(at) {
			left = append(left, version)
		}
	}
	return slices.Compact(left)
}
