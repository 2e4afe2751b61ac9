package forge

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Sentinels that callers branch on.
var (
	ErrNotFound    = errors.New("not found")
	ErrExists      = errors.New("there is one already")
	ErrMoved       = errors.New("the branch has moved since it was looked at")
	ErrUnsupported = errors.New("this forge or repository does not have it")
	ErrNotMergable = errors.New("it cannot be merged now")
)

// AuthError says that whoever acts may not do what was asked.
type AuthError struct {
	Doing   string   // e.g. open a pull request on me/flake
	Missing []string // scopes or permissions, as the forge calls them
	Detail  string   // what the forge said, on one line
	Bad     bool     // the token is not valid at all
	Hint    string
}

func (e *AuthError) Error() string {
	var b strings.Builder
	b.WriteString(e.Doing + ": ")
	switch {
	case e.Bad:
		b.WriteString("the forge does not know this token: it is wrong, expired or revoked")
	case len(e.Missing) > 0:
		b.WriteString("the token lacks " + strings.Join(e.Missing, ", "))
	default:
		b.WriteString("it is not allowed")
	}
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return b.String()
}

// ProtectedError says that a branch's protection stands in the way.
type ProtectedError struct {
	Branch string
	Rule   string // what it asks for, if the forge told
	Hint   string
}

func (e *ProtectedError) Error() string {
	msg := fmt.Sprintf("branch %s is protected", e.Branch)
	if e.Rule != "" {
		msg += ": " + e.Rule
	}
	if e.Hint != "" {
		msg += " (" + e.Hint + ")"
	}
	return msg
}

// LimitError says that the forge wants no more requests for now.
type LimitError struct {
	Doing     string
	Secondary bool // for too many at once, or too much content
	Until     time.Time
}

func (e *LimitError) Error() string {
	kind := "its hourly limit of requests is used up"
	if e.Secondary {
		kind = "it wants fewer requests at once"
	}
	return fmt.Sprintf("%s: %s; try again after %s", e.Doing, kind, e.Until.UTC().Format(time.RFC3339))
}
