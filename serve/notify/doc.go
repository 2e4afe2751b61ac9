// Package notify tells people and programs what has happened: a webhook by signed
// JSON, people by the services of github.com/nicholas-fedor/shoutrrr (Slack, Discord,
// Matrix, ntfy, mail and others).
//
// It promises: nothing is told twice to the same receiver while it stays as it was,
// also where a daemon and a timer share one memory; what could not be sent is sent
// later, for three days; a receiver that is slow, dead or broken delays no other, and
// fails no run; an address of a receiver is in no error and in no log; and nothing
// that a name, an index or a forge has written can mention people, make links or add
// headers where it arrives.
package notify
