// Package systemd holds the unit files that are shipped, so that `init systemd` writes
// the same text: Files is this directory. system and user units, what makes the
// service's user (sysusers.d) and the link at /opt/rocm (tmpfiles.d). Set is what `init
// systemd` writes of them, with drop-ins. docs/systemd.md explains each line.
package systemd

import "embed"

// Files has *.service, *.socket and *.timer of the system; user, sysusers.d and
// tmpfiles.d with theirs.
//
//go:embed *.service *.socket *.timer user sysusers.d tmpfiles.d
var Files embed.FS
