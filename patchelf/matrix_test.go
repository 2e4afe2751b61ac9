package patchelf

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMatrix: however a program or library was linked, every kind of edit can
// be made to it, one after the other, and after each it runs, the loader finds
// what it shall, no tool has a new complaint, nothing else changed, and the
// same edit again changes nothing. All combinations are tried with the build
// tag heavy.
func TestMatrix(t *testing.T) {
	_, missing := linkers()
	for _, m := range missing {
		t.Log("not installed: ", m)
	}
	for _, l := range linkages(heavy) {
		t.Run(l.name(), func(t *testing.T) {
			t.Parallel()
			x := newSubject(t, l.make(t), l.lib())
			for _, k := range tasks(t) {
				if !k.programs || !l.lib() {
					x.do(t, k)
				}
			}
			x.tools(t)
		})
	}
}

// TestMatrixSeveral asks for everything at once, of what the linker made.
func TestMatrixSeveral(t *testing.T) {
	deps := dependencies(t)
	long, _ := interpreters(t)
	for i, l := range linkages(heavy) {
		if !heavy && i%2 == 0 {
			continue
		}
		t.Run(l.name(), func(t *testing.T) {
			t.Parallel()
			x := newSubject(t, l.make(t), l.lib())
			x.do(t, several(deps+":/lib/x86_64-linux-gnu", long, "libdep.so", "libother.so"))
			x.tools(t)
		})
	}
}

// TestMatrixAlone makes each edit to what the linker made, and not to what an
// edit before it made.
func TestMatrixAlone(t *testing.T) {
	if !heavy {
		t.Log("two linkages only: all of them with the build tag heavy")
	}
	for i, l := range linkages(heavy) {
		if !heavy && i%15 != 0 {
			continue
		}
		t.Run(l.name(), func(t *testing.T) {
			t.Parallel()
			b := l.make(t)
			for _, k := range tasks(t) {
				if k.programs && l.lib() {
					continue
				}
				x := newSubject(t, b, l.lib())
				k.lists, k.lacks = nil, nil // these are of the sequence
				k.fails = k.edit.RunPath == nil || k.fails
				x.do(t, k)
			}
		})
	}
}

// subject is a file under test.
type subject struct {
	path   string
	lib    bool
	linted []string
	read   []string
	first  []byte // as the linker made it

	mayRefuse, refused bool // an edit may be refused; one was
	loose              bool // not for strippers
}

func newSubject(t *testing.T, b []byte, lib bool) *subject {
	x := &subject{path: put(t, "subject", b), lib: lib, first: b}
	x.linted, x.read = x.lint(), x.readelf()
	return x
}

// do makes an edit and checks what must be so after it.
func (x *subject) do(t *testing.T, k task) {
	t.Helper()
	before := x.bytes(t)
	e := k.fit(x.lib)
	res, err := EditPath(x.path, e)
	var refused *RefusedError
	if err != nil {
		if after := x.bytes(t); !bytes.Equal(before, after) {
			t.Errorf("%s: refused, but changed", k.name)
		}
		if x.refused = errors.As(err, &refused); x.refused && x.mayRefuse {
			t.Logf("%s: %v", k.name, err)
			return
		}
		t.Fatalf("%s: %v", k.name, err)
	}
	after := x.bytes(t)
	for _, broken := range held(before, after, e) {
		t.Errorf("%s (%s): %s", k.name, res.How, broken)
	}
	onlyPlanned(t, k.name, before, after, e)
	if again, err := EditPath(x.path, e); err != nil || again.Changed || !bytes.Equal(after, x.bytes(t)) {
		t.Errorf("%s (%s): the same edit again: %+v, %v", k.name, res.How, again, err)
	}
	x.run(t, k, res.How)
	if said := news(x.read, x.readelf()); len(said) > 0 {
		t.Errorf("%s (%s): readelf: %q", k.name, res.How, said)
	}
	if t.Failed() {
		t.FailNow()
	}
}

// run runs it, and asks the loader what it finds.
func (x *subject) run(t *testing.T, k task, how string) {
	t.Helper()
	if code, out := runs(t, x.path, x.lib); (code == 46) == k.fails || code < 0 || code > 127 {
		t.Fatalf("%s (%s): exit %d: %s", k.name, how, code, out)
	}
	if len(k.lists)+len(k.lacks) == 0 {
		return
	}
	list := resolves(x.path)
	if strings.Contains(list, "not found") {
		t.Errorf("%s (%s): ld.so --list: %s", k.name, how, list)
	}
	for _, s := range k.lists {
		if !strings.Contains(list, s) {
			t.Errorf("%s (%s): ld.so --list lacks %s: %s", k.name, how, s, list)
		}
	}
	for _, s := range k.lacks {
		if strings.Contains(list, s) {
			t.Errorf("%s (%s): ld.so --list has %s: %s", k.name, how, s, list)
		}
	}
}

// resolves is what ld.so --list says, without addresses.
func resolves(path string) string {
	cmd := exec.Command("/lib64/ld-linux-x86-64.so.2", "--list", path)
	cmd.Env = []string{"LD_BIND_NOW=1"}
	out, _ := cmd.CombinedOutput()
	var keep []string
	for _, line := range strings.Split(string(out), "\n") {
		line, _, _ = strings.Cut(line, " (0x")
		keep = append(keep, strings.ReplaceAll(line, path, "FILE"))
	}
	return strings.Join(keep, "\n")
}

// tools checks what other tools make of the file as it is now.
func (x *subject) tools(t *testing.T) {
	t.Helper()
	if said := news(x.linted, x.lint()); len(said) > 0 {
		t.Errorf("eu-elflint: %q", said)
	}
	if heavy && !x.loose {
		x.strippers(t)
		x.debugger(t)
	}
	if x.lib {
		x.ldconfig(t)
	}
}

func (x *subject) bytes(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile(x.path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (x *subject) lint() []string {
	if _, err := exec.LookPath("eu-elflint"); err != nil {
		return nil
	}
	return complaintsOf(x.path, "eu-elflint", "--gnu-ld")
}

// readelf is what readelf complains of: all it says on standard error.
func (x *subject) readelf() []string {
	return complaintsOf(x.path, "sh", "-c", `readelf -lWdSVn --dyn-syms "$0" 2>&1 >/dev/null`)
}

// news are the lines of after that before lacks.
func news(before, after []string) []string {
	var out []string
	for _, s := range after {
		known := false
		for _, b := range before {
			known = known || b == s
		}
		if !known && s != "No errors" {
			out = append(out, s)
		}
	}
	return out
}

// onlyPlanned: the bytes that differ are those that the plan says.
func onlyPlanned(t *testing.T, name string, before, after []byte, e Edit) {
	t.Helper()
	p, err := parsed(t, before).Plan(e)
	if err != nil {
		t.Fatal(err)
	}
	want := append(bytes.Clone(before), make([]byte, p.Growth())...)
	for _, w := range p.writes {
		copy(want[w.off:], w.data)
	}
	if !bytes.Equal(want, after) {
		t.Errorf("%s: bytes changed that the plan does not name", name)
	}
}

// ldconfig takes the library for one.
func (x *subject) ldconfig(t *testing.T) {
	t.Helper()
	tool, err := exec.LookPath("/usr/sbin/ldconfig")
	if err != nil {
		return
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "libsubject.so.1"), x.bytes(t), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "-n", "-v", dir).CombinedOutput(); err != nil || !strings.Contains(string(out), "libsubject.so.1") ||
		strings.Contains(string(out), "truncated") || strings.Contains(string(out), "is not") {
		t.Errorf("ldconfig: %v: %s", err, out)
	}
}

// TestTrailingData: what is appended to an ELF file, a payload or a signature,
// stays at its end. An edit that needs no room is made, any other is refused.
func TestTrailingData(t *testing.T) {
	payload := bytes.Repeat([]byte("~signature~"), 1000)
	deps := dependencies(t)
	for _, l := range linkages(heavy) {
		x := newSubject(t, append(l.make(t), payload...), l.lib())
		for _, path := range []string{"/n", longPath + ":" + deps, "", deps} {
			before := x.bytes(t)
			_, err := EditPath(x.path, Edit{RunPath: &path})
			after := x.bytes(t)
			var refused *RefusedError
			switch {
			case errors.As(err, &refused) && !bytes.Equal(before, after):
				t.Errorf("%s: refused, but changed", l.name())
			case err != nil && refused == nil:
				t.Errorf("%s: %v", l.name(), err)
			case !bytes.HasSuffix(after, payload):
				t.Errorf("%s: the payload is not at the end", l.name())
			}
		}
	}
}
