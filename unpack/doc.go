// Package unpack turns the byte stream of a ROCm tarball into a tree.
//
// It promises:
//
//   - Nothing is written outside the directory that it is given: every access
//     goes through [os.Root], absolute names and names with ".." are refused by
//     name, and links are made last, after every file has been written, so that
//     no file is ever written through one.
//   - What cannot belong to a ROCm is refused by name: devices, FIFOs, a name
//     listed twice, a file below a link, a relative link out of the tree.
//   - Owners are never restored. Regular files come out 0444 or 0555,
//     directories 0755: no setuid, setgid, sticky or foreign write bit survives.
//   - The stream is read to its end. Truncation, a wrong gzip checksum, a tar
//     without its end and whatever the source reader reports in place of
//     [io.EOF] are errors, and then the tree must be thrown away.
//   - Memory does not grow with the tarball's size, and limits on bytes,
//     entries and compression ratio stop a bomb.
//   - The same stream gives the same tree, times included.
//
// AMD's tarballs are made with "tar cfz X.tar.gz ." in the root of the tree:
// each name begins with "./", there is no top-level folder, hidden directories
// such as .kpack matter, hard links are stored relative to the archive's root,
// and absolute links that name the build machine occur.
package unpack
