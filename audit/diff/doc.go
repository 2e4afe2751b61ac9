// Package diff says what a reviewer needs to know before one ROCm tree takes
// the place of another: what may break, and what has changed.
//
// [Compare] reads two trees, the older one first, and answers with a [Report],
// which [Report.Text] writes for people, [Report.Markdown] for the body of a
// pull request, and encoding/json for programs. It executes nothing and writes
// nothing.
//
// What it promises:
//
//   - Each side is a prefix laid out like a generation, a bare ROCm tree (also
//     one that somebody else made), a files.jsonl alone, or what [Record] has
//     kept of a tree that is gone. Paths of the report are relative to the ROCm
//     tree.
//   - Where a side has a files.jsonl, digests and ELF facts are taken from it,
//     and only what differs is opened. Where one has none, files of equal size
//     are compared byte by byte, in parallel.
//   - Files that differ only in what was edited after unpacking, by our rules,
//     are told from files of which the published bytes differ.
//   - A file whose name differs in a version alone (libfoo.so.1.2 and
//     libfoo.so.1.3, lib/clang/22 and lib/clang/23) is one that was renamed.
//   - Symbols are judged as a loader does: what a program linked with A asks
//     of a library, name and version, is lost if B does not answer it.
//   - Nothing that was not looked at counts as equal: what could not be read is
//     in [Report.Notes].
//   - Links are made only of the URLs of known forges and of whole commit ids.
//     Names are printable, and in Markdown they stand in code spans: none of them
//     is a link, a mention, a table cell or a tag.
//   - Files are opened through an [os.Root], so that no link leads out of a tree;
//     lists, tables and texts are bounded, and so is the report.
//   - The same two trees give the same report, in the same order.
package diff
