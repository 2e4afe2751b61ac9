package notify

import (
	"crypto/tls"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http/httptest"
	"net/mail"
	"net/textproto"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// mailServer speaks SMTP (RFC 5321) with STARTTLS (RFC 3207) and AUTH PLAIN (RFC 4954).
type mailServer struct {
	addr     string
	tls      *tls.Config // nil: no STARTTLS
	mute     bool        // says nothing at all
	mu       sync.Mutex
	mails    []string // with their envelope
	commands []string
}

func serveMail(t *testing.T, s *mailServer) *mailServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			wg.Go(func() { s.talk(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return s
}

func (s *mailServer) talk(c net.Conn) {
	defer c.Close()
	if s.mute {
		io.Copy(io.Discard, c)
		return
	}
	tp := textproto.NewConn(c)
	tp.PrintfLine("220 mail.test ESMTP")
	secure, envelope := false, ""
	for {
		line, err := tp.ReadLine()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.commands = append(s.commands, line)
		s.mu.Unlock()
		switch verb, _, _ := strings.Cut(strings.ToUpper(line), " "); verb {
		case "EHLO":
			tp.PrintfLine("250-mail.test")
			if s.tls != nil && !secure {
				tp.PrintfLine("250-STARTTLS")
			}
			tp.PrintfLine("250 AUTH PLAIN")
		case "STARTTLS":
			tp.PrintfLine("220 go on")
			c = tls.Server(c, s.tls)
			tp, secure = textproto.NewConn(c), true
		case "AUTH":
			tp.PrintfLine("235 welcome")
		case "DATA":
			tp.PrintfLine("354 end with a dot")
			data, err := io.ReadAll(tp.DotReader())
			if err != nil {
				return
			}
			s.mu.Lock()
			s.mails = append(s.mails, envelope+string(data))
			s.mu.Unlock()
			envelope = ""
			tp.PrintfLine("250 taken")
		case "QUIT":
			tp.PrintfLine("221 bye")
			return
		default:
			envelope += "X-Envelope: " + line + "\n"
			tp.PrintfLine("250 ok")
		}
	}
}

// certificate is one that httptest has, for 127.0.0.1 and example.com.
func certificate(t *testing.T) *tls.Config {
	t.Helper()
	srv := httptest.NewUnstartedServer(nil)
	srv.StartTLS()
	defer srv.Close()
	return &tls.Config{Certificates: srv.TLS.Certificates}
}

func TestMail(t *testing.T) {
	s := serveMail(t, &mailServer{tls: certificate(t)})
	e := hostile()
	e.Title, e.Text = "Älarm\r\nBcc: evil@example.org\r\n\r\nbody", ".\nfirst\n.\nQUIT\n"+strings.Repeat("long ", 400)
	tellOne(t, "smtp://me:pw@"+s.addr+"/?from=rocm@example.net&to=ops@example.net,me@example.net&skiptlsverify=yes", e)
	if len(s.mails) != 2 {
		t.Fatalf("%d mails: %q", len(s.mails), s.commands)
	}
	m, err := mail.ReadMessage(strings.NewReader(s.mails[0]))
	if err != nil {
		t.Fatal(err)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil || subject != "Älarm Bcc: evil@example.org body" || m.Header.Get("Bcc") != "" {
		t.Errorf("%v %q %+v", err, subject, m.Header)
	}
	body, err := io.ReadAll(m.Body)
	if err != nil || !strings.HasPrefix(string(body), ".\nfirst\n.\nQUIT\n") || !strings.HasSuffix(string(body), "\nhttps://forge.example/me/r/pull/7\n") {
		t.Errorf("%v %q", err, body)
	}
	for line := range strings.Lines(string(body)) {
		if len(line) > 998 {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
	if all := strings.Join(s.commands, "\n"); !strings.Contains(all, "STARTTLS\nEHLO") || strings.Index(all, "AUTH") < strings.Index(all, "STARTTLS") {
		t.Errorf("signed in before it was secret:\n%s", all)
	}
}

// A server whose certificate nobody vouches for gets neither mail nor password; nor
// does one that has no encryption, unless it is on this machine.
func TestMailIsNotSentLegibly(t *testing.T) {
	vouched := serveMail(t, &mailServer{tls: certificate(t)})
	n := mailer(t, "smtp://me:m4ilPassw0rd@"+vouched.addr+"/?from=a@example.net&to=b@example.net", 20*time.Second)
	if err := n.Tell(t.Context(), []Event{moved}); err == nil || !strings.Contains(err.Error(), "certificate") || len(vouched.mails) > 0 {
		t.Errorf("%v %v", err, vouched.mails)
	}
	u, sv, err := parseService("smtp://me:pw@mail.example/?from=a@example.net&to=b@example.net", false)
	if err != nil || !strings.Contains(u.RawQuery, "requirestarttls=yes") || sv.title != "subject" {
		t.Errorf("%v %v", u, err)
	}
}

func mailer(t *testing.T, address string, patience time.Duration) *Notifier {
	t.Helper()
	n, err := New(Options{Sinks: []Sink{{Name: "mail", Kind: Shoutrrr, URL: address, Timeout: patience}}})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A mail server that accepts and says nothing holds back nobody, and there is never
// more than one that waits for it.
func TestMuteServer(t *testing.T) {
	s := serveMail(t, &mailServer{mute: true})
	n := mailer(t, fmt.Sprintf("smtp://%s/?from=a@example.net&to=b@example.net", s.addr), 200*time.Millisecond)
	began := time.Now()
	if err := n.Tell(t.Context(), []Event{moved}); err == nil || !strings.Contains(err.Error(), "no answer in time") {
		t.Error(err)
	}
	if err := n.Tell(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "still under way") {
		t.Error(err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Error(took)
	}
}
