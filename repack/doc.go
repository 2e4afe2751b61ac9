// Package repack turns a ROCm tarball into a finished prefix, and does nothing
// else: no network, no store. It joins unpack, patchelf, wrap and audit.
//
// It promises:
//
//   - All or nothing. The prefix appears under its name with one rename, after
//     every byte has been read, the digest agreed, the tree was patched and the
//     audit did not refuse; until then, and after any failure, whatever was
//     there before is untouched and nothing half-made is left.
//   - What cannot be edited safely is left byte for byte as AMD made it, and
//     reported.
//   - Nothing from the tree is executed.
//   - The same tarball and options give the same prefix, times included.
//     manifest.json and files.jsonl say what was done to what.
//   - What Options.Omit leaves out is no library that a file of the rest needs,
//     and omitted.jsonl lists it.
//   - What [Clone] makes of another prefix of the tarball is what the tarball
//     itself would have given, or it refuses. It only reads that prefix, and
//     writes to no file whose content the two share.
package repack
