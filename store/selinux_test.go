package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// labels are those of a machine's /usr, as the policies of Fedora and Debian
// have them.
var labels = map[string]string{
	"": "system_u:object_r:usr_t:s0", "share": "system_u:object_r:usr_t:s0", "lib": "system_u:object_r:lib_t:s0", "bin": "system_u:object_r:bin_t:s0",
}

// withSELinux gives s a machine with SELinux, whose labels are real extended
// attributes.
func withSELinux(t testing.TB, s *Store) {
	t.Helper()
	dir := scratch(t)
	s.SELinux = SELinux{FS: filepath.Join(dir, "selinuxfs"), Usr: filepath.Join(dir, "usr")}
	if err := errors.Join(os.Mkdir(s.SELinux.FS, 0o755), os.WriteFile(filepath.Join(s.SELinux.FS, "enforce"), []byte("1"), 0o644)); err != nil {
		t.Fatal(err)
	}
	for name, label := range labels {
		path := filepath.Join(s.SELinux.Usr, name)
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Lsetxattr(path, selinuxAttr, []byte(label+"\x00"), 0); err != nil {
			t.Skipf("security.selinux cannot be set here, which takes root, and a kernel without SELinux: %v", err)
		}
	}
}

func label(t testing.TB, path string) string {
	t.Helper()
	got, err := labelOf(path, unix.Lgetxattr)
	if err != nil && !errors.Is(err, unix.ENODATA) {
		t.Fatal(err)
	}
	return got
}

// files of a staged tree, and the type that each is to have.
var labelCases = map[string]string{
	"omitted.jsonl": "usr_t", "bin/hipcc": "bin_t", "opt/rocm/lib/libamd_comgr.so.3": "lib_t", "opt/rocm/lib/llvm/bin/clang": "bin_t",
	"opt/rocm/libexec/rocm_smi.py": "bin_t", "opt/rocm/share/doc/a": "usr_t", "opt/rocm/lib64/libx.so": "lib_t", "opt/rocm/sbin/x": "bin_t",
	"opt/rocm/include/bin.h": "usr_t", "opt/rocm/library/x": "usr_t", "etc/env.sh": "usr_t", "opt/rocm/lib/python3/site-packages/share/x": "lib_t",
}

func stage(t testing.TB, sl *Slot) *Staging {
	t.Helper()
	st, err := sl.Stage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Abort() })
	for name := range labelCases {
		path := filepath.Join(st.Dir(), name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(name), 0o444)); err != nil {
			t.Fatal(err)
		}
	}
	return st
}

func TestSELinuxLabelsAreThoseOfUsr(t *testing.T) {
	s := open(t)
	withSELinux(t, s)
	sl := s.Slot("nightly", "gfx1151")
	st := stage(t, sl)
	for _, err := range []error{
		os.Symlink("../opt/rocm/bin/x", st.Dir()+"/bin/link"), // dangling: it is labelled itself
		os.Symlink("/etc/passwd", st.Dir()+"/opt/rocm/lib/out"),
		os.Link(st.Dir()+"/opt/rocm/share/doc/a", st.Dir()+"/bin/twin"), // one inode: a program's name counts
		unix.Lsetxattr(st.Dir()+"/bin/hipcc", selinuxAttr, []byte("staff_u:object_r:var_lib_t:s0:c1,c2\x00"), 0),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	outside, _ := unix.Lgetxattr("/etc/passwd", selinuxAttr, nil)
	done, err := st.Label(t.Context())
	if err != nil || done.Trouble != "" || done.Changed == 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	for name, want := range labelCases {
		if name == "opt/rocm/share/doc/a" {
			want = "bin_t"
		}
		if got := typeOf(label(t, filepath.Join(st.Dir(), name))); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"bin/hipcc": "staff_u:object_r:bin_t:s0:c1,c2", "bin/link": "system_u:object_r:bin_t:s0", "opt/rocm/lib/out": "system_u:object_r:lib_t:s0", "opt/rocm/lib": "system_u:object_r:lib_t:s0", "": "system_u:object_r:usr_t:s0",
	} {
		if got := label(t, filepath.Join(st.Dir(), name)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for _, dir := range []string{sl.Dir(), filepath.Dir(sl.Dir()), filepath.Join(sl.Dir(), generationsName)} {
		if got := typeOf(label(t, dir)); got != "usr_t" {
			t.Errorf("%s: %s", dir, got)
		}
	}
	if now, _ := unix.Lgetxattr("/etc/passwd", selinuxAttr, nil); now != outside {
		t.Error("a link was followed out of the tree")
	}
	// A second pass changes nothing.
	if done, err := st.Label(t.Context()); err != nil || done.Changed != 0 || done.Entries == 0 {
		t.Errorf("%+v, %v", done, err)
	}
	if _, err := st.Commit(night(1)); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := stage(t, sl).Label(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// Generations that share an inode agree about its label: what would have another
// one is not shared.
func TestSELinuxLabelsDoNotFlap(t *testing.T) {
	s := open(t)
	withSELinux(t, s)
	a := filepath.Join(scratch(t), "a")
	b := a + "b"
	for path, kind := range map[string]labelKind{a: labelBin, b: labelLib} {
		if err := os.WriteFile(path, []byte("same"), 0o444); err != nil {
			t.Fatal(err)
		}
		l, err := s.labeller()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.set(path, kind); err != nil {
			t.Fatal(err)
		}
	}
	fa, err := os.Open(a)
	if err != nil {
		t.Fatal(err)
	}
	defer fa.Close()
	fb, err := os.Open(b)
	if err != nil {
		t.Fatal(err)
	}
	defer fb.Close()
	if sameAttrs(fa, fb) {
		t.Error("they could be shared")
	}
}

func TestWithoutSELinuxNothingIsDone(t *testing.T) {
	for name, change := range map[string]func(*SELinux) error{
		"not in the kernel": func(o *SELinux) error { return os.RemoveAll(o.FS) },
		"no labels": func(o *SELinux) error {
			return errors.Join(os.RemoveAll(o.Usr), os.MkdirAll(o.Usr+"/bin", 0o755), os.Mkdir(o.Usr+"/lib", 0o755), os.Mkdir(o.Usr+"/share", 0o755))
		},
	} {
		s := open(t)
		withSELinux(t, s)
		if err := change(&s.SELinux); err != nil {
			t.Fatal(err)
		}
		st := stage(t, s.Slot("nightly", "gfx1151"))
		if done, err := st.Label(t.Context()); err != nil || done != (Labelled{}) || label(t, st.Dir()) != "" {
			t.Errorf("%s: %+v, %v", name, done, err)
		}
	}
	s := open(t)
	withSELinux(t, s)
	if err := unix.Lsetxattr(s.SELinux.Usr+"/bin", selinuxAttr, []byte("nonsense"), 0); err != nil {
		t.Fatal(err)
	}
	if done, err := stage(t, s.Slot("nightly", "gfx1151")).Label(t.Context()); err != nil || !strings.Contains(done.Trouble, "nonsense") {
		t.Errorf("%+v, %v", done, err)
	}
}

// The file contexts that are shipped say of every path what the program sets.
func TestSELinuxFileContextsAgree(t *testing.T) {
	if _, err := exec.LookPath("matchpathcon"); err != nil {
		t.Skip("matchpathcon is not here (Debian's package selinux-utils)")
	}
	const file, root = "../systemd/selinux/rocm-nightly.fc", "/var/lib/rocm-nightly/slots/nightly-gfx1151/generations/10.2.0a20260930"
	want := map[string]string{
		"/var/lib/rocm-nightly/slots": "usr_t", filepath.Dir(root): "usr_t", root: "usr_t", filepath.Dir(filepath.Dir(root)) + "/state.json": "usr_t",
		"/opt/rocm-nightly/bin/x": "<<none>>", "/var/lib/rocm-nightly/spool/nightly/bin": "<<none>>", "/usr/bin/x": "<<none>>",
		"/var/lib/rocm-nightly/slots/nightly-gfx1151/.staging-ABC/bin/hipcc": "bin_t",
	}
	types := [labelKinds]string{"usr_t", "usr_t", "lib_t", "bin_t"}
	words := []string{"bin", "sbin", "libexec", "lib", "lib32", "lib64", "share", "opt", "rocm", "llvm", "libx.so", "mybin", "library"}
	for _, a := range words {
		for _, b := range words {
			for _, path := range []string{a, a + "/" + b, a + "/x/" + b, "opt/rocm/" + a + "/" + b + "/file", a + "/" + b + "/lib/llvm"} {
				want[root+"/"+path] = types[kindOf(path)]
			}
		}
	}
	for path, kind := range labelCases {
		want[root+"/"+path] = kind
	}
	args := []string{"-f", file}
	for path := range want {
		args = append(args, path)
	}
	// It exits with 1 where a path has no context, which it says of each.
	out, _ := exec.Command("matchpathcon", args...).Output()
	seen := 0
	for line := range strings.Lines(string(out)) {
		path, context, _ := strings.Cut(strings.TrimSpace(line), "\t")
		got := context
		if context != "<<none>>" {
			got = typeOf(context)
		}
		if seen++; got != want[path] {
			t.Errorf("%s: %s, want %s", path, got, want[path])
		}
	}
	if seen != len(want) {
		t.Errorf("%d answers to %d questions:\n%.500s", seen, len(want), out)
	}
	if compile, err := exec.LookPath("sefcontext_compile"); err == nil {
		if out, err := exec.Command(compile, "-o", filepath.Join(t.TempDir(), "fc.bin"), file).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
}

func BenchmarkLabel(b *testing.B) {
	s := open(b)
	withSELinux(b, s)
	st := stage(b, s.Slot("nightly", "gfx1151"))
	for n := range 30000 {
		path := filepath.Join(st.Dir(), fmt.Sprintf("opt/rocm/lib/%d/%d.so", n/100, n))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o444)); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		b.StopTimer()
		if err := filepath.WalkDir(st.Dir(), func(path string, _ os.DirEntry, _ error) error {
			if err := unix.Lremovexattr(path, selinuxAttr); !errors.Is(err, unix.ENODATA) {
				return err
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if done, err := st.Label(b.Context()); err != nil || done.Changed < 30000 {
			b.Fatal(done, err)
		}
	}
}
