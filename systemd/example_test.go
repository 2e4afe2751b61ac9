package systemd_test

import (
	"fmt"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/systemd"
)

// What `rocm-nightly init systemd --timer --laptop --arch gfx1151` writes.
func ExampleSet() {
	o := systemd.Options{
		Exec: []string{"/usr/local/bin/rocm-nightly"}, Laptop: true,
		Links: []systemd.Link{{Path: "/opt/rocm", Target: "/var/lib/rocm-nightly/slots/nightly-gfx1151/current"}},
	}
	files, err := systemd.Set(o)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range files {
		fmt.Printf("%s/%s\n", f.Kind, f.Path)
	}
	fmt.Println("systemctl enable --now", strings.Join(o.Enable(), " "))
	// Output:
	// systemd/system/rocm-nightly-update.service
	// systemd/system/rocm-nightly-update.service.d/laptop.conf
	// systemd/system/rocm-nightly-update.timer
	// systemd/system/rocm-nightly-update.timer.d/laptop.conf
	// systemd/system/rocm-nightly-check.service
	// systemd/system/rocm-nightly-check.timer
	// systemd/system/rocm-nightly-prune.service
	// systemd/system/rocm-nightly-prune.timer
	// sysusers.d/rocm-nightly.conf
	// tmpfiles.d/rocm-nightly-link.conf
	// systemctl enable --now rocm-nightly-update.timer rocm-nightly-check.timer rocm-nightly-prune.timer
}
