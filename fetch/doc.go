// Package fetch takes AMD's index to a stream of bytes: List reads the pages
// that list tarballs, Select picks one release from them, and
// Client.Download streams it while it arrives in parallel segments.
//
// It promises:
//
//   - An index may be AMD's page, a directory listing as nginx, Apache or a
//     page generator writes it, the listing of an S3 bucket (both versions,
//     with all its pages), a JSON array or NDJSON of {name, mtime}, or a
//     directory of this machine (file://). Its content tells which, never its
//     host, name or content type.
//   - A listing is never guessed. A page that has no list of files, one that
//     is cut off, or a list in which no name is of AMD's grammar, is a
//     *LayoutError; an empty list is "nothing published" and a valid listing,
//     but for an empty directory, which may be a mirror that is not mounted.
//   - A web page leads to files beside it, and a bucket to files in it:
//     references to other hosts and directories are counted and not followed.
//     What is read of an index is bounded, in bytes, entries and pages.
//   - A Client asks for an index again only if it changed, where the server
//     can tell (ETag, Last-Modified); twice a day it does not rely on that.
//   - Every rejected release can be explained (NoReleaseError).
//   - The stream is the published bytes, all of them, in order: Read returns
//     io.EOF only after exactly Size bytes. Bytes of two versions of one
//     object are never joined, within a run or across runs; an answer that is
//     not exactly the range asked for is refused before a byte of it is
//     written; nothing is decompressed on the way.
//   - A segment that is whole and synced to disk is never fetched again while
//     the object stays the same, whatever kills the process.
//   - No wait is unbounded: connections, headers and bodies have time limits,
//     and so does what a server may ask for in Retry-After. A server may be
//     slow, but not silent.
//   - A file:// release is read where it is, and never changed or removed; it
//     is one file, or the stream ends with an error (*ChangedError).
//   - TLS everywhere but on loopback, unless Options.Insecure says otherwise;
//     a redirect never leaves TLS. Only a user's own URL leads to files of
//     this machine, never an index or a redirect. No error holds a user name,
//     a password or a query string of a URL.
//   - Close leaves no goroutine behind.
//
// What the package does not promise is who made the bytes: AMD publishes no
// digest. Hash the stream (release.VerifiedReader) and settle that before
// anything made of it is used. It does notice an object that is replaced
// under the same name, by its strong ETag, or its Last-Modified and size.
package fetch
