package body

import (
	"time"

	"github.com/rocm-nightly/rocm-nightly/audit/diff"
	"github.com/rocm-nightly/rocm-nightly/bump/pinfile"
)

// Proof is what one pin rests on: the record of the run that downloaded,
// verified, repacked and audited its tarball.
type Proof struct {
	Target  string
	Pin     pinfile.Pin
	Old     *Old     // what the pin names now; nil if it is not known
	Against []string // what the bytes were checked against
	Audit   *Audit
	Smoke   *Smoke
	Ran     time.Time    // when the run ended, UTC
	Tool    string       // what made it, e.g. rocm-nightly 0.9.0
	Recipe  string       // digest of the recipe
	Tree    string       // digest of the tree's list of files
	Entries int          // files of the tree
	Bytes   int64        // of the tree
	Diff    *diff.Report // from the tree of Old to this one; nil if there is none
	NoDiff  string       // why there is none, one line
}

// Old is the tarball that a pin names before the bump.
type Old struct {
	Version string
	Date    string // of publication, YYYY-MM-DD in UTC; "" if unknown
	Size    int64  // bytes; 0 if unknown
	Hex     string // "" if unknown
}

// Audit is what the audit of the tree came to.
type Audit struct {
	Scope                     string
	Fatal, Required, Warnings int
	Allowed                   int
	Findings                  []string // the gravest, one line each
	Refused                   bool
}

// Smoke is what running programs of the tree came to.
type Smoke struct {
	Mode                    string // cpu or gpu
	Passed, Failed, Skipped int
	Failures                []string // one line each
}
