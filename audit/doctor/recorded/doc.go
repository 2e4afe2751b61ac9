// Package recorded makes a [doctor.System] of a machine that is written down in
// a txtar file: for tests, which have no such machine.
//
// The file machine.json says who asks and what a text cannot hold: GPUs, devices,
// links, attributes; see [Machine]. Every other file of the archive whose name
// begins with / is a file of the machine. It promises that nothing of the machine
// that runs the test is seen.
package recorded
