package repack

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/patchelf"
)

// ctimes has the time at which each inode was last touched: by a write, a
// chmod, a new time or a new link.
func ctimes(t *testing.T, dir string) map[string]syscall.Timespec {
	t.Helper()
	times := map[string]syscall.Timespec{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err == nil && !d.IsDir() {
			times[p] = fi.Sys().(*syscall.Stat_t).Ctim
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return times
}

// Once the content is shared, nothing that follows touches a shared inode; and
// with content of its own, nothing touches the other prefix at all.
func TestCloneTouchesNoSharedInode(t *testing.T) {
	from, _ := into(t, trapped(t), Options{Audit: never})
	for dedup, from0 := range map[string]string{DedupHardLink: "wrap", DedupOff: "", DedupReflink: ""} {
		var before map[string]syscall.Timespec
		if from0 == "" {
			before = ctimes(t, from)
		}
		dir := t.TempDir()
		o := Options{Dedup: dedup, Audit: never, Event: func(e Event) {
			if e.Stage == from0 {
				before = ctimes(t, from)
			}
		}}
		if _, err := Clone(context.Background(), from, dir, o); err != nil {
			t.Fatal(err)
		}
		if after := ctimes(t, from); !reflect.DeepEqual(before, after) || len(before) == 0 {
			t.Errorf("%s: inodes were touched", dedup)
		}
	}
}

// A clone that is edited or removed later leaves the other as it is, where the
// inodes are its own.
func TestEditOfCloneStaysThere(t *testing.T) {
	from, _ := into(t, nightly(t), Options{})
	before := snapshot(t, from)
	dir := t.TempDir()
	if _, err := Clone(context.Background(), from, dir, Options{Dedup: DedupReflink}); err != nil {
		t.Fatal(err)
	}
	edited := 0
	path := "/somewhere"
	for _, f := range listing(t, dir) {
		if f.ELF != nil && f.ELF.RPath != "" && f.Same == "" {
			if _, err := patchelf.EditPath(filepath.Join(dir, f.Path), patchelf.Edit{RunPath: &path}); err == nil {
				edited++
			}
		}
	}
	if edited == 0 {
		t.Error("nothing was edited")
	}
	if !reflect.DeepEqual(before, snapshot(t, from)) {
		t.Error("the other has changed")
	}
	hard := t.TempDir()
	if _, err := Clone(context.Background(), from, hard, Options{Dedup: DedupHardLink}); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(hard); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(before, snapshot(t, from)) {
		t.Error("removal has changed the other")
	}
}

func listing(t *testing.T, dir string) []manifest.File {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, manifest.FilesName))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	files, err := manifest.ReadFiles(f)
	if err != nil {
		t.Fatal(err)
	}
	return files
}
