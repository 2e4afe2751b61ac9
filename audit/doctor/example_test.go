package doctor_test

import (
	"context"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/rocm-nightly/rocm-nightly/audit/doctor"
)

// A machine is a file system and a process that asks: here one that has left
// something behind.
func ExampleRun() {
	s := &doctor.System{
		FS:      fstest.MapFS{"etc/os-release": {Data: []byte("ID=debian\nVERSION_ID=13\nPRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n")}},
		Environ: []string{"ROCM_PATH=/opt/rocm-5.7.0"},
		Kernel:  "6.12.48+deb13-amd64",
	}
	r, err := doctor.Run(context.Background(), s, doctor.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, section := range r.Sections {
		for _, f := range section.Findings {
			fmt.Printf("%s: %s: %s\n  -> %s\n", f.Severity, f.Subject, f.Detail, f.Remedy[0])
		}
	}
	// Output:
	// note: /sys/bus/pci/devices: it is not there to be looked at: a machine without PCI, or a sandbox without /sys
	//   -> name the target of the machine that will run it: rocm-nightly update --arch gfx1100
	// warning: ROCM_PATH=/opt/rocm-5.7.0: there is nothing
	//   -> unset ROCM_PATH
}
