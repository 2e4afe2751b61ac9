package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The corpus is served by nginx, installed, updated, rolled back; and whatever
// comes in place of a tarball, what was installed stays in use.
func TestUpdateFromNginx(t *testing.T) {
	first, second := corpus(t)
	site := startNginx(t)
	site.add(t, first)
	root := filepath.Join(t.TempDir(), "root")
	conf := site.config(t, root)
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	do := func(args ...string) result { t.Helper(); return run(t, env, append(conf, args...)...) }
	slot := filepath.Join(root, "slots/nightly-gfx1036")
	active := func(want string) {
		t.Helper()
		to, err := os.Readlink(filepath.Join(slot, "current"))
		if err != nil || to != "generations/"+want {
			t.Fatalf("current is %q, %v; want %s", to, err, want)
		}
		r := runCommand(t, nil, filepath.Join(slot, "current/bin/rocminfo"))
		if !strings.Contains(r.stdout+r.stderr, "ROCk module is NOT loaded") {
			t.Fatalf("rocminfo of %s: exit %d: %s%s", want, r.code, r.stdout, r.stderr)
		}
		nothingHalfMade(t, slot)
	}

	do("update").want(t, 0, "installed 10.2.0a20260930", "")
	active("10.2.0a20260930")
	do("update").want(t, 0, "up to date: 10.2.0a20260930", "")

	t.Run("an HTML error page in place of the tarball", func(t *testing.T) {
		site.put(t, second, []byte("<!DOCTYPE html><title>Request blocked</title>"))
		do("update").want(t, 1, "", "Request blocked")
		active("10.2.0a20260930")
	})
	t.Run("a truncated tarball", func(t *testing.T) {
		site.put(t, second, head(t, second, 64<<20))
		do("update").want(t, 1, "", "run it again")
		active("10.2.0a20260930")
	})
	t.Run("other bytes than the digest says", func(t *testing.T) {
		site.add(t, second)
		prefix := filepath.Join(t.TempDir(), "prefix")
		digest := "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
		run(t, env, "repack", site.url+filepath.Base(second), "--prefix", prefix, "--digest", digest).want(t, 1, "", "digest mismatch")
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(prefix), "*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(prefix), ".*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		active("10.2.0a20260930")
	})

	do("update").want(t, 0, "installed 10.2.0a20261001 over 10.2.0a20260930", "")
	active("10.2.0a20261001")
	whatTheNightBrought(t, do("diff", "previous", "current", "--json").stdout)
	costsLittle(t, filepath.Join(slot, "generations"), "10.2.0a20260930", "10.2.0a20261001")
	do("rollback").want(t, 0, "10.2.0a20260930 is active now", "")
	active("10.2.0a20260930")
	do("update").want(t, 0, "was left by rollback", "")
	active("10.2.0a20260930")
}

// costsLittle tests that a second night of the corpus, most of which is equal,
// occupies little beside the first: where hard links are made, by the blocks of
// the inodes that the first has not.
func costsLittle(t *testing.T, dir, first, second string) {
	t.Helper()
	seen := map[uint64]bool{}
	blocks := func(name string) (sum int64) {
		err := filepath.WalkDir(filepath.Join(dir, name), func(p string, _ os.DirEntry, err error) error {
			var st syscall.Stat_t
			if err == nil {
				err = syscall.Lstat(p, &st)
			}
			if !seen[st.Ino] {
				seen[st.Ino] = true
				sum += st.Blocks * 512
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	whole, more := blocks(first), blocks(second)
	t.Logf("the first night occupies %d MiB, the second %d MiB more", whole>>20, more>>20)
	const ext4, tmpfs = 0xef53, 0x01021994 // which have no reflinks
	if (fs.Type == ext4 || fs.Type == tmpfs) && more > whole/10 {
		t.Errorf("the second night occupies %d bytes, the first %d", more, whole)
	}
}

// A disk on which a night cannot fit is a clear error before anything is
// fetched, and one that is full while it is unpacked is one then.
func TestFullDisk(t *testing.T) {
	first, _ := corpus(t)
	site := startNginx(t)
	site.add(t, first)
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	for what, c := range map[string]struct{ size, says string }{
		"before downloading": {"200m", "not enough room"},
		"while unpacking":    {"900m", "no space left"},
	} {
		t.Run(what, func(t *testing.T) {
			root := smallDisk(t, c.size)
			conf := site.config(t, root)
			r := run(t, env, append(conf, "update")...).want(t, 1, "failed", c.says)
			if parts, _ := filepath.Glob(filepath.Join(root, "spool/*/*/*.part")); c.says == "not enough room" && len(parts) > 0 {
				t.Errorf("it was fetched all the same: %v", parts)
			}
			if !strings.Contains(r.stderr, "free") {
				t.Errorf("the error does not say what to try: %s", r.stderr)
			}
			slot := filepath.Join(root, "slots/nightly-gfx1036")
			if _, err := os.Lstat(filepath.Join(slot, "current")); err == nil {
				t.Error("something was activated")
			}
			nothingHalfMade(t, slot)
		})
	}
}

// smallDisk mounts a tmpfs.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=755,size="+size); err != nil {
		t.Skipf("a small file system cannot be mounted here (%v): run it as root", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// nothingHalfMade tests that a slot holds nothing that a run would have to clean.
func nothingHalfMade(t *testing.T, slot string) {
	t.Helper()
	entries, err := os.ReadDir(slot)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".staging") || strings.HasPrefix(e.Name(), ".dying") {
			t.Errorf("%s was left in %s", e.Name(), slot)
		}
	}
}

func head(t *testing.T, file string, n int) []byte {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, n)
	if _, err := f.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	return b
}
