package doctor

import (
	"context"
	"io/fs"
	"path"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/hostpkg"
)

// checkSystem says where this is, and what ROCm cannot run on at all.
func checkSystem(_ context.Context, x *exam) error {
	who := x.who()
	user := who.name
	if user == "" {
		user = "no name"
	}
	where := ""
	if x.container != "" {
		where = ", in a container (" + x.container + ")"
	}
	x.fact("%s, user %s (%d)%s", x.r.System, user, who.uid, where)
	if sudo := x.env["SUDO_USER"]; x.UID == 0 && x.o.User == "" && sudo != "" && sudo != "root" {
		x.fact("root may open every device: whether %s may is said with --user %s", sudo, quote(sudo))
	}
	if who.uid < 0 {
		x.find(Finding{Check: "user", Severity: Warning, Subject: who.name, Detail: "/etc/passwd has no such user",
			Why:    "whose groups count is not known; directories such as LDAP are not asked",
			Remedy: []string{"run doctor as that user, without --user"}})
	}
	if x.distro.Family == hostpkg.Alpine || x.musl() {
		x.find(Finding{Check: "musl", Severity: Broken, Subject: x.r.System, Detail: "the C library is musl",
			Why:    "AMD's programs are built for glibc: none of them starts, whatever is installed",
			Remedy: []string{"run ROCm in a container of a distribution with glibc: podman run --device /dev/kfd --device /dev/dri docker.io/library/debian:13"}})
	}
	if strings.Contains(strings.ToLower(x.Kernel), "microsoft") {
		x.find(Finding{Check: "wsl", Severity: Warning, Subject: "Linux " + x.Kernel, Detail: "this is WSL, which has no /dev/kfd",
			Why:    "GPUs are reached through /dev/dxg there, by a runtime (librocdxg) that AMD ships apart and for few GPUs",
			Remedy: []string{"follow AMD's instructions for ROCm on WSL, or run Linux itself"}})
	}
	return nil
}

// musl tells by the loaders: a machine with musl's alone.
func (x *exam) musl() bool {
	return len(x.glob("/lib/ld-musl-x86_64.so.1")) > 0 && !x.exists("/lib64/ld-linux-x86-64.so.2") && x.distro.Family != hostpkg.NixOS
}

// containerOf names the container that this is in, "" for none. The markers are
// those that each of them documents.
func containerOf(x *exam) string {
	switch {
	case x.exists("/run/.containerenv"):
		return "podman"
	case x.exists("/.dockerenv"):
		return "docker"
	case x.env["KUBERNETES_SERVICE_HOST"] != "":
		return "kubernetes"
	case x.env["container"] != "":
		return x.env["container"] // systemd-nspawn, lxc, toolbx, flatpak …
	}
	if name := x.line("/run/systemd/container"); name != "wsl" {
		return name
	}
	return "" // its kernel is its own
}

// sysFS is /sys of a machine, with links followed inside it.
type sysFS struct{ s *System }

func (f sysFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	at, _, err := f.s.resolve(path.Join("/sys", name), true)
	if err != nil {
		return nil, err
	}
	return f.s.FS.Open(at)
}
