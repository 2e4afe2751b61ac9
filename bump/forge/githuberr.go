package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-github/v92/github"
)

// hubText is all that an answer of GitHub's says in words.
func hubText(answer *github.ErrorResponse) string {
	parts := []string{answer.Message}
	for _, e := range answer.Errors {
		switch {
		case e.Message != "":
			parts = append(parts, e.Message)
		case e.Field != "" || e.Code != "":
			parts = append(parts, strings.TrimSpace(e.Resource+" "+e.Field+" "+e.Code))
		}
	}
	return strings.Join(parts, ": ")
}

// fail makes an error of this package's of what GitHub or the way to it said.
func (h *hub) fail(doing string, err error) error {
	var limit *LimitError
	var auth *AuthError
	var two *github.TwoFactorAuthError
	var answer *github.ErrorResponse
	switch {
	case errors.As(err, &limit):
		return &LimitError{Doing: doing, Secondary: limit.Secondary, Until: limit.Until}
	case errors.As(err, &auth):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", doing, err)
	case errors.As(err, &two):
		return &AuthError{Doing: doing, Bad: true, Detail: "it is a password, and a second factor is asked for", Hint: "use a token"}
	case !errors.As(err, &answer) || answer.Response == nil:
		return fmt.Errorf("%s: %w", doing, h.t.clean(err))
	}
	return h.refusal(doing, answer)
}

// hubUnnamed stands for a protected branch until who knows its name puts that in.
const hubUnnamed = "in question"

// refusal reads an answer that is no success.
func (h *hub) refusal(doing string, answer *github.ErrorResponse) error {
	code := answer.Response.StatusCode
	detail := h.detail(answer)
	if err := h.rights(doing, answer, detail); err != nil {
		return err
	}
	if code != http.StatusMethodNotAllowed && hubProtection(detail) {
		return &ProtectedError{Branch: hubUnnamed, Rule: detail,
			Hint: "let the bot's account bypass the rule, or take the branch out of it"}
	}
	switch code {
	case http.StatusNotFound:
		return fmt.Errorf("%s: %w: %s (GitHub says so too when the token may not see it: a private repository needs a token with rights to it)", doing, ErrNotFound, detail)
	case http.StatusGone:
		return fmt.Errorf("%s: %w: %s (it may be turned off in the repository's settings)", doing, ErrUnsupported, detail)
	case http.StatusMethodNotAllowed:
		return fmt.Errorf("%s: %w: %s", doing, ErrNotMergable, detail)
	case http.StatusConflict:
		return h.conflict(doing, detail)
	case http.StatusUnavailableForLegalReasons:
		return fmt.Errorf("%s: %w: access is blocked: %s", doing, ErrNotFound, detail)
	}
	if code >= http.StatusInternalServerError {
		return fmt.Errorf("%s: GitHub is in trouble, %s: try again later", doing, detail)
	}
	return fmt.Errorf("%s: GitHub refuses: %s", doing, detail)
}

func (h *hub) conflict(doing, detail string) error {
	low := strings.ToLower(detail)
	switch {
	case strings.Contains(low, "repository is empty"):
		return fmt.Errorf("%s: %w: %s (it needs a first commit)", doing, ErrNotFound, detail)
	case strings.Contains(low, "modified"), strings.Contains(low, "is at"):
		return fmt.Errorf("%s: %w: %s", doing, ErrMoved, detail)
	case strings.Contains(low, "conflict"):
		return fmt.Errorf("%s: %w: %s", doing, ErrNotMergable, detail)
	}
	return fmt.Errorf("%s: GitHub refuses for a conflict: %s", doing, detail)
}

// rights returns the error of who may not, nil if answer is about something
// else.
func (h *hub) rights(doing string, answer *github.ErrorResponse, detail string) error {
	head := answer.Response.Header
	low := strings.ToLower(detail)
	switch code := answer.Response.StatusCode; {
	case code == http.StatusUnauthorized:
		return &AuthError{Doing: doing, Bad: true, Detail: detail, Hint: "make a new one, and put it where the config says"}
	case strings.Contains(low, "without `workflow` scope"), strings.Contains(low, "without `workflows` permission"):
		return &AuthError{Doing: doing, Missing: []string{"workflow"}, Detail: detail,
			Hint: "files below .github/workflows need that scope of a classic token, or workflows=write"}
	case code != http.StatusForbidden:
		return nil
	case strings.Contains(low, "archived"):
		return fmt.Errorf("%s: %w: the repository is archived: %s", doing, ErrUnsupported, detail)
	case hubProtection(detail):
		return nil
	}
	auth := &AuthError{Doing: doing, Detail: detail}
	if hint := h.singleSignOn(head.Get("X-Github-Sso")); hint != "" {
		auth.Hint = hint
		return auth
	}
	auth.Missing = hubLacking(head)
	if strings.Contains(low, "not permitted to create or approve pull requests") {
		auth.Hint = "allow it in the repository's settings: Actions, General, Workflow permissions"
	} else if strings.Contains(low, "resource not accessible by integration") {
		auth.Hint = "grant it in the App's settings and accept it at the installation; in a workflow, name it under permissions:"
	} else if len(auth.Missing) > 0 {
		auth.Hint = "edit the token's rights on GitHub"
	}
	return auth
}

// singleSignOn reads the header that says a token is not authorised for an
// organisation that uses SAML: "required; url=https://…".
func (h *hub) singleSignOn(value string) string {
	if !strings.HasPrefix(value, "required") {
		return ""
	}
	hint := "the organisation asks for SAML single sign-on: authorise the token for it"
	if _, at, ok := strings.Cut(value, "url="); ok {
		hint += " at " + h.t.detail(at)
	}
	return hint
}

// hubLacking names the rights that an answer's headers ask for and the token has
// not. Permissions of fine-grained tokens and Apps come as alternatives between
// semicolons; scopes of classic tokens as alternatives between commas.
func hubLacking(head http.Header) []string {
	if accepted := head.Get("X-Accepted-Github-Permissions"); accepted != "" {
		first, _, _ := strings.Cut(accepted, ";")
		return hubWords(first)
	}
	has := hubScopesOf(head)
	accepted := hubWords(head.Get("X-Accepted-Oauth-Scopes"))
	if has == nil || len(accepted) == 0 {
		return nil
	}
	for _, scope := range accepted {
		if has.has(scope) {
			return nil
		}
	}
	return accepted[:1]
}

// hubWords splits a header at commas; what is no plain name is left out.
func hubWords(value string) []string {
	var all []string
	for _, word := range strings.Split(value, ",") {
		word = strings.TrimSpace(word)
		plain := strings.IndexFunc(word, func(r rune) bool {
			return (r < 'a' || r > 'z') && !strings.ContainsRune("_:=-", r)
		}) < 0
		if word != "" && plain && len(word) < 100 && len(all) < 50 {
			all = append(all, word)
		}
	}
	return all
}

// hubProtection reports whether a refusal comes of a branch's protection.
func hubProtection(detail string) bool {
	low := strings.ToLower(detail)
	for _, sign := range []string{
		"protected branch", "repository rule violations", "protected ref", "through a pull request",
		"cannot force-push", "cannot delete this branch", "required status check", "cannot update this",
		"cannot create ref due to creations being restricted", "push declined due to",
	} {
		if strings.Contains(low, sign) {
			return true
		}
	}
	return false
}

// detail is what GitHub said, on one line, with the number under which its
// support finds the request.
func (h *hub) detail(answer *github.ErrorResponse) string {
	text := h.t.detail(hubText(answer))
	if text == "" {
		text = answer.Response.Status
	}
	if id := hubRequestID(answer.Response.Header); id != "" {
		text += " [request " + id + "]"
	}
	return text
}

// hubRequestID returns the number that the forge gave the request, "" if there is
// none that is plain.
func hubRequestID(head http.Header) string {
	id := head.Get("X-Github-Request-Id")
	if id == "" {
		id = head.Get("X-Request-Id")
	}
	if len(id) > 80 || strings.IndexFunc(id, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != ':' && r != '-'
	}) >= 0 {
		return ""
	}
	return id
}

// hubScopes are those of a classic token; nil where the token has no such thing.
type hubScopes struct{ list []string }

func hubScopesOf(head http.Header) *hubScopes {
	values := head.Values("X-Oauth-Scopes")
	if len(values) == 0 {
		return nil
	}
	return &hubScopes{hubWords(strings.Join(values, ","))}
}

// has knows that repo includes public_repo and repo:status.
func (s *hubScopes) has(scope string) bool {
	for _, have := range s.list {
		if have == scope || have == "repo" && (scope == "public_repo" || strings.HasPrefix(scope, "repo:")) {
			return true
		}
	}
	return false
}

// missing lists what a bump of the repository needs and s lacks.
func (s *hubScopes) missing(private bool) []string {
	need := "public_repo"
	if private {
		need = "repo"
	}
	if s == nil || s.has(need) {
		return nil
	}
	return []string{need}
}
