// Package metrics tells the numbers of a State in Prometheus' form.
package metrics
