// Package pgunzip decompresses gzip (RFC 1952) at the speed of the machine, in
// pure Go: on one core about twice as fast as other Go packages, and on several
// cores in parallel, whatever program made the file.
//
// [Reader] is an [io.Reader]. It promises:
//
//   - What comes out is what compress/gzip makes of the same input, byte by byte;
//     each member's CRC-32 and length are checked.
//   - Members that follow one another are one stream. NULs after the last are
//     padding, as on tapes; other bytes there are ErrTrailing.
//   - Damaged input is an error: a *CorruptError, ErrHeader, ErrChecksum, or
//     io.ErrUnexpectedEOF where it ends too early. Never a panic, never an
//     access outside the buffers, never an endless loop. What came before the
//     damage is delivered first.
//   - Memory is bounded by the options, not by the input.
//   - When the context ends, so does Read, with the context's error. Close leaves
//     no goroutine behind.
//   - What the source has delivered is decompressed without waiting for more.
//
// # How
//
// A block of deflate (RFC 1951) can begin at any bit, refers to the 32 KiB before
// it and says nowhere how long it is, so that a file cannot simply be cut up. With one
// or two workers, Reader goes through it block by block. With more, the way is that of
// rapidgzip (Knespel and Brunst, "Rapidgzip: Parallel Decompression and Seeking
// in Gzip Files Using Cache Prefetching", HPDC 2023, doi:10.1145/3588195.3592992),
// which goes back to pugz (Kerbiriou and Chikhi, HiCOMB 2019):
//
//   - The input is cut into pieces of a fixed size. In each, a worker looks for a
//     bit at which a dynamic block can begin, and decodes from there to the first
//     block of the next piece. As it does not know the 32 KiB before, it decodes
//     to 16-bit symbols: a byte, or a marker for the byte at some place of the
//     unknown window. When the last 32 KiB are free of markers it goes on with bytes.
//   - One goroutine, the driver, follows the true stream. Where a worker began just where the
//     stream is, its chunk is taken, and the window for the next chunk settled; where it
//     did not, because it took something else for a block or found none, the
//     driver decodes that piece itself. So a wrong guess costs time, never a byte.
//   - Workers replace the markers of the chunks that were taken, and compute their CRC-32,
//     from which those of the members are combined.
//
// It is the driver who works when the source is slow, when blocks are larger than
// pieces, stored, or not to be found: the stream is then decoded in order, as with one
// worker, and after a while without a find the workers rest for a growing number of pieces.
package pgunzip
