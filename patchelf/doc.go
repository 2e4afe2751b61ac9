// Package patchelf reads ELF files and edits, in place, the two things that a
// relocated tree needs edited: the run path (DT_RPATH, DT_RUNPATH) and the
// interpreter (PT_INTERP).
//
// An edit is read, planned, verified and only then applied. What it promises:
//
//   - The cost follows the headers and the string table, never the file: a
//     file of many gigabytes is read and edited with a few small reads and
//     writes. It is never read whole, rewritten or copied.
//   - Everything is found by segment and by DT_ address. Section headers are
//     kept true where they exist and are not needed where they do not, nor is
//     a program-header table at the start of the file.
//   - Only bytes that no header owns are given away. Instructions and data
//     stay where they are. Of existing content only what lies directly behind
//     the program-header table may move, to make room for one more program
//     header: .interp, whole notes, and the hash and symbol tables that only
//     the dynamic section refers to. The program-header table never moves. The
//     dynamic section moves only where it has no entry to spare.
//   - A string that anything else refers to, wholly or by its tail, is left
//     alone. Where it is not known what refers to the table, nothing in it is
//     overwritten.
//   - The file that would result is checked before the first byte is written.
//     What cannot be edited safely is a *RefusedError, and the file is as it
//     was.
//   - Asking for what is already there writes nothing, and does not open the
//     file for writing. The same edit of the same bytes gives the same bytes.
//   - Writes are ordered so that the file loads after each of them, but for
//     the rare file in which a hash or symbol table makes way for a program
//     header: between two writes, that one does not.
//   - EditPath keeps the inode (hard links stay links), the mode and the
//     modification time.
//
// Any bytes may be parsed: memory is bounded by the bytes that are there, not
// by what a field claims, and malformed input is an error of type
// *FormatError that names the field.
//
// The format is the System V gABI, chapters 4 and 5, with the GNU extensions
// that debug/elf names.
package patchelf
