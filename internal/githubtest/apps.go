package githubtest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// app is a GitHub App with one installation, on the repositories of one owner.
type app struct {
	id, installation int64
	slug             string
	key              *rsa.PublicKey
	bot, on          *user
	perms            map[string]string
	ttl              time.Duration
}

// App adds an App that is installed on all repositories of owner, with
// permissions such as contents: write, and returns its number and its key. Its
// tokens are good for ttl, and for an hour if that is 0.
func (s *Server) App(slug, owner string, permissions map[string]string, ttl time.Duration) (int64, string) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ttl == 0 {
		ttl = time.Hour
	}
	a := &app{id: s.id(), installation: s.id(), slug: slug, key: &key.PublicKey, bot: s.user(slug+"[bot]", "Bot"), on: s.user(owner, "User"), perms: permissions, ttl: ttl}
	s.apps[a.id] = a
	return a.id, string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

// admitApp checks an App's own signature: RS256, and the times that GitHub
// allows.
func (c *call) admitApp(token string) *refusal {
	parts := strings.Split(token, ".")
	var claims struct {
		Iss      string
		Iat, Exp float64
	}
	payload, _ := base64.RawURLEncoding.DecodeString(parts[1])
	signed, _ := base64.RawURLEncoding.DecodeString(parts[2])
	if json.Unmarshal(payload, &claims) != nil {
		return refuse(http.StatusUnauthorized, "A JSON web token could not be decoded")
	}
	id, _ := strconv.ParseInt(claims.Iss, 10, 64)
	a := c.s.apps[id]
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	now := float64(time.Now().Unix())
	switch {
	case a == nil:
		return refuse(http.StatusNotFound, "Integration not found")
	case rsa.VerifyPKCS1v15(a.key, crypto.SHA256, sum[:], signed) != nil:
		return refuse(http.StatusUnauthorized, "A JSON web token could not be decoded")
	case claims.Exp < now || claims.Exp > now+600 || claims.Iat > now:
		return refuse(http.StatusUnauthorized, "'Expiration time' claim ('exp') is too far in the future")
	}
	c.who = &actor{user: a.bot, bot: true}
	c.repo = c.s.repos[strings.ToLower(c.r.PathValue("owner")+"/"+c.r.PathValue("repo"))]
	return nil
}

// app is the App that calls, nil if a token does.
func (c *call) app() *app {
	for _, a := range c.s.apps {
		if a.bot == c.who.user {
			return a
		}
	}
	return nil
}

func getApp(c *call) (answer, *refusal) {
	a := c.app()
	if a == nil {
		return no(refuse(http.StatusUnauthorized, "A JSON web token could not be decoded"))
	}
	at := c.s.URL + "/apps/" + a.slug
	return ok(object{"id": a.id, "slug": a.slug, "node_id": node("A", a.id), "owner": c.s.userBody(a.on), "name": a.slug, "description": nil, "external_url": at,
		"html_url": at, "created_at": stamp(time.Unix(1, 0)), "updated_at": stamp(time.Unix(1, 0)), "permissions": a.perms, "events": []any{}})
}

func getInstallation(c *call) (answer, *refusal) {
	a := c.app()
	if a == nil || c.repo == nil || c.repo.owner != a.on {
		return no(notFound())
	}
	at := fmt.Sprintf("%s/app/installations/%d", c.s.URL, a.installation)
	return ok(object{"id": a.installation, "app_id": a.id, "app_slug": a.slug, "target_id": a.on.id, "target_type": a.on.kind, "single_file_name": nil,
		"repository_selection": "all", "access_tokens_url": at, "html_url": at, "repositories_url": at, "events": []any{}, "account": c.s.userBody(a.on),
		"permissions": a.perms, "created_at": stamp(time.Unix(1, 0)), "updated_at": stamp(time.Unix(1, 0)), "suspended_by": nil, "suspended_at": nil})
}

func postInstallationToken(c *call) (answer, *refusal) {
	a := c.app()
	if a == nil || strconv.FormatInt(a.installation, 10) != c.r.PathValue("id") {
		return no(notFound())
	}
	token := fmt.Sprintf("ghs_installation%08d", c.s.id())
	c.s.tokens[token] = &actor{user: a.bot, bot: true, perms: a.perms}
	return made(object{"token": token, "expires_at": stamp(time.Now().Add(a.ttl)), "permissions": a.perms, "repository_selection": "selected"})
}
