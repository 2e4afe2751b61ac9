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
//   - An index is sent again only if it changed, where the server can tell
//     (ETag, Last-Modified); twice a day that is not relied on. With
//     Options.CacheDir this holds across processes: a run that finds nothing
//     new is one request without a body for each index. What is in the cache
//     is parsed as if it had just been sent, and is not believed for longer;
//     a damaged cache, or one that others can write, is as good as none.
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
//     slow, but not silent; an index, or another small file, has some minutes
//     in all, so that one index never holds up the others.
//   - A file:// release is read where it is, and never changed or removed; it
//     is one file, or the stream ends with an error (*ChangedError).
//   - TLS everywhere but on loopback, unless Insecure says otherwise; a
//     redirect never leaves TLS, and leaves its host only for Source.AllowHosts.
//     Only a user's own URL leads to files of this machine, never an index or
//     a redirect.
//   - Headers, credentials, authorities and certificates of a Source are for
//     its origin: pages, tarballs and what stands beside them, and for no
//     other host, whoever sends the request there. No error holds a user
//     name, a password or a query string of a URL, or any of a file of secrets.
//   - Small requests use HTTP/2 where it is offered. Segments do not: each has
//     a connection of its own.
//   - Close leaves no goroutine behind.
//
// What the package does not promise is who made the bytes: AMD publishes no
// digest. Hash the stream (release.VerifiedReader) and settle that before
// anything made of it is used; SideDigests finds the digests that a mirror
// keeps beside its tarballs. It does notice an object that is replaced under
// the same name, by its strong ETag, or its Last-Modified and size; and an
// ETag that S3 made of the bytes is recomputed of them (Download.Checked),
// which says that they are what was uploaded, not that it was any good.
package fetch
