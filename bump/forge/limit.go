package forge

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// longestWait bounds the waits that a forge may ask for, so that no sum of
// times overflows; it is far more than any call waits.
const longestWait = 30 * 24 * time.Hour

// limitOf reads res as "no more requests for now", nil if it says something
// else. before is how many waits for a secondary limit the call has behind it.
//
// The rules are those of GitHub's page "Rate limits for the REST API": a
// Retry-After is obeyed; else, with x-ratelimit-remaining 0, x-ratelimit-reset
// is; else it is a minute at least, and longer each time. Other forges send the
// same statuses and Retry-After.
func limitOf(res *http.Response, now time.Time, before int) *LimitError {
	if res.StatusCode != http.StatusTooManyRequests && res.StatusCode != http.StatusForbidden {
		return nil
	}
	after, told := retryAfter(res.Header.Get("Retry-After"), now)
	remaining := strings.TrimSpace(res.Header.Get("X-Ratelimit-Remaining"))
	if remaining == "" {
		remaining = strings.TrimSpace(res.Header.Get("Ratelimit-Remaining")) // GitLab's
	}
	switch {
	case told:
		return &LimitError{Secondary: remaining != "0", Until: now.Add(after)}
	case remaining == "0":
		return &LimitError{Until: resetOf(res.Header, now)}
	case res.StatusCode == http.StatusTooManyRequests || saysSecondary(res):
		return &LimitError{Secondary: true, Until: now.Add(secondaryWait << min(before, 10))}
	}
	return nil
}

// retryAfter reads the header's two forms: seconds, and a date (RFC 9110,
// section 10.2.3).
func retryAfter(value string, now time.Time) (time.Duration, bool) {
	value = strings.TrimSpace(value)
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
		return clamp(seconds), true
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(at.Sub(now), 0), longestWait), true
	}
	return 0, false
}

func clamp(seconds int64) time.Duration {
	return time.Duration(min(max(seconds, 0), int64(longestWait/time.Second))) * time.Second
}

// resetOf is when the hourly limit begins anew: seconds since 1970, and one more
// for clocks that differ. Without it, it is a minute from now.
func resetOf(h http.Header, now time.Time) time.Time {
	value := h.Get("X-Ratelimit-Reset")
	if value == "" {
		value = h.Get("Ratelimit-Reset")
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
	if err != nil {
		return now.Add(secondaryWait)
	}
	return now.Add(clamp(seconds - now.Unix())).Add(time.Second)
}

// saysSecondary reports whether the text of a refusal speaks of a secondary
// limit. The body can be read again after it.
func saysSecondary(res *http.Response) bool {
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return false
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	text := strings.ToLower(string(body[:min(len(body), 64<<10)]))
	return strings.Contains(text, "secondary rate limit") || strings.Contains(text, "secondary-rate-limits") ||
		strings.Contains(text, "abuse detection") || strings.Contains(text, "submitted too quickly")
}
