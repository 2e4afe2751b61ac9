package cage

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// planted compiles testdata/rocminfo.c, once for all tests.
var planted = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "planted-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "rocminfo")
	out, err := exec.Command("gcc", "-O1", "-static", "-w", "-o", path, "testdata/rocminfo.c").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("gcc: %w: %s", err, out)
	}
	b, err := os.ReadFile(path)
	return string(b), err
})

// world is a tree with the planted program in it, somebody's home, and others
// that listen.
type world struct {
	base, tree, home, scratch string
	outside                   []string // files that must not come to be
	args                      []string
	victim                    *exec.Cmd
	victimIn                  io.Closer
	victimOut                 io.Reader
	mu                        sync.Mutex
	heard                     []string
	before                    string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	program, err := planted()
	if err != nil {
		t.Fatal(err) // Debian: gcc, libc6-dev
	}
	base := openDir(t)
	w := &world{base: base, tree: base + "/tree", home: base + "/home", scratch: base + "/" + scratchName + "scratch"}
	for _, dir := range []string{w.tree, w.tree + "/bin", w.home, w.scratch, base + "/credentials"} {
		must(t, os.Mkdir(dir, 0o755))
	}
	for name, text := range map[string]string{
		"home/token": secret, "credentials/token": secret, "home/file": "old", "home/unlinkable": "old", "home/renamable": "old", "tree/file": "old",
		"tree/bin/rocminfo": program, "tree/suid": program,
	} {
		must(t, os.WriteFile(filepath.Join(base, name), []byte(text), 0o755))
	}
	must(t, os.Chmod(w.home+"/token", 0o600))
	if os.Geteuid() == 0 {
		must(t, filepath.Walk(base, func(path string, _ os.FileInfo, err error) error {
			return errors.Join(err, os.Chown(path, uid(), uid()))
		}))
		must(t, os.Chown(w.tree+"/suid", 0, 0))
		must(t, os.Chmod(w.tree+"/suid", 0o755|os.ModeSetuid|os.ModeSetgid))
	}
	name := "planted-" + filepath.Base(base)
	w.outside = []string{filepath.Join(os.TempDir(), name), "/var/tmp/" + name, "/dev/shm/" + name}
	t.Cleanup(func() {
		for _, path := range w.outside {
			os.Remove(path)
		}
	})
	w.args = []string{
		"secret=" + secret, "token=" + w.home + "/token", "credentials=" + base + "/credentials/token", "tree=" + w.tree, "home=" + w.home, "file=" + w.home + "/file",
		"unlinkable=" + w.home + "/unlinkable", "renamable=" + w.home + "/renamable", "suid=" + w.tree + "/suid",
		"tmp=" + w.outside[0], "vartmp=" + w.outside[1], "shm=" + w.outside[2],
	}
	w.listen(t)
	w.startVictim(t)
	w.before = w.state(t)
	return w
}

// openDir is a temporary directory that every user can reach.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cage-test-")
	must(t, err)
	must(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// listen opens everything that a program could connect to.
func (w *world) listen(t *testing.T) {
	t.Helper()
	hear := func(what string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.heard = append(w.heard, what)
	}
	abstract := filepath.Base(w.outside[0])
	for what, addr := range map[string]string{"tcp": "127.0.0.1:0", "unix": w.base + "/s", "abstract": "@" + abstract} {
		network := what
		if what == "abstract" {
			network = "unix"
		}
		l, err := net.Listen(network, addr)
		must(t, err)
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				hear(what)
				c.Close()
			}
		}()
		if what == "tcp" {
			w.args = append(w.args, fmt.Sprintf("tcp=%d", l.Addr().(*net.TCPAddr).Port))
		}
	}
	for what, addr := range map[string]string{"udp": "127.0.0.1:0", "unixgram": w.base + "/d"} {
		c, err := net.ListenPacket(what, addr)
		must(t, err)
		t.Cleanup(func() { c.Close() })
		go func() {
			b := make([]byte, 16)
			for {
				if _, _, err := c.ReadFrom(b); err != nil {
					return
				}
				hear(what)
			}
		}()
		if what == "udp" {
			w.args = append(w.args, fmt.Sprintf("udp=%d", c.LocalAddr().(*net.UDPAddr).Port))
		}
	}
	must(t, os.Chmod(w.base+"/s", 0o777))
	must(t, os.Chmod(w.base+"/d", 0o777))
	w.args = append(w.args, "unix="+w.base+"/s", "datagram="+w.base+"/d", "abstract="+abstract)
}

// startVictim starts a process of the same user, with secrets of its own.
func (w *world) startVictim(t *testing.T) {
	t.Helper()
	cmd := exec.Command(w.tree+"/bin/rocminfo", "victim", "secret="+secret, "token="+w.home+"/token")
	cmd.Env, cmd.Dir = []string{"TOKEN=" + secret}, w.home
	asUser(cmd)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	var shmid int
	var address string
	if _, err := fmt.Fscan(out, &shmid, &address); err != nil {
		t.Fatal(err)
	}
	w.args = append(w.args, fmt.Sprintf("victim=%d", cmd.Process.Pid), fmt.Sprintf("shmid=%d", shmid), "address="+address)
	w.victim, w.victimIn, w.victimOut = cmd, in, out
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
}

// signals ends the victim, which must be there, and returns how many signals
// it got.
func (w *world) signals(t *testing.T) string {
	t.Helper()
	w.victimIn.Close()
	b, err := io.ReadAll(w.victimOut)
	must(t, err)
	return strings.TrimSpace(string(b))
}

// state is what of the world must not change.
func (w *world) state(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.Walk(w.base, func(path string, info os.FileInfo, err error) error {
		if err != nil || within(path, w.scratch) || path == w.base {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		content := ""
		if info.Mode().IsRegular() && info.Size() < 100 {
			c, _ := os.ReadFile(path)
			content = string(c)
		}
		names := make([]byte, 256)
		n, _ := unix.Listxattr(path, names)
		fmt.Fprintln(&b, path, info.Mode(), st.Uid, st.Gid, st.Nlink, info.Size(), info.ModTime(), st.Ctim, content, string(names[:max(n, 0)]))
		return nil
	}))
	for _, path := range w.outside {
		if _, err := os.Lstat(path); err == nil {
			fmt.Fprintln(&b, path)
		}
	}
	prio, err := unix.Getpriority(unix.PRIO_PROCESS, w.victim.Process.Pid)
	fmt.Fprintln(&b, "victim", prio, err)
	return b.String()
}
