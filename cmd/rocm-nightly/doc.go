// Command rocm-nightly takes AMD's ROCm nightlies from AMD's index to a
// working, verified prefix on disk, and to a commit in the repository that
// packages it.
//
// One file holds one verb: flags and printing, nothing else. The rules of its
// output: data goes to standard output and everything else to standard error;
// errors are one line, lower case, without a full stop, followed by a hint
// line that says what to try; --json prints exactly one JSON value with a
// schema field, failure included. Exit codes: 0 done or nothing to do, 1
// failed, 2 wrong usage or config, 3 the index is stale, 4 the audit refused,
// 5 new bytes under a known name.
package main
