package cage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Nothing that a caller can say changes a directory that was not made for a
// cage: its owner would be another, or a program could write to it.
func TestOnlyScratchIsGiven(t *testing.T) {
	base := openDir(t)
	for _, dir := range []string{"state", "log/app", scratchName + "x/in"} {
		must(t, os.MkdirAll(filepath.Join(base, dir), 0o755))
	}
	must(t, os.WriteFile(base+"/"+scratchName+"file", nil, 0o644))
	must(t, os.Symlink(base+"/state", base+"/"+scratchName+"link"))
	must(t, os.Symlink("nothing", base+"/"+scratchName+"dangling"))
	look := func(path string) string {
		var st unix.Stat_t
		must(t, unix.Stat(path, &st))
		return fmt.Sprint(path, st.Uid, st.Gid, st.Mode, st.Ctim)
	}
	dirs := []string{
		base + "/state", base + "/log/app", base + "/" + scratchName + "x/in", base + "/" + scratchName + "x/..", base + "/" + scratchName + "link",
		base + "/" + scratchName + "file", "/usr/lib", "/var/log", "/var/lib/dpkg", "/srv", "/root", "/opt", "/", "/home", "/tmp", "/run",
	}
	for _, kind := range []string{Namespaces, Landlock} {
		for _, dir := range append(dirs, base+"/"+scratchName+"dangling", base+"/"+scratchName+"nothing", "relative") {
			_, err := os.Stat(dir)
			there := err == nil
			before := ""
			if there {
				before = look(dir)
			}
			r, err := Run(t.Context(), Command{Path: "/bin/true", Scratch: dir, Only: kind})
			if err == nil || r != nil {
				t.Errorf("%s: %+v, %v", dir, r, err)
			}
			if there && look(dir) != before {
				t.Errorf("it was %s, and is %s", before, look(dir))
			}
			if err := RemoveScratch(dir); err == nil && there {
				t.Errorf("%s: it is removed", dir)
			}
		}
	}
	if os.Geteuid() == 0 { // somebody else's
		theirs := base + "/" + scratchName + "theirs"
		must(t, os.Mkdir(theirs, 0o755))
		must(t, os.Chown(theirs, 12345, 12345))
		if r, err := Run(t.Context(), Command{Path: "/bin/true", Scratch: theirs}); err == nil {
			t.Errorf("%+v", r)
		}
	}
}

// Who can write above what is let in can put a link there while the cage is
// made. What it leads to is not let in, and not given away.
func TestSwappedForLinks(t *testing.T) {
	for _, kind := range []string{Namespaces, Landlock} {
		if m := (mode{kind: kind, user: os.Geteuid() != 0}); !m.has() {
			continue
		}
		for _, what := range []string{"slot", "slot/tree", "slot/" + scratchName + "s"} {
			w := newWorld(t)
			must(t, os.MkdirAll(w.base+"/slot/tree", 0o755))
			must(t, os.MkdirAll(w.base+"/slot/"+scratchName+"s", 0o755))
			for _, dir := range []string{"/tree", "/" + scratchName + "s"} {
				must(t, os.MkdirAll(w.home+dir, 0o755))
				must(t, os.WriteFile(w.home+dir+"/token", []byte(secret), 0o644))
			}
			c := Command{
				Path: "/bin/sh", Args: []string{"-c", `cat "$0"/token; cat token; echo x >planted`, w.base + "/slot/tree"},
				ReadOnly: []string{w.base + "/slot/tree"}, Scratch: w.base + "/slot/" + scratchName + "s", Only: kind,
			}
			s, err := c.spec()
			must(t, err)
			must(t, os.Rename(w.base+"/"+what, w.base+"/was"))
			target := w.home
			if what != "slot" {
				target += "/" + filepath.Base(what)
			}
			must(t, os.Symlink(target, w.base+"/"+what))
			home := func() (lines []string) {
				for line := range strings.Lines(w.state(t)) {
					if strings.HasPrefix(line, w.home) {
						lines = append(lines, line)
					}
				}
				return lines
			}
			before := home()
			r, err := s.run(t.Context())
			if err == nil || r != nil {
				t.Errorf("%s, %s: it was run: %+v %s", kind, what, r, r.Stdout)
			}
			if now := home(); !slices.Equal(now, before) {
				t.Errorf("%s, %s: it was %q and is %q", kind, what, before, now)
			}
		}
	}
}

// A scratch directory that is nested deeper than any path can be long neither
// keeps the guard from its work nor stays.
func TestDeepScratch(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		for _, scratch := range []bool{true, false} {
			w := newWorld(t)
			c := Command{Path: w.tree + "/bin/rocminfo", Args: []string{"deep"}, ReadOnly: []string{w.tree}, Timeout: 5 * time.Second}
			if !scratch && m.kind == Namespaces {
				continue // a file system of its own
			}
			if scratch {
				c.Scratch = w.scratch
			}
			if r := m.run(t, c, hooks{}); r.Exceeded != "scratch" {
				t.Errorf("%+v %s", r, r.Stdout)
			}
			w.left(t)
			if !scratch {
				left, _ := filepath.Glob(filepath.Join(os.TempDir(), scratchName+"*"))
				if len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			}
			must(t, RemoveScratch(w.scratch))
			if _, err := os.Lstat(w.scratch); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("it is still there: %v", err)
			}
			must(t, os.Mkdir(w.scratch, 0o755))
		}
	})
}

// What cannot be stopped is killed all the same, and at once.
func TestVforksEnd(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		began := time.Now()
		if r := m.bomb(t, Command{}, "vforks"); r.ExitCode != 0 {
			t.Errorf("%+v", r)
		}
		if took := time.Since(began); took > sweepFor {
			t.Errorf("it took %v", took)
		}
	})
}

// Where a user sees not even all of its own processes, one could stay behind.
func TestHiddenProcesses(t *testing.T) {
	if os.Geteuid() != 0 || !(mode{kind: Landlock}).has() {
		return // it is root who mounts /proc
	}
	m := mode{name: "hidepid", kind: Landlock, via: []string{"unshare", "-m", "sh", "-c", `mount -t proc -o hidepid=2 proc /proc && exec "$@"`, "sh"}}
	w := newWorld(t)
	a := m.answer(t, Command{Path: w.tree + "/bin/rocminfo", Args: []string{"hide"}, ReadOnly: []string{w.tree}}, hooks{})
	if a.Result != nil || !strings.Contains(a.NotRun, "hidepid") {
		t.Errorf("%+v", a)
	}
	w.left(t)
}

// Killed in the middle, we leave nothing behind.
func TestKilledInTheMiddle(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		w := newWorld(t)
		in, err := json.Marshal(order{Command: Command{
			Path: w.tree + "/bin/rocminfo", Args: []string{"stay"}, ReadOnly: []string{w.tree}, Only: m.kind,
		}})
		must(t, err)
		cmd := exec.Command("/proc/self/exe")
		temp := openDir(t)
		must(t, os.Chmod(temp, 0o777|os.ModeSticky))
		cmd.Args, cmd.Env, cmd.Stdin = []string{driver}, []string{"GORACE=atexit_sleep_ms=0", "TMPDIR=" + temp}, bytes.NewReader(in)
		if m.user {
			asUser(cmd)
		}
		must(t, cmd.Start())
		eventually(t, "nothing was started", func() bool { return w.running() >= 4 })
		must(t, cmd.Process.Signal(syscall.SIGKILL))
		cmd.Wait()
		eventually(t, "processes were left behind", func() bool { return w.running() == 0 })
		eventually(t, "a scratch directory was left behind", func() bool {
			left, err := os.ReadDir(temp)
			return err == nil && len(left) == 0
		})
	})
}

// running counts the processes of the tree, without the victim.
func (w *world) running() (n int) {
	names, _ := processNames()
	for _, name := range names {
		exe, _ := os.Readlink("/proc/" + name + "/exe")
		if p, ok := readProcess(name); ok && strings.HasPrefix(exe, w.tree) && p.pid != w.victim.Process.Pid {
			n++
		}
	}
	return n
}

func eventually(t *testing.T, otherwise string, f func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(10 * time.Second); !f(); <-tick.C {
		if time.Now().After(end) {
			t.Fatal(otherwise)
		}
	}
}

// Devices are devices: not what else is mounted in /dev, nor disks.
func TestWhatIsNoDevice(t *testing.T) {
	for _, path := range []string{"/dev/shm", "/dev/pts", "/dev/fd", "/dev/../etc", "/dev/.", "/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/loop0", "dev/null"} {
		if r, err := Run(t.Context(), Command{Path: "/bin/true", Devices: []string{path}}); err == nil {
			t.Errorf("%s: %+v", path, r)
		}
	}
	dir := openDir(t)
	must(t, os.Symlink("/dev/null", dir+"/null"))
	for _, kind := range []string{Namespaces, Landlock} {
		if m := (mode{kind: kind, user: os.Geteuid() != 0}); !m.has() {
			continue
		}
		r, err := Run(t.Context(), Command{Path: "/bin/sh", Args: []string{"-c", ": >" + dir + "/null"}, Devices: []string{dir + "/null"}, Only: kind})
		if err != nil || r.ExitCode != 0 {
			t.Errorf("a link to one: %v %+v", err, r)
		}
	}
}
