package doctor

import (
	"slices"
	"strconv"
	"strings"
)

// mount is a line of /proc/self/mountinfo.
type mount struct {
	at      string
	options string // of this mount: noexec, nosuid …
	kind    string // ext4, nfs4 …
	source  string
	super   string // of the file system
}

// mounts reads /proc/self/mountinfo (proc_pid_mountinfo(5)).
func (s *System) mounts() []mount {
	var all []mount
	for line := range strings.Lines(s.text("/proc/self/mountinfo")) {
		front, back, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		f, b := strings.Fields(front), strings.Fields(back)
		if !ok || len(f) < 6 || len(b) < 3 {
			continue
		}
		all = append(all, mount{unescape(f[4]), f[5], b[0], unescape(b[1]), b[2]})
	}
	return all
}

// unescape undoes \040 and the like.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// kernelKinds are file systems that the kernel makes up: reading some of their
// files waits, or changes something.
var kernelKinds = []string{"proc", "sysfs", "devtmpfs", "devpts", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs", "configfs", "pstore",
	"bpf", "efivarfs", "fusectl", "mqueue", "binfmt_misc", "rpc_pipefs", "selinuxfs", "nsfs"}

// ofKernel returns a test for directories, by real names, that are such a file
// system. What stands where they are by custom counts, mounted or not.
func (s *System) ofKernel() func(dir string) bool {
	at := map[string]bool{"/proc": true, "/sys": true, "/dev": true}
	for _, m := range s.mounts() {
		if slices.Contains(kernelKinds, m.kind) {
			at[m.at] = true
		}
	}
	return func(dir string) bool { return at[dir] }
}

// option is the value of an option of the mount or of its file system.
func (m mount) option(name string) string {
	for o := range strings.SplitSeq(m.options+","+m.super, ",") {
		if v, ok := strings.CutPrefix(o, name+"="); ok {
			return v
		}
	}
	return ""
}

func (m mount) has(option string) bool { return hasWord(m.options, option) }

// mountOf is the mount that a real path is on: the longest that holds it, the
// last of two at one place.
func (s *System) mountOf(p string) (best mount, ok bool) {
	for _, m := range s.mounts() {
		if below(p, m.at) && len(m.at) >= len(best.at) {
			best, ok = m, true
		}
	}
	return best, ok
}
