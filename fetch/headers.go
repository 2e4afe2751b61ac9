package fetch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"os"
	"strings"
	"syscall"
)

const (
	maxHeadersFile = 64 << 10 // bytes
	maxHeaderLines = 100
	maxPEM         = 1 << 20 // bytes
)

// reservedHeaders are those that this program, or HTTP itself, has to set:
// what is asked for, and of whom, and how the answer is framed.
var reservedHeaders = map[string]bool{
	"Accept-Encoding": true, "Connection": true, "Content-Encoding": true, "Content-Length": true, "Expect": true, "Host": true,
	"Http2-Settings": true, "Keep-Alive": true, "Proxy-Authenticate": true, "Proxy-Authorization": true, "Proxy-Connection": true,
	"Range": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

func reservedHeader(name string) bool {
	return reservedHeaders[name] || strings.HasPrefix(name, "If-")
}

// lineError is what is wrong with a line of a headers file. It must not hold
// any of the line: it may be a password.
type lineError struct {
	line   int
	reason string
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.reason) }

// parseHeaders reads "Name: value" lines. Empty lines, and those that begin
// with #, say nothing. A name may be given more than once.
func parseHeaders(raw []byte) (http.Header, *lineError) {
	h := http.Header{}
	n, given := 0, 0
	for line := range bytes.SplitSeq(bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf")), []byte("\n")) {
		n++
		text := string(bytes.TrimSuffix(line, []byte("\r")))
		if strings.Trim(text, " \t") == "" || strings.HasPrefix(text, "#") {
			continue
		}
		name, value, ok := strings.Cut(text, ":")
		value = strings.Trim(value, " \t")
		key := textproto.CanonicalMIMEHeaderKey(name)
		given++
		switch {
		case !ok:
			return nil, &lineError{n, `it has no colon; write "Name: value"`}
		case !isToken(name):
			return nil, &lineError{n, "what stands before the colon is not the name of a header"}
		case reservedHeader(key):
			return nil, &lineError{n, key + " is set by this program itself; remove the line"}
		case strings.ContainsFunc(value, notInValue):
			return nil, &lineError{n, "the value has a control character"}
		case given > maxHeaderLines:
			return nil, &lineError{n, fmt.Sprintf("more than %d headers", maxHeaderLines)}
		}
		h[key] = append(h[key], value)
	}
	return h, nil
}

// isToken reports whether s can be the name of a header (RFC 9110, 5.6.2).
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", c)
	})
}

func notInValue(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }

// readSetting reads a file that a setting names: a regular one, of at most so
// many bytes. It never waits, as opening a pipe would.
func readSetting(file string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = fmt.Errorf("it is larger than %d KiB", limit>>10)
	}
	return raw, err
}
