package web

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

// hub is a Hub that holds st.
func hub(st *state.State) *state.Hub {
	h := new(state.Hub)
	h.Update(func(s *state.State) { *s = *st })
	return h
}

// start serves what o says at an address of its own.
func start(t testing.TB, o Options) (*server, *httptest.Server) {
	t.Helper()
	if o.Now == nil {
		o.Now = func() time.Time { return noon }
	}
	s, err := newServer(o)
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewServer(s)
	t.Cleanup(ts.Close)
	return s, ts
}

// ask sends a request and returns the answer with its body.
func ask(t testing.TB, method, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
			continue
		}
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

func TestEveryStateHasAPage(t *testing.T) {
	for name, st := range scenarios() {
		t.Run(name, func(t *testing.T) {
			_, ts := start(t, Options{Source: hub(st)})
			res, page := ask(t, "GET", ts.URL+"/", "")
			if res.StatusCode != 200 || !strings.Contains(page, "</html>") {
				t.Fatalf("%s\n%s", res.Status, page)
			}
			if dir := os.Getenv("ROCM_NIGHTLY_SCREENSHOTS"); dir != "" {
				_ = os.WriteFile(dir+"/"+name+".html", []byte(page), 0o644)
			}
		})
	}
}

// What is late, and why, is on the page, and not what is over.
func TestThePageSaysWhatIsLate(t *testing.T) {
	st := stale()
	st.Jobs[0].WindowEnds = st.Jobs[0].Next.Add(-time.Hour) // of the run before
	_, ts := start(t, Options{Source: hub(st)})
	_, page := ask(t, "GET", ts.URL+"/", "")
	for _, want := range []string{"missed</span>", "no mains power", "2026-09-29 06:00 UTC", "stale</span> nothing newer than 96h0m0s"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Contains(page, "may begin until") {
		t.Error("the page says that the next run may begin until a time before it")
	}
	sl := st.Slots[0]
	sl.Newest = &state.Newest{State: "installed"}
	if got := status(sl, false); got != "stale" {
		t.Errorf("a slot for which nothing new is published is %s", got)
	}
}
