package fault

import "slices"

// Form is how a point stands in the source.
type Form string

// The forms of a point.
const (
	Step  Form = "step"  // Point or Do: a step, or a call through package os
	Sys   Form = "sys"   // Call: a bare system call, which the caller repeats
	Bytes Form = "bytes" // Write: bytes on their way to a file
)

// Place is one point.
type Place struct {
	Name string
	Form Form
}

// points is every point of the source, by room and in the order in which an
// update passes them.
var points = []Place{
	{"store.lock.record", Bytes},
	{"store.stage.lock", Step},
	{"store.stage.made", Step},
	{"store.debris.found", Step},
	{"store.debris.moved", Step},
	{"store.debris.remove", Step},

	{"fetch.spool.state", Step},
	{"fetch.spool.ready", Step},
	{"fetch.part.written", Step},
	{"fetch.part.sync", Sys},
	{"fetch.part.rename", Step},
	{"fetch.part.named", Step},
	{"fetch.spool.clear", Step},

	{"update.download", Step},
	{"update.repacked", Step},
	{"store.checks.write", Step},
	{"store.ledger.open", Step},
	{"store.ledger.append", Bytes},
	{"store.ledger.sync", Step},
	{"update.remembered", Step},

	{"update.reuse", Step},
	{"store.reuse.link", Step},
	{"store.reuse.list", Step},
	{"store.reuse.commit", Step},
	{"store.reuse.rename", Sys},
	{"store.reuse.end", Step},

	{"store.commit.sync", Sys},
	{"store.commit.synced", Step},
	{"store.commit.rename", Sys},
	{"store.commit.named", Step},
	{"store.commit.save", Step},
	{"store.seal.write", Step},
	{"store.commit.end", Step},
	{"update.committed", Step},
	{"store.records.made", Step},
	{"store.records.filled", Step},
	{"store.records.swap", Step},

	{"store.try.saved", Step},
	{"store.switch.symlink", Step},
	{"store.switch.rename", Step},
	{"store.switch.renamed", Step},
	{"store.switch.save", Step},
	{"store.file.write", Bytes},
	{"store.file.replace", Step},
	{"store.file.replaced", Step},
	{"store.dir.sync", Step},
	{"update.activated", Step},
	{"store.prove", Step},

	{"store.prune.away", Step},
	{"store.prune.sync", Step},
	{"store.prune.delete", Step},
	{"update.pruned", Step},
	{"update.link", Step},
	{"store.link.make", Step},
	{"store.tarball.way", Step},
	{"store.tarball.move", Step},
	{"store.tarball.moved", Step},
	{"store.runs.write", Step},
	{"store.runs.trim", Step},
	{"update.spool.drop", Step},
	{"store.lock.release", Step},

	{"bump.commit.made", Step},
	{"bump.branch.moved", Step},
	{"bump.request.opened", Step},
	{"bump.request.edited", Step},
	{"bump.request.tended", Step},
	{"bump.request.merged", Step},
	{"bump.request.commented", Step},
	{"bump.request.closed", Step},
	{"bump.branch.deleted", Step},
	{"bump.dashboard.opened", Step},
	{"bump.dashboard.edited", Step},
}

// Points returns every point, in the order in which an update passes them.
func Points() []Place { return slices.Clone(points) }

// Names returns the names of every point.
func Names() []string {
	var names []string
	for _, p := range points {
		names = append(names, p.Name)
	}
	return names
}

// Kinds returns what a point of this form can be armed with.
func (f Form) Kinds() []string {
	kinds := []string{"exit", "EIO", "ENOSPC", "EDQUOT", "EROFS", "EINTR"}
	if f == Bytes {
		kinds = append(kinds, "short")
	}
	return kinds
}
