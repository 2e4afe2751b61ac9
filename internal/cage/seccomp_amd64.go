package cage

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// x32 marks the calls of the x32 ABI, which have the same architecture.
const x32 = 0x40000000

// newest is the newest call that was looked at when this was written (Linux
// 7.0). What comes later is not there.
const newest = unix.SYS_RSEQ_SLICE_YIELD

// namespaceFlags are those of clone(2): a namespace of one's own is a way to
// many parts of the kernel that nothing here needs.
const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// never is what no program in a cage does: reach others, other processes or the
// machine. Sockets are all refused: a network namespace keeps the network out,
// but not a unix socket that somebody bound into a directory that can be seen.
var never = []uintptr{
	unix.SYS_SOCKET, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_PROCESS_MRELEASE,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_CHROOT, unix.SYS_PIVOT_ROOT, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR,
	unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_STATMOUNT, unix.SYS_LISTMOUNT, unix.SYS_LISTNS,
	unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF,
	unix.SYS_ACCT, unix.SYS_SYSLOG, unix.SYS_VHANGUP, unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_SYSFS,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL, unix.SYS__SYSCTL, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
	unix.SYS_LSM_SET_SELF_ATTR, unix.SYS_MAP_SHADOW_STACK,
}

// ipc is memory that belongs to nobody, and what only a namespace keeps from
// being everybody's.
var ipc = []uintptr{
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL,
	unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK, unix.SYS_MQ_NOTIFY,
}

// owners is what the owner of a file may do to it without writing to it, which
// Landlock does not see: a key could be made readable for everybody.
var owners = []uintptr{
	unix.SYS_CHMOD, unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2,
	unix.SYS_CHOWN, unix.SYS_FCHOWN, unix.SYS_LCHOWN, unix.SYS_FCHOWNAT,
	unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT, unix.SYS_UTIMENSAT,
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT,
	unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT,
	unix.SYS_FILE_SETATTR,
}

// Requests of ioctl(2) that are let through: about a descriptor, to a GPU, and no
// others. Those to file systems change files that are open for reading only,
// and directories; those to terminals type into them.
var (
	requests    = []uint32{fioNRead, fioNBIO, fioClex, fioNClex}
	gpuRequests = []uint32{'K' << 8, 'd' << 8} // amdkfd's and DRM's, by the second byte
)

// asm-generic/ioctls.h
const (
	fioNRead = 0x541b
	fioNBIO  = 0x5421
	fioNClex = 0x5450
	fioClex  = 0x5451
)

// fcntls of fcntl(2) are those that keep others from a file, or watch it, or
// send signals to somebody.
var fcntls = []uint32{unix.F_SETLEASE, unix.F_NOTIFY, unix.F_SETOWN, unix.F_SETSIG, unix.F_SETOWN_EX}

// filter makes the program for this cage.
func (s *spec) filter() ([]unix.SockFilter, error) {
	var a assembler
	a.load(offArch)
	a.emit(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.AUDIT_ARCH_X86_64, 1, 0)
	a.ret(retKill) // the calls of 32-bit programs have other numbers
	a.load(offNumber)
	a.above(x32-1, retKill)
	a.above(newest, retENOSYS)
	a.deny(retENOSYS, unix.SYS_CLONE3, unix.SYS_OPENAT2) // their arguments are in memory
	if s.Kind == Landlock {
		abi, err := s.abi()
		if err != nil {
			return nil, err
		}
		s.sharedRules(&a, abi)
	}
	a.deny(retEPERM, never...)
	a.deny(retEPERM, ipc...)
	if !s.Limits.SparseMemory {
		a.deny(retENOSYS, unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET) // memory that no process is seen to use
	}
	a.noBits(unix.SYS_CLONE, 0, namespaceFlags)
	a.ioctl(s.hasDevices())
	a.none(unix.SYS_FCNTL, 1, fcntls...)
	a.socketpair()
	a.zero(unix.SYS_SENDTO, 4) // send(2), but to nobody else
	a.noSetuid()
	a.ret(retAllow)
	return a.code, nil
}

func (s *spec) hasDevices() bool {
	return slices.ContainsFunc(s.Places, func(p place) bool { return p.Access == device })
}

// ioctl answers what it does not let through as a file does that knows no such
// request.
func (a *assembler) ioctl(devices bool) {
	a.call(unix.SYS_IOCTL, func() {
		a.low(1)
		for _, r := range requests {
			a.equal(r, retAllow)
		}
		if devices {
			a.and(0xff00)
			for _, r := range gpuRequests {
				a.equal(r, retAllow)
			}
		}
		a.ret(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOTTY))
	})
}

// socketpair allows pairs of streams: they reach nobody but each other. A
// datagram socket of a pair can still be sent from, or connected, elsewhere.
func (a *assembler) socketpair() {
	a.call(unix.SYS_SOCKETPAIR, func() {
		a.low(0)
		a.emit(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.AF_UNIX, 1, 0)
		a.ret(retEPERM)
		a.low(1)
		a.and(0xf)
		a.equal(unix.SOCK_STREAM, retAllow)
		a.equal(unix.SOCK_SEQPACKET, retAllow)
		a.ret(retEPERM)
	})
}

// noSetuid refuses to make anything setuid or setgid: the scratch directory is
// the host's.
func (a *assembler) noSetuid() {
	const bits = unix.S_ISUID | unix.S_ISGID
	a.noBits(unix.SYS_CHMOD, 1, bits)
	a.noBits(unix.SYS_FCHMOD, 1, bits)
	a.noBits(unix.SYS_FCHMODAT, 2, bits)
	a.noBits(unix.SYS_FCHMODAT2, 2, bits)
	a.noBits(unix.SYS_CREAT, 1, bits)
	a.noBits(unix.SYS_MKDIR, 1, bits)
	a.noBits(unix.SYS_MKDIRAT, 2, bits)
	a.noBits(unix.SYS_MKNOD, 1, bits)
	a.noBits(unix.SYS_MKNODAT, 2, bits)
	for call, flags := range map[uintptr]int{unix.SYS_OPEN: 1, unix.SYS_OPENAT: 2} {
		a.call(call, func() {
			a.low(flags)
			// O_CREAT, and the bit that O_TMPFILE has beside O_DIRECTORY: only then is
			// there a mode.
			a.emit(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, unix.O_CREAT|unix.O_TMPFILE&^unix.O_DIRECTORY, 1, 0)
			a.ret(retAllow)
			a.low(flags + 1)
			a.set(bits, retEPERM)
		})
	}
}

// sharedRules is what there is beside where processes, IPC and files are the
// host's.
func (s *spec) sharedRules(a *assembler, abi int) {
	a.deny(retEPERM, owners...)
	a.deny(retEPERM, unix.SYS_INOTIFY_INIT, unix.SYS_INOTIFY_INIT1)
	for call, arg := range map[uintptr]int{
		unix.SYS_PRLIMIT64: 0, unix.SYS_SCHED_SETAFFINITY: 0, unix.SYS_SCHED_SETPARAM: 0, unix.SYS_SCHED_SETSCHEDULER: 0, unix.SYS_SCHED_SETATTR: 0,
	} {
		a.idZero(call, arg)
	}
	// PRIO_PROCESS, IOPRIO_WHO_PROCESS: of oneself.
	a.deny(retEPERM, unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET)
	if abi >= 6 {
		return // signals stay inside by Landlock's own rules
	}
	pid := uint32(os.Getpid()) // the program's
	a.only(unix.SYS_KILL, 0, 0, pid, -pid)
	a.only(unix.SYS_TGKILL, 0, pid)
	a.deny(retEPERM, unix.SYS_TKILL, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO)
}
