package forge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

// answering is a function that answers.
type answering func(*http.Request) (*http.Response, error)

func (f answering) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := f(r)
	if resp != nil {
		resp.Request = r
	}
	return resp, err
}

func answer(status int, body string, header map[string]string) *http.Response {
	h := http.Header{"Content-Type": {"application/json"}}
	for k, v := range header {
		h.Set(k, v)
	}
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

// scripted is a forge that gives its answers one after another, and a clock
// that only waiting moves.
type scripted struct {
	answers []func() (*http.Response, error)
	asked   int
	now     time.Time
}

func (s *scripted) config() Config {
	return Config{
		Web: "https://git.example.org", Owner: "me", Name: "flake", Auth: Auth{Token: secret.New("s3cret")}, MaxWait: 5 * time.Minute,
		HTTP: answering(func(*http.Request) (*http.Response, error) {
			one := s.answers[min(s.asked, len(s.answers)-1)]
			s.asked++
			return one()
		}),
		Now:   func() time.Time { return s.now },
		Sleep: func(_ context.Context, d time.Duration) error { s.now = s.now.Add(d); return nil },
	}
}

func gives(status int, body string, header map[string]string) func() (*http.Response, error) {
	return func() (*http.Response, error) { return answer(status, body, header), nil }
}

func breaks(err error) func() (*http.Response, error) {
	return func() (*http.Response, error) { return nil, err }
}

// TestForgeTriesAgain: what is safe to send again is, within the time given.
func TestForgeTriesAgain(t *testing.T) {
	good := gives(200, `{"number":1,"state":"closed","id":7}`, nil)
	made := gives(201, `{"id":7}`, nil)
	reset := errors.New("connection reset by peer")
	dial := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	for _, c := range []struct {
		name    string
		write   bool // the request changes something
		answers []func() (*http.Response, error)
		asked   int
		waited  time.Duration
		fails   string // part of the error; "" for none
	}{
		{"good", false, []func() (*http.Response, error){good}, 1, 0, ""},
		{"a broken read", false, []func() (*http.Response, error){breaks(reset), gives(502, "<html>", nil), good}, 3, 3 * time.Second, ""},
		{"a broken write", true, []func() (*http.Response, error){breaks(reset), made}, 1, 0, "reset"},
		{"a write that did not leave", true, []func() (*http.Response, error){breaks(dial), made}, 2, time.Second, ""},
		{"a write that failed there", true, []func() (*http.Response, error){gives(500, `{"message":"oh"}`, nil), made}, 1, 0, "500: oh"},
		{"a write during an upgrade", true, []func() (*http.Response, error){gives(503, "", map[string]string{"Retry-After": "20"}), made}, 2, 20 * time.Second, ""},
		{"too many requests", true, []func() (*http.Response, error){gives(429, "", map[string]string{"Retry-After": "90"}), made}, 2, 90 * time.Second, ""},
		{"too many, until then", false, []func() (*http.Response, error){gives(429, "", map[string]string{"RateLimit-Reset": "1060", "RateLimit-Remaining": "0"}), good}, 2, time.Minute + time.Second, ""},
		{"too many for long", false, []func() (*http.Response, error){gives(429, "", map[string]string{"Retry-After": "3600"}), good}, 1, 0, "try again after 1970-01-01T01:16:40Z"},
		{"never well", false, []func() (*http.Response, error){gives(503, "<html>nginx</html>", nil)}, 5, 15 * time.Second, "answered 503"},
		{"an answer without end", false, []func() (*http.Response, error){func() (*http.Response, error) {
			r := answer(200, "", nil)
			r.Body = io.NopCloser(withoutEnd{})
			return r, nil
		}}, 1, 0, "larger than 64 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, open := range map[string]func(Config) (Forge, error){"gitea": newGitea, "gitlab": newGitLab} {
				start := time.Unix(1000, 0)
				s := &scripted{answers: c.answers, now: start}
				conf, log := s.config(), strings.Builder{}
				conf.Log = slog.New(slog.NewTextHandler(&log, nil))
				f, err := open(conf)
				if err != nil {
					t.Fatal(err)
				}
				if c.write {
					_, err = f.AddComment(t.Context(), 1, "hello")
				} else {
					_, err = f.Diff(t.Context(), 1, 1<<30)
				}
				if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
					t.Errorf("%s: %v", name, err)
				}
				if s.asked != c.asked || s.now.Sub(start) != c.waited {
					t.Errorf("%s: asked %d times, waited %v", name, s.asked, s.now.Sub(start))
				}
				if told := strings.Contains(log.String(), "host=git.example.org"); told != (strings.HasPrefix(c.name, "too many") && c.waited > 0) || strings.Contains(log.String(), "s3cret") {
					t.Errorf("%s: log %q", name, log.String())
				}
				var limit *LimitError
				if strings.HasPrefix(c.fails, "try again after") != errors.As(err, &limit) {
					t.Errorf("%s: %T", name, err)
				}
			}
		})
	}
}

type withoutEnd struct{}

func (withoutEnd) Read(p []byte) (int, error) { return len(p), nil }

// TestTokenStaysHome: a token goes to the host of the config, by https, and
// into no error.
func TestTokenStaysHome(t *testing.T) {
	for name, open := range map[string]func(Config) (Forge, error){"gitea": newGitea, "gitlab": newGitLab} {
		for _, to := range []string{"https://evil.example.org/x", "http://git.example.org/x", "https://git.example.org:8443/x"} {
			var hosts []string
			c := Config{Web: "https://git.example.org", Owner: "me", Name: "flake", Auth: Auth{Token: secret.New("s3cret")},
				HTTP: answering(func(r *http.Request) (*http.Response, error) {
					hosts = append(hosts, r.URL.Host)
					return answer(302, "", map[string]string{"Location": to}), nil
				})}
			f, err := open(c)
			if err != nil {
				t.Fatal(err)
			}
			_, get := f.Diff(t.Context(), 1, 10)
			_, post := f.AddComment(t.Context(), 1, "x")
			for _, err := range []error{get, post} {
				if err == nil || strings.Contains(err.Error(), "s3cret") {
					t.Errorf("%s to %s: %v", name, to, err)
				}
			}
			if fmt.Sprint(hosts) != "[git.example.org git.example.org]" {
				t.Errorf("%s to %s: asked %q", name, to, hosts)
			}
		}
		for _, web := range []string{"http://git.example.org", "git.example.org", "https://u:p@git.example.org", "https://git.example.org/?x=1", "ftp://git.example.org", ""} {
			if _, err := open(Config{Web: web, Owner: "me", Name: "flake"}); err == nil || strings.Contains(err.Error(), "u:p") {
				t.Errorf("%s at %q: %v", name, web, err)
			}
		}
	}
}
