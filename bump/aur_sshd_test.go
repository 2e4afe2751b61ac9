package bump

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// sshd is a real server on the loopback interface that lets one key at git, and
// at nothing else, as the AUR does.
type sshd struct {
	dir  string
	port int
	user string
}

func startSSHD(t *testing.T) *sshd {
	t.Helper()
	server := "/usr/sbin/sshd"
	for _, tool := range []string{server, "ssh", "ssh-keygen", "git-shell"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is missing: apt install openssh-server openssh-client git", tool)
		}
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // where a service would have made it
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Skipf("sshd has no directory of its own: %v", err)
		}
	}
	s := &sshd{dir: t.TempDir(), port: unusedPort(t), user: me.Username}
	for _, name := range []string{"host", "key", "stranger"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", s.path(name)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v\n%s", err, out)
		}
	}
	s.put(t, "authorized", `restrict,command="git-shell -c \"$SSH_ORIGINAL_COMMAND\"" `+s.get(t, "key.pub"))
	host := fmt.Sprintf("[127.0.0.1]:%d ", s.port)
	s.put(t, "known_hosts", host+s.get(t, "host.pub"))
	s.put(t, "wrong_hosts", host+s.get(t, "stranger.pub"))
	s.put(t, "config", fmt.Sprintf(`ListenAddress 127.0.0.1:%d
HostKey %s
AuthorizedKeysFile %s
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin forced-commands-only
`, s.port, s.path("host"), s.path("authorized")))
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, server, "-D", "-e", "-f", s.path("config"))
	var log strings.Builder
	cmd.Stderr, cmd.WaitDelay = &log, 5*time.Second
	if err := cmd.Start(); err != nil {
		stop()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // killed
		if t.Failed() {
			t.Logf("sshd says:\n%s", &log)
		}
	})
	s.await(t)
	return s
}

func unusedPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// await returns when somebody answers.
func (s *sshd) await(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if c, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(s.port)); err == nil {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal("sshd does not answer")
		case <-tick.C:
		}
	}
}

func (s *sshd) path(name string) string { return filepath.Join(s.dir, name) }

func (s *sshd) put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s *sshd) get(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(s.path(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
