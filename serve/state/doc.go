// Package state is what the service knows of itself and of what it keeps: one
// document, made anew when something changes, and never changed once it was
// published. The status page shows it, the API answers with it (GET
// /api/v1/state), the metrics are its numbers, and alarms are made of it.
//
// It promises: a State that was published is read by many without a lock; its
// JSON form is versioned by its schema and described field by field in docs; it
// holds no secret, and nothing in it is trusted to be free of markup.
package state
