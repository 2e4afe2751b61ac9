package systemd

// dropIns are what options lay over a unit, by unit and name: no package ships them,
// because a drop-in that is there holds.
var dropIns = map[string]map[string]string{
	"rocm-nightly-update.timer":   {"laptop": laptopTimer},
	"rocm-nightly-update.service": {"laptop": laptopService, "gpu": gpuService},
	"rocm-nightly.service":        {"gpu": gpuService},
}

const laptopTimer = `# Once a week. Every three hours of that day, because what is due on battery is left
# out: the times after one that was done find nothing to do, or one night more.
[Timer]
OnCalendar=
OnCalendar=Sun *-*-* 00/3:30:00
`

const laptopService = `# Not on battery.
[Unit]
ConditionACPower=true
`

const gpuService = `# A night is tried on the GPU (health: {smoke: gpu}): KFD and the render nodes are let
# in, and memory that is written and executed, which AMD's runtime asks for.
[Service]
PrivateDevices=no
DevicePolicy=closed
DeviceAllow=/dev/kfd rw
DeviceAllow=char-drm rw
SupplementaryGroups=render video
MemoryDenyWriteExecute=no
`
