// Package metrics tells the numbers of a State in Prometheus' form.
//
// It promises: every name, unit and label is one of the table in families.go and of
// docs/metrics.md; a label is a name that the config or this program chose, never
// the text of an error, and a version is a label of the info metrics alone; what
// strangers wrote is made printable and short, and there is a bound to how much of
// it is told; what is not known is absent, and not 0; a counter does not go down
// while the process lives, also when the config is read anew; nothing is global.
package metrics
