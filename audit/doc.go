// Package audit proves a ROCm tree right on a machine without a GPU.
//
// [Run] reads a directory, a prefix laid out like a generation (it has
// opt/rocm) or a bare ROCm tree, and answers with a [Report]: what it checked
// and what it found. It executes nothing and writes nothing.
//
// What it promises:
//
//   - Libraries are resolved as ld.so of glibc does with an empty environment:
//     breadth first, each object once; DT_RPATH of the object and of those that
//     loaded it unless it has DT_RUNPATH; $ORIGIN taken from the name that the
//     object was found under; then the directories of the host.
//   - Versions of symbols are looked for in the library that was really taken, as
//     ld.so does once all is mapped, or compared with a floor that was asked for.
//   - Every ELF file for this machine is parsed, and judged by what the kernel and
//     ld.so map; GPU code objects, relocatables, static files and files for other
//     machines are left alone.
//   - A library that names GPU code archives finds at least one of them; with a
//     target, one that runs there. Kernels, and the compiler's device libraries,
//     are looked for with a target only; what AMD does not build, and what was left
//     out on purpose, is not held against a tree.
//   - Only a prefix that repack made is held to its wrappers and lists.
//   - A directory whose ROCm tree holds neither bin nor lib is no ROCm tree: that
//     is one fatal finding, rule [RuleTree], or [ErrNotTree] when it has not even
//     the names.
//   - Findings are printable, whatever the names in the tree are.
//   - Only files below the directory and the host's libraries and interpreters
//     are looked at. A link that leads out of the directory is reported, and
//     files are opened through an [os.Root].
//   - Hostile trees cost bounded memory and time: section, script and text sizes
//     are limited, links are followed at most 40 times.
//   - The same tree on the same host gives the same report, in the same order.
//
// A real nightly is never clean, so findings are graded: fatal ones always
// refuse a tree, required ones refuse it unless the tree in use has them too,
// warnings never do. [Report.Refused] applies that policy. docs/audit.md describes
// each rule, and [JSONSchema] the report as JSON.
package audit
