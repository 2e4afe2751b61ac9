// Package update is the pipeline: index, download, repack, audit, switch, bump.
// It joins fetch, repack, store and bump and knows no format of its own.
//
// It promises:
//
//   - Up to date means no download, no change and no error: an install whose
//     active generation is the newest admissible release, made by the same
//     recipe, is left alone.
//   - Whatever fails, what was installed stays in use. A new generation becomes
//     current with one rename, after its digest agreed with everything that is
//     known about it and the audit did not refuse it.
//   - A night that the user left with rollback or use is not brought back, and
//     a night that the audit refused is not fetched again until something
//     changed.
//   - A tarball that is kept takes the place of the network where its digest is
//     the one that is wanted, also when nobody serves it any more. What is to be
//     kept is kept after it was verified, and never thrown away for room.
//   - A pull request rests on bytes that were downloaded, verified, repacked and
//     audited here.
//   - Repair writes into no file that is there, takes no bytes but those that the
//     manifest names, and can be killed at any moment.
//   - A run that dies at any instant, or whose disk fails, is finished by the
//     next one, which ends in the same state: its debris is gone, what it had
//     committed is activated, what it had downloaded is used, what it had to
//     prune is pruned.
//   - One run at a time: a second one is told who holds the lock.
package update
