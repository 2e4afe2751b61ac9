package web

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/listen"
)

// open listens where o says.
func open(ctx context.Context, o Options) ([]net.Listener, error) {
	kind, address, err := listen.Parse(o.Listen)
	if err != nil {
		return nil, err
	}
	switch kind {
	case listen.Systemd:
		return fromSystemd(o, os.Getpid(), os.Getenv)
	case listen.Unix:
		l, err := openUnix(ctx, address)
		if err != nil {
			return nil, err
		}
		return []net.Listener{l}, nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("listen on %s: %w: another program, or another daemon, is there: see it with: ss -ltnp", address, err)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return []net.Listener{l}, nil
}

// firstPassed is the descriptor of the first socket that systemd passes:
// SD_LISTEN_FDS_START of sd_listen_fds(3).
const firstPassed = 3

// fromSystemd duplicates the sockets that systemd passed. The passed ones stay
// open: a config that is read again finds them once more, which go-systemd's own
// function, which closes them, would not allow.
func fromSystemd(o Options, pid int, getenv func(string) string) ([]net.Listener, error) {
	n, err := strconv.Atoi(getenv("LISTEN_FDS"))
	if err != nil || n < 1 || getenv("LISTEN_PID") != strconv.Itoa(pid) {
		return nil, errors.New("systemd passed no socket: start the .socket unit, or set serve.listen to an address")
	}
	var all []net.Listener
	closeAll := func() {
		for _, l := range all {
			l.Close()
		}
	}
	for fd := firstPassed; fd < firstPassed+min(n, 16); fd++ {
		unix.CloseOnExec(fd)
		dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, firstPassed)
		if err != nil {
			closeAll()
			return nil, fmt.Errorf("take socket %d of systemd's: %w", fd, err)
		}
		file := os.NewFile(uintptr(dup), "socket of systemd")
		l, err := net.FileListener(file)
		file.Close()
		if err != nil {
			closeAll()
			return nil, fmt.Errorf("take socket %d of systemd's: %w: it has to be one of ListenStream=", fd, err)
		}
		all = append(all, l)
		if text := o.where().Exposed(l.Addr().String()); text != "" && l.Addr().Network() == "tcp" {
			closeAll()
			return nil, fmt.Errorf("take socket %d of systemd's: %s", fd, text)
		}
	}
	return all, nil
}

// socketMode lets the owner and the group connect.
const socketMode = 0o660

// openUnix listens on a socket at path. One that is there already is replaced if
// nobody answers; it gets its mode before it gets its name, so that there is no
// moment in which others can connect.
func openUnix(ctx context.Context, path string) (net.Listener, error) {
	if err := vacant(ctx, path); err != nil {
		return nil, fmt.Errorf("listen on unix:%s: %w", path, err)
	}
	made := path + "." + rand.Text()[:6]
	lc := net.ListenConfig{}
	l, err := lc.Listen(ctx, "unix", made)
	if err != nil {
		return nil, fmt.Errorf("listen on unix:%s: %w: its directory has to be there and writable", path, err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err = os.Chmod(made, socketMode); err == nil {
		err = os.Rename(made, path)
	}
	var info fs.FileInfo
	if err == nil {
		info, err = os.Lstat(path)
	}
	if err != nil {
		l.Close()
		_ = os.Remove(made)
		return nil, fmt.Errorf("listen on unix:%s: %w", path, err)
	}
	return &unixSocket{Listener: l, path: path, info: info}, nil
}

// vacant reports why path cannot be taken: somebody answers there, or it is no socket.
func vacant(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return errors.New("there is a file that is no socket: remove it if nobody needs it")
	}
	d := net.Dialer{Timeout: 2 * time.Second}
	c, err := d.DialContext(ctx, "unix", path)
	if err == nil {
		c.Close()
		return errors.New("another daemon answers there")
	}
	if !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("is anybody there: %w", err)
	}
	return nil
}

// unixSocket removes its file when it ends, if nobody else's is there by then.
type unixSocket struct {
	net.Listener
	path string
	info fs.FileInfo
	once sync.Once
}

// Close implements net.Listener.
func (u *unixSocket) Close() error {
	u.once.Do(func() {
		if now, err := os.Lstat(u.path); err == nil && os.SameFile(now, u.info) {
			_ = os.Remove(u.path)
		}
	})
	return u.Listener.Close()
}
