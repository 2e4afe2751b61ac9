// Package plain makes names that come from a tarball, a process or a machine fit
// to be shown: on a terminal, in a log, in a report.
//
// What it returns holds nothing that a terminal obeys, that a log takes for a
// new line, that is invisible, or that turns the direction of writing, and it is
// UTF-8.
package plain
