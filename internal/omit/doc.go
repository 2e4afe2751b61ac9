// Package omit says which parts of a ROCm tarball can be left out of a prefix,
// by name: its tests, say, or the kernels of GPUs that the machine does not
// have. The rules are data; docs/omit.md tells users what each takes and keeps.
//
// It promises:
//
//   - A path is judged by itself and its kind alone, so that the order of the
//     archive makes no difference, and by nothing that differs between machines.
//   - What is not known stays. A rule takes what AMD's names say for certain;
//     new programs, new kinds of kernels and names of GPUs that cannot be read
//     are not for it.
//   - GPU code that the target may run stays: with any features, and as a
//     generic processor or a family that covers it.
//   - Nothing that is named as a shared library, and no program, is to be
//     dropped unseen: what a rule says of those is only that nobody would
//     miss them, and whether a file that is kept needs them is for the caller
//     to find out.
//   - The terms under which a part may be used stay with its documentation.
//
// A change of the rules changes the bytes of a prefix: it raises wrap.Ruleset.
package omit
