package forge

import (
	"context"
	"fmt"
)

// Kinds of forges, for Config.Kind.
const (
	GitHub = "github"
	Gitea  = "gitea" // Forgejo too
	GitLab = "gitlab"
)

// Open returns the repository that c names. It asks the forge nothing yet.
func Open(_ context.Context, c Config) (Forge, error) {
	switch c.Kind {
	case GitHub:
		return newGitHub(c)
	case Gitea:
		return newGitea(c)
	case GitLab:
		return newGitLab(c)
	}
	return nil, fmt.Errorf("open the forge %q: %w (it knows github, gitea and gitlab)", c.Kind, ErrUnsupported)
}
