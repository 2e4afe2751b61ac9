package store

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// sizes returns what tells the pins of a test apart.
func sizes(pins []LedgerEntry) []int64 {
	var got []int64
	for _, p := range pins {
		got = append(got, p.Size)
	}
	return got
}

// holds fails unless the ledger says of name what want says, in that order.
func holds(t *testing.T, l *Ledger, name string, want ...int64) {
	t.Helper()
	pins, err := l.Find(name)
	if err != nil || !slices.Equal(sizes(pins), want) {
		t.Errorf("%s: %v, %v, want %v", name, sizes(pins), err, want)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// lineOf is a line as Append writes it, without its end.
func lineOf(t *testing.T, name string, n int) string {
	t.Helper()
	_, line, err := encodePin(pinOf(name, n))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(line))
}

func TestALedgerInARepository(t *testing.T) {
	dir := scratch(t)
	path := filepath.Join(dir, "pins.jsonl")
	at := time.Date(2026, 10, 1, 6, 30, 0, 0, time.UTC)
	l := OpenLedger(path)
	l.Now = func() time.Time { return at }
	holds(t, l, "a")
	withUmask(0o077, func() {
		if err := errors.Join(l.Append(pinOf("a", 1)), l.Append(pinOf("a", 2)), l.Append(pinOf("b", 1))); err != nil {
			t.Fatal(err)
		}
	})
	holds(t, l, "a", 1, 2)
	equal(t, "what is in the repository", entries(t, dir), []string{"pins.jsonl"})
	fi, err := os.Stat(path)
	if err != nil || fi.Mode() != 0o644 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
	if pins, err := l.Find("b"); err != nil || !pins[0].FirstSeen.Equal(at) || l.Path() != path {
		t.Errorf("%+v, %v", pins, err)
	}
	if err := errors.Join(os.Chmod(path, 0o600), l.Append(pinOf("b", 2))); err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode() != 0o600 {
		t.Errorf("the owner's mode was changed to %v, %v", fi.Mode(), err)
	}
}

// What git and editors leave in a file costs none of its lines, and what is
// appended to it can be read.
func TestALedgerThatWasEdited(t *testing.T) {
	path := filepath.Join(scratch(t), "pins.jsonl")
	l := OpenLedger(path)
	one, two := lineOf(t, "zq", 1), lineOf(t, "zq", 2)
	for what, content := range map[string]string{
		"CRLF":            one + "\r\n" + two + "\r\n",
		"no newline":      one + "\n" + two,
		"CRLF, torn":      one + "\r\n" + two + "\r",
		"byte order mark": "\xef\xbb\xbf" + one + "\n" + two + "\n",
		"conflict":        "<<<<<<< HEAD\n" + one + "\n||||||| base\n=======\n" + two + "\n>>>>>>> night\n",
		"conflict at end": one + "\n" + two + "\n<<<<<<< HEAD\n=======\n>>>>>>> night",
		"empty lines":     "\n\n" + one + "\n \t\n" + two + "\n\n",
		"torn in between": one + "\n" + two[:len(two)/2] + "\n" + two + "\n",
		"zeroes":          one + "\n" + two + "\n" + strings.Repeat("\x00", 4096),
		"escaped":         `{"schema":1,"size":1,"digest":"` + strings.Repeat("0", 63) + `1","name":"\u007aq"}` + "\n" + two + "\n",
		"another order":   `{"digest":"` + strings.Repeat("0", 63) + `1","size":1,"name":"zq","schema":1}` + "\n" + two,
		"a comment":       "# pins\n" + one + "\n// more\n" + two + "\n",
		"a negative size": strings.Replace(one, `"size":1`, `"size":-1`, 1) + "\n" + one + "\n" + two + "\n",
	} {
		write(t, path, content)
		holds(t, l, "zq", 1, 2)
		if err := l.Append(pinOf("zq", 3)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		holds(t, l, "zq", 1, 2, 3)
		if b, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(b), content) {
			t.Errorf("%s: the ledger was changed: %v", what, err)
		}
		if t.Failed() {
			t.Fatal(what)
		}
	}
}

func TestALedgerIsAFileOfItsOwnDirectory(t *testing.T) {
	dir, outside := scratch(t), scratch(t)
	victim := filepath.Join(outside, "victim")
	for name, content := range map[string]string{victim: "not yours", filepath.Join(dir, "real"): ""} {
		write(t, name, content)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(
		os.Mkdir(at("dir"), 0o755), unix.Mkfifo(at("pipe"), 0o644),
		os.Symlink("real", at("inside")), os.Symlink("dir/../real", at("roundabout")),
		os.Symlink(victim, at("outside")), os.Symlink("../"+filepath.Base(outside)+"/victim", at("relative")),
		os.Symlink("nothing", at("dangling")), os.Symlink("loop", at("loop")),
		os.Symlink(filepath.Join(outside, "new"), at("dangling outside")),
	)
	if err != nil {
		t.Fatal(err)
	}
	for name, say := range map[string]string{
		"outside":          "name the file itself",
		"relative":         "name the file itself",
		"dangling outside": "which does not exist",
		"dangling":         "which does not exist",
		"loop":             "symlink",
		"dir":              "directory",
		"pipe":             "not a regular file",
		"not/there":        "create the directory first",
		"real/x":           "not a directory",
		"":                 "no file is named",
	} {
		path := at(name)
		if name == "" {
			path = ""
		}
		if err := OpenLedger(path).Append(pinOf("a", 1)); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := OpenLedger(at("pipe")).Find("a"); err == nil {
		t.Error("a pipe was read")
	}
	if _, err := OpenLedger(at("outside")).Find("a"); err == nil {
		t.Error("a file outside was read")
	}
	if b, err := os.ReadFile(victim); err != nil || string(b) != "not yours" || len(entries(t, outside)) != 1 {
		t.Errorf("what is outside was written to: %q, %v, %v", b, err, entries(t, outside))
	}
	for _, name := range []string{"inside", "roundabout"} {
		if err := OpenLedger(at(name)).Append(pinOf(name, 1)); err != nil {
			t.Error(err)
		}
		holds(t, OpenLedger(at("real")), name, 1)
	}
	own := &Ledger{path: at("outside"), own: true, disk: realDisk()} // in a directory of the store's, links are its owner's
	if err := own.Append(pinOf("a", 1)); err != nil {
		t.Error(err)
	}
	holds(t, OpenLedger(victim), "a", 1)
	own.path = at("dangling")
	if err := own.Append(pinOf("a", 1)); err == nil || !strings.Contains(err.Error(), "which does not exist") {
		t.Errorf("%v", err)
	}
	t.Chdir(dir)
	if err := OpenLedger("fresh.jsonl").Append(pinOf("a", 1)); err != nil {
		t.Error(err)
	}
	holds(t, OpenLedger("fresh.jsonl"), "a", 1)
}

// openFiles counts the descriptors of this process that lead to path.
func openFiles(t *testing.T, path string) (n int) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && to == path {
			n++
		}
	}
	return n
}

// A file that git replaces while another process appends is appended to under
// its name, not under the inode that was locked.
func TestALedgerThatIsReplaced(t *testing.T) {
	path := filepath.Join(scratch(t), "pins.jsonl")
	l := OpenLedger(path)
	if err := l.Append(pinOf("a", 1)); err != nil {
		t.Fatal(err)
	}
	held, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(held.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- l.Append(pinOf("a", 3)) }()
	for openFiles(t, path) < 2 { // until it waits for the lock on the old file
		runtime.Gosched()
	}
	write(t, path+".new", lineOf(t, "a", 1)+"\n"+lineOf(t, "a", 2)+"\n")
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	holds(t, l, "a", 1, 2, 3)
}

func TestManyAppendToOneLedger(t *testing.T) {
	path := filepath.Join(scratch(t), "pins.jsonl")
	var wg sync.WaitGroup
	const writers, each = 4, 10
	for w := range writers {
		wg.Go(func() {
			l := OpenLedger(path)
			for n := range each {
				// The second is the same for all: one of them says it.
				if err := errors.Join(l.Append(pinOf("w"+strconv.Itoa(w), n+1)), l.Append(pinOf("n"+strconv.Itoa(n), 1))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if pins, skipped, err := ParseLedger(bytes.NewReader(b)); len(pins) != writers*each+each || skipped != 0 || err != nil {
		t.Errorf("%d lines, %d skipped, %v", len(pins), skipped, err)
	}
}

// AMD's sanitizer builds have the names of the plain ones, and a mirror may
// serve one file in two channels.
func TestALedgerOfTwoChannels(t *testing.T) {
	l := OpenLedger(filepath.Join(scratch(t), "pins.jsonl"))
	plain, asan := pinOf("a", 1), pinOf("a", 1)
	asan.Channel = "asan"
	if err := errors.Join(l.Append(plain), l.Append(asan), l.Append(plain), l.Append(asan)); err != nil {
		t.Fatal(err)
	}
	pins, err := l.Find("a")
	if err != nil || len(pins) != 2 || pins[0].Channel == pins[1].Channel {
		t.Errorf("%+v, %v", pins, err)
	}
}

func TestTheLedgersLockIsExclusive(t *testing.T) {
	path := filepath.Join(scratch(t), "pins.jsonl")
	l := OpenLedger(path)
	if err := l.Append(pinOf("a", 1)); err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := unix.Flock(int(reader.Fd()), unix.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if f, err := l.openLocked(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "another process") {
		t.Errorf("%v, %v", f, err)
	}
	holds(t, l, "a", 1) // who only reads does not wait
}

func TestALedgerThatCannotBeWritten(t *testing.T) {
	dir := scratch(t)
	path := filepath.Join(dir, "pins.jsonl")
	l := OpenLedger(path)
	if err := l.Append(pinOf("a", 1)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	var err error
	asNobody(t, func() { err = l.Append(pinOf("a", 2)) })
	if err == nil || !strings.Contains(err.Error(), "make it writable") {
		t.Errorf("%v", err)
	}
	holds(t, l, "a", 1)
	l.disk.syncDir = func(string) error { return unix.EIO }
	if err := l.Append(pinOf("a", 2)); !errors.Is(err, unix.EIO) {
		t.Errorf("%v", err)
	}
}

func TestLedgerAll(t *testing.T) {
	path := filepath.Join(scratch(t), "pins.jsonl")
	l := OpenLedger(path)
	for range l.All(t.Context()) {
		t.Error("an absent ledger has entries")
	}
	write(t, path, lineOf(t, "a", 1)+"\nx\n"+`{"schema":9,"name":"z"}`+"\n"+lineOf(t, "b", 2)+"\n")
	var got []string
	for pin, err := range l.All(t.Context()) {
		got = append(got, pin.Name)
		if (pin.Name == "z") != errors.Is(err, ErrNewer) {
			t.Errorf("%s: %v", pin.Name, err)
		}
	}
	equal(t, "entries", got, []string{"a", "z", "b"})
	for range l.All(t.Context()) {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range l.All(ctx) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
	for _, err := range OpenLedger(filepath.Dir(path)).All(t.Context()) {
		if err == nil {
			t.Error("a directory was read")
		}
	}
	var whole int
	for _, err := range (&Store{root: filepath.Dir(path)}).Ledger().All(t.Context()) {
		if whole++; err != nil {
			t.Error(err)
		}
	}
	if whole != 0 {
		t.Errorf("%d entries in the store's own", whole)
	}
}
