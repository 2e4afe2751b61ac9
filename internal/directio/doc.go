// Package directio reads and writes large files past the page cache (open(2),
// O_DIRECT), where that is worth it.
//
// To copy a large file into fresh pages of the cache costs two to ten times the
// processor time of writing it, and the flush at the end waits for the last of
// it: 1.5 GB took 1.5 to 3.9 s of system time and 0.6 s of flush through the
// cache, and 0.3 s and nothing past it (ext4, Linux 6.18, dd in 1 MiB). What
// else the machine had in its cache stays there too.
//
// It is done on file systems that were measured: others compress what goes
// through the cache (btrfs), or have nothing to gain (tmpfs). Whoever uses it must
// be ready for EINVAL at any read or write, and go on through the cache.
package directio
