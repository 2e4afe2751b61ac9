package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// isFile reports whether u names something on this machine.
func isFile(u *url.URL) bool { return u.Scheme == "file" }

// checkFileURL allows an absolute path on this machine, and nothing else.
func checkFileURL(u *url.URL) error {
	if u.Host != "" && u.Host != "localhost" || u.User != nil || u.Opaque != "" ||
		!strings.HasPrefix(u.Path, "/") || strings.ContainsRune(u.Path, 0) {
		return &InsecureError{URL: redactURL(u), Reason: "a file URL must name an absolute path on this machine, as in file:///srv/mirror/"}
	}
	return nil
}

// readDirectory lists the regular files of a directory: a mirror on disk.
// Symbolic links count as what they lead to, unless that is outside of it.
func (c *Client) readDirectory(ctx context.Context, u *url.URL) (*page, error) {
	dir := filepath.Clean(u.Path)
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &LayoutError{URL: redactURL(u), Reason: "it is not a directory"}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	all, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer all.Close()
	p := &page{}
	for now := c.opts.Now(); ; {
		entries, err := all.ReadDir(1024)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			p.entry(root, e, now)
		}
		if p.names()+p.refused > maxFiles {
			return nil, &LayoutError{URL: redactURL(u), Reason: fmt.Sprintf("it has more than %d files", maxFiles)}
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	if p.names()+p.refused == 0 {
		// A disk that is not mounted looks like this; AMD's page says it in words.
		return nil, &LayoutError{URL: redactURL(u), Reason: "it has no files"}
	}
	return p, p.known(u)
}

// entry takes one entry of the directory root.
func (p *page) entry(root *os.Root, e fs.DirEntry, now time.Time) {
	if !e.Type().IsRegular() && e.Type()&fs.ModeSymlink == 0 {
		return
	}
	info, err := root.Stat(e.Name())
	switch {
	case errors.Is(err, fs.ErrNotExist): // just removed, or a link to nothing
		return
	case err != nil:
		p.refused++
		return
	case !info.Mode().IsRegular():
		return
	}
	u := url.URL{Scheme: "file", Path: filepath.Join(root.Name(), e.Name())}
	p.put(e.Name(), u.String(), info.ModTime().Truncate(time.Microsecond), info.Size(), now)
}
