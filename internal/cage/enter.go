package cage

import (
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// enter is the process that becomes the program: it gives up everything that
// it can and executes it. All that is given up belongs to one thread, the one
// that executes; the others end there.
func enter() int {
	runtime.LockOSThread()
	unix.Umask(0o022)
	closeOnExec()
	in, out := os.NewFile(fdControl, "spec"), os.NewFile(fdStatus, "word")
	var s spec
	if err := json.NewDecoder(in).Decode(&s); err != nil {
		return 1 // not started by a guard
	}
	json.NewEncoder(out).Encode(s.execute())
	return 1
}

// drop is one thing given up, and what it is called when that fails.
type drop struct {
	step, hint string
	do         func() error
}

// execute gives up everything and executes the program; it returns only when
// that fails.
func (s *spec) execute() word {
	argv0, argv, envv, err := s.vectors()
	if err != nil {
		return word{Failed: step(err, "", "read the command")}
	}
	var rules int
	if s.Kind == Landlock {
		goFirst() // and not the guard: nothing else would end what is left
		if err := seesGuard(); err != nil {
			return word{Failed: step(err, "/proc is mounted with hidepid: what runs could hide from who watches it", "look at another process")}
		}
		fd, failed := s.ruleset()
		if failed != nil {
			return word{Failed: failed}
		}
		rules = fd
	}
	filter, err := s.filter()
	if err != nil {
		return word{Failed: step(err, "", "make the seccomp filter")}
	}
	for _, d := range []drop{
		{"bound the capabilities", "", dropBounding},
		{"lock the capabilities", "", lockSecurebits},
		{"become uid and gid", "in a systemd unit CapabilityBoundingSet= needs CAP_SETUID and CAP_SETGID", s.switchUser},
		{"drop the capabilities", "", dropCapabilities},
		{"forbid new privileges", "", func() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }},
		{"end with the guard", "", func() error { return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0) }},
		{"enter the working directory", "", s.enterDir},
	} {
		if err := d.do(); err != nil {
			return word{Failed: step(err, d.hint, "%s", d.step)}
		}
	}
	if s.Kind == Landlock {
		if err := landlockRestrict(rules); err != nil {
			return word{Failed: step(err, hintLandlock, "restrict the file system")}
		}
	}
	if s.Test.NoWall {
		filter = allowAll
	}
	if err := install(filter); err != nil {
		return word{Failed: step(err, "a kernel with CONFIG_SECCOMP_FILTER is needed", "install the seccomp filter")}
	}
	// The last, RLIMIT_DATA, may be less than we have ourselves.
	if err := s.setLimits(); err != nil {
		return word{Failed: step(err, "", "set the limits")}
	}
	if s.Test.Probe {
		return word{Done: true}
	}
	if _, err := unix.Write(fdStatus, []byte(ready)); err != nil {
		return word{Failed: step(err, "", "tell the guard")}
	}
	_, _, errno := unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(argv0)), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&envv[0])))
	return word{NoStart: errno}
}

// seesGuard looks at a process of the same user that cannot be traced, as any
// program can make itself. If we do not see it the guard will not.
func seesGuard() error {
	_, err := os.ReadFile("/proc/" + strconv.Itoa(os.Getppid()) + "/stat")
	return err
}

// vectors are the arguments of execve.
func (s *spec) vectors() (argv0 *byte, argv, envv []*byte, err error) {
	if argv0, err = syscall.BytePtrFromString(s.Path); err != nil {
		return nil, nil, nil, err
	}
	if argv, err = syscall.SlicePtrFromStrings(append([]string{s.Path}, s.Args...)); err != nil {
		return nil, nil, nil, err
	}
	envv, err = syscall.SlicePtrFromStrings(s.inside(s.home()))
	return argv0, argv, envv, err
}

func (s *spec) enterDir() error {
	dir := s.Dir
	if dir == "" {
		dir = s.home()
	}
	return unix.Chdir(dir)
}

// dropBounding empties the bounding set: nothing that is executed can have a
// capability. Who may not do that has no_new_privs, which does the same.
func dropBounding() error {
	for c := uintptr(0); c < 64; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPERM) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lockSecurebits makes uid 0 mean nothing (capabilities(7)).
func lockSecurebits() error {
	const bits = 1<<0 | 1<<1 | // NOROOT, locked
		1<<3 | 1<<5 | // NO_SETUID_FIXUP locked as it is; KEEP_CAPS locked off
		1<<6 | 1<<7 // NO_CAP_AMBIENT_RAISE, locked
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, bits, 0, 0, 0); err != nil && !errors.Is(err, unix.EPERM) {
		return err
	}
	return nil
}

// switchUser becomes the user, where the guard is still root, and makes sure
// that nothing is left to go back to.
func (s *spec) switchUser() error {
	if u := s.User; u != nil && s.Kind == Namespaces {
		groups := make([]uint32, len(u.Groups), len(u.Groups)+1)
		for i, g := range u.Groups {
			groups[i] = uint32(g)
		}
		if err := raw(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(&groups[:1][0])), 0); err != nil {
			return err
		}
		if err := raw(unix.SYS_SETRESGID, uintptr(u.GID), uintptr(u.GID), uintptr(u.GID)); err != nil {
			return err
		}
		if err := raw(unix.SYS_SETRESUID, uintptr(u.UID), uintptr(u.UID), uintptr(u.UID)); err != nil {
			return err
		}
	}
	r, e, sv := unix.Getresuid()
	if r == 0 || e == 0 || sv == 0 {
		return errors.New("it is still root")
	}
	return nil
}

// dropCapabilities empties the ambient, permitted, effective and inheritable
// sets.
func dropCapabilities() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

// setLimits sets what the kernel bounds by itself (setrlimit(2)).
func (s *spec) setLimits() error {
	l := s.Limits
	cpu := uint64(l.Timeout.Seconds()+1) * uint64(runtime.NumCPU())
	limits := []struct {
		what  int
		value uint64
	}{
		// 1 and not 0: that also keeps a crash from a core_pattern that is a pipe.
		{unix.RLIMIT_CORE, 1},
		{unix.RLIMIT_NOFILE, 4096},
		{unix.RLIMIT_FSIZE, uint64(l.FileSize)},
		{unix.RLIMIT_CPU, cpu},
		{unix.RLIMIT_RTPRIO, 0},
		{unix.RLIMIT_MSGQUEUE, 0},
		// The guard's threads count where it is the same user.
		{unix.RLIMIT_NPROC, uint64(l.Processes + l.Others + 64)},
		{unix.RLIMIT_DATA, uint64(l.Memory)},
	}
	for _, limit := range limits {
		if limit.what == unix.RLIMIT_DATA && l.SparseMemory {
			continue
		}
		var now unix.Rlimit
		if err := unix.Prlimit(0, limit.what, nil, &now); err != nil {
			return err
		}
		value := min(limit.value, now.Max)
		if err := raw6(unix.SYS_PRLIMIT64, 0, uintptr(limit.what), uintptr(unsafe.Pointer(&unix.Rlimit{Cur: value, Max: value}))); err != nil {
			return err
		}
	}
	return nil
}

// raw makes a system call on this thread alone: package syscall makes those of
// users and groups on all, which a thread that is to be different must not.
func raw(call, a, b, c uintptr) error {
	if _, _, errno := unix.RawSyscall(call, a, b, c); errno != 0 {
		return errno
	}
	return nil
}

func raw6(call, a, b, c uintptr) error {
	if _, _, errno := unix.RawSyscall6(call, a, b, c, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
