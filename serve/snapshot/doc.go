// Package snapshot makes a State of what is on disk, without the network and
// without a lock: of the slots, their generations and run records, of what the last
// look at the indexes and the last bumps have left in ROOT, and of the disk itself.
//
// It promises: what cannot be read (half a record of a process that was killed, one
// of a newer program, a slot of another user) is told where it stands, and hides
// nothing else; what is told is bounded, however long the machine runs; and what was
// true when the indexes were looked at is judged by what is active, and by the time
// that it is, now. A Taker that is kept reads again only what has changed.
package snapshot
