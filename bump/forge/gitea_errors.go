package forge

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// scopesRE reads the refusal of a token with too little: Gitea says
// "required=[write:repository], token scope=read:repository", Forgejo has the
// same words with other signs between.
var scopesRE = regexp.MustCompile(`required scope\(s\)[^\[]{0,20}\[([a-z:, -]{1,200})\](?:, token scope=([a-z:, -]{1,400}))?`)

// readGiteaScopes fills in the scopes that the message tells.
func (r *refusal) readGiteaScopes() {
	m := scopesRE.FindStringSubmatch(r.message)
	if m == nil {
		return
	}
	words := func(s string) []string {
		return strings.FieldsFunc(s, func(c rune) bool { return c == ',' || c == ' ' })
	}
	r.scopes, r.has = words(m[1]), words(m[2])
}

func sortedNames(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// fault makes of an error of the SDK one that callers of Forge know.
func (g *gitea) fault(doing string, err error) error {
	if err == nil {
		return nil
	}
	var r *refusal
	if !errors.As(err, &r) {
		var limit *LimitError
		if errors.As(err, &limit) {
			return limit
		}
		return fmt.Errorf("%s: %w", doing, err)
	}
	switch r.status {
	case http.StatusUnauthorized:
		return &AuthError{Doing: doing, Bad: true, Detail: r.message, Hint: "make a token under Settings, Applications, with write:repository, write:issue and read:user"}
	case http.StatusForbidden:
		return g.forbidden(doing, r)
	case http.StatusNotFound:
		return fmt.Errorf("%s: %w: %s (what the token may not see is not found either)", doing, ErrNotFound, r.message)
	case http.StatusMethodNotAllowed:
		if strings.Contains(r.message, "not allowed to merge") {
			return &AuthError{Doing: doing, Detail: r.message, Hint: "the branch's protection may name who merges"}
		}
		return fmt.Errorf("%s: %w: %s", doing, ErrNotMergable, r.message)
	case http.StatusConflict:
		return fmt.Errorf("%s: %w: %s", doing, ErrExists, r.message)
	case http.StatusLocked:
		return fmt.Errorf("%s: the repository is archived, so that nothing in it can change: %w", doing, ErrUnsupported)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func (g *gitea) forbidden(doing string, r *refusal) error {
	if len(r.scopes) > 0 {
		hint := "a bump needs write:repository and write:issue; read:user tells whose token it is"
		return &AuthError{Doing: doing, Missing: r.scopes, Hint: hint}
	}
	if strings.Contains(r.message, "protected") {
		return &ProtectedError{Branch: "of " + g.path(), Rule: r.message, Hint: "allow the token's user in the branch's protection"}
	}
	return &AuthError{Doing: doing, Detail: r.message, Hint: "the token's user needs the right to write to " + g.path()}
}

// mergeFault is fault for merging, where a conflict has a meaning of its own.
func (g *gitea) mergeFault(doing string, err error) error {
	var r *refusal
	if !errors.As(err, &r) || r.status != http.StatusConflict {
		return g.fault(doing, err)
	}
	if strings.Contains(r.message, "out of date") || strings.Contains(r.message, "does not match") {
		return fmt.Errorf("%s: %w: %s", doing, ErrMoved, r.message)
	}
	return fmt.Errorf("%s: %w: %s", doing, ErrNotMergable, r.message)
}
