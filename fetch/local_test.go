package fetch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

var localTime = time.Date(2026, 9, 30, 3, 14, 22, 500e6, time.UTC)

// newMirror makes a directory with files of these names.
func newMirror(t testing.TB, data []byte, names ...string) (dir, url string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "a mirror")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		writeAt(t, filepath.Join(dir, n), data, localTime)
	}
	return dir, "file://" + strings.ReplaceAll(dir, " ", "%20") + "/"
}

func writeAt(t testing.TB, path string, data []byte, mtime time.Time) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path, data, 0o644), os.Chtimes(path, mtime, mtime)); err != nil {
		t.Fatal(err)
	}
}

func TestListDirectory(t *testing.T) {
	dir, url := newMirror(t, []byte("x"), testName, nameBKC, nameAdhoc)
	outside, _ := newMirror(t, nil, "therock-dist-linux-gfx900-7.9.0.tar.gz")
	if err := errors.Join(
		os.Mkdir(filepath.Join(dir, "therock-dist-linux-gfx900-7.10.0.tar.gz"), 0o755),
		unix.Mkfifo(filepath.Join(dir, "therock-dist-linux-gfx900-7.11.0.tar.gz"), 0o644),
		os.Symlink(testName, filepath.Join(dir, nameMultiarch)),
		os.Symlink("nothing", filepath.Join(dir, "therock-dist-linux-gfx900-7.12.0.tar.gz")),
		os.Symlink(filepath.Join(outside, "therock-dist-linux-gfx900-7.9.0.tar.gz"), filepath.Join(dir, "therock-dist-linux-gfx900-7.9.0.tar.gz")),
	); err != nil {
		t.Fatal(err)
	}
	for _, index := range []string{url, strings.TrimSuffix(url, "/"), strings.Replace(url, "file://", "file://localhost", 1)} {
		l, err := nightClient(t).List(t.Context(), "nightly", Sources(index))
		if err != nil {
			t.Fatal(err)
		}
		if s := l.Sources[0]; s.Releases != 3 || s.Unparsed != 1 || s.Refused != 1 || l.Unparsed[0] != nameAdhoc {
			t.Errorf("source %+v, unparsed %q", s, l.Unparsed)
		}
		for _, r := range l.Releases {
			if !r.MTime.Equal(localTime) || r.URL != url+r.Name || r.Size != 1 {
				t.Errorf("%s at %s of %v", r.Name, r.URL, r.MTime)
			}
		}
	}
}

func TestListDirectoryThatIsNone(t *testing.T) {
	_, empty := newMirror(t, nil)
	_, other := newMirror(t, nil, "README")
	dir, _ := newMirror(t, nil, testName)
	for url, says := range map[string]string{
		empty:                          "it has no files (is the mirror mounted",
		other:                          "none of its 1 names",
		"file://" + dir + "/" + "none": "no such file",
		"file://" + strings.ReplaceAll(dir, " ", "%20") + "/" + testName: "not a directory",
		"file://server/share/":    "absolute path on this machine",
		"file://me:secret@/srv/":  "absolute path on this machine",
		"file:srv/mirror":         "absolute path on this machine",
		"file:///srv/mirror%00/x": "absolute path on this machine",
		"file:":                   "absolute path on this machine",
	} {
		_, err := nightClient(t).List(t.Context(), "nightly", Sources(url))
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", url, err, says)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := nightClient(t).List(ctx, "nightly", Sources(other)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// begun downloads the one release of a mirror.
func begun(t *testing.T, ctx context.Context, c *Client, data []byte) (d *Download, file, spool string) {
	t.Helper()
	dir, url := newMirror(t, data, nameBKC)
	l, err := c.List(t.Context(), "nightly", Sources(url))
	if err != nil {
		t.Fatal(err)
	}
	spool = filepath.Join(t.TempDir(), "spool")
	if d, err = c.Download(ctx, l.Releases[0], spool); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d, filepath.Join(dir, nameBKC), spool
}

func TestDownloadOfAFile(t *testing.T) {
	data := random(1, testSegment)
	var events []Event
	c := testClient(t, func(o *Options) { o.Event = func(e Event) { events = append(events, e) } })
	d, file, spool := begun(t, t.Context(), c, data)
	if d.Size() != int64(len(data)) || d.ETag() != "" || !d.LastModified().Equal(localTime.Truncate(time.Second)) || d.Resumed() != 0 {
		t.Errorf("%d bytes, ETag %q, modified %v, resumed %d", d.Size(), d.ETag(), d.LastModified(), d.Resumed())
	}
	if err := iotest.TestReader(readOnce{d}, data); err != nil && !strings.Contains(err.Error(), "ReadByte") {
		t.Error(err)
	}
	if n, err := d.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("behind the end: %d, %v", n, err)
	}
	if err := errors.Join(d.Discard(), d.Close(), d.Close()); err != nil {
		t.Error(err)
	}
	if _, err := d.Read(make([]byte, 1)); !errors.Is(err, errClosed) {
		t.Errorf("closed: %v", err)
	}
	if left, err := os.ReadFile(file); err != nil || !bytes.Equal(left, data) {
		t.Errorf("the mirror's file: %d bytes, %v", len(left), err)
	}
	if _, err := os.Stat(spool); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a spool was made: %v", err)
	}
	if n := len(events); n < 3 || events[0].Kind != EventStart || events[n-1].Kind != EventDone || events[n-1].Done != int64(len(data)) || events[0].Total != int64(len(data)) {
		t.Errorf("events %+v", events)
	}
}

func TestStatOfAFile(t *testing.T) {
	_, url := newMirror(t, []byte("\x1f\x8bx"), testName)
	o, err := testClient(t, nil).Stat(t.Context(), release.Release{Name: testName, URL: url + testName})
	if err != nil || o.Size != 3 || o.ETag != "" || !o.LastModified.Equal(localTime.Truncate(time.Second)) {
		t.Errorf("%+v, %v", o, err)
	}
}

// TestFileThatChanges: bytes of two files are never joined.
func TestFileThatChanges(t *testing.T) {
	data := random(1, 4096)
	for name, c := range map[string]struct {
		change func(file string) error
		says   string // "" is that nothing happened
	}{
		"written over":  {func(f string) error { return os.WriteFile(f, random(2, 4096), 0o644) }, "time was"},
		"shortened":     {func(f string) error { return os.Truncate(f, 2000) }, "size was 4096, is 2000"},
		"grown":         {func(f string) error { return os.Truncate(f, 5000) }, "size was 4096, is 5000"},
		"renamed over":  {func(f string) error { return errors.Join(os.WriteFile(f+"x", nil, 0o644), os.Rename(f+"x", f)) }, ""},
		"removed":       {os.Remove, ""},
		"only touched?": {func(f string) error { return os.Chtimes(f, localTime, localTime.Add(1)) }, "time was"},
	} {
		t.Run(name, func(t *testing.T) {
			d, file, _ := begun(t, t.Context(), testClient(t, nil), data)
			head := make([]byte, 1000)
			if _, err := io.ReadFull(d, head); err != nil {
				t.Fatal(err)
			}
			if err := c.change(file); err != nil {
				t.Fatal(err)
			}
			tail, err := io.ReadAll(d)
			if c.says == "" {
				if err != nil || !bytes.Equal(append(head, tail...), data) {
					t.Errorf("%d bytes, %v", len(tail), err)
				}
				return
			}
			if !isA[*ChangedError](err) || !isA[*DownloadError](err) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want a ChangedError that says %q", err, c.says)
			}
			if _, again := d.Read(head); again != err {
				t.Errorf("then %v", again)
			}
		})
	}
}

func TestFileThatIsRefused(t *testing.T) {
	dir, url := newMirror(t, []byte("<html>"), testName, nameBKC)
	other, _ := newMirror(t, []byte("\x1f\x8b"), "secret")
	const empty, link, pipe = "therock-dist-linux-gfx900-7.9.0.tar.gz", "therock-dist-linux-gfx900-7.10.0.tar.gz", "therock-dist-linux-gfx900-7.11.0.tar.gz"
	writeAt(t, filepath.Join(dir, empty), nil, localTime)
	if err := errors.Join(os.Symlink(other+"/secret", filepath.Join(dir, link)), unix.Mkfifo(filepath.Join(dir, pipe), 0o644)); err != nil {
		t.Fatal(err)
	}
	c := testClient(t, nil)
	for name, says := range map[string]string{
		"gone":  "list what the mirror has now",
		empty:   "is empty",
		link:    "escapes",
		pipe:    "not a regular file",
		nameBKC: "copy it to the mirror again",
	} {
		d, err := c.Download(t.Context(), release.Release{Name: name, URL: url + name}, t.TempDir())
		if err == nil {
			_, err = io.ReadAll(d)
			d.Close()
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", name, err, says)
		}
	}
	if _, err := c.Stat(t.Context(), release.Release{Name: testName, URL: "file:///etc/passwd"}); !isA[*InsecureError](err) {
		t.Errorf("another file: %v", err)
	}
}

func TestFileEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	d, _, _ := begun(t, ctx, testClient(t, nil), random(1, 4096))
	cancel()
	if _, err := io.ReadAll(d); !errors.Is(err, context.Canceled) || !isA[*DownloadError](err) {
		t.Errorf("%v", err)
	}
}
