// Package fetch takes AMD's index to a stream of bytes: List reads the pages
// that list tarballs, Select picks one release from them, and
// Client.Download streams it while it arrives in parallel segments.
//
// It promises:
//
//   - A listing is never guessed. A page that has no list of files, or a list
//     in which no name is of AMD's grammar, is a *LayoutError; an empty list
//     is "nothing published" and a valid listing.
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
//   - TLS everywhere but on loopback, unless Options.Insecure says otherwise;
//     a redirect never leaves TLS. No error holds a user name, a password or
//     a query string of a URL.
//   - Close leaves no goroutine behind.
//
// What the package does not promise is who made the bytes: AMD publishes no
// digest. Hash the stream (release.VerifiedReader) and settle that before
// anything made of it is used. It does notice an object that is replaced
// under the same name, by its strong ETag, or its Last-Modified and size.
package fetch
