// A rocminfo that is not one: it tries everything that a program from a hostile
// tree would, and says for each what came of it: "NAME: yes" when it worked,
// "NAME: no (why)" when it did not. It is told what to go for as NAME=VALUE.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static char **args;

static const char *arg(const char *name) {
	size_t n = strlen(name);
	for (char **a = args; *a; a++)
		if (!strncmp(*a, name, n) && (*a)[n] == '=')
			return *a + n + 1;
	return "/nothing";
}

static pid_t victim(void) { return atoi(arg("victim")); }

// holds reports whether a file has the secret in it.
static int holds(const char *path) {
	static char buf[65536];
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, buf, sizeof buf - 1);
	close(fd);
	if (n <= 0) {
		if (n == 0)
			errno = ENODATA;
		return 0;
	}
	errno = ENODATA;
	return memmem(buf, n, arg("secret"), strlen(arg("secret"))) != NULL;
}

static int token(void) { return holds(arg("token")); }
static int credentials(void) { return holds(arg("credentials")); }
static int environment(void) {
	extern char **environ;
	errno = ENODATA;
	for (char **e = environ; *e; e++)
		if (strstr(*e, arg("secret")))
			return 1;
	return 0;
}

// others_file looks for the secret in one file of every process.
static int others_file(const char *name) {
	char path[512];
	DIR *d = opendir("/proc");
	if (!d) { // it may not list them; it can still guess
		snprintf(path, sizeof path, "/proc/%d/%s", victim(), name);
		return holds(path);
	}
	for (struct dirent *e; (e = readdir(d));) {
		snprintf(path, sizeof path, "/proc/%s/%s", e->d_name, name);
		if (atoi(e->d_name) > 0 && atoi(e->d_name) != getpid() && holds(path))
			return closedir(d), 1;
	}
	closedir(d);
	errno = ENODATA;
	return 0;
}
static int others_environ(void) { return others_file("environ"); }
static int others_fd(void) { return others_file("fd/9"); }
static int others_root(void) {
	char path[4096];
	snprintf(path, sizeof path, "/proc/%d/root%s", victim(), arg("token"));
	return holds(path);
}
static int others_cwd(void) {
	char path[4096];
	snprintf(path, sizeof path, "/proc/1/root%s", arg("token"));
	if (holds(path))
		return 1;
	snprintf(path, sizeof path, "/proc/%d/cwd/token", victim());
	return holds(path);
}
static int own_net(void) { // the host's connections, by our own directory
	char port[16], line[512];
	snprintf(port, sizeof port, ":%04X ", atoi(arg("tcp")));
	FILE *f = fopen("/proc/self/net/tcp", "r");
	while (f && fgets(line, sizeof line, f))
		if (strstr(line, port))
			return 1;
	return f && (errno = ENODATA, 0);
}
static int own_root(void) {
	char path[4096];
	snprintf(path, sizeof path, "/proc/self/root%s", arg("token"));
	return holds(path);
}
static int own_fd(void) {
	char path[64];
	for (int fd = 3; fd < 256; fd++) {
		char c;
		if (pread(fd, &c, 1, 0) == 1)
			return 1;
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		if (fcntl(fd, F_GETFD) >= 0)
			return 1;
	}
	errno = EBADF;
	return 0;
}
static int guard_memory(void) { // of whoever started us
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/mem", getppid());
	int fd = open(path, O_RDWR);
	return fd >= 0;
}
static int guard_fd(void) {
	char path[64];
	for (int fd = 0; fd < 16; fd++) {
		snprintf(path, sizeof path, "/proc/%d/fd/%d", getppid(), fd);
		int f = open(path, O_RDWR | O_NONBLOCK);
		if (f >= 0)
			return 1;
	}
	return 0;
}

static int writes(const char *path) {
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return 0;
	int ok = write(fd, "x", 1) == 1;
	close(fd);
	return ok;
}
static int guard_program(void) { // on a mount that can be written, when it does not run any more
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/exe", getppid());
	return open(path, O_RDONLY) >= 0 || writes("/.rocm-nightly");
}
static int in_dir(const char *dir) {
	char path[4096];
	snprintf(path, sizeof path, "%s/planted", dir);
	return writes(path);
}
static int write_tree(void) { return in_dir(arg("tree")); }
static int write_own(void) { return writes(arg("file")); }
static int write_home(void) { return in_dir(arg("home")); }
static int write_tmp(void) { return writes(arg("tmp")); }
static int write_var_tmp(void) { return writes(arg("vartmp")); }
static int write_shm(void) { return writes(arg("shm")); }
static int write_usr(void) { return in_dir("/usr/local"); }
static int write_link(void) { // through a link in the scratch directory
	unlink("link");
	return symlink(arg("home"), "link") == 0 && in_dir("link");
}
static int write_etc(void) { return in_dir("/etc"); }
static int write_sysctl(void) { return writes("/proc/sys/kernel/core_pattern"); }
static int truncate_own(void) { return truncate(arg("file"), 0) == 0; }
static int open_trunc(void) {
	int fd = open(arg("file"), O_RDONLY | O_TRUNC);
	return fd >= 0;
}
static int chmod_own(void) { return chmod(arg("file"), 0666) == 0; }
static int fchmod_tree(void) {
	char path[4096];
	snprintf(path, sizeof path, "%s/file", arg("tree"));
	int fd = open(path, O_RDONLY);
	return fd >= 0 && fchmod(fd, 0666) == 0;
}
static int chown_own(void) { return chown(arg("file"), getuid(), getgid()) == 0; }
static int utimes_own(void) { return utimes(arg("file"), NULL) == 0; }
static int xattr_own(void) { return setxattr(arg("file"), "user.planted", "x", 1, 0) == 0; }
static int unlink_own(void) { return unlink(arg("unlinkable")) == 0; }
static int rename_own(void) { return rename(arg("renamable"), "stolen") == 0; }
static int link_own(void) { return link(arg("token"), "linked") == 0 && holds("linked"); }
static int mkdir_home(void) {
	char path[4096];
	snprintf(path, sizeof path, "%s/planted.d", arg("home"));
	return mkdir(path, 0777) == 0;
}
static int list_home(void) {
	DIR *d = opendir(arg("home"));
	return d != NULL;
}
static int inotify(void) {
	int fd = inotify_init();
	return fd >= 0 && inotify_add_watch(fd, arg("home"), IN_ALL_EVENTS) >= 0;
}
static int dotdot(void) {
	char path[8192] = "";
	for (int i = 0; i < 40; i++)
		strcat(path, "../");
	strcat(path, arg("token") + 1);
	return holds(path);
}

static int tcp(void) {
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(arg("tcp"))), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	return fd >= 0 && connect(fd, (void *)&a, sizeof a) == 0;
}
static int tcp_listen(void) {
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
	return fd >= 0 && bind(fd, (void *)&a, sizeof a) == 0 && listen(fd, 1) == 0;
}
static int udp(void) {
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(arg("udp"))), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	return fd >= 0 && sendto(fd, "x", 1, 0, (void *)&a, sizeof a) == 1;
}
static int unix_to(int fd, const char *name, int abstract) {
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	strncpy(a.sun_path + abstract, name, sizeof a.sun_path - 2);
	return fd >= 0 && connect(fd, (void *)&a, offsetof(struct sockaddr_un, sun_path) + abstract + strlen(name)) == 0;
}
static int unix_path(void) { return unix_to(socket(AF_UNIX, SOCK_STREAM, 0), arg("unix"), 0); }
static int unix_abstract(void) { return unix_to(socket(AF_UNIX, SOCK_STREAM, 0), arg("abstract"), 1); }
static int pair_datagram(void) {
	int fd[2];
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	strncpy(a.sun_path, arg("datagram"), sizeof a.sun_path - 1);
	return socketpair(AF_UNIX, SOCK_DGRAM, 0, fd) == 0 && sendto(fd[0], "x", 1, 0, (void *)&a, sizeof a) == 1;
}
static int pair_reconnect(void) {
	int fd[2];
	return socketpair(AF_UNIX, SOCK_DGRAM, 0, fd) == 0 && unix_to(fd[0], arg("datagram"), 0);
}
static int netlink(void) {
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	struct sockaddr_nl a = {.nl_family = AF_NETLINK};
	return fd >= 0 && bind(fd, (void *)&a, sizeof a) == 0;
}
static int raw_ip(void) { return socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) >= 0; }
static int packet(void) { return socket(AF_PACKET, SOCK_RAW, 0) >= 0; }

static int do_mount(void) { return mount("none", "/tmp", "tmpfs", 0, "") == 0; }
static int do_remount(void) { return mount("", "/usr", "", MS_REMOUNT | MS_BIND, "") == 0; }
static int do_umount(void) { return umount2("/proc", MNT_DETACH) == 0; }
static int in_child(int (*f)(void)) {
	pid_t p = fork();
	if (p == 0) {
		int ok = f();
		_exit(ok ? 0 : errno < 125 && errno > 0 ? errno : 125);
	}
	int st = 0;
	if (p < 0 || waitpid(p, &st, 0) != p)
		return 0;
	errno = WIFEXITED(st) ? WEXITSTATUS(st) : EFAULT;
	return WIFEXITED(st) && WEXITSTATUS(st) == 0;
}
static int unshare_user_(void) { return unshare(CLONE_NEWUSER) == 0; }
static int unshare_user(void) { return in_child(unshare_user_); }
static int clone_user(void) {
	long p = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
	if (p == 0)
		_exit(0);
	if (p > 0)
		waitpid(p, NULL, 0);
	return p > 0;
}
static int clone3_user(void) {
	struct { uint64_t flags, pidfd, child, parent, exit, stack, size, tls; } a = {.flags = CLONE_NEWUSER, .exit = SIGCHLD};
	long p = syscall(SYS_clone3, &a, sizeof a);
	if (p == 0)
		_exit(0);
	if (p > 0)
		waitpid(p, NULL, 0);
	return p > 0;
}
static int do_chroot(void) { return chroot("/") == 0; }
static int do_setns(void) {
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/ns/net", victim());
	int fd = open(path, O_RDONLY);
	return fd >= 0 && (setns(fd, 0) == 0 || errno != EPERM);
}
static int trace_victim(void) {
	if (ptrace(PTRACE_SEIZE, victim(), 0, 0))
		return 0;
	ptrace(PTRACE_DETACH, victim(), 0, 0);
	return 1;
}
static int trace_guard(void) { return ptrace(PTRACE_SEIZE, getppid(), 0, 0) == 0; }
static int read_victim(void) {
	char c;
	struct iovec l = {&c, 1}, r = {(void *)strtoul(arg("address"), NULL, 16), 1};
	return process_vm_readv(victim(), &l, 1, &r, 1, 0) == 1;
}
static int kill_victim(void) { return kill(victim(), 0) == 0; }
static int tgkill_victim(void) { return syscall(SYS_tgkill, victim(), victim(), 0) == 0; }
static int pidfd_victim(void) {
	int fd = syscall(SYS_pidfd_open, victim(), 0);
	return fd >= 0 && syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) == 0;
}
static int queue_victim(void) {
	siginfo_t i = {.si_signo = SIGCONT, .si_code = SI_QUEUE};
	return syscall(SYS_rt_sigqueueinfo, victim(), SIGCONT, &i) == 0;
}
static int sigio_victim(void) {
	int fd[2];
	if (pipe(fd) || fcntl(fd[0], F_SETOWN, victim()) || fcntl(fd[0], F_SETSIG, SIGUSR1) || fcntl(fd[0], F_SETFL, O_ASYNC))
		return 0;
	write(fd[1], "x", 1); // whether it arrived is for the victim to say
	errno = ENOMSG;
	return 0;
}
static int limit_victim(void) {
	struct rlimit l;
	return prlimit(victim(), RLIMIT_NOFILE, NULL, &l) == 0;
}
static int nice_victim(void) { return setpriority(PRIO_PROCESS, victim(), 19) == 0; }
static int affinity_victim(void) {
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	return sched_setaffinity(victim(), sizeof set, &set) == 0;
}
static int shared_memory(void) {
	char *p = shmat(atoi(arg("shmid")), NULL, SHM_RDONLY);
	return p != (void *)-1 && strstr(p, arg("secret"));
}
static int message_queue(void) { return syscall(SYS_mq_open, "planted", O_RDWR | O_CREAT, 0600, NULL) >= 0; }

static int setuid_root(void) { return setresuid(0, 0, 0) == 0; }
static int setgid_root(void) { return setresgid(0, 0, 0) == 0; }
static int setuid_file(void) { // ends with 77 when it was root
	pid_t p = fork();
	if (p == 0) {
		execl(arg("suid"), "suid", "rights", NULL);
		_exit(1);
	}
	int st = 0;
	waitpid(p, &st, 0);
	errno = EPERM;
	return WIFEXITED(st) && WEXITSTATUS(st) == 77;
}
static int make_setuid(void) {
	int fd = open("suid", O_WRONLY | O_CREAT, 0755);
	return fd >= 0 && fchmod(fd, 04755) == 0;
}
static int open_setuid(void) { return open("suid2", O_WRONLY | O_CREAT, 04755) >= 0; }
static int dev(const char *path) { return open(path, O_RDONLY | O_NONBLOCK) >= 0; }
static int dev_mem(void) { return dev("/dev/mem"); }
static int dev_kvm(void) { return dev("/dev/kvm"); }
static int dev_kfd(void) { return dev("/dev/kfd"); }
static int dev_disk(void) { return dev("/dev/vda") || dev("/dev/sda") || dev("/dev/loop-control"); }
static int dev_ptmx(void) { return dev("/dev/ptmx"); }
static int dev_tty(void) { return dev("/dev/tty"); }
static int dev_fuse(void) { return dev("/dev/fuse"); }
static int kernel_memory(void) { return dev("/proc/kcore"); }
static int make_device(void) {
	unlink("node");
	return mknod("node", S_IFBLK | 0666, makedev(254, 0)) == 0;
}
static int raise_limits(void) {
	struct rlimit l = {1 << 20, 1 << 20}, now;
	if (getrlimit(RLIMIT_NOFILE, &now) || now.rlim_max >= l.rlim_max)
		return errno = 0, now.rlim_max >= l.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &l) == 0;
}
static int keyring(void) { return syscall(SYS_add_key, "user", "planted", "x", 1, -3) >= 0; }
static int keyctl_(void) { return syscall(SYS_keyctl, 0, -3, 0, 0, 0) >= 0; }
static int push_input(void) { return ioctl(0, TIOCSTI, "x") == 0; }
static int ctty(void) { return ioctl(0, TIOCSCTTY, 1) == 0; }
static int bpf_(void) {
	union bpf_attr a = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
	return syscall(SYS_bpf, BPF_MAP_CREATE, &a, sizeof a) >= 0;
}
static int perf(void) {
	struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE, .size = sizeof a, .config = PERF_COUNT_SW_TASK_CLOCK, .exclude_kernel = 1};
	return syscall(SYS_perf_event_open, &a, 0, -1, -1, 0) >= 0;
}
static int io_uring(void) {
	static char params[120];
	return syscall(425, 4, params) >= 0;
}
static int userfault(void) { return syscall(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */) >= 0; }
static int handles(void) {
	char buf[256] = {0};
	int mnt;
	*(unsigned *)buf = 128;
	return syscall(SYS_name_to_handle_at, AT_FDCWD, "/usr", buf, &mnt, 0) == 0;
}
static int int80_(void) { // socketcall(SYS_SOCKET) would be 102; getpid is 20
	long r;
	__asm__ volatile("int $0x80" : "=a"(r) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
	return r > 0;
}
static int int80(void) { return in_child(int80_); }
static int x32_(void) { return syscall(0x40000000 | SYS_socket, AF_INET, SOCK_DGRAM, 0) >= 0; }
static int x32(void) { return in_child(x32_); }

static int in_tree(const char *name, int flags) {
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", arg("tree"), name);
	return open(path, flags);
}
static int lease(void) { return fcntl(in_tree("file", O_RDONLY), F_SETLEASE, F_RDLCK) == 0; }
static int notify(void) { return fcntl(in_tree(".", O_RDONLY), F_NOTIFY, DN_MODIFY) == 0; }
static int set_flags(void) { // no need to be able to write to it
	int fd = in_tree("file", O_RDONLY), flags = 0;
	if (ioctl(fd, FS_IOC_GETFLAGS, &flags))
		return 0;
	flags |= FS_NODUMP_FL;
	return ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0;
}
static int set_version(void) {
	int version = 1;
	return ioctl(in_tree("file", O_RDONLY), _IOW('v', 2, long), &version) == 0;
}
// Of which the file system may know nothing: then that is what is to be said.
static int verity(void) {
	char arg[128] = {1, 0, 0, 0, 1, 0, 0, 0, 0, 0x10};
	return ioctl(in_tree("file", O_RDONLY), _IOW('f', 133, char[128]), arg) == 0 || errno != ENOTTY;
}
static int subvolume(void) {
	static char arg[4096];
	strcpy(arg + 8, "planted");
	return ioctl(in_tree(".", O_RDONLY), _IOW(0x94, 14, char[4096]), arg) == 0 || errno != ENOTTY;
}

#define TRY(f) {#f, f}
static const struct { const char *name; int (*f)(void); } tries[] = {
	TRY(token), TRY(credentials), TRY(environment), TRY(others_environ), TRY(others_fd), TRY(others_root), TRY(others_cwd), TRY(own_fd), TRY(own_net), TRY(own_root), TRY(guard_memory), TRY(guard_fd), TRY(guard_program),
	TRY(write_tree), TRY(write_own), TRY(write_home), TRY(write_tmp), TRY(write_var_tmp), TRY(write_shm), TRY(write_usr), TRY(write_link), TRY(write_etc), TRY(write_sysctl),
	TRY(open_trunc), TRY(truncate_own), TRY(chmod_own), TRY(fchmod_tree), TRY(chown_own), TRY(utimes_own), TRY(xattr_own), TRY(unlink_own), TRY(link_own), TRY(rename_own),
	TRY(mkdir_home), TRY(list_home), TRY(inotify), TRY(dotdot),
	TRY(tcp), TRY(tcp_listen), TRY(udp), TRY(unix_path), TRY(unix_abstract), TRY(pair_datagram), TRY(pair_reconnect), TRY(netlink), TRY(raw_ip), TRY(packet),
	TRY(do_mount), TRY(do_remount), TRY(do_umount), TRY(unshare_user), TRY(clone_user), TRY(clone3_user), TRY(do_chroot), TRY(do_setns),
	TRY(trace_victim), TRY(trace_guard), TRY(read_victim), TRY(kill_victim), TRY(tgkill_victim), TRY(pidfd_victim), TRY(queue_victim), TRY(sigio_victim),
	TRY(limit_victim), TRY(nice_victim), TRY(affinity_victim), TRY(shared_memory), TRY(message_queue),
	TRY(setuid_root), TRY(setgid_root), TRY(setuid_file), TRY(make_setuid), TRY(open_setuid),
	TRY(dev_mem), TRY(dev_kvm), TRY(dev_kfd), TRY(dev_disk), TRY(dev_ptmx), TRY(dev_tty), TRY(dev_fuse), TRY(kernel_memory), TRY(make_device),
	TRY(raise_limits), TRY(keyring), TRY(keyctl_), TRY(push_input), TRY(ctty), TRY(bpf_), TRY(perf), TRY(io_uring), TRY(userfault), TRY(handles), TRY(lease), TRY(notify), TRY(set_flags), TRY(set_version), TRY(verity), TRY(subvolume), TRY(int80), TRY(x32),
};

// be_victim is a process of the same user that holds secrets: in its
// environment, its memory, a descriptor, and in memory that it shares.
static int signalled;
static void count(int s) { signalled++; }
static int be_victim(void) {
	signal(SIGUSR1, count);
	signal(SIGCONT, count);
	dup2(open(arg("token"), O_RDONLY), 9);
	int id = shmget(IPC_PRIVATE, 4096, 0600 | IPC_CREAT);
	char *p = shmat(id, NULL, 0);
	if (p == (void *)-1)
		return 1;
	strcpy(p, arg("secret"));
	printf("%d %lx\n", id, (unsigned long)p);
	fflush(stdout);
	char c;
	while (read(0, &c, 1) < 0 && errno == EINTR)
		;
	shmctl(id, IPC_RMID, NULL);
	printf("%d\n", signalled);
	return 0;
}

// One bound each, for ever.
static int fork_bomb(void) {
	for (;;)
		if (fork() < 0)
			usleep(1000);
}
static int memory_bomb(void) {
	for (;;) {
		char *p = mmap(NULL, 16 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			return 3;
		for (volatile char *c = p; c < p + (16 << 20); c += 4096)
			*c = 1;
	}
}
static int memory_forks(void) { // each within its own bound
	for (int i = 0; i < 15; i++)
		if (fork() == 0)
			break;
	volatile char *p = malloc(12 << 20);
	if (!p)
		return 3;
	for (size_t n = 0; n < 12 << 20; n += 4096)
		p[n] = 1;
	for (;;)
		pause();
}
static int shm_bomb(void) { // memory that is nobody's, in a file of /dev/shm
	static char block[1 << 20];
	int fd = open("/dev/shm/bomb", O_WRONLY | O_CREAT, 0600);
	while (write(fd, block, sizeof block) > 0)
		;
	printf("%s\n", strerror(errno));
	fflush(stdout);
	for (;;)
		pause();
}
static int memfd_bomb(void) { // memory that no process has mapped
	static char block[1 << 20];
	int fd = memfd_create("bomb", 0);
	if (fd < 0)
		return 3;
	while (write(fd, block, sizeof block) > 0)
		;
	for (;;)
		pause();
}
static int flood(void) {
	static char block[65536];
	for (;;)
		if (write(1, block, sizeof block) < 0 || write(2, block, sizeof block) < 0)
			return 1;
}
static int stay(void) { // nothing ends it but SIGKILL, nor what it leaves behind
	for (int s = 1; s < 65; s++)
		signal(s, SIG_IGN);
	for (int i = 0; i < 3; i++)
		if (fork() == 0) {
			setsid();
			if (fork())
				_exit(0);
			for (;;)
				pause();
		}
	printf("staying\n");
	fflush(stdout);
	for (;;)
		pause();
}
static int leave(void) { // ends at once; a daemon that it started does not
	if (fork() == 0) {
		setsid();
		if (fork())
			_exit(0);
		for (;;) {
			int fd = open("daemon", O_WRONLY | O_CREAT | O_APPEND, 0600);
			write(fd, "x", 1);
			close(fd);
			usleep(5000);
		}
	}
	while (access("daemon", F_OK))
		usleep(1000);
	return 0;
}
static int deep(void) { // more levels than a path can name
	for (int i = 0; i < 5000 && mkdir("d", 0700) == 0 && chdir("d") == 0; i++)
		;
	printf("%s\n", strerror(errno));
	fflush(stdout);
	for (;;)
		pause();
}
static int vforks(void) { // those that wait for a vfork cannot be stopped
	if (fork() == 0) {
		setsid();
		if (vfork() == 0)
			for (;;)
				pause();
	}
	usleep(50000);
	return 0;
}
static int hide(void) { // where /proc is mounted with hidepid, from all of the same user
	if (fork() == 0) {
		prctl(PR_SET_DUMPABLE, 0);
		setsid();
		for (;;)
			pause();
	}
	usleep(50000);
	return 0;
}
static int fill(const char *dir, long each) {
	static char block[1 << 20];
	char path[4096];
	signal(SIGXFSZ, SIG_IGN);
	long total = 0;
	for (int i = 0; i < 4000; i++) {
		snprintf(path, sizeof path, "%s/fill%d", dir, i);
		int fd = open(path, O_WRONLY | O_CREAT, 0600);
		if (fd < 0)
			break;
		long n = 0;
		while (n < each && write(fd, block, sizeof block) == sizeof block)
			n += sizeof block;
		close(fd);
		total += n;
		if (n < each)
			break;
	}
	printf("%ld MiB: %s\n", total >> 20, strerror(errno));
	return 0;
}

int main(int argc, char **argv) {
	args = argv + 1;
	const char *what = argc > 1 ? argv[1] : "";
	if (!strcmp(what, "rights"))
		return geteuid() == 0 || getegid() == 0 ? 77 : 1;
	if (!strcmp(what, "victim"))
		return be_victim();
	if (!strcmp(what, "fork"))
		return fork_bomb();
	if (!strcmp(what, "memory"))
		return memory_bomb();
	if (!strcmp(what, "memories"))
		return memory_forks();
	if (!strcmp(what, "shm"))
		return shm_bomb();
	if (!strcmp(what, "memfd"))
		return memfd_bomb();
	if (!strcmp(what, "flood"))
		return flood();
	if (!strcmp(what, "stay"))
		return stay();
	if (!strcmp(what, "deep"))
		return deep();
	if (!strcmp(what, "vforks"))
		return vforks();
	if (!strcmp(what, "hide"))
		return hide();
	if (!strcmp(what, "leave"))
		return leave();
	if (!strcmp(what, "fill"))
		return fill(argv[2], 8 << 20);
	if (!strcmp(what, "file"))
		return fill(argv[2], 1L << 40);
	if (!strcmp(what, "crash"))
		return *(volatile int *)0;
	if (!strcmp(what, "killer")) {
		for (int s = 1; s < 65; s++)
			kill(getppid(), s);
		kill(-1, SIGKILL);
		usleep(50000);
		printf("alive\n");
		return 0;
	}
	for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
		errno = 0;
		int ok = tries[i].f();
		printf("%s: %s (%s)\n", tries[i].name, ok ? "yes" : "no", strerror(errno));
		fflush(stdout);
	}
	return 0;
}
