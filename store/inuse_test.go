package store

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// reachable is a store that every user of the machine can reach.
func reachable(t testing.TB) *Slot {
	t.Helper()
	s := open(t)
	if err := os.Chmod(filepath.Dir(s.Root()), 0o755); err != nil {
		t.Fatal(err)
	}
	return s.Slot("nightly", "gfx1151")
}

// program puts a copy of a program into a generation.
func program(t testing.TB, g *Generation, from, name string) string {
	t.Helper()
	real, err := exec.LookPath(from)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(real)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(g.Dir, "opt/rocm/bin", name)
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// start runs a command until the test ends or stop is called; it must print a
// line when it is where the test wants it.
func start(t testing.TB, argv ...string) (pid int, stop func()) {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Cleanup(stop)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%q: %q, %v", argv, line, err)
	}
	return cmd.Process.Pid, stop
}

// usesOf looks who uses the generations of a slot, by name.
func usesOf(t testing.TB, sl *Slot) map[string]Uses {
	t.Helper()
	gens, err := sl.Generations()
	if err != nil {
		t.Fatal(err)
	}
	uses, err := sl.store.InUse(t.Context(), gens)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]Uses{}
	for _, g := range gens {
		byName[g.Name] = uses[g.Dir]
	}
	return byName
}

// mounter is the command before another that gives it a mount namespace.
func mounter(t testing.TB) []string {
	t.Helper()
	flags := "-m"
	if os.Geteuid() != 0 {
		flags = "-rm"
	}
	if err := exec.Command("unshare", flags, "mount", "-t", "tmpfs", "none", "/mnt").Run(); err != nil {
		t.Skip("no mount namespace can be made here: run as root, or install util-linux and allow user namespaces")
	}
	return []string{"unshare", flags}
}

func TestInUse(t *testing.T) {
	sl := reachable(t)
	install(t, sl, night(1), night(2), night(3))
	gens, err := sl.Generations()
	if err != nil {
		t.Fatal(err)
	}
	g := &gens[0]
	shell := program(t, g, "sh", "sh")
	cat := program(t, g, "cat", "cat")
	wait := `echo ready && read x`
	space := mounter(t)
	target := t.TempDir()
	for name, c := range map[string]struct {
		how  string
		argv []string
	}{
		"program":      {UseExe, []string{shell, "-c", wait}},
		"mapped":       {UseMaps, []string{"env", "STORE_TEST_ROLE=map", "STORE_TEST_ROOT=" + cat, os.Args[0]}},
		"deleted":      {UseMaps, []string{"sh", "-c", `cp "$1" "$1.new"; exec "$1.new" -c 'rm "$0"; echo ready; read x' "$1.new"`, "sh", shell}},
		"directory":    {UseCwd, []string{"sh", "-c", `cd "$1" && ` + wait, "sh", filepath.Dir(cat)}},
		"open":         {UseFD, []string{"sh", "-c", `exec 7<"$1"; ` + wait, "sh", g.Dir + "/manifest.json"}},
		"mount":        {UseMount, append(slices.Clone(space), "sh", "-c", `mount --bind "$1" "$2" && `+wait, "sh", g.Dir, target)},
		"mount inside": {UseMount, append(slices.Clone(space), "sh", "-c", `mount --bind "$1" "$2" && `+wait, "sh", g.Dir+"/opt/rocm", target)},
		"thread":       {UseCwd, []string{"env", "STORE_TEST_ROLE=thread", "STORE_TEST_ROOT=" + g.Dir, os.Args[0]}},
		"first ended":  {UseExe, []string{"sh", "-c", `cp "$2" "$1/bin2"; exec env STORE_TEST_ROLE=orphan "$1/bin2"`, "sh", g.Dir, os.Args[0]}},
	} {
		t.Run(name, func(t *testing.T) {
			pid, stop := start(t, c.argv...)
			uses := usesOf(t, sl)
			u := uses[g.Name]
			i := slices.IndexFunc(u.By, func(u Use) bool { return u.How == c.how })
			if i < 0 || u.By[i].PID != pid || u.By[i].Program == "" {
				t.Errorf("process %d is not there as %s: %+v", pid, c.how, u)
			}
			for _, other := range gens[1:] {
				if !uses[other.Name].Free() {
					t.Errorf("%s: %+v", other.Name, uses[other.Name])
				}
			}
			stop()
			if u := usesOf(t, sl)[g.Name]; !u.Free() {
				t.Errorf("after its end: %+v", u)
			}
		})
	}
}

// TestInUseOfSharedInodes: of generations that share a file, the one counts
// through whose name it is used.
func TestInUseOfSharedInodes(t *testing.T) {
	sl := reachable(t)
	install(t, sl, night(1), night(2), night(3))
	gens, err := sl.Generations()
	if err != nil {
		t.Fatal(err)
	}
	shell := program(t, &gens[1], "sh", "sh")
	other := filepath.Join(gens[0].Dir, "opt/rocm/bin/sh")
	if err := os.Link(shell, other); err != nil {
		t.Fatal(err)
	}
	wait := `echo ready && read x`
	space := mounter(t)
	for name, c := range map[string]struct {
		want []bool
		argv []string
	}{
		"by its name":     {[]bool{false, true, false}, []string{shell, "-c", wait}},
		"by the other":    {[]bool{true, false, false}, []string{other, "-c", wait}},
		"in a container":  {[]bool{false, true, false}, append(slices.Clone(space), "sh", "-c", `mount --bind "$1" /mnt && exec /mnt/opt/rocm/bin/sh -c 'umount -l /mnt/nothing 2>/dev/null; `+wait+`'`, "sh", gens[1].Dir)},
		"name not known":  {[]bool{true, true, false}, append(slices.Clone(space), "sh", "-c", `mount --bind "$1" /mnt && exec /mnt/opt/rocm/bin/sh -c 'umount -l /mnt; `+wait+`'`, "sh", gens[1].Dir)},
		"name is removed": {[]bool{true, true, false}, []string{"sh", "-c", `ln "$1" "$1.2"; exec "$1.2" -c 'rm "$0"; echo ready; read x' "$1.2"`, "sh", shell}},
	} {
		t.Run(name, func(t *testing.T) {
			_, stop := start(t, c.argv...)
			uses := usesOf(t, sl)
			for i, g := range gens {
				if used := len(uses[g.Name].By) > 0; used != c.want[i] {
					t.Errorf("%s: %+v", g.Name, uses[g.Name])
				}
			}
			// One that is asked for alone counts no less and no more.
			alone, err := sl.store.InUse(t.Context(), gens[:1])
			if used := len(alone[gens[0].Dir].By) > 0; err != nil || used != c.want[0] {
				t.Errorf("alone: %+v, %v", alone, err)
			}
			stop()
		})
	}
}

// TestInUseSeesWhatOthersRun: processes of another user, for root and for an
// ordinary one.
func TestInUseSeesWhatOthersRun(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be two users: run as root")
	}
	sl := reachable(t)
	install(t, sl, night(1), night(2), night(3))
	gens, err := sl.Generations()
	if err != nil {
		t.Fatal(err)
	}
	shell := program(t, &gens[0], "sh", "sh")
	as := func(uid string, argv ...string) []string {
		return append([]string{"setpriv", "--reuid", uid, "--regid", uid, "--clear-groups"}, argv...)
	}
	look := func(t *testing.T, uid string) []string {
		t.Helper()
		cmd := exec.Command(os.Args[0])
		argv := as(uid, os.Args[0])
		cmd.Path, cmd.Args = "/usr/bin/setpriv", argv
		cmd.Env = append(os.Environ(), "STORE_TEST_ROLE=uses", "STORE_TEST_ROOT="+sl.store.Root())
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(out)), "\n")
	}
	testBinary(t)
	if err := exec.Command("chown", "-R", "1234:1234", sl.store.Root()).Run(); err != nil {
		t.Fatal(err)
	}
	pid, stop := start(t, as("1235", shell, "-c", "echo ready; read x")...)
	if u := usesOf(t, sl)[night(1)]; len(u.By) != 1 || u.By[0].PID != pid || u.By[0].How != UseExe {
		t.Errorf("root sees %+v", u)
	}
	// Its owner cannot look into it, but the kernel tells him that a file is open.
	equal(t, "as its owner", look(t, "1234"), []string{night(1) + " [{0  fd}] 0", night(2) + " [] 0", night(3) + " [] 0"})
	// Who owns nothing is told nothing.
	for _, line := range look(t, "1236") {
		if strings.HasSuffix(line, " 0") {
			t.Errorf("a third user: %s", line)
		}
	}
	stop()
	equal(t, "after its end", look(t, "1234"), []string{night(1) + " [] 0", night(2) + " [] 0", night(3) + " [] 0"})

	// What a container of another user sees mounted is not to be seen from outside.
	_, stop = start(t, "unshare", "-mpf", "--kill-child", "--mount-proc", "sh", "-c", "echo ready; read x")
	for _, line := range look(t, "1234") {
		if strings.HasSuffix(line, " 0") {
			t.Errorf("beside a container: %s", line)
		}
	}
	stop()
}

// testBinary makes the test binary one that every user can run.
func testBinary(t *testing.T) {
	t.Helper()
	for dir := filepath.Dir(os.Args[0]); dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		fi, err := os.Stat(dir)
		if err == nil && fi.Mode().Perm()&0o005 != 0o005 && strings.HasPrefix(dir, os.TempDir()) {
			err = os.Chmod(dir, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// printUses tells on standard output what is in use.
func printUses(root string) error {
	s, err := Open(root)
	if err != nil {
		return err
	}
	gens, err := s.Slot("nightly", "gfx1151").Generations()
	if err != nil {
		return err
	}
	uses, err := s.InUse(context.Background(), gens)
	if err != nil {
		return err
	}
	for _, g := range gens {
		fmt.Println(g.Name, uses[g.Dir].By, uses[g.Dir].Unseen)
	}
	os.Exit(0)
	return nil
}

// holdMapping maps a file, closes it and waits.
func holdMapping(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	if _, err := syscall.Mmap(int(f.Fd()), 0, 4096, syscall.PROT_READ, syscall.MAP_PRIVATE); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
