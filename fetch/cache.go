package fetch

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/renameio/v2"
)

const (
	cacheSchema    = 1
	maxCached      = 64      // files
	maxCachedBody  = 8 << 20 // bytes; AMD's page of 5000 names has half of one MiB
	maxCacheHeader = 16 << 10
)

// pageCache keeps indexes for the next process: one file for each, which is a
// line of JSON and then the body as it was read. It holds nothing that a file
// of it is believed for but by the server's word: what is in it is used only
// after a 304, and parsed as if it had just been sent.
type pageCache struct {
	dir    string // "" is no cache
	failed sync.Once
}

// cacheHeader is the first line of a file. A redirect's target is kept only
// if it has no query, and no URL with credentials.
type cacheHeader struct {
	Schema   int       `json:"schema"`
	Key      string    `json:"key"`
	ETag     string    `json:"etag,omitempty"`
	Modified string    `json:"last_modified,omitempty"`
	Found    string    `json:"found,omitempty"` // "" is the URL that was asked
	Read     time.Time `json:"read"`
	SHA256   string    `json:"sha256"` // of the body
}

// cacheNameRE matches the names of the cache's files, and of those that
// renameio leaves behind when it is killed.
var cacheNameRE = regexp.MustCompile(`^(\.)?[0-9a-f]{64}\.index[0-9]*$`)

func (pc *pageCache) path(key string) string { return filepath.Join(pc.dir, key+".index") }

// store writes what was read of u, which pageKey calls key.
func (pc *pageCache) store(key string, u *url.URL, r remembered, body []byte) error {
	if pc.dir == "" {
		return nil
	}
	h := cacheHeader{Schema: cacheSchema, Key: key, ETag: r.etag, Modified: r.modified, Read: r.read.UTC(), SHA256: hexSum(body)}
	if r.found != key {
		if r.base.RawQuery != "" || len(r.base.Path) > maxKey {
			pc.forget(key)
			return nil
		}
		h.Found = redactURL(r.base)
	}
	line, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("write index cache: %w", err)
	}
	if len(line) > maxCacheHeader || len(body) > maxCachedBody {
		pc.forget(key)
		return nil
	}
	if err := os.MkdirAll(pc.dir, 0o700); err != nil {
		return fmt.Errorf("create index cache: %w", err)
	}
	raw := slices.Concat(line, []byte("\n"), body)
	if err := renameio.WriteFile(pc.path(key), raw, 0o600); err != nil {
		return fmt.Errorf("write index cache: %w", err)
	}
	return pc.prune(key)
}

// forget removes what is kept under key: it is of the past.
func (pc *pageCache) forget(key string) {
	if pc.dir != "" {
		_ = os.Remove(pc.path(key)) // most often it is not there
	}
}

// prune removes the files that were written first, until the cache has no
// more than it may have, and what a killed process left. It spares key.
func (pc *pageCache) prune(key string) error {
	entries, err := os.ReadDir(pc.dir)
	if err != nil {
		return fmt.Errorf("read index cache: %w", err)
	}
	type file struct {
		name string
		time time.Time
	}
	var files []file
	for _, e := range entries {
		m := cacheNameRE.FindStringSubmatch(e.Name())
		info, err := e.Info()
		if m == nil || err != nil || e.Name() == key+".index" {
			continue
		}
		switch {
		case m[1] == "":
			files = append(files, file{e.Name(), info.ModTime()})
		case time.Since(info.ModTime()) > 24*time.Hour:
			_ = os.Remove(filepath.Join(pc.dir, e.Name())) // the next one tries again
		}
	}
	slices.SortFunc(files, func(a, b file) int { return a.time.Compare(b.time) })
	for len(files) >= maxCached {
		if err := os.Remove(filepath.Join(pc.dir, files[0].name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("shorten index cache: %w", err)
		}
		files = files[1:]
	}
	return nil
}

// ForgetPages removes what Clients keep of indexes in the directory dir, and dir
// itself if nothing else is in it.
func ForgetPages(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("forget indexes: %w", err)
	}
	for _, e := range entries {
		if !cacheNameRE.MatchString(e.Name()) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("forget indexes: %w", err)
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget indexes: %w", err)
	}
	return nil
}

// load returns what is kept of u. Whatever is wrong with it, it is as if it
// were not there.
func (pc *pageCache) load(key string, u *url.URL) (remembered, bool) {
	if pc.dir == "" {
		return remembered{}, false
	}
	f, err := os.OpenFile(pc.path(key), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return remembered{}, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !trusted(info) || info.Size() > maxCacheHeader+maxCachedBody {
		return remembered{}, false
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxCacheHeader+maxCachedBody))
	if err != nil {
		return remembered{}, false
	}
	r, err := parseCached(raw, key, u)
	return r, err == nil
}

// trusted reports whether nobody but this user can have written a file.
func trusted(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().IsRegular() && info.Mode().Perm()&0o022 == 0 && int(st.Uid) == os.Geteuid()
}

// parseCached reads one file of the cache.
func parseCached(raw []byte, key string, u *url.URL) (remembered, error) {
	line, body, ok := bytes.Cut(raw, []byte("\n"))
	if !ok || len(line) > maxCacheHeader || len(body) > maxCachedBody {
		return remembered{}, errors.New("it has no header")
	}
	var h cacheHeader
	if err := json.Unmarshal(line, &h); err != nil {
		return remembered{}, fmt.Errorf("read header: %w", err)
	}
	if h.Schema != cacheSchema || h.Key != key || h.SHA256 != hexSum(body) || h.ETag == "" && h.Modified == "" {
		return remembered{}, errors.New("it is of something else, or damaged")
	}
	if strings.ContainsFunc(h.ETag+h.Modified, notInValue) {
		return remembered{}, errors.New("a validator has a control character")
	}
	r := remembered{etag: h.ETag, modified: h.Modified, found: key, base: u, read: h.Read, body: body}
	if h.Found != "" {
		found, err := url.Parse(h.Found)
		if err != nil || found.Host == "" || found.Scheme != "https" && found.Scheme != "http" {
			return remembered{}, errors.New("its place is not a URL")
		}
		r.found, r.base = pageKey(found), found
	}
	return r, nil
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
