// Package unpack turns the byte stream of a ROCm tarball into a tree.
//
// It promises:
//
//   - Nothing is written outside the directory that it is given: every access
//     goes through [os.Root], or through a directory that was opened with it
//     to make a new name in it; absolute names and names with ".." are refused by
//     name, and links are made last, after every file has been written, so that
//     no file is ever written through one.
//   - What cannot belong to a ROCm is refused by name: devices, FIFOs, a name
//     listed twice, a name of more than 128 components or with one of more than
//     255 bytes, a file below a link, and names and link targets that are not
//     UTF-8 or hold control characters or characters that are not seen.
//   - A relative link that leads out of the tree is refused: through other
//     links, by way of what is missing should somebody make it, or behind more
//     links than the kernel follows.
//   - What tools read in different ways is refused, although it leads nowhere:
//     content of directories and links, two names for one entry, files whose
//     name ends with a slash, global headers with names or sizes.
//   - An absolute link becomes a relative one to what it means in the tree, or
//     is dropped and reported. Which of the two does not depend on the order of
//     the archive.
//   - Owners, extended attributes and ACLs are never restored. Regular files
//     come out 0444 or 0555, directories 0755: no setuid, setgid, sticky or
//     foreign write bit survives.
//   - Times are whole seconds from 1970-01-01 00:00:01 to the beginning of the year
//     2200, those outside are moved to the nearest; the result and the disk
//     agree, unless the file system itself ends earlier.
//   - A tar is read as it is or compressed with gzip, zstd or xz, told apart by
//     the first bytes. All that is promised here holds for each of them.
//   - The stream is read to its end. Truncation, a wrong checksum, a tar
//     without its end, data after the end of the tar or of the compressed
//     stream and whatever the source reader reports in place of [io.EOF] are
//     errors, and then the tree must be thrown away. NULs may fill up either
//     end. The result says which checksum the stream has proved: a plain tar,
//     zstd --no-check and xz --check=none have none.
//   - Limits on bytes, entries and compression ratio stop a bomb; holes count
//     as bytes, and implied directories as entries. The ratio is that of the
//     bytes of content, and of tar, to those of the stream as it came. The
//     headers of an archive and the bytes of its names are bounded by the same
//     limits.
//   - Memory does not grow with the tarball's size, only with the number of its
//     names: about 600 bytes for each, as long as they are of usual length, and
//     256 bytes of name and link target for each on average at most.
//     Besides, at most 37 MiB are between the source and the disk, and 32 MiB
//     of text that Edit has seen. Decompressing takes little for gzip with up
//     to three processors, and with more what pgunzip says of so many workers;
//     twice the window for zstd, the dictionary for xz: windows over 128 MiB
//     and dictionaries over 256 MiB are refused.
//   - The same stream gives the same tree, times of files and links included,
//     at any parallelism. Directories have no time of their own on disk: what
//     makes the tree further changes it, and the caller sets it last.
//   - Zeros at multiples of 64 KiB, of 64 KiB and more, take no room on disk.
//   - An error of the disk names the entry that was being written. Nothing
//     waits for the source then.
//   - When the context ends, Tree returns at once with the context's error,
//     even while the source hangs. The goroutine that reads the source outlives
//     Tree only if a Read of the source is still under way a tenth of a second
//     after Tree has failed, and ends with that Read: a source that can hang
//     should stop when the context ends.
//
// docs/unpack.md lists the attacks by which all of this is tested.
//
// AMD's tarballs are made with "tar cfz X.tar.gz ." in the root of the tree:
// each name begins with "./", there is no top-level folder, hidden directories
// such as .kpack matter, hard links are stored relative to the archive's root,
// and absolute links that name the build machine occur.
package unpack
