// Package smoke starts what is in a ROCm tree and looks at what comes out: a
// library that resolves is not yet a program that starts, and a compiler that
// starts is not yet one that finds its device libraries.
//
// [Run] takes a prefix laid out like a generation, or any ROCm tree, and
// answers with a [Report]: one [Check] for each program, compilation and kernel,
// and each environment. [Checks] says what each of them proves.
//
// What it promises:
//
//   - Nothing of the tree is executed but in a cage (package cage): as an
//     unprivileged user, without capabilities, credentials or network, with the
//     tree read-only, a scratch directory for HOME, and a time limit. Without a
//     cage every check is [NotRun], with the reason.
//   - A check that is [Passed] was run, ended by itself and gave what is known of
//     it: certain words, a code object for the target, the right numbers. What
//     the tree does not have is [NotThere], and so is what this machine lacks, a
//     C++ compiler's headers for instance; it is never passed.
//   - Each check is made in an empty environment, and again in that of a machine
//     with another ROCm on it: its directories are in LD_LIBRARY_PATH, PATH and
//     the variables by which ROCm finds itself, and whatever takes a library or a
//     program of it ends with status 66. No compiler is needed to make it.
//   - With a GPU, kernels and matrix products are computed in a process for each
//     GPU, and each value is compared: a crash, a hang and a wrong value are all
//     [Failed].
//   - No header of the machine is needed for that, nor for whatever else can do
//     without: the sources declare what they use.
//   - What the tree's programs wrote is read as hostile: bounded, through an
//     [os.Root], and printable in the report.
package smoke
