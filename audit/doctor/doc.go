// Package doctor looks at a machine on which ROCm does not work, or may not, and
// says what is wrong, why it matters and which command puts it right on this
// distribution.
//
// [Run] looks at a [System]: [This] is the machine that it runs on, and a
// recorded one is as good. What it promises:
//
//   - It changes nothing and starts nothing: no file of a tree, no tool of the
//     system. All it does beyond reading is to open GPU devices and close them,
//     since only that tells whether it may.
//   - A finding is something that was seen. What cannot be read, as another
//     user's processes, is said to be unseen and is no finding.
//   - Each finding names what was looked at, what is wrong, why that matters, and
//     the remedy: a command for this distribution where there is one.
//   - Names are printable, whatever files, variables and processes are called,
//     and quoted where they stand in a command.
//   - Files, directories and processes are read within limits, links are followed
//     at most 40 times, and only regular files are opened.
//   - The same machine gives the same report, in the same order.
//
// Severities say what follows: [Broken] is what stops GPU programs, or makes
// wrong results of them, for certain; [Warning] is what will do so in cases that
// are named; [Note] is worth knowing. docs/doctor.md lists every check with its
// source.
package doctor
