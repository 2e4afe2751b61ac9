// Package diskspace tells what a file system has left, and whether a work
// that is ahead fits on it: before gigabytes are fetched, not after.
//
//	fs, err := diskspace.Statfs("/var/lib/rocm-nightly") // or what is there of it
//	if err == nil && fs.Fit(need) == diskspace.Short {
//	        return &diskspace.ShortError{What: "unpacking it", Need: need, Space: fs}
//	}
//
// It promises:
//
//   - A need is refused only when it cannot be met: when less is free than the
//     least that it takes. What may or may not do is Doubtful, which is a warning
//     and no more. No switch is needed to overrule it.
//   - What is free is what this user may have (f_bavail): blocks that are kept for
//     root are not counted, not even for root.
//   - What a file system does not tell is not guessed: one without a fixed number
//     of inodes (btrfs, a tmpfs without limits, most network ones) never lacks any.
//   - On a file system that may compress, content is counted as it would be in the
//     tarball at the least.
//
// Quotas are not looked at: there is no way to ask for them that all file
// systems share, and a project's quota is often seen by its administrator alone.
// What they forbid is EDQUOT when it is written, and as clean as a full disk.
// Nor does a look hold space back: somebody else may take it meanwhile.
package diskspace
