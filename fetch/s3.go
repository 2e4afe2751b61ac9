package fetch

import (
	"encoding/xml"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// maxPages bounds how many pages of a bucket's listing are read: a page has
// up to 1000 keys.
const maxPages = 100

// maxKey is how long a key of S3 may be, in bytes.
const maxKey = 1024

// bucket is one page of what an S3 bucket answers to ListObjectsV2, or to
// ListObjects before it. ETag is left out: a download asks for it again in any
// case.
type bucket struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	EncodingType          string
	IsTruncated           bool
	NextContinuationToken string // version 2
	NextMarker            string // version 1, and only if a delimiter was asked for
	Contents              []struct {
		Key          string
		LastModified string // RFC 3339
		Size         string // bytes; text, so that a bad one spoils no listing
	}
}

// cursor says where the next page of a bucket's listing begins.
type cursor struct {
	token  string // for version 2
	marker string // for version 1, if token is ""
}

// url returns where the next page of the listing at first is.
func (n *cursor) url(first *url.URL) *url.URL {
	u := *first
	q := u.Query()
	if n.token != "" {
		q.Set("list-type", "2")
		q.Set("continuation-token", n.token)
	} else {
		q.Set("marker", n.marker)
	}
	u.RawQuery = q.Encode()
	return &u
}

// parseBucket reads one page of the listing of the bucket at base. The keys
// may be in any directory: where a file is, its name says.
func parseBucket(body []byte, base *url.URL, now time.Time) (*page, *cursor, error) {
	layout := func(format string, args ...any) (*page, *cursor, error) {
		return nil, nil, &LayoutError{URL: redactURL(base), Reason: fmt.Sprintf(format, args...)}
	}
	if err := checkTags(body, base); err != nil {
		return nil, nil, err
	}
	var b bucket
	if err := xml.Unmarshal(body, &b); err != nil {
		return layout("its listing of a bucket cannot be read: %v", err)
	}
	p := &page{}
	last := ""
	for _, c := range b.Contents {
		key, err := b.decode(c.Key)
		if err != nil {
			return layout("the key %q cannot be read", printable([]byte(c.Key)))
		}
		t, _ := time.Parse(time.RFC3339, c.LastModified) // the zero time if it is none
		size, _ := strconv.ParseInt(c.Size, 10, 64)      // 0 if it is none
		p.object(base, key, t, size, now)
		last = key
	}
	if !b.IsTruncated {
		return p, nil, nil
	}
	next := &cursor{token: b.NextContinuationToken, marker: last}
	if b.NextMarker != "" {
		marker, err := b.decode(b.NextMarker)
		if err != nil {
			return layout("the marker %q cannot be read", printable([]byte(b.NextMarker)))
		}
		next.marker = marker
	}
	if next.token == "" && (next.marker == "" || b.NextMarker == "" && base.Query().Get("list-type") == "2") {
		return layout("its listing of a bucket is truncated after %d keys, and does not say how to go on", len(b.Contents))
	}
	return p, next, nil
}

// decode reads a key as it was asked to be written, by encoding-type=url.
func (b *bucket) decode(s string) (string, error) {
	if b.EncodingType != "url" {
		return s, nil
	}
	return url.QueryUnescape(s)
}

// object takes one key of the bucket at base. Keys that end with a slash only
// stand for directories.
func (p *page) object(base *url.URL, key string, t time.Time, size int64, now time.Time) {
	if strings.HasSuffix(key, "/") || key == "" {
		return
	}
	if len(key) > maxKey {
		p.unparsed = append(p.unparsed, printable([]byte(key)))
		return
	}
	dir := strings.TrimSuffix(base.EscapedPath(), "/") + "/"
	segments := strings.Split(key, "/")
	name := segments[len(segments)-1]
	for i, s := range segments {
		// Legal in a key, but servers and proxies resolve them in a path.
		if s == "" || s == "." || s == ".." {
			p.refused++
			return
		}
		if i < len(segments)-1 {
			dir += escapeSegment(s) + "/"
		}
	}
	p.put(name, joinURL(base, dir, name), t, size, now)
}
