// Package actions tells GitHub Actions what became of a bump.
//
// Write is the door. It appends to the files that the runner names in
// GITHUB_OUTPUT and GITHUB_STEP_SUMMARY, and does nothing where there are none.
//
// It promises: a value holds whatever it holds and sets no output but its own,
// as it ends with a word that nobody can know; nothing is written to the
// runner's older interface, standard output; what is written is bounded.
//
// The composite action that runs a bump is .github/actions/bump. Tests of this
// package read it, and the example workflow, as a runner would.
package actions
