package giteatest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is a Gitea that runs.
type Server struct {
	URL string // https://127.0.0.1:PORT
	CA  string // path of the certificate to trust, as PEM
	// HTTP trusts CA and nothing else.
	HTTP *http.Transport

	exe, dir string
	admin    User
}

// Start starts a Gitea that ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{exe: program(t), dir: t.TempDir(), admin: User{Name: "root-of-all", Password: password}}
	s.certificate(t)
	s.admin.site = s
	// A port that is free now may be taken a moment later.
	for try := 1; ; try++ {
		port := freePort(t)
		s.URL = fmt.Sprintf("https://127.0.0.1:%d", port)
		s.configure(t, port)
		if try == 1 {
			s.run(t, "migrate")
			s.run(t, "admin", "user", "create", "--username", s.admin.Name, "--password", password, "--email", "root@example.org", "--admin", "--must-change-password=false")
		}
		if log, up := s.serve(t); up {
			return s
		} else if try == 3 {
			t.Fatalf("Gitea does not start:\n%s", log)
		}
	}
}

// program returns the path of Gitea.
func program(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for !exists(filepath.Join(dir, "go.mod")) {
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the working directory")
		}
		dir = filepath.Dir(dir)
	}
	cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(dir, "scripts", "gitea.sh"), "--cached")
	out, err := cmd.Output()
	if err != nil {
		t.Skip("Gitea is not built: run scripts/gitea.sh")
	}
	return strings.TrimSpace(string(out))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// certificate makes the certificate of 127.0.0.1 that Gitea shows, and the
// client that trusts it alone.
func (s *Server) certificate(t testing.TB) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "giteatest"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	s.CA = filepath.Join(s.dir, "cert.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	write(t, s.CA, string(text))
	write(t, filepath.Join(s.dir, "key.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	s.trust(t, pool)
}

func (s *Server) trust(t testing.TB, pool *x509.CertPool) {
	s.HTTP = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	t.Cleanup(s.HTTP.CloseIdleConnections)
}

// Trusting is a Server that another process has started, with the CA of which
// this one only speaks to it.
func Trusting(t testing.TB, ca string) *Server {
	t.Helper()
	text, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	s := &Server{CA: ca}
	s.trust(t, pool)
	return s
}

// configure writes app.ini.
func (s *Server) configure(t testing.TB, port int) {
	t.Helper()
	user := os.Getenv("USER")
	if out, err := exec.CommandContext(t.Context(), "id", "-un").Output(); err == nil {
		user = strings.TrimSpace(string(out))
	}
	write(t, filepath.Join(s.dir, "app.ini"), fmt.Sprintf(`
RUN_MODE = prod
RUN_USER = %[1]s
WORK_PATH = %[2]s
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
[server]
PROTOCOL = https
CERT_FILE = %[2]s/cert.pem
KEY_FILE = %[2]s/key.pem
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[3]d
ROOT_URL = %[4]s/
DOMAIN = 127.0.0.1
DISABLE_SSH = true
OFFLINE_MODE = true
STATIC_ROOT_PATH = %[5]s
APP_DATA_PATH = %[2]s/data
[database]
DB_TYPE = sqlite3
PATH = %[2]s/gitea.db
SQLITE_TIMEOUT = 10000
SQLITE_JOURNAL_MODE = MEMORY
[security]
INSTALL_LOCK = true
SECRET_KEY = only-for-tests
PASSWORD_HASH_ALGO = pbkdf2$1$32
[service]
DISABLE_REGISTRATION = true
[mailer]
ENABLED = false
[cron]
ENABLED = false
[log]
MODE = console
LEVEL = Warn
[repository]
ROOT = %[2]s/repos
DISABLE_STARS = true
[indexer]
ISSUE_INDEXER_TYPE = db
[actions]
ENABLED = false
[packages]
ENABLED = false
[api]
MAX_RESPONSE_ITEMS = 7
DEFAULT_PAGING_NUM = 7
[queue]
TYPE = channel
[git.config]
core.fsync = none
gc.auto = 0
`, user, s.dir, port, s.URL, filepath.Dir(s.exe)))
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// command is Gitea with our app.ini and as little of our environment as works.
func (s *Server) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.exe, append([]string{"--config", filepath.Join(s.dir, "app.ini")}, args...)...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "GIT_CONFIG_NOSYSTEM=1", "TMPDIR=" + s.dir}
	return cmd
}

func (s *Server) run(t testing.TB, args ...string) {
	t.Helper()
	if out, err := s.command(t.Context(), args...).CombinedOutput(); err != nil {
		t.Fatalf("gitea %s: %v\n%s", args[0], err, out)
	}
}

// serve starts the server and waits until it answers.
func (s *Server) serve(t testing.TB) (log string, up bool) {
	t.Helper()
	var out locked
	// Not of the test's context: it ends before the cleanup, and the cleanup asks kindly first.
	cmd := s.command(context.WithoutCancel(t.Context()), "web")
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cmd.Wait()
	}()
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("gitea:\n%s", out.String())
		}
	})
	client := http.Client{Transport: s.HTTP, Timeout: 5 * time.Second}
	for range 600 {
		if resp, err := client.Get(s.URL + "/api/v1/version"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return "", true
			}
		}
		select {
		case <-ended:
			return out.String(), false
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatalf("Gitea does not answer:\n%s", out.String())
	return "", false
}

// locked is a buffer that a process writes while the test reads.
type locked struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
