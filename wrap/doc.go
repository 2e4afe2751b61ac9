// Package wrap makes an unpacked ROCm tree usable where it lies: script
// interpreters, leaked builder paths, run paths, links, wrappers, hooks and
// environment files.
//
// It has four doors, in the order in which a repack meets them.
// [Scripts.Edit] rewrites one text file as it is unpacked, [RunPaths] plans the
// ELF edits once the facts of the whole tree are known, [CompilerPaths] those of
// the compiler's configuration, and [Finish] adds what stands around the tree:
// the root-shaped prefix. [ExampleFinish] shows the last.
// [Options.Check] says before all that whether Finish would take its options.
//
// # Promises
//
// Conservative. A rule that is not certain does not fire: the file stays as AMD
// made it and the audit reports it. An interpreter that cannot be found is
// listed by [Scripts.Unresolved], never guessed. Of a script only the bytes of
// the interpreter change, of a text file only those of the leaked path; mode,
// line ends and every other byte stay.
//
// Idempotent. Each rule applied to its own output changes nothing, and
// [RunPaths] plans nothing for a tree that it has already planned.
//
// Deterministic. The output is a function of the tree, the options and
// [Ruleset]. Nothing holds a clock, and no file but those in etc/ and
// nix-support/ and the compiler's configuration ([CompilerPaths]) holds an
// absolute path of the place where the prefix will live: a prefix moved as a
// whole still works, because each wrapper finds its own generation when it runs.
//
// Transparent. A wrapper passes arguments, standard input, exit status, signals
// and working directory through untouched: it ends in exec, and starts no
// program unless it was called through a symbolic link to itself.
//
// Contained. [Finish] writes through an [os.Root] and never over a file that
// exists; names in the tree are quoted for each syntax they are written in.
//
// # The shape of a prefix
//
// The prefix is itself shaped like a ROCm root, so that
// dirname(dirname(bin/hipcc)) is one: bin/ holds wrappers, share/ and etc/ hold
// links beside our own files, and each other top-level entry of opt/rocm has a
// link of its name. A top-level entry of the tree called opt, manifest.json or
// files.jsonl can have no such link; it is reached as opt/rocm/NAME.
package wrap
