package trusted

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const stranger = 12345

// asRoot skips where owners cannot be given away.
func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may give files away")
	}
}

// do runs the steps that make a case: "COMMAND ARG...", in dir.
func do(t *testing.T, dir string, steps ...string) {
	t.Helper()
	for _, step := range steps {
		words := strings.Fields(step)
		if _, err := exec.LookPath(words[0]); err != nil {
			t.Skipf("%s is not here", words[0])
		}
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			if words[0] == "setfacl" && strings.Contains(string(out), "not supported") {
				t.Skip("no access control lists on this file system")
			}
			t.Fatalf("%s: %v: %s", step, err, out)
		}
	}
}

// What root believes: each case is made with the real commands around d/f.
func TestWhatRootBelieves(t *testing.T) {
	asRoot(t)
	for name, c := range map[string]struct {
		steps []string
		file  string // "d/f" if empty
		want  string // of the error; "" if it is trusted
	}{
		"a file of root's":                    {},
		"a file of a stranger's":              {steps: []string{"chown 12345 d/f"}, want: "d/f belongs to the user 12345, and so somebody else could decide what is done here (chown root "},
		"everybody may write it":              {steps: []string{"chmod 666 d/f"}, want: "everybody (mode 0666), and so somebody else could decide what is done here (chmod go-w "},
		"a group may write it":                {steps: []string{"chgrp 12345 d/f", "chmod 664 d/f"}, want: "the group 12345 (mode 0664)"},
		"root's group may write it":           {steps: []string{"chmod 664 d/f"}},
		"everybody may read it":               {steps: []string{"chmod 644 d/f"}},
		"a list lets a user write":            {steps: []string{"setfacl -m u:12345:rw d/f"}, want: "the user 12345, by its access control list"},
		"a list lets a group write":           {steps: []string{"setfacl -m g:12345:rw d/f"}, want: "the group 12345, by its access control list"},
		"a list whose mask takes it away":     {steps: []string{"setfacl -m u:12345:rw,m::r d/f"}},
		"a list lets a user read":             {steps: []string{"setfacl -m u:12345:r d/f"}},
		"the directory is a stranger's":       {steps: []string{"chown 12345 d"}, want: "/d belongs to the user 12345"},
		"everybody may write the directory":   {steps: []string{"chmod 777 d"}, want: "/d can be written by everybody"},
		"a directory like /tmp":               {steps: []string{"chmod 1777 d"}},
		"a stranger's file in one like /tmp":  {steps: []string{"chmod 1777 d", "chown 12345 d/f"}, want: "d/f belongs"},
		"a stranger's directory like /tmp":    {steps: []string{"chmod 1777 d", "chown 12345 d"}, want: "/d belongs"},
		"a list of the directory":             {steps: []string{"setfacl -m u:12345:rwx d"}, want: "/d can be written by the user 12345"},
		"a directory higher up":               {steps: []string{"mkdir -p d/a/b", "cp d/f d/a/b/f", "chown 12345 d/a"}, file: "d/a/b/f", want: "/d/a belongs"},
		"a link of root's":                    {steps: []string{"ln -s d/f l"}, file: "l"},
		"a link to a link":                    {steps: []string{"ln -s d/f l", "ln -s ./l m"}, file: "m"},
		"a link of a stranger's":              {steps: []string{"mkdir -m 1777 e", "ln -s ../d/f e/l", "chown -h 12345 e/l"}, file: "e/l", want: "/e/l belongs"},
		"a link into a stranger's directory":  {steps: []string{"ln -s d/f l", "chown 12345 d"}, file: "l", want: "/d belongs"},
		"a link in a stranger's directory":    {steps: []string{"mkdir e", "ln -s ../d/f e/l", "chown 12345 e"}, file: "e/l", want: "/e belongs"},
		"through a stranger's and back":       {steps: []string{"mkdir e", "chown 12345 e", "ln -s e/../d/f l"}, file: "l", want: "/e belongs"},
		"a link around in a ring":             {steps: []string{"ln -s m l", "ln -s l m"}, file: "l", want: "too many"},
		"nothing":                             {file: "d/none", want: "no such file"},
		"a directory":                         {file: "d"},
		"a path with dots and double slashes": {file: "d/.//../d/./f"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "d"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "d/f"), []byte("text"), 0o600); err != nil {
				t.Fatal(err)
			}
			do(t, dir, c.steps...)
			file := c.file
			if file == "" {
				file = "d/f"
			}
			file = dir + "/" + file
			err := Rule{}.Check(file)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if c.file == "d" || strings.Contains(c.want, "too many") {
				return
			}
			b, again := Rule{}.ReadFile(file, 10)
			if c.want == "" && (again != nil || string(b) != "text") || c.want != "" && again == nil {
				t.Errorf("reading it: %q, %v", b, again)
			}
		})
	}
}

// A user believes root and themselves, wherever the file lies.
func TestWhatAUserBelieves(t *testing.T) {
	asRoot(t)
	me := Rule{UID: stranger}
	dir := t.TempDir()
	do(t, dir, "mkdir d", "touch d/mine d/roots d/others d/open d/ours", "chown 777 d d/others", "chown 12345:12345 d/mine d/open d/ours", "chmod 666 d/open", "chmod 664 d/ours")
	for name, want := range map[string]string{"mine": "", "roots": "", "others": "belongs to the user 777", "open": "everybody", "ours": ""} {
		err := me.Check(filepath.Join(dir, "d", name))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var why *Error
	if err := me.Check(filepath.Join(dir, "d/others")); !errors.As(err, &why) || why.UID != 777 || why.Path != filepath.Join(dir, "d/others") || !strings.HasPrefix(why.Try, "chown 12345 ") {
		t.Errorf("%+v", why)
	}
}

func TestReadFile(t *testing.T) {
	dir, own := t.TempDir(), Own()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := own.ReadFile(filepath.Join(dir, "f"), 4); err == nil || !strings.Contains(err.Error(), "larger than 4") {
		t.Errorf("%v", err)
	}
	if b, err := own.ReadFile(filepath.Join(dir, "f"), 5); err != nil || len(b) != 5 {
		t.Errorf("%q, %v", b, err)
	}
	do(t, dir, "mkfifo p")
	for name, want := range map[string]string{"p": "no regular file", ".": "no regular file"} {
		if _, err := own.ReadFile(filepath.Join(dir, name), 5); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := own.ReadFile(filepath.Join(dir, "none"), 5); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("piped"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if b, err := own.ReadFile("/dev/fd/"+strconv.Itoa(int(r.Fd())), 10); err != nil || string(b) != "piped" {
		t.Errorf("%q, %v", b, err)
	}
}

// What is not there yet is as good as the directory in which it will be.
func TestCheckNearest(t *testing.T) {
	asRoot(t)
	dir := t.TempDir()
	do(t, dir, "mkdir d s mine", "chmod 1777 s", "chown 12345 mine", "ln -s nowhere l")
	for name, ok := range map[string]bool{"d": true, "d/x/y/z": true, "s/x": true, "s": false, "mine": false, "mine/x": false, "l": true} {
		if err := (Rule{}).CheckNearest(filepath.Join(dir, name)); (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// In a user namespace files of unmapped owners are taken as root's, if none of those
// that are mapped is shown by the same number.
func TestMapped(t *testing.T) {
	for maps, want := range map[string]bool{"0 1000 1": false, "0 100000 65536": true, "0 1000 1\n1 100000 65535\n": true, "": false, "x": false} {
		if mapped(maps, 65534) != want {
			t.Errorf("%q", maps)
		}
	}
	if (Rule{Unmapped: 65534}).owner(65534) == (Rule{}).owner(65534) {
		t.Error("the owner that has no number here makes no difference")
	}
}

func FuzzACL(f *testing.F) {
	entry := func(tag, perm uint16, id uint32) []byte {
		b := binary.LittleEndian.AppendUint16(nil, tag)
		return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint16(b, perm), id)
	}
	version := []byte{2, 0, 0, 0}
	f.Add(append(append(version, entry(aclUser, 6, 5)...), entry(aclMask, 7, 0)...))
	f.Add([]byte{2, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := parseACL(b)
		if err != nil && (len(w.users) > 0 || w.other) {
			t.Error("half of it was taken")
		}
	})
}

func TestNullIsEmpty(t *testing.T) {
	if b, err := Own().ReadFile(os.DevNull, 100); err != nil || len(b) > 0 {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := Own().ReadFile("/dev/zero", 100); err == nil {
		t.Error("a device was read")
	}
}
