package main

import (
	"os"
	"syscall"
)

// serviceCache is where systemd makes the service's CacheDirectory=.
const serviceCache = "/var/cache/rocm-nightly"

// isService reports whether this is the service, or somebody who acts as its user:
// whoever owns what the system's own service installs. It has no home and no
// variables that say where that is, least of all in `sudo -u rocm-nightly`.
func (a *app) isService() bool { return owns(a.uid, systemRoot) }

// owns reports whether path is a directory of the user.
func owns(uid int, path string) bool {
	fi, err := os.Stat(path) // StateDirectory= of a DynamicUser= is a link
	if err != nil || !fi.IsDir() {
		return false
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == uid
}
