package web

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

// signIn signs in and returns the cookie and the token of its forms.
func signIn(t *testing.T, base string) (cookie, csrf string) {
	t.Helper()
	res, body := ask(t, "POST", base+"/login", url.Values{"token": {testToken}}.Encode(), formHeader...)
	c, err := http.ParseSetCookie(res.Header.Get("Set-Cookie"))
	if res.StatusCode != 303 || err != nil {
		t.Fatalf("%s %v\n%s", res.Status, err, body)
	}
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure || len(c.Value) != 64 {
		t.Errorf("the cookie is %+v", c)
	}
	_, page := ask(t, "GET", base+"/", "", "Cookie", c.Name+"="+c.Value)
	m := regexp.MustCompile(`name="csrf" value="([0-9a-f]{64})"`).FindStringSubmatch(page)
	if m == nil {
		t.Fatal("no form has a token")
	}
	return c.Name + "=" + c.Value, m[1]
}

var formHeader = []string{"Content-Type", "application/x-www-form-urlencoded"}

func TestActionsFromThePage(t *testing.T) {
	done, log := new(deeds), new(bytes.Buffer)
	_, ts := start(t, Options{Source: hub(running()), Actions: done, Token: testToken, Log: slog.New(slog.NewTextHandler(log, nil))})
	cookie, csrf := signIn(t, ts.URL)
	post := func(path, form string, header ...string) (*http.Response, string) {
		return ask(t, "POST", ts.URL+path, form, append(append([]string{"Cookie", cookie}, formHeader...), header...)...)
	}
	for _, c := range []struct {
		name, path, form string
		header           []string
		status           int
	}{
		{"without a token of the form", "/actions/run", "job=update", nil, 403},
		{"with another's", "/actions/run", "job=update&csrf=" + strings.Repeat("0", 64), nil, 403},
		{"from another site", "/actions/run", "job=update&csrf=" + csrf, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"from another origin", "/actions/run", "job=update&csrf=" + csrf, []string{"Origin", "https://evil.example"}, 403},
		{"nobody", "/actions/run", "job=update&csrf=" + csrf, []string{"Cookie", "rocm-nightly=" + strings.Repeat("0", 64)}, 303},
		{"too much", "/actions/run", "csrf=" + csrf + "&x=" + strings.Repeat("a", maxBody), nil, 413},
		{"not a form", "/actions/run", "%zz", nil, 400},
	} {
		if res, body := post(c.path, c.form, c.header...); res.StatusCode != c.status || c.status == 303 && res.Header.Get("Location") != "/login" {
			t.Errorf("%s: %s %.200s", c.name, res.Status, body)
		}
	}
	if len(done.all) != 0 {
		t.Fatalf("done: %q", done.all)
	}
	res, _ := post("/actions/run", "job=update&csrf="+csrf, "Sec-Fetch-Site", "same-origin")
	if res.StatusCode != 303 || res.Header.Get("Location") != "/" || len(done.all) != 1 {
		t.Errorf("%s, done %q", res.Status, done.all)
	}
	_, page := ask(t, "GET", ts.URL+"/", "", "Cookie", cookie)
	_, again := ask(t, "GET", ts.URL+"/", "", "Cookie", cookie)
	if !strings.Contains(page, "Done: update was told to begin") || strings.Contains(again, "Done:") {
		t.Error("what was done is said once")
	}
	done.err = errors.New("another run <b>holds</b> the lock")
	post("/actions/rollback", "slot=nightly-gfx1151&csrf="+csrf)
	if _, page := ask(t, "GET", ts.URL+"/", "", "Cookie", cookie); !strings.Contains(page, "another run &lt;b&gt;holds") {
		t.Error("what failed is not said")
	}
	if res, _ := ask(t, "GET", ts.URL+"/confirm/use?slot=nightly-gfx1151&version=nothing", "", "Cookie", cookie); res.StatusCode != 404 {
		t.Errorf("confirm what is not there: %s", res.Status)
	}
	post("/logout", "csrf="+csrf)
	if _, page := ask(t, "GET", ts.URL+"/", "", "Cookie", cookie); strings.Contains(page, "Run now") {
		t.Error("still signed in")
	}
	if l := log.String(); !strings.Contains(l, "action=run") || !strings.Contains(l, "remote=127.0.0.1:") || strings.Contains(l, testToken) || strings.Contains(l, csrf) {
		t.Errorf("the log:\n%s", l)
	}
}

func TestActionsOfTheAPI(t *testing.T) {
	done := new(deeds)
	_, ts := start(t, Options{Source: hub(running()), Actions: done, Token: testToken})
	cookie, _ := signIn(t, ts.URL)
	const use = "/api/v1/slots/nightly-gfx1151/use"
	token := []string{"Authorization", "Bearer " + testToken}
	for _, c := range []struct {
		name, path, body string
		header           []string
		status           int
	}{
		{"a cookie counts for nothing", "/api/v1/jobs/update/run", "", []string{"Cookie", cookie}, 401},
		{"no token", "/api/v1/jobs/update/run", "", nil, 401},
		{"wrong token", "/api/v1/jobs/update/run", "", []string{"Authorization", "Bearer nonsense"}, 401},
		{"another scheme", "/api/v1/jobs/update/run", "", []string{"Authorization", "Basic " + testToken}, 401},
		{"from another site", "/api/v1/jobs/update/run", "", append(token, "Sec-Fetch-Site", "cross-site"), 403},
		{"run", "/api/v1/jobs/update/run", "", token, 202},
		{"no such slot", "/api/v1/slots/none/rollback", "", token, 404},
		{"not JSON", use, "version=1", token, 415},
		{"bad JSON", use, "{", append(token, "Content-Type", "application/json"), 400},
		{"two values", use, `{"version":"10.2.0a20260929"}{}`, append(token, "Content-Type", "application/json"), 400},
		{"unknown field", use, `{"version":"10.2.0a20260929","force":true}`, append(token, "Content-Type", "application/json"), 400},
		{"too long", use, `{"version":"` + strings.Repeat("a", maxBody) + `"}`, append(token, "Content-Type", "application/json"), 413},
		{"use", use, `{"version":"10.2.0a20260929"}`, append(token, "Content-Type", "application/json; charset=utf-8"), 200},
	} {
		if res, body := ask(t, "POST", ts.URL+c.path, c.body, c.header...); res.StatusCode != c.status {
			t.Errorf("%s: %s %s", c.name, res.Status, body)
		}
	}
	if got := strings.Join(done.all, "; "); got != "run update; use nightly-gfx1151 10.2.0a20260929" {
		t.Errorf("done: %s", got)
	}
	done.err = errors.New("it is held")
	if res, body := ask(t, "POST", ts.URL+"/api/v1/slots/nightly-gfx1151/rollback", "", token...); res.StatusCode != 409 || !strings.Contains(body, "it is held") {
		t.Errorf("%s %s", res.Status, body)
	}
}

// Who guesses has to wait, and the right token is not tried meanwhile.
func TestGuessesAndActionsAreLimited(t *testing.T) {
	now := noon
	_, ts := start(t, Options{Source: hub(running()), Actions: new(deeds), Token: testToken, Now: func() time.Time { return now }})
	run := func(token string) int {
		res, _ := ask(t, "POST", ts.URL+"/api/v1/jobs/update/run", "", "Authorization", "Bearer "+token)
		if res.StatusCode == 429 && res.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		return res.StatusCode
	}
	for i := range wrongTokens.burst {
		if got := run("wrong"); got != 401 {
			t.Fatalf("guess %d: %d", i, got)
		}
	}
	if run("wrong") != 429 || run(testToken) != 429 {
		t.Error("guesses go on")
	}
	if res, _ := ask(t, "POST", ts.URL+"/login", "token=x", formHeader...); res.StatusCode != 429 {
		t.Errorf("guesses go on at the form: %s", res.Status)
	}
	now = now.Add(wrongTokens.every + time.Second)
	for i := range actionRate.burst {
		if got := run(testToken); got != 202 {
			t.Fatalf("action %d: %d", i, got)
		}
	}
	if run(testToken) != 429 {
		t.Error("actions go on")
	}
	now = now.Add(time.Hour)
	if run(testToken) != 202 {
		t.Error("an hour later there is still a limit")
	}
}

func TestLimiterIsBounded(t *testing.T) {
	now := noon
	l := newLimiter(rate{burst: 2, every: time.Minute, burstAll: 1 << 30, everyAll: time.Second}, func() time.Time { return now })
	for i := range 3 * maxBuckets {
		l.take(strings.Join([]string{"198", itoa(i >> 16), itoa(i >> 8 & 255), itoa(i & 255)}, ".") + ":1")
	}
	if len(l.by) > maxBuckets+1 {
		t.Errorf("%d addresses are kept", len(l.by))
	}
	if a, b := l.take("[2001:db8:0:1::1]:1"), l.take("[2001:db8:0:1::2]:1"); a != 0 && b != 0 {
		t.Log("the table is full: newcomers share")
	}
	now = now.Add(time.Hour)
	l.take("[2001:db8:0:1::1]:1")
	l.take("[2001:db8:0:1:ffff::]:1")
	if l.take("[2001:db8:0:1::9]:1") == 0 {
		t.Error("one /64 is many")
	}
	if l.take("[2001:db8:0:2::9]:1") != 0 {
		t.Error("two /64 are one")
	}
}

func itoa(n int) string {
	return string(rune('0'+n/100)) + string(rune('0'+n/10%10)) + string(rune('0'+n%10))
}

func TestSessionsEnd(t *testing.T) {
	now := noon
	s := newSessions(func() time.Time { return now })
	first := s.begin()
	for range maxSessions {
		now = now.Add(time.Second)
		s.begin()
	}
	if s.find(first) != nil || len(s.all) != maxSessions {
		t.Errorf("%d sessions are kept", len(s.all))
	}
	id := s.begin()
	for range 11 {
		now = now.Add(sessionIdle)
		if s.find(id) == nil {
			t.Fatal("somebody who is there was signed out")
		}
	}
	now = now.Add(sessionIdle)
	if s.find(id); now.Add(time.Second).Sub(noon) > sessionTime && s.find(id) != nil && now.After(noon.Add(sessionTime+2*time.Minute)) {
		t.Error("nobody is signed out")
	}
	id = s.begin()
	now = now.Add(sessionIdle + time.Second)
	if s.find(id) != nil {
		t.Error("who is away is still signed in")
	}
	if s.find("") != nil {
		t.Error("nobody is somebody")
	}
}

// Who rolls back is told where that goes, and it goes nowhere else.
func TestRollBackGoesWhereItSays(t *testing.T) {
	done, h := new(deeds), hub(running())
	_, ts := start(t, Options{Source: h, Actions: done, Token: testToken})
	cookie, csrf := signIn(t, ts.URL)
	_, page := ask(t, "GET", ts.URL+"/confirm/rollback?slot=nightly-gfx1151", "", "Cookie", cookie)
	for _, want := range []string{"10.2.0a20260929 becomes active at once in place of 10.2.0a20260930", `name="version" value="10.2.0a20260929"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the question lacks %s:\n%s", want, page)
		}
	}
	move := func(back string) {
		h.Update(func(s *state.State) {
			sl := s.Slots[0]
			sl.Back = back
			s.Slots = append([]state.Slot{sl}, s.Slots[1:]...)
		})
	}
	move("10.2.0a20260930")
	post := func(path string) (*http.Response, string) {
		return ask(t, "POST", ts.URL+path, "slot=nightly-gfx1151&version=10.2.0a20260929&csrf="+csrf, append([]string{"Cookie", cookie}, formHeader...)...)
	}
	post("/actions/rollback")
	if _, page := ask(t, "GET", ts.URL+"/", "", "Cookie", cookie); len(done.all) != 0 || !strings.Contains(page, "was switched since it was asked") {
		t.Errorf("done: %q", done.all)
	}
	move("10.2.0a20260929")
	post("/actions/rollback")
	if _, page := ask(t, "GET", ts.URL+"/", "", "Cookie", cookie); len(done.all) != 1 || !strings.Contains(page, "was rolled back to 10.2.0a20260929") {
		t.Errorf("done: %q", done.all)
	}
	move("")
	if res, _ := ask(t, "GET", ts.URL+"/confirm/rollback?slot=nightly-gfx1151", "", "Cookie", cookie); res.StatusCode != 409 {
		t.Errorf("confirm a roll back to nothing: %s", res.Status)
	}
	if _, page := ask(t, "GET", ts.URL+"/", "", "Cookie", cookie); strings.Contains(page, "confirm/rollback?slot=nightly-gfx1151\"") {
		t.Error("a roll back to nothing is offered")
	}
}

// A roll back keeps runs from the night that was left: the page lets that end too.
func TestWhatWasLeftCanGoOn(t *testing.T) {
	st := quiet()
	st.Slots[0].Left = "10.2.0a20261001"
	_, ts := start(t, Options{Source: hub(st), Actions: new(deeds), Token: testToken})
	cookie, _ := signIn(t, ts.URL)
	if _, page := ask(t, "GET", ts.URL+"/", "", "Cookie", cookie); strings.Count(page, "Let it go on: nightly-gfx1151") != 1 || strings.Contains(page, "Let it go on: nightly-gfx110X") || !strings.Contains(page, "runs pass over <span class=\"mono\">10.2.0a20261001</span>") {
		t.Error("what was left is not said, or not let go on")
	}
}
