package forge

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// fault makes of an error of the client library one that callers of Forge know.
func (g *gitlab) fault(doing string, err error) error {
	if err == nil {
		return nil
	}
	var limit *LimitError
	if errors.As(err, &limit) {
		return limit
	}
	var r *refusal
	if !errors.As(err, &r) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if g.job() && r.status >= 401 && r.status <= 404 {
		return &AuthError{Doing: doing, Missing: []string{"api"}, Detail: r.message, Hint: "the token of a CI job cannot open merge requests: make a project access token with the scope api and the role Developer, and give it to the job as a masked variable"}
	}
	switch r.status {
	case http.StatusUnauthorized:
		return &AuthError{Doing: doing, Bad: true, Detail: r.message, Hint: "make an access token with the scope api"}
	case http.StatusForbidden:
		return g.forbidden(doing, r)
	case http.StatusNotFound:
		return fmt.Errorf("%s: %w: %s (what the token may not see is not found either)", doing, ErrNotFound, r.message)
	case http.StatusMethodNotAllowed, http.StatusNotAcceptable:
		return fmt.Errorf("%s: %w: %s", doing, ErrNotMergable, r.message)
	case http.StatusConflict:
		return fmt.Errorf("%s: %w: %s", doing, ErrExists, r.message)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func (g *gitlab) forbidden(doing string, r *refusal) error {
	switch {
	case strings.Contains(r.message, "insufficient_scope"):
		missing := r.scopes
		if len(missing) == 0 || strings.Contains(strings.Join(missing, " "), "api") {
			missing = []string{"api"} // of those that would do, the one that does for all
		}
		return &AuthError{Doing: doing, Missing: missing, Hint: "make an access token with the scope api"}
	case strings.Contains(r.message, "archived"):
		return fmt.Errorf("%s: the project is archived, so that nothing in it can change: %w", doing, ErrUnsupported)
	case strings.Contains(r.message, "protected"):
		return &ProtectedError{Branch: "of " + g.path(), Rule: r.message, Hint: "allow the token's user under Settings, Repository, Protected branches"}
	}
	return &AuthError{Doing: doing, Detail: r.message, Hint: "the token's user needs the role Developer in " + g.path()}
}

// mergeFault is fault for merging, where GitLab says with 401 that the user may
// not, with 409 that the head has moved, and with 422 that there is a conflict.
func (g *gitlab) mergeFault(doing string, err error) error {
	var r *refusal
	if !errors.As(err, &r) || g.job() {
		return g.fault(doing, err)
	}
	switch r.status {
	case http.StatusUnauthorized:
		return &AuthError{Doing: doing, Detail: r.message, Hint: "the protection of the target branch names who may merge"}
	case http.StatusConflict:
		return fmt.Errorf("%s: %w: %s", doing, ErrMoved, r.message)
	case http.StatusUnprocessableEntity:
		return fmt.Errorf("%s: %w: %s", doing, ErrNotMergable, r.message)
	}
	return g.fault(doing, err)
}
