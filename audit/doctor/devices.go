package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
)

// kfd is the device that every ROCm program opens.
const kfd = "/dev/kfd"

// checkDevices looks whether the devices are there and may be opened. A render
// node is needed for each GPU that is used; other vendors' are left alone.
func checkDevices(_ context.Context, x *exam) error {
	if !x.hasGPU() && !x.exists(kfd) {
		return nil
	}
	if x.strangers() {
		return nil
	}
	x.device(kfd, true)
	if x.container != "" && !x.exists(kfd) {
		return nil // whoever gives the one gives the others
	}
	var nodes []string
	given := false
	for _, c := range x.cards {
		if c.render != "" && c.driver == "amdgpu" {
			nodes = append(nodes, path.Join("/dev/dri", c.render))
			given = given || x.exists(path.Join("/dev/dri", c.render))
		}
	}
	for _, n := range nodes {
		if x.container != "" && given && !x.exists(n) {
			x.fact("%s was not passed to this container", n)
		} else {
			x.device(n, len(nodes) == 1)
		}
	}
	return nil
}

// strangers reports that nothing of it can be right: no module, so no devices.
func (x *exam) strangers() bool { return !x.exists("/sys/module/amdgpu") && !x.exists(kfd) }

// device judges one device. one is set where nothing works without it.
func (x *exam) device(name string, one bool) {
	severity := Warning
	if one {
		severity = Broken
	}
	info, err := x.stat(name)
	if err != nil {
		x.absent(name, severity)
		return
	}
	if info.Mode()&fs.ModeCharDevice == 0 {
		x.find(Finding{Check: "device-type", Severity: severity, Subject: name, Detail: "it is " + kindOf(info.Mode()) + ", not a device",
			Why: "something made a file where the driver's device should be", Remedy: []string{"sudo rm -r " + name, "sudo udevadm trigger --subsystem-match=kfd --subsystem-match=drm"}})
		return
	}
	uid, gid, ok := owner(info)
	if !ok {
		return
	}
	x.access(device{name, info.Mode(), uid, gid, severity})
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory" // docker makes one for a volume that is not there
	case m.IsRegular():
		return "a file"
	}
	return "something else"
}

// absent says why a device is not there.
func (x *exam) absent(name, severity string) {
	f := Finding{Check: "device-absent", Severity: severity, Subject: name, Detail: "it does not exist",
		Why: "the HSA runtime opens it for every program: without it there is no GPU"}
	switch {
	case x.container != "":
		f.Detail = "it was not passed to this container"
		f.Remedy = []string{containerRun(x, nil)}
	case name == kfd && !x.exists("/sys/class/kfd"):
		f.Remedy = []string{"sudo modprobe amdgpu", "sudo dmesg | grep -i kfd"}
	default:
		f.Remedy = []string{"sudo udevadm trigger --subsystem-match=kfd --subsystem-match=drm", "sudo dmesg | grep -i amdgpu"}
	}
	x.find(f)
}

// containerRun is how a container is given the GPUs. Groups are given by number:
// the names of the host mean nothing inside.
func containerRun(x *exam, gids []int) string {
	tool, groups := "docker", "--group-add $(stat -c %g /dev/kfd) --group-add $(stat -c %g /dev/dri/renderD128)"
	if len(gids) > 0 {
		groups = ""
		for _, g := range gids {
			groups += fmt.Sprintf(" --group-add %d", g)
		}
		groups = strings.TrimSpace(groups)
	}
	if x.container == "podman" {
		tool, groups = "podman", "--group-add keep-groups"
	}
	switch x.container {
	case "kubernetes":
		return "ask for the resource amd.com/gpu, which AMD's device plugin gives"
	case "lxc":
		return "lxc config device add NAME gpu gpu"
	case "systemd-nspawn":
		return "systemd-nspawn --bind /dev/kfd --bind /dev/dri --property 'DeviceAllow=/dev/kfd rw' --property 'DeviceAllow=char-drm rw' …"
	case "flatpak":
		return "flatpak run --device=all APP"
	}
	return tool + " run --device /dev/kfd --device /dev/dri " + groups + " …"
}

// device is one that exists.
type device struct {
	name     string
	mode     fs.FileMode
	uid, gid int
	severity string
}

// access judges whether the user may open a device.
func (x *exam) access(d device) {
	acl := modeACL(d.mode)
	if x.Xattr != nil {
		if b, err := x.Xattr(d.name, aclAttr); err == nil {
			if a, ok := parseACL(b); ok {
				acl = a
			}
		}
	}
	who, all := x.who(), x.groups()
	if who.uid < 0 {
		return // nobody knows
	}
	file := groupsOf(all, who)
	now := file
	if x.o.User == "" {
		now = map[int]bool{x.GID: true}
		for _, g := range x.Groups {
			now[g] = true
		}
	}
	may, by := allowed(acl, d.uid, d.gid, who.uid, now)
	if may && x.o.User == "" && x.Try != nil {
		if err := x.Try(d.name); err != nil {
			x.refused(d, err)
			return
		}
	}
	if may {
		x.fact("%s: %s, opened by %s", d.name, x.mode(d, all), by)
		return
	}
	x.denied(d, acl, who, all, file)
}

// mode describes a device as ls does.
func (x *exam) mode(d device, all []group) string {
	name := nameOf(all, d.gid)
	if name == "" {
		name = fmt.Sprint(d.gid)
	}
	return fmt.Sprintf("%04o, group %s", d.mode.Perm(), name)
}

// refused is a device that the permissions open and the kernel does not.
func (x *exam) refused(d device, err error) {
	f := Finding{Check: "device-refused", Severity: d.severity, Subject: d.name, Detail: "its permissions are right, and opening it fails: " + errText(err),
		Why: "no ROCm program can use the GPU"}
	switch {
	case x.container != "" && (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES)):
		f.Why = "the container has the name of the device, and no leave to use it (the devices of its cgroup)"
		f.Remedy = []string{containerRun(x, []int{d.gid})}
	case errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES):
		f.Why = "a service's sandbox (DevicePolicy=, PrivateDevices=) or a security module forbids it"
		f.Remedy = []string{"in the unit: PrivateDevices=no, DeviceAllow=/dev/kfd rw, DeviceAllow=char-drm rw", "sudo journalctl -k -g 'avc|apparmor' -n 20"}
	default:
		f.Remedy = []string{"sudo dmesg | grep -iE 'amdgpu|kfd' | tail -n 30"}
	}
	x.find(f)
}

func errText(err error) string {
	var no syscall.Errno
	if errors.As(err, &no) {
		return no.Error()
	}
	return err.Error()
}

// denied is a device that the user may not open.
func (x *exam) denied(d device, acl []aclEntry, who account, all []group, file map[int]bool) {
	name := nameOf(all, d.gid)
	user := who.name
	if user == "" {
		user = me
	}
	f := Finding{Check: "device-group", Severity: d.severity, Subject: d.name,
		Detail: fmt.Sprintf("%s may not open it (%s)", user, x.mode(d, all)),
		Why:    "the HSA runtime sees no GPU, and says nothing but that there is none"}
	ifMember, _ := allowed(acl, d.uid, d.gid, -1, map[int]bool{d.gid: true})
	switch {
	case x.container != "":
		f.Check, f.Remedy = "device-container-group", []string{containerRun(x, x.gids(d.gid))}
		f.Why = fmt.Sprintf("the device has group %d of the host, which this process is not in; names of groups inside mean nothing", d.gid)
	case !ifMember || d.gid == 0:
		f.Check, f.Remedy = "device-mode", udevRule
		f.Detail += ": not even a group is let in"
	case file[d.gid] && x.o.User == "":
		f.Check = "device-login"
		f.Detail = fmt.Sprintf("%s is in group %s now, and was not yet when this session began", user, name)
		f.Remedy = []string{"log out and in again; where that does not help (lingering services, tmux): loginctl terminate-user " + quote(user),
			"a program at once: sg " + quote(name) + " -c COMMAND"}
	case name == "":
		f.Check, f.Remedy = "device-group", []string{fmt.Sprintf("sudo groupadd --gid %d render", d.gid), "sudo usermod -aG render " + quote(user), "log out and in again"}
		f.Detail += ": its group has no name here"
	default:
		f.Check, f.Remedy = "device-group", x.join(user, name)
	}
	x.find(f)
}

// gids are the groups of all devices, beginning with one.
func (x *exam) gids(first int) []int {
	all := []int{first}
	for _, c := range x.cards {
		if info, err := x.stat(path.Join("/dev/dri", c.render)); err == nil && c.render != "" {
			if _, gid, ok := owner(info); ok && !slices.Contains(all, gid) {
				all = append(all, gid)
			}
		}
	}
	return all
}

// udevRule gives the devices the group that distributions with a rule of their
// own give them.
var udevRule = []string{
	`printf '%s\n' 'SUBSYSTEM=="kfd", KERNEL=="kfd", TAG+="uaccess", GROUP="render", MODE="0660"' 'SUBSYSTEM=="drm", KERNEL=="renderD*", TAG+="uaccess", GROUP="render", MODE="0660"' | sudo tee /etc/udev/rules.d/70-amdgpu.rules`,
	"sudo groupadd --system --force render",
	"sudo udevadm control --reload && sudo udevadm trigger --subsystem-match=kfd --subsystem-match=drm",
}
