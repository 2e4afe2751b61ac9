package demo

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// IndexPath is where AMD's hosts keep the index page, and below it the
// tarballs.
const IndexPath = "/rocm/core/tarball/"

// Serve publishes the tarballs of dir on a free port of the loopback
// interface: the page at baseURL, which ends in IndexPath, and the files below
// it. What is added to dir later is on the next page. stop ends it, as does
// the end of ctx; it waits for the server and may be called twice.
func Serve(ctx context.Context, dir string) (baseURL string, stop func(), err error) {
	handler, err := Handler(dir)
	if err != nil {
		return "", nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("serve index: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // ends by Close, with ErrServerClosed
	}()
	end := func() {
		_ = server.Close()
		<-served
	}
	unhook := context.AfterFunc(ctx, end)
	stop = func() { unhook(); end() }
	return "http://" + listener.Addr().String() + IndexPath, stop, nil
}

// Handler answers requests as AMD's hosts do, for the tarballs of dir. Paths
// are below IndexPath; what is not there is 404.
func Handler(dir string) (http.Handler, error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("serve index: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("serve index: %s is not a directory", dir)
	}
	return &host{dir: dir, tags: make(map[string]tagged)}, nil
}

// host serves one directory.
type host struct {
	dir string

	mu   sync.Mutex
	tags map[string]tagged // by file name
}

// tagged is an ETag with what the file looked like when it was computed.
type tagged struct {
	tag   string
	size  int64
	mtime time.Time
}

func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, below := strings.CutPrefix(r.URL.Path, IndexPath)
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	case !below || strings.ContainsAny(name, `/\`):
		http.NotFound(w, r)
	case name == "" || name == "index.html":
		h.index(w, r)
	case strings.HasSuffix(name, ".tar.gz"):
		h.tarball(w, r, name)
	case name == "SHA256SUMS" || strings.HasSuffix(name, ".sha256"):
		h.sums(w, r, name)
	default:
		http.NotFound(w, r)
	}
}

func (h *host) index(w http.ResponseWriter, r *http.Request) {
	files, err := h.list()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	body := Page(files)
	w.Header().Set("Content-Type", "text/html")
	w.Header().Set("ETag", fmt.Sprintf(`"%.16x"`, sha256.Sum256(body)))
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(body)))
}

func (h *host) list() ([]IndexEntry, error) {
	entries, err := os.ReadDir(h.dir)
	if err != nil {
		return nil, fmt.Errorf("list tarballs: %w", err)
	}
	var files []IndexEntry
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed between the two calls
		}
		if err != nil {
			return nil, fmt.Errorf("list tarballs: %w", err)
		}
		if info.Mode().IsRegular() && strings.HasSuffix(e.Name(), ".tar.gz") {
			files = append(files, IndexEntry{Name: e.Name(), MTime: info.ModTime()})
		}
	}
	slices.SortFunc(files, func(a, b IndexEntry) int { return cmp.Compare(a.Name, b.Name) })
	return files, nil
}

func (h *host) tarball(w http.ResponseWriter, r *http.Request, name string) {
	f, err := os.Open(filepath.Join(h.dir, name))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		http.NotFound(w, r)
		return
	}
	tag, err := h.etag(name, f, info)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/gzip")
	w.Header().Set("ETag", tag)
	http.ServeContent(w, r, "", info.ModTime(), f)
}

// sums serves a file of digests, if the directory has one. AMD has none yet.
func (h *host) sums(w http.ResponseWriter, r *http.Request, name string) {
	text, err := os.ReadFile(filepath.Join(h.dir, name))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
}

// tagPart is the size of the parts in which AMD seems to upload.
const tagPart = 128 << 20

// etag returns the tag that S3 gives to a multipart upload: the MD5 of the
// parts' MD5s, a dash and the number of parts. It is computed once for each
// state of the file.
func (h *host) etag(name string, f *os.File, info fs.FileInfo) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t, ok := h.tags[name]; ok && t.size == info.Size() && t.mtime.Equal(info.ModTime()) {
		return t.tag, nil
	}
	all, parts := md5.New(), 0
	for off := int64(0); off < info.Size(); off += tagPart {
		part := md5.New()
		if _, err := io.Copy(part, io.NewSectionReader(f, off, min(tagPart, info.Size()-off))); err != nil {
			return "", fmt.Errorf("tag %s: %w", name, err)
		}
		all.Write(part.Sum(nil))
		parts++
	}
	tag := fmt.Sprintf(`"%x-%d"`, all.Sum(nil), parts)
	h.tags[name] = tagged{tag: tag, size: info.Size(), mtime: info.ModTime()}
	return tag, nil
}
