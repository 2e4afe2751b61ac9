// Package systemd holds the unit files that are shipped, so that `init systemd` writes
// the same text: Files is this directory. system and user units, what makes the
// service's user (sysusers.d) and the link at /opt/rocm (tmpfiles.d), and the drop-ins
// that `init systemd` lays over them. docs/systemd.md explains each line.
package systemd

import "embed"

// Files has *.service, *.socket and *.timer of the system; user, sysusers.d and
// tmpfiles.d with theirs; drop-ins, each named by the unit that it is for: UNIT@NAME.conf
// goes to UNIT.d/NAME.conf.
//
//go:embed *.service *.socket *.timer user sysusers.d tmpfiles.d drop-ins
var Files embed.FS
