package store

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseMapping(t *testing.T) {
	for line, want := range map[string]mapping{
		"7f0c1e000000-7f0c1e022000 r--p 00000000 fe:00 1311                       /usr/lib/libc.so.6": {unix.Mkdev(0xfe, 0), 1311, []byte("/usr/lib/libc.so.6")},
		"7f0c1e000000-7f0c1e022000 rw-s 00000000 00:1a 18446744073709551615 /dev/shm/a b (deleted)":   {unix.Mkdev(0, 0x1a), 1<<64 - 1, []byte("/dev/shm/a b (deleted)")},
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]":         {},
		"7f0c1e000000-7f0c1e022000 r--p 00000000 fe:00 1311":                                          {unix.Mkdev(0xfe, 0), 1311, nil},
		"7f0c1e000000-7f0c1e022000 r--p 00000000 fe00 1311 /x":                                        {},
		"7f0c1e000000-7f0c1e022000 r--p 00000000 fe:00":                                               {},
		"7f0c1e000000-7f0c1e022000 r--p 00000000 fe:00 99999999999999999999 /x":                       {},
		"": {},
	} {
		m, ok := parseMapping([]byte(line))
		if ok != (want.ino != 0) || ok && (m.dev != want.dev || m.ino != want.ino || !bytes.Equal(m.path, want.path)) {
			t.Errorf("%q: %+v, %v", line, m, ok)
		}
	}
	// What this process maps is read as stat shows it.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	st, err := statAt(unix.AT_FDCWD, self, 0)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	found := false
	err = eachMapping(f, bufio.NewReaderSize(nil, maxMapLine), func(m mapping) { found = found || m.ino == st.ino })
	if err != nil || !found {
		t.Errorf("%s is not mapped, %v", self, err)
	}
	if err := eachMapping(strings.NewReader(strings.Repeat("x", maxMapLine+1)), bufio.NewReaderSize(nil, maxMapLine), func(mapping) {}); err == nil {
		t.Error("a line without an end")
	}
}

func TestParseMount(t *testing.T) {
	m, ok := parseMount(`36 35 98:0 /mnt1\040a /mnt2\134x//deleted rw,noatime master:1 - ext3 /dev/root rw,errors=continue`)
	if want := (mount{36, unix.Mkdev(98, 0), "/mnt1 a", `/mnt2\x//deleted`, "rw,noatime", "ext3", "rw,errors=continue"}); !ok || m != want {
		t.Errorf("%+v, %v", m, ok)
	}
	if m, ok := parseMount(`1 0 0:5 /a//deleted / rw - overlay o lowerdir=/x/y:l/Z:/p\134:q,upperdir=/u,workdir=/w`); !ok || m.root != "/a" || !slices.Equal(m.layers(), []string{"/x/y", `/p\`, "/u"}) {
		t.Errorf("%+v, %q, %v", m, m.layers(), ok)
	}
	for _, bad := range []string{"", " - ", "x 35 98:0 / / rw - ext3 d o", "36 35 98 / / rw - ext3 d o", "36 35 98:0 / /"} {
		if m, ok := parseMount(bad); ok {
			t.Errorf("%q: %+v", bad, m)
		}
	}
	all := mounts{{id: 1, point: "/"}, {id: 2, point: "/srv"}, {id: 3, point: "/srv/a"}, {id: 4, point: "/srv"}}
	for path, want := range map[string]uint64{"/": 1, "/srvx": 1, "/srv/b": 4, "/srv/a/b": 3} {
		if m := all.holding(0, path); m == nil || m.id != want {
			t.Errorf("%s is in %+v", path, m)
		}
	}
	if m := all.holding(2, "/srv/b"); m.id != 2 || m.inside("/srv/b") != "/b" {
		t.Errorf("%+v", m)
	}
}

func TestParseStat(t *testing.T) {
	text := "7 (a ) (b) Z 1 1 1 0 -1 2097152 0 0 0 0 0 0 0 0 20 0 3 0 12345 0"
	if p, err := parseStat([]byte(text)); err != nil || p != (procStat{kernel: true, zombie: true, threads: 3, start: 12345}) {
		t.Errorf("%+v, %v", p, err)
	}
	for _, bad := range []string{"", "7 (x", "7 (x) R 1 2", strings.Replace(text, "12345", "x", 1)} {
		if p, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q: %+v", bad, p)
		}
	}
}

func TestWhoCanReachAStore(t *testing.T) {
	public, group, own := dirAccess{0, 0, 0o755, false}, dirAccess{7, 70, 0o750, false}, dirAccess{7, 70, 0o700, false}
	owner, member, other := &stranger{uid: 7}, &stranger{uid: 8, groups: []int{1, 70}}, &stranger{uid: 9}
	root := &stranger{all: true}
	for name, c := range map[string]struct {
		way  way
		want string
	}{
		"public":    {way{public, public}, "owner member other root"},
		"a group's": {way{public, group}, "owner member"},
		"private":   {way{public, own}, "owner"},
		"an ACL":    {way{{7, 70, 0o710, true}}, "owner member other"},
		"not mine":  {way{{7, 70, 0o077, false}}, "member other root"},
	} {
		var got []string
		for _, s := range []struct {
			name string
			*stranger
		}{{"owner", owner}, {"member", member}, {"other", other}, {"root", root}} {
			if c.way.open(s.stranger) {
				got = append(got, s.name)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	s := &stranger{all: true}
	s.read([]byte("Name:\tx\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t9 10 \nNSpid:\t5\t1\nCapEff:\t0000000000000000\n"))
	if s.uid != 4 || !slices.Equal(s.groups, []int{8, 9, 10}) || s.all || !s.contained {
		t.Errorf("%+v", s)
	}
}

// TestIndexBelievesDirectories: inodes as directories list them are those that
// stat shows.
func TestIndexBelievesDirectories(t *testing.T) {
	dir := scratch(t)
	for i := range 300 {
		if err := os.WriteFile(filepath.Join(dir, strings.Repeat("x", i%100+1)+string(rune('a'+i/100))), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "a/b/c"), 0o755); err != nil {
		t.Fatal(err)
	}
	quick, err := inodesOf(t.Context(), dir, false)
	if err != nil {
		t.Fatal(err)
	}
	asked, err := inodesOf(t.Context(), dir, true)
	if err != nil || len(asked) != 304 || len(quick) != 304 {
		t.Fatalf("%d and %d inodes, %v", len(quick), len(asked), err)
	}
	for ino := range asked {
		if _, ok := quick[ino]; !ok {
			t.Errorf("inode %d is not listed", ino)
		}
	}
}

// FuzzMaps holds that no text of /proc breaks the reading of it.
func FuzzMaps(f *testing.F) {
	f.Add([]byte("7f0c1e000000-7f0c1e022000 r--p 00000000 fe:00 1311  /usr/lib/libc.so.6\n7f0c1e000000-7f0c1e022000 r--p 00000000 00:00 0\n"))
	f.Add([]byte("36 35 98:0 /mnt1 /mnt2\\040 rw,noatime master:1 - overlay /dev/root rw,lowerdir=/a:/b\\"))
	f.Add([]byte("7 (a ) (b) Z 1 1 1 0 -1 2097152 0 0 0 0 0 0 0 0 20 0 3 0 12345 0"))
	f.Add([]byte("Uid:\t1\t2\t3\t4\nGroups:\t1 2\nCapEff:\tx\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		_ = eachMapping(bytes.NewReader(b), bufio.NewReaderSize(nil, maxMapLine), func(m mapping) {
			if n++; m.ino == 0 {
				t.Fatal("a mapping of no file")
			}
		})
		if n > bytes.Count(b, []byte{'\n'})+1 {
			t.Fatal("more mappings than lines")
		}
		all, err := readMounts(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			for _, dir := range all[i].layers() {
				if !filepath.IsAbs(dir) {
					t.Fatalf("a layer at %q", dir)
				}
			}
			all[i].inside(string(b))
		}
		all.holding(1, string(b))
		_, _ = parseStat(b)
		(&stranger{}).read(b)
	})
}

// FuzzLease holds that a record is one that leads nowhere, or none.
func FuzzLease(f *testing.F) {
	f.Add([]byte(`{"schema":1,"pid":7,"start":9,"uid":0,"slot":"nightly-gfx1151","generation":"10.2.0a20260930","since":"2026-09-30T06:30:00Z"}`))
	f.Add([]byte(`{"schema":2}`))
	f.Add([]byte(`{"schema":1,"pid":-1}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := parseLease(b)
		if err != nil {
			return
		}
		if l.PID <= 0 || l.Schema != leaseSchema || strings.ContainsAny(l.Slot+l.Generation, "/\x00\n") || l.Slot == "" {
			t.Fatalf("%+v", l)
		}
		r := &leaseReader{}
		if s := r.judge(l, r.now); s != LeaseLive && s != LeaseDead && s != LeaseUnknown {
			t.Fatalf("%q", s)
		}
	})
}
