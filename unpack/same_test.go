package unpack

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// manyShapes is an archive of files around every size that is treated in its
// own way, with holes, in directories deep and many.
func manyShapes(t *testing.T) []byte {
	entries := amdLike()
	noise := varied(3 << 20)
	for i, size := range []int{1, holeSize - 1, holeSize, holeSize + 1, smallFile - 1, smallFile, smallFile + 1, chunkSize - 1, chunkSize, chunkSize + 1, 2*chunkSize + 5, 3 << 20} {
		body := []byte(noise[:size])
		for _, from := range []int{0, 2 * holeSize, chunkSize - holeSize, size - holeSize - 7} {
			if i%2 == 1 && from >= 0 && from < size {
				clear(body[from:min(size, from+holeSize+9)])
			}
		}
		entries = append(entries, entry{name: fmt.Sprintf("./sizes/%d/f", size), body: string(body)}, entry{name: fmt.Sprintf("./zeros/%d", size), body: string(make([]byte, size))})
	}
	for i := range 120 {
		entries = append(entries, entry{name: fmt.Sprintf("./many/%d/%d/f%d", i%20, i%3, i), body: strings.Repeat("m", i*7)})
	}
	entries = append(entries, entry{name: "./many/7/", kind: tar.TypeDir, mode: 0o700})
	return archive(t, entries...)
}

// onDisk lists name, mode, time, links and content of all that is below dir.
func onDisk(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(name, &st); err != nil {
			return err
		}
		says := fmt.Sprintf("%o %d", st.Mode, st.Nlink)
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			says += fmt.Sprintf(" %d %d %s", st.Mtim.Sec, st.Mtim.Nsec, hexSum(data))
		case unix.S_IFLNK:
			to, err := os.Readlink(name)
			if err != nil {
				return err
			}
			says += fmt.Sprintf(" %d %d %s", st.Mtim.Sec, st.Mtim.Nsec, to)
		}
		all[strings.TrimPrefix(name, dir)] = says
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	delete(all, "")
	return all
}

// The same stream gives the same tree: bytes, modes and times, at any
// parallelism and under any umask. What the result says is on disk.
func TestSameTreeAtAnyParallelism(t *testing.T) {
	in := manyShapes(t)
	var want *Result
	var wantDisk map[string]string
	procs := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(procs)
	defer unix.Umask(unix.Umask(0o022))
	for _, c := range []struct{ writers, procs, umask int }{{1, 1, 0o022}, {2, 1, 0o077}, {8, 2, 0}, {1, 4, 0o777}, {8, 8, 0o027}, {0, procs, 0o022}} {
		runtime.GOMAXPROCS(c.procs)
		root, dir := openRoot(t)
		unix.Umask(c.umask)
		res, err := Tree(context.Background(), bytes.NewReader(in), root, Options{Writers: c.writers})
		unix.Umask(0o022)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		disk := onDisk(t, dir)
		if want == nil {
			want, wantDisk = res, disk
		}
		if !reflect.DeepEqual(res, want) {
			t.Errorf("%+v: another result", c)
		}
		if !reflect.DeepEqual(disk, wantDisk) {
			t.Errorf("%+v: another tree", c)
		}
	}
	for _, f := range want.Files {
		says, there := wantDisk["/"+f.Path]
		if f.SHA256 != "" && !strings.HasSuffix(says, f.SHA256) || !there {
			t.Errorf("%s is %q on disk", f.Path, says)
		}
	}
	if len(want.Files) != len(wantDisk) {
		t.Errorf("%d files, %d on disk", len(want.Files), len(wantDisk))
	}
}

// Long runs of zeros take no room, wherever in a file they are.
func TestHolesInAFile(t *testing.T) {
	body := []byte(varied(4 << 20))
	clear(body[holeSize : 2<<20])
	clear(body[3<<20:])
	_, dir, err := untar(t, archive(t, entry{name: "./f", body: string(body)}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(dir, "f"), &st); err != nil {
		t.Fatal(err)
	}
	if room := st.Blocks * 512; room > 1<<20+holeSize+64<<10 {
		t.Errorf("%d bytes on disk", room)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "f")); err != nil || !bytes.Equal(got, body) {
		t.Errorf("other content, %v", err)
	}
}

// A setgid bit of the root, which new directories inherit, is not passed on.
func TestSetgidRootIsNotPassedOn(t *testing.T) {
	root, dir := openRoot(t)
	if err := os.Chmod(dir, 0o755|os.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	res, err := Tree(context.Background(), bytes.NewReader(archive(t, amdLike()...)), root, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range res.Files {
		if fi, err := os.Lstat(filepath.Join(dir, f.Path)); err != nil || fi.Mode()&os.ModeSetgid != 0 {
			t.Errorf("%s: %v, %v", f.Path, fi.Mode(), err)
		}
	}
}
