package store

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// overlayDisk mounts an overlay.
func overlayDisk(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can mount an overlay")
	}
	base := scratch(t)
	for _, dir := range []string{"lower", "upper", "work", "disk"} {
		if err := os.Mkdir(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(base, "disk")
	o := fmt.Sprintf("lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work", base, base, base)
	if out, err := exec.Command("mount", "-t", "overlay", "overlay", "-o", o, dir).CombinedOutput(); err != nil {
		t.Skipf("no overlay can be mounted here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	return dir
}

// TestInUseOnOtherFileSystems: where maps and mountinfo show another device than
// stat does (btrfs), another file (overlay), or what lies over a generation.
func TestInUseOnOtherFileSystems(t *testing.T) {
	for kind, disk := range map[string]func(*testing.T) string{
		"btrfs":   func(t *testing.T) string { return subvolume(t, reflinkDisk(t, "btrfs", "btrfs-progs")) },
		"xfs":     func(t *testing.T) string { return reflinkDisk(t, "xfs", "xfsprogs") },
		"overlay": overlayDisk,
	} {
		t.Run(kind, func(t *testing.T) {
			dir := disk(t)
			s, err := Open(filepath.Join(dir, "root"))
			if err != nil {
				t.Fatal(err)
			}
			sl := s.Slot("nightly", "gfx1151")
			install(t, sl, night(1), night(2), night(3))
			gens, err := sl.Generations()
			if err != nil {
				t.Fatal(err)
			}
			g := &gens[0]
			shell := program(t, g, "sh", "sh")
			cat := program(t, g, "cat", "cat")
			space := mounter(t)
			wait := `echo ready && read x`
			for how, argv := range map[string][]string{
				UseExe:   {shell, "-c", wait},
				UseMaps:  {"env", "STORE_TEST_ROLE=map", "STORE_TEST_ROOT=" + cat, os.Args[0]},
				UseCwd:   {"sh", "-c", `cd "$1" && ` + wait, "sh", filepath.Dir(cat)},
				UseFD:    {"sh", "-c", `exec 7<"$1"; ` + wait, "sh", g.Dir + "/manifest.json"},
				UseMount: append(slices.Clone(space), "sh", "-c", `mount --bind "$1" /mnt && `+wait, "sh", g.Dir+"/opt"),
				"layer":  append(slices.Clone(space), "sh", "-c", `mount -t tmpfs none /opt && mkdir /opt/u /opt/w && mount -t overlay overlay -o "lowerdir=$1,upperdir=/opt/u,workdir=/opt/w" /mnt && `+wait, "sh", g.Dir+"/opt"),
			} {
				pid, stop := start(t, argv...)
				if how == "layer" {
					how = UseMount
				}
				uses := usesOf(t, sl)
				if !slices.ContainsFunc(uses[g.Name].By, func(u Use) bool { return u.How == how && u.PID == pid }) {
					t.Errorf("%s: process %d is not there: %+v", how, pid, uses[g.Name])
				}
				for _, other := range gens[1:] {
					if len(uses[other.Name].By) > 0 {
						t.Errorf("%s: %s: %+v", how, other.Name, uses[other.Name])
					}
				}
				stop()
			}
			if u := usesOf(t, sl)[g.Name]; len(u.By) > 0 {
				t.Errorf("after their end: %+v", u)
			}
		})
	}
}

// subvolume makes one beside another in which files have the same inodes, and
// lets a program run from that.
func subvolume(t *testing.T, disk string) string {
	t.Helper()
	for _, name := range []string{"own", "other"} {
		if out, err := exec.Command("btrfs", "subvolume", "create", filepath.Join(disk, name)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	g := &Generation{Dir: filepath.Join(disk, "other")}
	if err := os.MkdirAll(filepath.Join(g.Dir, "opt/rocm/bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 60 { // inodes of files of the generations
		program(t, g, "true", fmt.Sprint(i))
	}
	for i := range 60 {
		start(t, program(t, g, "sh", fmt.Sprint(i)), "-c", "echo ready; read x")
	}
	return filepath.Join(disk, "own")
}
