package web

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificate is a pair of files, read again when one of them has changed: those
// who renew certificates do not restart daemons.
type certificate struct {
	cert, key string
	now       func() time.Time
	log       *slog.Logger

	mu     sync.Mutex
	pair   *tls.Certificate
	mark   string // what the files were when they were read last
	looked time.Time
}

// lookEvery is how often the files are looked at.
const lookEvery = time.Second

func newCertificate(o Options) (*certificate, error) {
	c := &certificate{cert: o.TLSCert, key: o.TLSKey, now: o.Now, log: o.Log}
	c.mark = c.files()
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, fmt.Errorf("read serve.tls_cert %s and serve.tls_key %s: %w", c.cert, c.key, err)
	}
	c.pair, c.looked = &pair, c.now()
	return c, nil
}

// get implements tls.Config.GetCertificate. Files that cannot be read leave the
// certificate that was there, and a line in the log.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); now.Sub(c.looked) >= lookEvery || now.Before(c.looked) {
		c.looked = now
		c.reread()
	}
	return c.pair, nil
}

func (c *certificate) reread() {
	mark := c.files()
	if mark == c.mark {
		return
	}
	c.mark = mark
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		c.log.Error("the certificate has changed and cannot be read; the old one stays", "file", c.cert, "error", err)
		return
	}
	c.pair = &pair
	c.log.Info("the certificate has changed and was read again", "file", c.cert)
}

// files is a mark that changes when the files do.
func (c *certificate) files() string {
	var mark string
	for _, path := range []string{c.cert, c.key} {
		if info, err := os.Stat(path); err == nil {
			mark += fmt.Sprintf("%d %d;", info.Size(), info.ModTime().UnixNano())
		}
	}
	return mark
}

// tlsConfig is for current clients: TLS 1.2 and later, with Go's choice of the rest.
func (c *certificate) tlsConfig() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get, NextProtos: []string{"h2", "http/1.1"}}
}
