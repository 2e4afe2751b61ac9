package unpack

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"golang.org/x/sys/unix"
)

// attack is an archive that somebody made with intent, or one that is odd
// enough to be taken for it, and what becomes of it. docs/unpack.md lists them.
type attack struct {
	name   string
	tar    string // what the gzip stream holds
	gz     []byte // the gzip stream, where that is the attack
	limits Limits

	// Where it is taken: the whole tree, an entry for each name, sorted. "d/" is
	// a directory, "a: x" a file with its content (or its size, if that is
	// long), "a*: x" one that is executable, "b = a" another name of it, and
	// "l -> a" a symlink.
	tree    string
	dropped string // the absolute links that are left out

	// Where it is refused: what the error matches, and what it says.
	is     error
	says   string
	stream bool // the error is not about an entry
}

// taken is an archive that is unpacked to just this tree.
func taken(name, tree string, parts ...string) attack {
	return attack{name: name, tree: tree, tar: tarball(parts...)}
}

// refused is an archive with an entry that is refused by name.
func refused(name, says string, parts ...string) attack {
	return attack{name: name, is: ErrRefused, says: says, tar: tarball(parts...)}
}

// damaged is an archive with a header that has no meaning.
func damaged(name string, parts ...string) attack {
	return attack{name: name, is: tar.ErrHeader, says: "read entry", stream: true, tar: tarball(parts...)}
}

// endsEarly is an archive that ends before what it announces.
func endsEarly(name string, parts ...string) attack {
	return attack{name: name, is: ErrTruncated, says: "too early", stream: true, tar: strings.Join(parts, "")}
}

// sections lists all of them, as docs/unpack.md does. They aim at the files in
// and around the directory beside, which is a sibling of the root.
func sections(beside string) []section {
	return []section{
		{"Names", nameAttacks(beside)},
		{"Names listed twice", twiceAttacks()},
		{"Links that lead out", linkAttacks(beside)},
		{"Odd links", linkTextAttacks(beside)},
		{"Kinds of entries", kindAttacks()},
		{"Modes, owners, attributes and times", metadataAttacks()},
		{"Headers", headerAttacks()},
		{"Sizes", sizeAttacks()},
		{"Sparse files", sparseAttacks()},
		{"Bombs", bombAttacks()},
		{"Around the archive", streamAttacks()},
	}
}

type section struct {
	title   string
	attacks []attack
}

// attacks lists those of all sections.
func attacks(beside string) []attack {
	var all []attack
	for _, s := range sections(beside) {
		all = append(all, s.attacks...)
	}
	return all
}

func (a attack) bytes(t testing.TB) []byte {
	if a.gz != nil {
		return a.gz
	}
	return stored(t, a.tar)
}

// stored wraps s into gzip as it is, which is fast.
func stored(t testing.TB, s string) []byte {
	t.Helper()
	var buf bytes.Buffer
	gz, err := gzip.NewWriterLevel(&buf, gzip.NoCompression)
	if err == nil {
		_, err = gz.Write([]byte(s))
	}
	if err = errors.Join(err, gz.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// Nothing outside the root changes, whatever an archive holds; it comes out as
// the table says or is refused as the table says.
func TestPromiseNothingEscapesThePrefix(t *testing.T) {
	y := newYard(t)
	for i, a := range attacks(y.beside) {
		t.Run(strings.ReplaceAll(a.name, "/", "_"), func(t *testing.T) {
			a.run(t, y, fmt.Sprintf("root-%03d", i))
		})
	}
}

func (a attack) run(t *testing.T, y *yard, name string) {
	root, dir := y.root(t, name)
	before := y.look(t)
	res, err := Tree(context.Background(), bytes.NewReader(a.bytes(t)), root, Options{Limits: a.limits})
	if after := y.look(t); after != before {
		t.Errorf("outside the root there was\n%s\nand is\n%s", before, after)
	}
	checkHarmless(t, dir)
	if a.is != nil {
		a.checkError(t, err)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := describe(t, dir); got != a.tree {
		t.Errorf("the tree is\n%s\nand should be\n%s", got, a.tree)
	}
	var dropped []string
	for _, d := range res.Dropped {
		dropped = append(dropped, d.Path)
	}
	if got := strings.Join(dropped, "; "); got != a.dropped {
		t.Errorf("dropped %q, not %q", got, a.dropped)
	}
	checkResult(t, res, dir)
	checkLinks(t, res, dir)
}

// checkError tests that an error says what it should, and in a way that a
// terminal and a log can bear.
func (a attack) checkError(t *testing.T, err error) {
	t.Helper()
	var ee *EntryError
	switch {
	case err == nil || a.is != errOther && !errors.Is(err, a.is) || !strings.Contains(err.Error(), a.says):
		t.Errorf("the error is %v, and should say %q", err, a.says)
	case errors.As(err, &ee) == a.stream:
		t.Errorf("the error names an entry or does not: %v", err)
	case len(err.Error()) > 4096 || strings.ContainsFunc(err.Error(), unseen) || strings.ContainsFunc(err.Error(), unicode.IsControl):
		t.Errorf("the error cannot be printed: %.5000q", err)
	}
}

// yard is a directory with files that attacks aim at:
//
//	victim  mid/victim  mid/beside/victim  mid/beside/d/victim
//
// Roots are made in mid, beside the directory beside.
type yard struct{ dir, beside string }

func newYard(t testing.TB) *yard {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	y := &yard{dir, filepath.Join(dir, "mid/beside")}
	err = errors.Join(err, os.MkdirAll(filepath.Join(y.beside, "d"), 0o755))
	for _, name := range []string{"victim", "mid/victim", "mid/beside/victim", "mid/beside/d/victim"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte("untouched"), 0o640))
	}
	if err != nil {
		t.Fatal(err)
	}
	return y
}

func (y *yard) root(t testing.TB, name string) (*os.Root, string) {
	t.Helper()
	dir := filepath.Join(y.dir, "mid", name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root, dir
}

// look lists all but the roots, with everything about each file that an attack
// could change. A changed mode or owner shows in the ctime even if it was
// changed back, and another hard link in the count of names.
func (y *yard) look(t testing.TB) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(y.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if strings.HasPrefix(d.Name(), "root-") {
			return fs.SkipDir
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		var body []byte
		if d.Type().IsRegular() {
			if body, err = os.ReadFile(p); err != nil {
				return err
			}
		}
		fmt.Fprintf(&out, "%s ino %d mode %o links %d owner %d:%d times %v %v %q %q\n", p, st.Ino, st.Mode, st.Nlink, st.Uid, st.Gid, st.Mtim, st.Ctim, body, attrs(t, p))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// attrs are the names of a file's extended attributes, but for the label that
// SELinux gives to every file.
func attrs(t testing.TB, p string) []string {
	t.Helper()
	buf := make([]byte, 1<<10)
	n, err := unix.Llistxattr(p, buf)
	if err != nil && !errors.Is(err, unix.ENOTSUP) {
		t.Fatal(err)
	}
	names := strings.Split(string(buf[:max(n, 0)]), "\x00")
	return slices.DeleteFunc(names, func(s string) bool { return s == "" || s == "security.selinux" })
}

// checkHarmless tests that what is in dir, be it finished or not, has no
// setuid, setgid or sticky bit, no foreign write bit, no attribute or ACL,
// and belongs to who runs the test.
func checkHarmless(t testing.TB, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		m, st := fi.Mode(), fi.Sys().(*syscall.Stat_t)
		switch {
		case m&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0, m.Type() != fs.ModeSymlink && m&0o022 != 0,
			m.Type()&^(fs.ModeDir|fs.ModeSymlink) != 0, int(st.Uid) != os.Geteuid(), len(attrs(t, p)) > 0:
			t.Errorf("%q has mode %v, owner %d, attributes %q", p, m, st.Uid, attrs(t, p))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// describe writes the tree below dir as attack.tree has it.
func describe(t testing.TB, dir string) string {
	t.Helper()
	var lines []string
	first := map[uint64]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		line, err := describeOne(p, strings.TrimPrefix(p, dir+"/"), d, first)
		lines = append(lines, line)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "; ")
}

func describeOne(p, name string, d fs.DirEntry, first map[uint64]string) (string, error) {
	fi, err := d.Info()
	if err != nil {
		return "", err
	}
	switch {
	case d.IsDir():
		return name + "/", nil
	case d.Type() == fs.ModeSymlink:
		to, err := os.Readlink(p)
		return name + " -> " + to, err
	}
	if !d.Type().IsRegular() {
		return name + ": " + d.Type().String(), nil
	}
	st := fi.Sys().(*syscall.Stat_t)
	if was, ok := first[st.Ino]; ok {
		return name + " = " + was, nil
	}
	first[st.Ino] = name
	body, err := os.ReadFile(p)
	text := cmp.Or(string(body), "nothing")
	if len(body) > 40 {
		text = fmt.Sprintf("%d bytes", len(body))
	}
	if fi.Mode()&0o111 != 0 {
		name += "*"
	}
	if special := fi.Mode() & (fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky); special != 0 {
		name += " " + special.String()
	}
	return name + ": " + text, err
}
