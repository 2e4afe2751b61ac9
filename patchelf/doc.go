// Package patchelf reads ELF files and edits, in place, what a relocated tree
// needs edited: the run path (DT_RPATH, DT_RUNPATH), the interpreter
// (PT_INTERP), the libraries that are needed (DT_NEEDED, and their names in
// the versions that are needed), DT_SONAME, DF_1_NODEFLIB, DT_DEBUG and whether
// the stack is executable (PT_GNU_STACK).
//
// An edit is read, planned, verified and only then applied. What it promises:
//
//   - The cost follows the headers and the string table, never the file: a
//     file of many gigabytes is read and edited with a few small reads and
//     writes. It is never read whole, rewritten or copied.
//   - Everything is found by segment and by DT_ address. Section headers are
//     kept true where they exist and are not needed where they do not, nor is
//     a program-header table at the start of the file.
//   - The smallest edit that is right is made. A string that the table has, or
//     that ends one it has, is pointed at; else it goes where the one that it
//     replaces was, or into room that is free; else behind the table, where
//     there is padding; else the table gets a new place, at the end of the
//     file, which later edits use and reuse: strings that become longer and
//     shorter by turns let a file grow once.
//   - Only bytes that no header owns are given away. Instructions and data
//     stay where they are. Of existing content only what lies directly behind
//     the program-header table may move, to make room for one more program
//     header: .interp, whole notes, and the hash and symbol tables that only
//     the dynamic section refers to. The dynamic section moves only where it
//     has no entry to spare. The program-header table moves only where nothing
//     else helps, to an address that kernels before 5.18 report too (AT_PHDR);
//     where that cannot be, the edit is refused unless Edit.MoveHeaders asks
//     for it.
//   - A string that anything else refers to, wholly or by its tail, is left
//     alone. Where it is not known what refers to the table, nothing in it is
//     overwritten.
//   - The file that would result is checked before the first byte is written.
//     What cannot be edited safely is a *RefusedError that names the rule, and
//     the file is as it was.
//   - Asking for what is already there writes nothing, and does not open the
//     file for writing. The same edit of the same bytes gives the same bytes.
//   - Writes are ordered so that the file loads after each of them, and says
//     of each thing what it said or what it shall say. What a loader sees
//     changes in writes inside one page (4096 bytes), so that a process that is
//     killed between two pages leaves such a file too. With Edit.Sync each step
//     is on the disk before the next, for a power cut.
//   - EditPath keeps the inode (hard links stay links), the mode and the
//     modification time.
//
// # What is checked
//
// A rule that a file breaks before the edit does not count: linkers break some.
//
//   - PT_LOADs ascend and share no page of memory; address and offset are
//     congruent modulo the alignment; each lies in the file. One more may come,
//     above all others, on pages of the largest alignment that the file asks
//     for, and behind all that the file has. Those that are there stay, at most
//     longer over bytes of their own; never one with .bss, so that .bss stays
//     zero.
//   - The program headers are loaded by one PT_LOAD, where PT_PHDR says, at
//     most 4096 bytes of them; and, for a program, where old and new kernels
//     say.
//   - PT_DYNAMIC, PT_INTERP, PT_NOTE, PT_TLS, PT_GNU_RELRO, PT_GNU_EH_FRAME and
//     PT_GNU_PROPERTY map back to their offsets. Every program header is still
//     there as it was, or moved with what is in it; only PT_NULL, a PT_PHDR that
//     no loader looks at, and a PT_NOTE that PT_GNU_PROPERTY repeats may go.
//   - The dynamic section is writable and ends; the interpreter ends in NUL;
//     versions are needed only of libraries that are needed.
//   - Section headers agree with all that.
//   - No byte changes but those of headers, of the dynamic section, of its
//     strings and versions, and of what moved; and zeros that nobody owns.
//   - All of it, but for the section headers, holds after each single write.
//
// Any bytes may be parsed: memory is bounded by the bytes that are there, not
// by what a field claims, and malformed input is an error of type
// *FormatError that names the field.
//
// The format is the System V gABI, chapters 4 and 5, with the GNU extensions
// that debug/elf names.
package patchelf
