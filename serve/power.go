package serve

import (
	"io"
	"io/fs"
	"path"
	"strings"
)

// maxSysfs bounds what is read of a file of /sys, in bytes.
const maxSysfs = 256

// onMains reports whether the machine has mains power, as systemd's
// ConditionACPower= tells it: some supply is on; or none is off, and no battery but
// those of devices is being discharged. What cannot be read counts as mains, so that
// a machine without batteries is never kept from running. sys is /sys.
func onMains(sys fs.FS) bool {
	const dir = "class/power_supply"
	entries, err := fs.ReadDir(sys, dir)
	if err != nil {
		return true
	}
	off, battery, discharging := false, false, false
	for _, e := range entries {
		read := func(name string) string { return sysWord(sys, path.Join(dir, e.Name(), name)) }
		if read("scope") == "Device" { // of a mouse
			continue
		}
		switch read("type") {
		case "Mains", "USB", "Wireless":
			switch read("online") {
			case "1", "2":
				return true
			case "0":
				off = true
			}
		case "Battery":
			battery = true
			discharging = discharging || read("status") == "Discharging"
		}
	}
	if off { // of a machine without a battery that is a port with nothing in it
		return !battery
	}
	return !discharging
}

// sysWord is the one word of a file, "" if there is none.
func sysWord(sys fs.FS, name string) string {
	f, err := sys.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSysfs))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
