package bump

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

// appForge is a forge on which an App acts, whose token git has to be given.
type appForge struct{ *memForge }

func (appForge) GitToken(context.Context) (secret.Secret, error) { return secret.New(testToken), nil }

// TestChecksOfAnAppReadPrivateRepositories: the checkout for check commands comes
// by git, which needs the App's token, and shows it to nobody.
func TestChecksOfAnAppReadPrivateRepositories(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	s := newForge(t, u, "x-access-token")
	now := time.Now()
	mem := newMemForge(&now, nil)
	env, argv := forgeEnv(t, s, "")
	repo := u.repo()
	repo.Forge, repo.URL, repo.App = "github", s.URL+"/up.git", App{ID: 1}
	sess := &session{repo: repo, o: Options{Env: env}, forge: appForge{mem}, scratch: t.TempDir(), base: "main"}
	var err error
	if sess.remote, err = parseRemote(repo.URL); err != nil {
		t.Fatal(err)
	}
	if err := sess.startGit(t.Context()); err != nil {
		t.Fatal(err)
	}
	from := newGitPlace(sess.git, sess.remote, "check")
	if err := from.look(t.Context(), "main"); err != nil || from.seen["main"] != u.tip("main") {
		t.Errorf("%v, %q", err, from.seen)
	}
	mustNotLeak(t, "an argument", readText(t, argv))
	if got := scrub("x "+testToken, sess.secrets); strings.Contains(got, testToken) {
		t.Errorf("it would be shown: %s", got)
	}
}
