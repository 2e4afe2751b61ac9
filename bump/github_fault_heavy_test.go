//go:build heavy

package bump_test

import (
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/githubtest"
)

const (
	hubAllTroubles = true
	hubEvery       = 1
)

// TestGitHubLifeByTheBook is TestGitHubLife, every request and answer checked against
// GitHub's own OpenAPI description.
func TestGitHubLifeByTheBook(t *testing.T) {
	site := githubtest.New(t)
	book := githubtest.ByTheBook(t, site)
	hubWholeLife(t, &hubLives{site, book.URL, book})
}
