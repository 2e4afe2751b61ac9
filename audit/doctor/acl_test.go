package doctor

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What setfacl writes is read as getfacl reads it, and decides as the kernel does.
func TestACLOfSetfacl(t *testing.T) {
	if _, err := exec.LookPath("setfacl"); err != nil {
		t.Skip("setfacl is missing: apt install acl")
	}
	file := filepath.Join(t.TempDir(), "kfd")
	if err := os.WriteFile(file, nil, 0o660); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o660); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("setfacl", "-m", "u:1234:rw,u:1235:r,g:4321:rw,g:4322:r,m::rw", file).CombinedOutput(); err != nil {
		t.Skipf("no ACLs on this file system: %v %s", err, out)
	}
	b, err := xattr(file, aclAttr)
	if err != nil {
		t.Fatal(err)
	}
	acl, ok := parseACL(b)
	if !ok || len(acl) != 8 {
		t.Fatalf("%d entries in % x", len(acl), b)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	uid, gid, _ := owner(info)
	for _, c := range []struct {
		name  string
		uid   int
		group int
		ok    bool
		by    string
	}{
		{"named user", 1234, 99, true, "ACL"},
		{"named user, to read", 1235, 4321, false, "ACL"},
		{"named group", 777, 4321, true, "group"},
		{"named group, to read", 777, 4322, false, ""},
		{"owning group", 777, gid, true, "group"},
		{"nobody", 777, 99, false, "everybody"},
	} {
		if got, by := allowed(acl, uid, gid, c.uid, map[int]bool{c.group: true}); got != c.ok || by != c.by {
			t.Errorf("%s: %v by %q", c.name, got, by)
		}
	}
	if out, err := exec.Command("setfacl", "-m", "m::r", file).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if b, err = xattr(file, aclAttr); err != nil {
		t.Fatal(err)
	}
	acl, _ = parseACL(b)
	if ok, _ := allowed(acl, uid, gid, 1234, nil); ok {
		t.Error("the mask is passed over")
	}
}

func TestModes(t *testing.T) {
	for _, c := range []struct {
		mode  fs.FileMode
		uid   int
		group int
		ok    bool
	}{
		{0o660, 5, 7, true}, {0o660, 5, 8, false}, {0o666, 5, 8, true}, {0o606, 5, 7, false},
		{0o600, 3, 7, true}, {0o600, 0, 8, true}, {0o640, 5, 7, false}, {0o066, 3, 7, false},
	} {
		if ok, _ := allowed(modeACL(c.mode), 3, 7, c.uid, map[int]bool{c.group: true}); ok != c.ok {
			t.Errorf("%04o for %d in %d: %v", c.mode, c.uid, c.group, ok)
		}
	}
}

func FuzzParseACL(f *testing.F) {
	f.Add([]byte{2, 0, 0, 0, 1, 0, 6, 0, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		acl, ok := parseACL(b)
		if !ok {
			return
		}
		if len(acl)*aclEntryLen+4 != len(b) {
			t.Errorf("%d entries of %d bytes", len(acl), len(b))
		}
		allowed(acl, 1, 2, 3, map[int]bool{4: true})
	})
}
