package cage

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// outcome reads what the planted program says: what it tried, and whether it
// worked.
func outcome(t *testing.T, stdout []byte) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(string(stdout)) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			t.Fatalf("the planted program says %q", line)
		}
		all[name] = rest
	}
	if len(all) < 80 {
		t.Fatalf("the planted program came through %d of its attempts:\n%s", len(all), stdout)
	}
	return all
}

// harmless is what works inside and changes nothing outside: /dev/shm and /tmp
// are its own.
var harmless = map[string][]string{
	Namespaces: {"write_shm", "write_tmp"},
}

func (m mode) plant(t *testing.T, h hooks) (*world, map[string]string) {
	t.Helper()
	w := newWorld(t)
	r := m.run(t, Command{
		Path: w.tree + "/bin/rocminfo", Args: w.args, ReadOnly: []string{w.tree}, Scratch: w.scratch,
	}, h)
	if r.ExitCode != 0 {
		t.Fatalf("the planted program ended with %+v\n%s%s", r, r.Stdout, r.Stderr)
	}
	return w, outcome(t, r.Stdout)
}

func (w *world) check(t *testing.T) {
	t.Helper()
	if now := w.state(t); now != w.before {
		t.Errorf("the world was\n%s\nand is\n%s", w.before, now)
	}
	if n := w.signals(t); n != "0" {
		t.Errorf("the victim got %s signals", n)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.heard) > 0 {
		t.Errorf("it was heard by %v", w.heard)
	}
}

// What a hostile rocminfo tries, and each of it is refused in each kind of
// cage, and with older Landlocks.
func TestNothingGetsOut(t *testing.T) {
	all := modes()
	for _, m := range modes() {
		if m.kind == Landlock {
			for abi := minABI; abi < 7; abi++ {
				older := m
				older.name, older.abi = m.name+"-abi"+string(rune('0'+abi)), abi
				all = append(all, older)
			}
		}
	}
	for _, m := range all {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			if !m.has() {
				return // each says what is tested then
			}
			w, said := m.plant(t, hooks{})
			for name, what := range said {
				if strings.HasPrefix(what, "yes") && !slices.Contains(harmless[m.kind], name) {
					t.Errorf("%s: %s", name, what)
				}
			}
			w.check(t)
		})
	}
}

// The same program outside of a cage shows that the attempts are real: these
// work, for a user, where nobody keeps it from them.
func TestThePlantedProgramWorksOutside(t *testing.T) {
	w := newWorld(t)
	cmd := exec.Command(w.tree+"/bin/rocminfo", w.args...)
	cmd.Env, cmd.Dir = []string{"TOKEN=" + secret}, w.scratch
	leak, err := os.Open(w.tree + "/file")
	must(t, err)
	defer leak.Close()
	cmd.ExtraFiles = []*os.File{leak}
	asUser(cmd)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	said := outcome(t, out)
	for name := range strings.FieldsSeq(`token credentials environment others_environ others_fd others_root others_cwd own_fd own_net own_root
		write_tree write_own write_home write_tmp write_var_tmp write_shm write_link
		open_trunc truncate_own chmod_own fchmod_tree chown_own utimes_own unlink_own link_own rename_own mkdir_home list_home inotify dotdot
		tcp tcp_listen udp unix_path unix_abstract pair_datagram pair_reconnect netlink
		trace_victim read_victim kill_victim tgkill_victim pidfd_victim queue_victim limit_victim nice_victim affinity_victim
		shared_memory message_queue make_setuid open_setuid keyctl_ handles lease notify set_flags`) {
		if !strings.HasPrefix(said[name], "yes") {
			t.Errorf("%s: %s", name, said[name])
		}
	}
	if os.Geteuid() == 0 && !strings.HasPrefix(said["setuid_file"], "yes") {
		t.Errorf("setuid_file: %s", said["setuid_file"])
	}
	if w.state(t) == w.before {
		t.Error("nothing has changed")
	}
	if n := w.signals(t); n == "0" {
		t.Error("the victim got no signals")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.heard)
	if heard := slices.Compact(w.heard); len(heard) != 5 {
		t.Errorf("it was heard by %v", heard)
	}
}
