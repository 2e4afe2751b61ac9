package forge

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// FuzzLimit: whatever the headers say, a wait is between nothing and a month.
func FuzzLimit(f *testing.F) {
	f.Add(403, "60", "", "", "")
	f.Add(429, "Wed, 21 Oct 2026 07:28:00 GMT", "0", "1792567680", "")
	f.Add(403, "", "0", "99999999999999999999", "secondary rate limit")
	f.Add(403, "-9223372036854775808", "1", "-1", "")
	now := time.Unix(1792567000, 0)
	f.Fuzz(func(t *testing.T, code int, after, remaining, reset, body string) {
		h := http.Header{}
		h.Set("Retry-After", after)
		h.Set("X-RateLimit-Remaining", remaining)
		h.Set("X-RateLimit-Reset", reset)
		res := &http.Response{StatusCode: code, Header: h, Body: io.NopCloser(strings.NewReader(body))}
		limit := limitOf(res, now, len(body))
		if limit == nil {
			return
		}
		if code != 403 && code != 429 {
			t.Fatalf("status %d is a limit", code)
		}
		if d := limit.Until.Sub(now); d < 0 || d > longestWait+time.Second {
			t.Fatalf("it waits %v", d)
		}
		if got, err := io.ReadAll(res.Body); err != nil || string(got) != body {
			t.Fatalf("the body is %q, %v afterwards", got, err)
		}
	})
}
