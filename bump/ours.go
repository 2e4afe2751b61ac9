package bump

import (
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/bump/forge"
)

// webFlow commits for everybody who works on GitHub's pages or through its API.
const webFlow = "noreply@github.com"

// hasTrailer reports whether the last paragraph of a message holds our
// trailer.
func hasTrailer(message string) bool {
	message = strings.TrimRight(message, "\n")
	last := message[strings.LastIndex(message, "\n\n")+1:]
	return slices.Contains(strings.Split(strings.TrimSpace(last), "\n"), trailer)
}

// us is who makes a bump's commits.
type us struct {
	author Author
	info   forge.Info // of the forge; zero for plain git
}

// notOurs says why c is not a commit that a bump made; "" if it is. Commits
// that the forge signs are by its own account, those from before it did by
// author.
func (u us) notOurs(c forge.Commit) string {
	switch {
	case len(c.Parents) != 1:
		return "which has not one parent"
	case !hasTrailer(c.Message):
		return "whose message lacks the line " + trailer
	case u.signed(c):
		return ""
	case !strings.EqualFold(c.AuthorEmail, u.author.Email):
		return "whose author is not " + u.author.Email
	case !strings.EqualFold(c.CommitterAdr, u.author.Email):
		return "whose committer is not " + u.author.Email
	}
	return ""
}

// signed reports whether c is what the forge makes for us when no author is
// named.
func (u us) signed(c forge.Commit) bool {
	if !u.info.Signs {
		return false
	}
	mail := u.info.Email != "" && strings.EqualFold(c.AuthorEmail, u.info.Email)
	login := u.info.Login != "" && strings.EqualFold(c.Login, u.info.Login)
	if u.info.Login == "" && u.info.Email == "" {
		// All that is known is that it is an App's.
		mail = c.Verified && strings.HasSuffix(c.AuthorEmail, "[bot]@users.noreply.github.com")
	}
	committed := strings.EqualFold(c.CommitterAdr, webFlow) || strings.EqualFold(c.CommitterAdr, c.AuthorEmail)
	return (mail || login) && committed
}
