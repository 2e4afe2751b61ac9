// Package fault is named points at which a test lets the program fail: it dies
// there, or the call that follows says that the disk is full, broken or
// read-only. They stand around every step that changes what is on disk.
//
//	if err := fault.Point("store.switch.rename"); err != nil { return err }
//
// It promises:
//
//   - A normal build has none of it: Point and Call return nil, Write writes,
//     and the compiler leaves nothing of the first two.
//   - With the build tag faults the environment arms one point:
//     ROCM_NIGHTLY_FAULT=NAME[#N]:KIND, at its Nth passage (the first if it is
//     not said). Each armed point acts once, and says so on standard error; ROCM_NIGHTLY_FAULT=trace
//     has every passage of a point said there.
//   - [Points] lists every point that is in the source, each of which is there
//     once; a test holds the two against each other.
//
// The kinds are exit (SIGKILL, which no defer outlives), EIO, ENOSPC, EDQUOT,
// EROFS, EINTR and short. Where the step is a call through package os, which
// repeats what a signal has cut short, EINTR changes nothing; where it is a bare
// system call it is returned, and the caller has to repeat the call. At a Write
// every error leaves the first half of the bytes behind, exit too, and short has
// them written in two.
package fault
