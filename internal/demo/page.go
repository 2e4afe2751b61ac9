package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// IndexEntry is one tarball on an index page.
type IndexEntry struct {
	Name  string
	MTime time.Time
}

// pageHead, pageMiddle and pageTail are shaped like the output of TheRock's
// index_generation_s3_tar.py: a static document, begun with an empty line,
// whose script holds the names and draws the list from them. Nothing in the
// document links to a tarball.
const (
	pageHead = `
    <html>
    <head>
        <title>ROCm SDK nightly tarballs</title>
        <meta charset="utf-8"/>
        <script>
            const files = `
	pageMiddle = `;
            function show() {
                const newest = document.getElementById('order').value === 'desc';
                const sorted = [...files].sort((a, b) => newest ? b.mtime - a.mtime : a.mtime - b.mtime);
                document.getElementById('list').innerHTML = sorted.map(file =>
                    ` + "`<li><a href=\"${encodeURIComponent(file.name)}\">${file.name}</a></li>`" + `).join('');
            }
            document.addEventListener('DOMContentLoaded', () => {
                document.getElementById('order').addEventListener('change', show);
                show();
            });
        </script>
    </head>
    <body>
        <h1>ROCm SDK nightly tarballs</h1>
`
	pageTail = `        <select id="order"><option value="desc">newest first</option><option value="asc">oldest first</option></select>
        <ul id="list"></ul>
    </body>
    </html>
    `
	pageEmpty = "        <p>There are no tarballs here.</p>\n"
)

// Page returns an index page in AMD's format that lists files in the order
// given. Times are written in seconds with a fraction, as AMD's are.
func Page(files []IndexEntry) []byte {
	var b bytes.Buffer
	b.WriteString(pageHead + "[")
	for i, f := range files {
		if i > 0 {
			b.WriteString(", ")
		}
		// Marshal escapes <, > and &, so that no name can end the script.
		name, err := json.Marshal(f.Name)
		if err != nil {
			continue // not reached: every string has an encoding
		}
		fmt.Fprintf(&b, `{"name": %s, "mtime": %s}`, name, seconds(f.MTime))
	}
	b.WriteString("]" + pageMiddle)
	if len(files) == 0 {
		b.WriteString(pageEmpty)
	}
	b.WriteString(pageTail)
	return b.Bytes()
}

// seconds writes t as Python writes a float of seconds: 1790726400.0.
func seconds(t time.Time) string {
	if ms := t.Nanosecond() / 1e6; ms%100 != 0 {
		return fmt.Sprintf("%d.%03d", t.Unix(), ms)
	}
	return fmt.Sprintf("%d.%d", t.Unix(), t.Nanosecond()/1e8)
}
