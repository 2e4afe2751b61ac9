package fetch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// DownloadError says why a download ended early, and what is left of it. That
// of a file:// release has no spool and no segments.
type DownloadError struct {
	Name     string // of the release
	Spool    string // the directory
	Kept     int    // segments that the next run need not fetch
	Segments int    // of the whole tarball
	Missing  int64  // bytes that are not on disk
	Err      error
}

func (e *DownloadError) Unwrap() error { return e.Err }

func (e *DownloadError) Error() string {
	kept := fmt.Sprintf("%d of %d segments are kept in %s", e.Kept, e.Segments, e.Spool)
	switch {
	case e.Segments == 0: // a file:// release: nothing is kept
		return fmt.Sprintf("download %s: %v", e.Name, withHint(e.Err))
	case noSpace(e.Err):
		return fmt.Sprintf("download %s: %v: no space left for %s: free at least %d MiB and run it again, %d of %d segments are kept",
			e.Name, e.Err, e.Spool, e.Missing>>20+1, e.Kept, e.Segments)
	case isA[*NotArchiveError](e.Err), isA[*ChangedError](e.Err):
		return fmt.Sprintf("download %s: %v", e.Name, withHint(e.Err))
	case errors.Is(e.Err, context.Canceled):
		return fmt.Sprintf("download %s: interrupted; %s, run it again to continue", e.Name, kept)
	case hint(e.Err) != "":
		return fmt.Sprintf("download %s: %v; %s", e.Name, withHint(e.Err), kept)
	}
	return fmt.Sprintf("download %s: %v; run it again, %s", e.Name, e.Err, kept)
}

func noSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// withHint adds what to try to an error.
func withHint(err error) error {
	if h := hint(err); h != "" {
		return fmt.Errorf("%w; %s", err, h)
	}
	return err
}

// hint returns what a person can do about an error, "" if there is no saying.
func hint(err error) string {
	if archive, ok := errors.AsType[*NotArchiveError](err); ok && strings.HasPrefix(archive.URL, "file:") {
		return "copy it to the mirror again"
	}
	if status, ok := errors.AsType[*StatusError](err); ok && status.Gone() {
		return "list what is published now: nightlies are deleted after some months"
	}
	switch {
	case noSpace(err):
		return "free some space and run it again"
	case errors.Is(err, syscall.EFBIG):
		return "files may not be so large here: raise the limit (ulimit -f), or use another file system"
	case isA[*ChangedError](err):
		return "run it again to fetch the new file from the start"
	case isA[*NotArchiveError](err):
		return "something answers in place of the file: a proxy, a login page, or a moved host; open the URL in a browser"
	case isA[*RangeError](err), isA[*EncodingError](err):
		return "a proxy may be rewriting answers: try without it, or run it again"
	}
	return ""
}
