package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// mountinfo has lines as proc(5) gives them, of real mounts but for the hosts.
const mountinfo = `22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
40 27 0:45 / /srv/a rw,relatime shared:2 master:1 - nfs4 files:/a rw,vers=4.2,rsize=1048576,hard,proto=tcp,timeo=600,retrans=2,sec=sys,clientaddr=192.0.2.1,local_lock=none,addr=192.0.2.2
41 27 0:46 / /srv/b\040c rw,relatime - nfs files:/b rw,vers=3,nolock,proto=tcp,mountproto=tcp,local_lock=all,addr=192.0.2.2
42 27 0:47 / /srv/d rw,relatime - nfs files:/d rw,vers=3,proto=tcp,local_lock=none,addr=192.0.2.2
43 27 0:48 / /srv/e rw,nosuid,nodev,relatime - fuse.sshfs files:/e rw,user_id=0,group_id=0
44 27 0:49 / /srv/f rw,relatime - cifs //files/f rw,vers=3.1.1,cache=strict,nobrl,soft
45 27 0:50 / /srv/g rw,relatime - cifs //files/g rw,vers=3.1.1,cache=strict,soft
46 27 0:51 / /srv/h rw,relatime - 9p host rw,access=client,trans=virtio
47 27 0:52 / /srv/i rw,relatime - virtiofs host rw
48 27 8:17 / /srv/j rw,relatime - fuseblk /dev/sdb1 rw,user_id=0,group_id=0,allow_other,blksize=4096
49 27 0:53 / /srv/k rw,relatime - fuse.fuse-overlayfs fuse-overlayfs rw,user_id=0
50 27 0:54 / /srv/l rw,relatime - lustre 192.0.2.3@tcp:/scratch rw,flock,lazystatfs
51 27 0:55 / /srv/m rw,relatime - lustre 192.0.2.3@tcp:/scratch rw,localflock
52 27 0:56 / /srv/n rw,relatime - tmpfs tmpfs rw
53 27 0:57 / /srv/o rw,relatime - overlay overlay rw,lowerdir=/a,upperdir=/b,workdir=/c
54 27 0:58 / /srv/p rw,relatime - ceph 192.0.2.4:/ rw,name=a,secret=<hidden>,acl
55 27 0:59 / /srv/q rw,relatime - nfs4 files:/q rw,vers=4.1,local_lock=flock,addr=192.0.2.2
`

func TestWhoSeesALock(t *testing.T) {
	for id, want := range map[uint64]reach{
		27: reachLocal, 40: reachShared, 41: reachBlind, 42: reachShared, 43: reachBlind, 44: reachBlind, 45: reachShared, 46: reachBlind, 47: reachBlind,
		48: reachLocal, 49: reachLocal, 50: reachShared, 51: reachBlind, 52: reachLocal, 53: reachLocal, 54: reachShared, 55: reachBlind,
	} {
		m, err := findMount(strings.NewReader(mountinfo), id)
		if err != nil {
			t.Fatal(err)
		}
		got, why := m.judge()
		if got != want || (why == "") != (got != reachBlind) {
			t.Errorf("%s %v: %d, %q, want %d", m.Type, m.Options, got, why, want)
		}
	}
	if _, err := findMount(strings.NewReader(mountinfo), 99); err == nil {
		t.Error("found a mount that is not there")
	}
	// Where /proc does not tell the options, the worst is assumed.
	for magic, want := range map[int64]reach{0x6969: reachBlind, 0x65735546: reachBlind, 0xff534d42: reachBlind, 0x01021997: reachBlind, 0x0bd00bd0: reachBlind, 0xef53: reachLocal, 0x01021994: reachLocal} {
		if got, why := (fsMount{Type: typeByMagic(magic)}).judge(); got != want {
			t.Errorf("magic %#x: %d, %q", magic, got, why)
		}
	}
}

func TestThisMountIsFound(t *testing.T) {
	m, err := mountOf(scratch(t))
	if err != nil || m.Type == "" || len(m.Options) == 0 {
		t.Errorf("%+v, %v", m, err)
	}
	if m, err := mountOf("/proc"); err != nil || m.Type != "proc" {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := mountOf(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("found what is not there")
	}
}

// on puts a store on a mount of the list.
func on(t *testing.T, s *Store, id uint64) {
	t.Helper()
	m, err := findMount(strings.NewReader(mountinfo), id)
	if err != nil {
		t.Fatal(err)
	}
	s.mountOf = func(string) (fsMount, error) { return m, nil }
}

func TestARunIsRefusedWhereLocksEndAtThisHost(t *testing.T) {
	s := open(t)
	on(t, s, 41)
	var le *LocksError
	_, err := s.LockRun(t.Context(), "update")
	if !errors.As(err, &le) || le.Type != "nfs" || !strings.Contains(err.Error(), "nolock") || !strings.Contains(err.Error(), "--root") || !strings.Contains(err.Error(), "root_alone") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(s.Root(), runLock)); err == nil {
		t.Error("something was locked")
	}
	s.Alone = true
	lock, err := s.LockRun(t.Context(), "update")
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
	// What is there can be used all the same: a switch is one rename.
	s.Alone = false
	sl := s.Slot("nightly", "gfx1151")
	install(t, sl, night(1), night(2))
	if _, _, err := sl.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
}

// leaveStaging makes what a run that died, as h says, has left.
func leaveStaging(t *testing.T, sl *Slot, h *Holder) string {
	t.Helper()
	st, err := sl.Stage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := readHolder(st.Dir() + lockSuffix); got.PID != os.Getpid() || got.What != "stage" || got.Host == "" || got.BootID != bootID() || got.Since.IsZero() || got.Schema != holderSchema {
		t.Errorf("the staging says %+v", got)
	}
	writeHolder(st.Dir()+lockSuffix, *h)
	if err := st.lock.Close(); err != nil { // as the kernel does for the dead
		t.Fatal(err)
	}
	return st.Dir()
}

func TestDebrisOfAnotherHost(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	recent, old := time.Date(2026, 9, 30, 6, 0, 0, 0, time.UTC), time.Date(2026, 9, 28, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		mount uint64
		alone bool
		h     Holder
		gone  bool
	}{
		"local disk, other host's container":  {27, false, Holder{Host: "other", Since: recent}, true},
		"NFS whose locks are seen":            {40, false, Holder{Host: "other", Since: recent}, true},
		"NFS with nolock":                     {41, false, Holder{Host: "other", Since: recent}, false},
		"NFS with nolock, this host":          {41, false, Holder{Host: host, Since: recent}, true},
		"NFS with nolock, an older program's": {41, false, Holder{}, true},
		"sshfs, alone, today":                 {43, true, Holder{Host: "other", Since: recent}, false},
		"sshfs, alone, days ago":              {43, true, Holder{Host: "other", Since: old}, true},
		"sshfs, not alone, days ago":          {43, false, Holder{Host: "other", Since: old}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			var told []Event
			s.Event = func(e Event) { told = append(told, e) }
			sl := s.Slot("nightly", "gfx1151")
			dir := leaveStaging(t, sl, &c.h)
			on(t, s, c.mount)
			s.Alone = c.alone
			st, err := sl.Stage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := st.Abort(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(dir); (err != nil) != c.gone {
				t.Errorf("gone: %v, want %v", err, c.gone)
			}
			if _, err := os.Stat(dir + lockSuffix); (err != nil) != c.gone {
				t.Errorf("its lock: %v", err)
			}
			if !c.gone && (len(told) == 0 || !strings.Contains(told[0].Message, c.h.Host)) {
				t.Errorf("told %+v", told)
			}
		})
	}
}

// A file system that grants every lock is found out, not believed.
func TestALockThatIsNoneIsFoundOut(t *testing.T) {
	s := open(t)
	lock, err := s.LockRun(t.Context(), "update")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.Root(), runLock)
	if err := testLock(path); err != nil {
		t.Errorf("held: %v", err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if err := testLock(path); !errors.Is(err, ErrNoLocks) || !strings.Contains(err.Error(), "--root") {
		t.Errorf("granted twice: %v", err)
	}
}

func TestSwitchLockNamesItsHolder(t *testing.T) {
	sl := open(t).Slot("nightly", "gfx1151")
	install(t, sl, night(1))
	err := sl.locked(t.Context(), func() error {
		if h := readHolder(sl.path(switchLock)); h.PID != os.Getpid() || h.What != "switch" {
			t.Errorf("%+v", h)
		}
		return nil
	})
	if b, rerr := os.ReadFile(sl.path(switchLock)); err != nil || rerr != nil || len(b) != 0 {
		t.Errorf("after it: %q, %v, %v", b, err, rerr)
	}
}

func TestSillyNamesAreNoDebrisForEver(t *testing.T) {
	dir := t.TempDir()
	if silly(dir) {
		t.Error("an empty directory")
	}
	sub := filepath.Join(dir, "lib")
	if err := errors.Join(os.Mkdir(sub, 0o755), os.WriteFile(filepath.Join(sub, ".nfs000000000123abcd00000001"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	if !silly(dir) {
		t.Error("only a silly name is left")
	}
	if err := os.WriteFile(filepath.Join(sub, "libx.so"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if silly(dir) {
		t.Error("a file is left")
	}
}

// BenchmarkLockRun is what it costs to make sure that locks work.
func BenchmarkLockRun(b *testing.B) {
	s := open(b)
	for b.Loop() {
		lock, err := s.LockRun(b.Context(), "update")
		if err != nil {
			b.Fatal(err)
		}
		if err := lock.Release(); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzFindMount(f *testing.F) {
	for l := range strings.Lines(mountinfo) {
		f.Add(l, uint64(40))
	}
	f.Fuzz(func(t *testing.T, text string, id uint64) {
		if m, err := findMount(strings.NewReader(text), id); err == nil {
			if r, why := m.judge(); (why == "") == (r == reachBlind) {
				t.Errorf("%+v: %d, %q", m, r, why)
			}
		}
	})
}
