package web

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"slices"
	"sync"
	"time"
)

// How long somebody stays signed in, and how many at once. All of it is in memory:
// a daemon that begins anew knows nobody.
const (
	sessionTime = 12 * time.Hour
	sessionIdle = time.Hour
	maxSessions = 64
)

// session is somebody who has shown the token.
type session struct {
	key  [32]byte // of the table: the hash of what is in the cookie
	csrf string
	ends time.Time
	seen time.Time
	note *flash
}

// flash is what is said once, after something was done.
type flash struct {
	Text string
	Bad  bool
}

// sessions is who is signed in.
type sessions struct {
	now func() time.Time
	mu  sync.Mutex
	all map[[32]byte]*session
}

func newSessions(now func() time.Time) *sessions {
	return &sessions{now: now, all: map[[32]byte]*session{}}
}

// random is 256 bits that nobody can guess. crypto/rand never fails: it ends the
// program rather than that.
func random() string {
	var b [32]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// begin signs somebody in and returns what their cookie holds. Where there are too
// many, who was away longest is signed out.
func (s *sessions) begin() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, id := s.now(), random()
	var old []*session
	for key, one := range s.all {
		if s.over(one, now) {
			delete(s.all, key)
			continue
		}
		old = append(old, one)
	}
	slices.SortFunc(old, func(a, b *session) int { return cmp.Compare(a.seen.UnixNano(), b.seen.UnixNano()) })
	for i := 0; len(s.all) >= maxSessions; i++ {
		delete(s.all, old[i].key)
	}
	key := sha256.Sum256([]byte(id))
	s.all[key] = &session{key: key, csrf: random(), ends: now.Add(sessionTime), seen: now}
	return id
}

func (s *sessions) over(one *session, now time.Time) bool {
	return now.After(one.ends) || now.Sub(one.seen) > sessionIdle
}

// find returns who has the cookie id; nil: nobody.
func (s *sessions) find(id string) *session {
	key := sha256.Sum256([]byte(id))
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.all[key]
	if one == nil {
		return nil
	}
	now := s.now()
	if s.over(one, now) {
		delete(s.all, key)
		return nil
	}
	one.seen = now
	return one
}

// there reports whether one is still signed in. It does not count as being seen: a
// page that is left open is nobody.
func (s *sessions) there(one *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[one.key] == one && !s.over(one, s.now())
}

func (s *sessions) end(one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, one.key)
}

// say keeps what one is to be told; flash takes it, if it is shown.
func (s *sessions) say(one *session, f flash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.note = &f
}

func (s *sessions) flash(one *session, shown bool) *flash {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := one.note
	if shown {
		one.note = nil
	}
	return f
}

// The names of the cookie. Browsers take the first one over TLS alone, for the
// whole of this host and nobody else.
const (
	cookieTLS   = "__Host-rocm-nightly"
	cookiePlain = "rocm-nightly"
)

// overTLS reports whether the browser speaks TLS, here or with a proxy. A client
// that lies about it only makes its own cookie useless.
func overTLS(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}

func cookieName(r *http.Request) string {
	if overTLS(r) {
		return cookieTLS
	}
	return cookiePlain
}

func setCookie(w http.ResponseWriter, r *http.Request, id string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r), Value: id, Path: "/", MaxAge: age, Secure: overTLS(r), HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
}

// session returns who asks; nil: nobody who is signed in.
func (s *server) session(r *http.Request) *session {
	if !s.canAct() {
		return nil
	}
	c, err := r.Cookie(cookieName(r))
	if err != nil {
		return nil
	}
	return s.sessions.find(c.Value)
}

// right compares a token in a time that does not depend on how much of it is right.
func (s *server) right(token string) bool {
	a, b := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.o.Token))
	return s.o.Token != "" && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
