package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// wrongTypes are SELinux types of data, which confined services and containers
// may not execute or map for execution.
var wrongTypes = []string{
	"var_lib_t", "var_t", "user_home_t", "data_home_t", "user_tmp_t", "tmp_t", "unlabeled_t", "default_t", "mnt_t", "etc_runtime_t", "admin_home_t",
}

// maxLabels is how many files of one directory are looked at: labels are given
// by directory.
const maxLabels = 64

// checkSELinux looks at the labels of programs and libraries. Where there is no
// SELinux there is nothing to say.
func checkSELinux(_ context.Context, x *exam) error {
	mode := x.line("/sys/fs/selinux/enforce")
	if mode == "" || x.Xattr == nil {
		return nil
	}
	wrong := map[string][]string{} // by type
	checked := 0
	for _, root := range x.trees() {
		for _, dir := range []string{"bin", "lib", "lib/llvm/bin", "libexec"} {
			for _, file := range x.samples(path.Join(root, dir)) {
				label, err := x.Xattr(file, "security.selinux")
				if err != nil {
					continue
				}
				checked++
				if t := typeOf(string(label)); slices.Contains(wrongTypes, t) {
					wrong[t] = append(wrong[t], file)
				}
			}
		}
	}
	if checked > 0 && len(wrong) == 0 {
		x.fact("%d labels of programs and libraries are right", checked)
	}
	for _, t := range wrongTypes {
		if files := wrong[t]; len(files) > 0 {
			x.mislabelled(t, files, mode == "1")
		}
	}
	return nil
}

// trees are the ROCm trees in question.
func (x *exam) trees() []string {
	var all []string
	for _, s := range x.slots {
		if s.active != "" {
			all = append(all, path.Join(s.dir, "generations", s.active, "opt/rocm"))
		}
	}
	if x.o.Dir != "" {
		if inner := path.Join(x.o.Dir, "opt/rocm"); x.isDir(inner) {
			return []string{inner}
		}
		return []string{x.o.Dir}
	}
	return all
}

// samples are the first regular files of a directory, by their real names.
func (x *exam) samples(dir string) []string {
	var all []string
	for _, name := range x.list(dir) {
		p := path.Join(dir, name)
		if info, err := x.lstat(p); err == nil && info.Mode().Type() == 0 && len(all) < maxLabels {
			if at, _, err := x.resolve(p, true); err == nil && fs.ValidPath(at) {
				all = append(all, "/"+at)
			}
		}
	}
	return all
}

// typeOf is the third part of user:role:type:level.
func typeOf(label string) string {
	parts := strings.Split(strings.TrimRight(label, "\x00"), ":")
	if len(parts) < 3 {
		return ""
	}
	return parts[2]
}

func (x *exam) mislabelled(t string, files []string, enforcing bool) {
	f := Finding{Check: "selinux-label", Severity: Note, Subject: files[0], Detail: fmt.Sprintf("its type is %s, as that of %d of the files looked at", t, len(files)),
		Why: "services of systemd and containers may not execute files of that type; SELinux is permissive now, and says so in its log alone"}
	if enforcing {
		f.Severity = Warning
		f.Why = "services of systemd and containers may not execute files of that type: \"permission denied\", where a shell has no trouble"
	}
	root := x.o.Root
	pattern := regexpQuote(path.Join(root, "slots")) + "/[^/]+/generations/[^/]+/opt/rocm"
	if x.o.Dir != "" {
		root = x.o.Dir
		pattern = regexpQuote(x.trees()[0])
	}
	f.Remedy = []string{
		"sudo semanage fcontext -a -t lib_t '" + pattern + "/lib(/.*)?'",
		"sudo semanage fcontext -a -t bin_t '" + pattern + "/(bin|lib/llvm/bin|libexec)(/.*)?'",
		"sudo restorecon -R " + quote(root),
	}
	if !x.exists("/usr/sbin/semanage") && !x.exists("/usr/bin/semanage") {
		if c := x.distro.Command("policycoreutils-python-utils"); c != "" {
			f.Remedy = slices.Insert(f.Remedy, 0, c)
		}
	}
	x.find(f)
}

// regexpQuote quotes what semanage would take for a pattern, and the shell's
// quote.
func regexpQuote(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\'':
			b.WriteString(`'\''`)
		case strings.ContainsRune(`.+*?()[]{}^$|\`, r):
			b.WriteRune('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
