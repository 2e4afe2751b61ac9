package cage

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func (m mode) sh(t *testing.T, c Command, script string) string {
	t.Helper()
	c.Path, c.Args = "/bin/sh", []string{"-c", script}
	r := m.run(t, c, hooks{})
	if r.ExitCode != 0 {
		t.Errorf("%s: %q: %+v: %s%s", m.name, script, r, r.Stdout, r.Stderr)
	}
	return strings.TrimSpace(string(r.Stdout))
}

// The environment is what the Command says and the few defaults, which it can
// override; the streams are the only descriptors.
func TestEnvironment(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		got := m.sh(t, Command{Env: []string{"ROCM_PATH=/x", "LANG=de_DE.UTF-8", "A=1", "A=2"}}, `exec /usr/bin/env`)
		lines := strings.Split(got, "\n")
		home := strings.TrimPrefix(lines[0], "HOME=")
		want := []string{"HOME=" + home, "TMPDIR=" + home, "PATH=/usr/bin:/bin", "LANG=de_DE.UTF-8", "ROCM_PATH=/x", "A=2", "PWD=" + home}
		for _, line := range lines {
			if !slices.Contains(want, line) {
				t.Errorf("%s in %q", line, lines)
			}
		}
		if got := m.sh(t, Command{Stdin: []byte("in\n")}, `cat; pwd; echo $HOME; umask; id -u`); got != strings.Join([]string{"in", home, home, "0022", "65534"}, "\n") && m.kind == Namespaces && uid() == 65534 {
			t.Errorf("%q", got)
		}
	})
}

// A tree is found under the name that the caller has for it, links and all, in
// a directory that only root can enter too; and it cannot be written.
func TestTreeIsSeenUnderItsName(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		w := newWorld(t)
		must(t, os.Mkdir(w.base+"/slot", 0o755))
		must(t, os.Rename(w.tree, w.base+"/slot/7.0"))
		must(t, os.Symlink("7.0", w.base+"/slot/current"))
		must(t, os.Symlink(w.base+"/slot/current", w.tree))
		if m.kind == Namespaces && !m.user {
			must(t, os.Chmod(w.base+"/slot", 0o700))
		}
		got := m.sh(t, Command{ReadOnly: []string{w.tree}, Dir: w.tree + "/bin"}, `cat ../file; pwd -P; test -x `+w.tree+`/bin/rocminfo && readlink `+w.tree)
		if want := "old" + w.base + "/slot/7.0/bin\n" + w.base + "/slot/current"; got != want {
			t.Errorf("%q, not %q", got, want)
		}
		if m.kind == Namespaces { // Landlock hides what is in a file, not its name
			m.sh(t, Command{ReadOnly: []string{w.tree}}, `! test -e `+w.home+` && ! test -e /home && ! test -e /root && ! test -e /var && ! test -e /sys && ! test -e /run && ! test -e /dev/kmsg`)
		}
		w.tree = w.base + "/slot/7.0" // for the cleanup of what is read
	})
}

// One run compiles, the next runs what came out: a scratch directory stays.
func TestScratchStays(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		w := newWorld(t)
		c := Command{Scratch: w.scratch}
		m.sh(t, c, `echo 'int main(){return 0;}' >a.c && gcc -c a.c && ls -l && mkdir d && mv a.o d/b.o && ln d/b.o c.o && >x && rm x && cp /bin/true t 2>/dev/null; cat /bin/true >u; test -d $HOME`)
		if got := m.sh(t, c, `wc -c <d/b.o | grep -v '^0$'`); got == "" {
			t.Error("the object is gone")
		}
		info, err := os.Stat(w.scratch + "/c.o")
		must(t, err)
		if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != uid() {
			t.Errorf("it is uid %d's", st.Uid)
		}
	})
}

// Programs that trees and their scripts need work in it.
func TestProgramsWork(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		w := newWorld(t)
		for _, script := range []string{
			`perl -e 'use POSIX; print strftime("%Y", localtime), "\n"' >&2`,
			`/usr/bin/python3 -c 'import subprocess,tempfile,os;t=tempfile.TemporaryFile();t.write(b"x");print(subprocess.run(["/bin/echo","x"],capture_output=True).stdout, os.cpu_count())'`,
			`read line </proc/self/maps && test -n "$line" && test "$(readlink /proc/self/exe)" != ""`,
			`echo x | (cat | cat) | grep x >/dev/null 2>&1`,
			`printf 'int f(){return 1;}' | clang-16 -x c -O2 -shared -fPIC -fuse-ld=lld -o f.so - && test -x f.so`,
			`printf '#include <stdio.h>\n#include <pthread.h>\nvoid*f(void*p){puts("ran");return p;}int main(void){pthread_t t;pthread_create(&t,0,f,0);pthread_join(t,0);}' >t.c && clang-16 -fuse-ld=lld t.c -o t -pthread && ./t | grep ran`,
		} {
			m.sh(t, Command{Scratch: w.scratch}, script)
		}
	})
}

// The same without mount_setattr, as before Linux 5.12, submounts and all; and
// what namespaces keep out when there is no second wall.
func TestNamespacesAlone(t *testing.T) {
	for _, m := range modes() {
		if m.kind != Namespaces || !m.has() {
			continue
		}
		w, said := m.plant(t, hooks{Classic: true})
		for name, what := range said {
			if strings.HasPrefix(what, "yes") && !slices.Contains(harmless[m.kind], name) {
				t.Errorf("%s, classic: %s: %s", m.name, name, what)
			}
		}
		w.check(t)
		w, said = m.plant(t, hooks{NoWall: true})
		for name := range strings.FieldsSeq(`token credentials environment others_environ others_fd others_root others_cwd own_fd guard_memory guard_fd
			write_tree write_own write_home write_var_tmp write_usr write_link write_etc write_sysctl open_trunc truncate_own chmod_own fchmod_tree
			tcp udp unix_path unix_abstract pair_datagram pair_reconnect do_mount do_remount do_umount trace_victim trace_guard read_victim kill_victim shared_memory
			setuid_root setuid_file dev_mem dev_kvm dev_disk kernel_memory make_device`) {
			if !strings.HasPrefix(said[name], "no") {
				t.Errorf("%s, no second wall: %s: %s", m.name, name, said[name])
			}
		}
		w.check(t)
	}
}

// What would let in everything, or cannot be meant, is an error and not a run.
func TestWhatIsRefused(t *testing.T) {
	dir := openDir(t)
	must(t, os.Mkdir(dir+"/in", 0o755))
	must(t, os.Symlink("/", dir+"/root"))
	must(t, os.Symlink("loop", dir+"/loop"))
	home, err := os.UserHomeDir()
	must(t, err)
	for name, c := range map[string]Command{
		"a relative program":      {Path: "rocminfo"},
		"a zero byte":             {Path: "/bin/true", Args: []string{"a\x00b"}},
		"the whole system":        {Path: "/bin/true", ReadOnly: []string{"/"}},
		"the same by a link":      {Path: "/bin/true", ReadOnly: []string{dir + "/root"}},
		"all of /etc":             {Path: "/bin/true", ReadOnly: []string{"/etc"}},
		"a home":                  {Path: "/bin/true", ReadOnly: []string{home}},
		"all processes":           {Path: "/bin/true", ReadOnly: []string{"/proc/self"}},
		"a relative directory":    {Path: "/bin/true", ReadOnly: []string{"tree"}},
		"no directory":            {Path: "/bin/true", ReadOnly: []string{dir + "/nothing"}},
		"a loop":                  {Path: "/bin/true", ReadOnly: []string{dir + "/loop"}},
		"the tree in the scratch": {Path: "/bin/true", ReadOnly: []string{dir + "/in"}, Scratch: dir},
		"scratch everywhere":      {Path: "/bin/true", Scratch: "/tmp"},
		"scratch in the system":   {Path: "/bin/true", Scratch: "/usr/lib"},
		"no device":               {Path: "/bin/true", Devices: []string{"/dev/nothing"}},
		"all devices":             {Path: "/bin/true", Devices: []string{"/dev"}},
		"no device by name":       {Path: "/bin/true", Devices: []string{"/etc/passwd"}},
		"a kind that is not":      {Path: "/bin/true", Only: "chroot"},
		"a negative limit":        {Path: "/bin/true", Timeout: -1},
	} {
		r, err := Run(t.Context(), c)
		var notRun *NotRunError
		if err == nil || r != nil || errors.As(err, &notRun) {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
	if os.Geteuid() == 0 {
		for _, u := range []User{{UID: 0, GID: 65534}, {UID: 65534, GID: 0}, {UID: 65534, GID: 65534, Groups: []int{0}}} {
			if r, err := Run(t.Context(), Command{Path: "/bin/true", User: &u}); err == nil || r != nil {
				t.Errorf("%+v: %v, %v", u, r, err)
			}
		}
	}
}

// A program that cannot be started is not one that failed.
func TestStartError(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		w := newWorld(t)
		must(t, os.WriteFile(w.tree+"/garbage", []byte("garbage"), 0o755))
		must(t, os.WriteFile(w.tree+"/script", []byte("#!/nothing/sh\n"), 0o755))
		for path, want := range map[string]string{
			w.tree + "/nothing": "no such file", w.tree + "/garbage": "exec format", w.tree + "/script": "no such file", w.tree: "permission denied",
		} {
			a := m.answer(t, Command{Path: path, ReadOnly: []string{w.tree}}, hooks{})
			if a.Result != nil || !strings.Contains(a.Start, want) {
				t.Errorf("%s: %+v", filepath.Base(path), a)
			}
		}
	})
}

// The longest time there is is no time at all if it is added to.
func TestLongTimeout(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		if r := m.run(t, Command{Path: "/bin/true", Timeout: math.MaxInt64}, hooks{}); r.ExitCode != 0 {
			t.Errorf("%+v", r)
		}
	})
}

// Devices can be opened when they are named, and only then, by their group if
// they are root's; sysfs comes with them.
func TestDevices(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		m.sh(t, Command{}, `! head -c1 /dev/ptmx 2>/dev/null && ! ls /sys/devices 2>/dev/null && ! ls /sys/class 2>/dev/null`)
		if os.Geteuid() != 0 {
			return
		}
		dir, err := os.MkdirTemp("/dev", "cage-test-")
		must(t, err)
		defer os.RemoveAll(dir)
		must(t, os.Chmod(dir, 0o755))
		for name, mode := range map[string]uint32{"zero": 0o666, "render": 0o660} {
			must(t, unix.Mknod(dir+"/"+name, unix.S_IFCHR, int(unix.Mkdev(1, 5))))
			must(t, os.Chmod(dir+"/"+name, os.FileMode(mode)))
		}
		must(t, os.Chown(dir+"/render", 0, 12345))
		m.sh(t, Command{}, `! head -c1 `+dir+`/zero 2>/dev/null`)
		m.sh(t, Command{Devices: []string{dir + "/zero"}}, `test $(head -c9 `+dir+`/zero | wc -c) = 9 && : >`+dir+`/zero && ls /sys/devices >/dev/null && ! (: >/sys/devices/x) 2>/dev/null && ! head -c1 `+dir+`/render 2>/dev/null`)
		if !m.user {
			m.sh(t, Command{Devices: []string{dir}}, `test $(head -c9 `+dir+`/render | wc -c) = 9 && id -G | grep -w 12345 && ! chmod 666 `+dir+`/render 2>/dev/null && ! rm `+dir+`/zero 2>/dev/null`)
		}
	})
}

func TestProbe(t *testing.T) {
	kind, err := Probe(t.Context())
	for _, m := range modes() {
		if m.user == (os.Geteuid() != 0) && m.has() {
			if err != nil || kind != m.kind {
				t.Errorf("%s, %v; it could be %s", kind, err, m.kind)
			}
			return
		}
	}
	if notRun := (*NotRunError)(nil); !errors.As(err, &notRun) || kind != "" {
		t.Errorf("%s, %v", kind, err)
	}
}

// What the kernel says of the program's rights.
func TestRights(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		got := m.sh(t, Command{}, `while read -r line; do echo "$line"; done </proc/self/status`)
		fields := map[string]string{}
		for line := range strings.Lines(got) {
			key, value, _ := strings.Cut(line, ":")
			fields[key] = strings.Join(strings.Fields(value), " ")
		}
		want := map[string]string{
			"NoNewPrivs": "1", "CapInh": "0000000000000000", "CapPrm": "0000000000000000", "CapEff": "0000000000000000", "CapAmb": "0000000000000000",
		}
		if m.kind == Namespaces { // who may not drop it has no_new_privs alone
			want["CapBnd"] = "0000000000000000"
		}
		if os.Geteuid() == 0 {
			want["Uid"], want["Gid"] = "65534 65534 65534 65534", "65534 65534 65534 65534"
			if !m.user {
				want["Groups"] = ""
			}
		}
		for key, value := range want {
			if fields[key] != value {
				t.Errorf("%s is %q", key, fields[key])
			}
		}
		if n := fields["Seccomp_filters"]; fields["Seccomp"] != "2" || n == "0" {
			t.Errorf("%s filters", n)
		}
	})
}
