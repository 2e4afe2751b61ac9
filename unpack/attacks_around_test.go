package unpack

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A root that is not empty is refused: what another archive left in it may be
// a link that leads out, and a name may be there in another spelling.
func TestRootThatIsNotEmpty(t *testing.T) {
	for what, c := range map[string]struct {
		there func(root *os.Root) error
		tar   string
	}{
		"a file through a link":           {func(r *os.Root) error { return r.Symlink("../beside", "a") }, aFile("a/victim", "x")},
		"a file through an absolute link": {func(r *os.Root) error { return r.Symlink("/etc", "a") }, aFile("a/victim", "x")},
		"a file in the place of a link":   {func(r *os.Root) error { return r.Symlink("../beside/victim", "a") }, aFile("a", "x")},
		"a directory in place of a link":  {func(r *os.Root) error { return r.Symlink("../beside", "a") }, aDir("a/")},
		"a directory that is there":       {func(r *os.Root) error { return r.Mkdir("a", 0o700) }, aDir("a/")},
		"a file that is there":            {func(r *os.Root) error { return r.WriteFile("a", nil, 0o600) }, aFile("a", "x")},
		"a link that is there":            {func(r *os.Root) error { return r.Symlink("../beside/victim", "a") }, aSym("a", "b")},
		"a hard link that is there":       {func(r *os.Root) error { return r.Symlink("../beside/victim", "a") }, aFile("b", "x") + aHard("a", "b")},
	} {
		t.Run(what, func(t *testing.T) {
			y := newYard(t)
			root, dir := y.root(t, "root-0")
			if err := c.there(root); err != nil {
				t.Fatal(err)
			}
			before, was := y.look(t), describeRoot(t, dir)
			_, err := Tree(context.Background(), bytes.NewReader(stored(t, tarball(c.tar))), root, Options{})
			if err == nil || !strings.Contains(err.Error(), "the directory was not empty") {
				t.Errorf("error %v", err)
			}
			if after := y.look(t); after != before {
				t.Errorf("outside the root there was\n%s\nand is\n%s", before, after)
			}
			if now := describeRoot(t, dir); !strings.Contains(now, was) {
				t.Errorf("there was %q and is %q", was, now)
			}
		})
	}
}

// describeRoot describes what is at the top of dir, whatever it is.
func describeRoot(t *testing.T, dir string) string {
	t.Helper()
	fi, err := os.Lstat(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	to, _ := os.Readlink(filepath.Join(dir, "a"))
	return fi.Mode().String() + " " + to
}

// Somebody who can write to the tree while it is made, and puts a link in the
// place of a directory, gets nothing written where the link leads. (Docker's
// cp did that: CVE-2018-15664.)
func TestDirectoryExchangedForALink(t *testing.T) {
	for what, rest := range map[string]string{
		"file":                           aFile("d/victim", "x") + aFile("d/new", "x"),
		"directory":                      aDir("d/d/") + aFile("d/d/victim", "x") + aDir("d/new/"),
		"link":                           aSym("d/victim", "x") + aSym("d/new", "x"),
		"hard link":                      aHard("d/new", "x") + aHard("d/victim", "x"),
		"hard link to what is behind it": aHard("new", "d/victim"),
	} {
		for _, to := range []string{"../beside", "absolute"} {
			t.Run(what+" "+to, func(t *testing.T) {
				y := newYard(t)
				root, dir := y.root(t, "root-0")
				if to == "absolute" {
					to = y.beside
				}
				before := y.look(t)
				exchange := func(p string, _ []byte) bool {
					if p == "swap" {
						if err := errors.Join(os.Rename(filepath.Join(dir, "d"), filepath.Join(dir, "was")), os.Symlink(to, filepath.Join(dir, "d"))); err != nil {
							t.Error(err)
						}
					}
					return false
				}
				in := stored(t, tarball(aFile("x", "x"), aFile("d/first", "x"), aFile("swap", "x"), rest))
				res, err := Tree(context.Background(), bytes.NewReader(in), root, Options{Wants: exchange})
				if after := y.look(t); after != before {
					t.Errorf("outside the root there was\n%s\nand is\n%s (%+v, %v)", before, after, res, err)
				}
			})
		}
	}
}

// What the directory around the tree hands down, setgid and a default ACL, and
// the umask change no mode, and give nobody the right to write.
func TestModesWhateverTheRootHandsDown(t *testing.T) {
	acl := "\x02\x00\x00\x00" + // version 2, then tag, rights, id of each entry
		"\x01\x00\x07\x00\xff\xff\xff\xff" + "\x02\x00\x07\x00\x01\x00\x00\x00" + "\x04\x00\x07\x00\xff\xff\xff\xff" + "\x10\x00\x07\x00\xff\xff\xff\xff" + "\x20\x00\x07\x00\xff\xff\xff\xff"
	directory := aDir("a/b/c/")
	for _, umask := range []int{0, 0o022, 0o777} {
		root, dir := newYard(t).root(t, "root-0")
		if err := os.Chmod(dir, 0o777|os.ModeSetgid|os.ModeSticky); err != nil {
			t.Fatal(err)
		}
		if err := unix.Setxattr(dir, "system.posix_acl_default", []byte(acl), 0); err != nil && !errors.Is(err, unix.ENOTSUP) {
			t.Fatal(err)
		}
		in := stored(t, tarball(directory, head{name: "f", mode: "0007777", body: "x"}.String(), aFile("d/e/f", "x"), aSym("l", "f"), aHard("h", "f")))
		was := unix.Umask(umask)
		_, err := Tree(context.Background(), bytes.NewReader(in), root, Options{})
		unix.Umask(was)
		if err != nil {
			t.Fatalf("umask %o: %v", umask, err)
		}
		checkModes(t, dir)
	}
}

// Go may come to judge names itself; the answer must stay ours.
func TestInsecurePathsOfGo(t *testing.T) {
	t.Setenv("GODEBUG", "tarinsecurepath=0")
	in := stored(t, tarball(aFile("../victim", "x")))
	_, _, err := untar(t, in, Options{})
	var ee *EntryError
	if !errors.Is(err, ErrRefused) || !errors.As(err, &ee) || errors.Is(err, tar.ErrInsecurePath) {
		t.Errorf("error %v", err)
	}
	if _, err := Check(context.Background(), bytes.NewReader(in), Options{}); err != nil {
		t.Errorf("a check judges names: %v", err)
	}
}
