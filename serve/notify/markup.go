package notify

import (
	"net/url"
	"strings"
)

// What others wrote, names and errors above all, is text where it arrives: it pings
// nobody, and what looks like a link leads where it says. A zero-width space after an
// @ keeps every service from seeing a mention.

const noMention = "@\u200b"

// asIs is for services that show text as it is.
func asIs(s string) string { return s }

// noMentions is for services whose text has no markup, but mentions (@room, @name).
func noMentions(s string) string { return strings.ReplaceAll(s, "@", noMention) }

// slackText escapes the three characters that make mentions and links, as Slack says
// ("Escaping text", https://docs.slack.dev/messaging/formatting-message-text).
func slackText(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// markdown escapes what Markdown makes of text (CommonMark, section 2.4).
func markdown(s string) string {
	return strings.NewReplacer(
		`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "~", `\~`, "|", `\|`, "#", `\#`,
		"[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "@", noMention,
	).Replace(s)
}

// htmlMarkdown is for Teams, whose cards know some HTML too.
func htmlMarkdown(s string) string {
	return strings.NewReplacer(
		`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "~", `\~`, "#", `\#`,
		"[", `\[`, "]", `\]`, "&", "&amp;", "<", "&lt;", ">", "&gt;", "@", noMention,
	).Replace(s)
}

// noLinks is for Rocket.Chat, which knows no escapes: what makes links and mentions
// there is replaced by what looks like it.
func noLinks(s string) string {
	return strings.NewReplacer("[", "(", "]", ")", "<", "‹", ">", "›", "@", noMention).Replace(s)
}

// link reports whether an address may stand in a message as it is: it is one of the
// web, and nothing in it ends it early or begins something else.
func link(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || len(address) > 500 {
		return false
	}
	return strings.IndexFunc(address, func(r rune) bool {
		ok := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._~:/?#&=%+,", r)
		return !ok
	}) < 0
}

// lineLimit is how long a line of a mail may be, in bytes (RFC 5321, section
// 4.5.3.1.6, less some room).
const lineLimit = 900

// folded breaks lines that are too long for a mail.
func folded(s string) string {
	var out strings.Builder
	for line := range strings.Lines(s) {
		for len(line) > lineLimit {
			at := lineLimit
			for at > 0 && line[at]&0xc0 == 0x80 { // not within a character
				at--
			}
			if space := strings.LastIndexByte(line[:at], ' '); space > lineLimit/2 {
				at = space
			}
			out.WriteString(line[:at])
			out.WriteByte('\n')
			line = strings.TrimLeft(line[at:], " ")
		}
		out.WriteString(line)
	}
	return out.String()
}
