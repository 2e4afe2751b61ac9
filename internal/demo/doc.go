// Package demo makes nightlies: small ones, complete and shaped like AMD's,
// from programs that are built or found on this machine, and the index page
// that lists them. `rocm-nightly demo` shows the whole job with it, offline;
// tests of every room use it as the other side of the wire.
//
// What it promises:
//
//   - A tarball of this package is one that `tar cfz X.tar.gz .` could have
//     written: first member ./ with the builder's directory mode, every name
//     below it ./…, no top-level directory, GNU format, hard links as links,
//     records of 10 KiB, one gzip member. The same input gives the same bytes.
//   - A night holds each trap that was seen in AMD's tarballs, and needs the
//     repair: its program does not start where the tarball was just unpacked,
//     when a C compiler was there to build it.
//   - The page is one HTML document without links; the names are in a script.
//     Files are served with ranges, a strong ETag and Last-Modified.
//   - Nothing is fetched, and nothing is left outside the directory given.
//
// [MoveProgramHeaders] makes of a linker's ELF file what AMD's kpack splitter
// makes of it, for whoever has to read or edit such files.
package demo
