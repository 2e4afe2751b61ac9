package fetch

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// timeForms are the ways in which servers write the time of a file beside its
// name, without the seconds and the zone that may follow.
var timeForms = [...]struct {
	re     *regexp.Regexp
	layout string
}{
	{regexp.MustCompile(`\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?`), "2006-01-02 15:04"}, // Apache, ISO 8601
	{regexp.MustCompile(`\b\d{2}-[A-Z][a-z]{2}-\d{4} \d{2}:\d{2}(?::\d{2})?`), "02-Jan-2006 15:04"},         // nginx, Artifactory
	{regexp.MustCompile(`\b\d{4}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}(?::\d{2})?`), "2006-Jan-02 15:04"},         // lighttpd, nginx's fancyindex
	{regexp.MustCompile(`\b\d{1,2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}(?::\d{2})?`), "2 Jan 2006 15:04"},        // as in HTTP
}

// javaRE is how Java, and so Nexus, prints a time; in other zones than these
// two it gives a name that may mean several.
var javaRE = regexp.MustCompile(`\b([A-Z][a-z]{2} \d{2} \d{2}:\d{2}:\d{2}) (?:UTC|GMT) (\d{4})\b`)

var zoneRE = regexp.MustCompile(`^ ?(?:Z|UTC|GMT|([+-]\d{2}):?(\d{2}))`)

// findTime returns the first time in text, or the zero time, and the size in
// bytes if that is all that follows. A time without a zone is taken as UTC:
// nginx means that unless told otherwise; Apache means its own zone, and does
// not say which.
func findTime(text []byte) (t time.Time, size int64) {
	s := string(text)
	at, end, layout := -1, 0, ""
	for _, f := range timeForms {
		if m := f.re.FindStringIndex(s); m != nil && (at < 0 || m[0] < at) {
			at, end, layout = m[0], m[1], f.layout
		}
	}
	if m := javaRE.FindStringSubmatchIndex(s); m != nil && (at < 0 || m[0] < at) {
		t, err := time.Parse("Jan 02 15:04:05 2006", s[m[2]:m[3]]+" "+s[m[4]:m[5]])
		return zeroIf(err, t), findSize(s[m[1]:])
	}
	if at < 0 {
		return time.Time{}, 0
	}
	stamp := strings.Replace(s[at:end], "T", " ", 1)
	if strings.Count(stamp, ":") == 2 {
		layout += ":05"
	}
	if z := zoneRE.FindStringSubmatch(s[end:]); z != nil {
		if z[1] != "" {
			layout, stamp = layout+" -0700", stamp+" "+z[1]+z[2]
		}
		end += len(z[0])
	}
	t, err := time.Parse(layout, stamp)
	return zeroIf(err, t), findSize(s[end:])
}

func zeroIf(err error, t time.Time) time.Time {
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// findSize reads a number of bytes that stands alone: 1.7G is no size, and 2
// before another word is 2 of something else.
func findSize(text string) int64 {
	words := strings.Fields(text)
	if len(words) == 0 || len(words) > 1 && words[1] != "bytes" && words[1] != "B" {
		return 0
	}
	n, err := strconv.ParseUint(words[0], 10, 53)
	if err != nil {
		return 0
	}
	return int64(n)
}
