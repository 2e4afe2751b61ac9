// Package secret holds tokens and keys so that they do not get out by accident.
//
// A Secret prints as [redacted] whatever it is printed with, and is read from
// the environment, a file or a systemd credential, never from an argument.
// Whoever needs the text itself asks for it with Reveal.
package secret
