package githubtest_test

import (
	"net/http"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/githubtest"
)

// TestServer is how a test makes a world and looks at what has become of it.
func TestServer(t *testing.T) {
	s := githubtest.New(t)
	repo := s.Repo("me/flake", map[string]string{"pin.nix": "1\n"})
	token := s.User("bot")
	repo.Allow("bot", "push")
	repo.Push("bump", "bot", "pin 2", map[string]string{"pin.nix": "2\n"})
	n := repo.OpenPull("bot", "ROCm 2", "", "main", "bump")
	repo.Merge(n, "anna")
	if got := repo.Read("main", "pin.nix"); got != "2\n" {
		t.Errorf("main holds %q", got)
	}
	if items := repo.Items(); len(items) != 1 || items[0].State != "merged" {
		t.Errorf("there is %+v", items)
	}
	for text, want := range map[string]int{token: http.StatusOK, "wrong": http.StatusUnauthorized} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/repos/me/flake", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+text)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %s", text, res.Status)
		}
	}
}
