package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
)

// service is what is known of one of shoutrrr's: how to keep what others wrote from
// being more than text there, and which of its parameters would undo that.
type service struct {
	title  string              // the parameter of the title; "": it is the text's first line
	plain  func(string) string // makes text of anything
	host   bool                // the host of the address is the server's name, and no part of a token
	open   bool                // it can be used without a secret
	limit  int                 // of the text, in bytes; 0: maxText
	alarm  [2]string           // the parameter and the value of what is loudest
	params map[string]string   // set unless the address does
	deny   []string            // parameters that make markup of the text, or another message
	unsafe []string            // switches that make the connection legible
	header bool                // the title is a header

	// check and send are used in the place of shoutrrr's code where they are set.
	check func(*url.URL) error
	send  func(ctx context.Context, client *http.Client, u *url.URL, text string) error
}

// chatText bounds what chats are sent: the least of their limits is half of what is
// left when every character is escaped.
const chatText = 1900

// serviceTable lists the services that are taken, by the scheme of their addresses.
// Others that shoutrrr has (logger, generic and their like) are refused: what they
// make of a text is not known here, or there is a webhook for it.
func serviceTable() map[string]service {
	return map[string]service{
		"discord":    {title: "title", plain: markdown, limit: chatText, params: map[string]string{"splitLines": "no"}, deny: []string{"json"}},
		"gotify":     {title: "title", plain: asIs, host: true, limit: chatText, alarm: [2]string{"priority", "10"}, params: map[string]string{"useheader": "yes"}, deny: []string{"extras"}, unsafe: []string{"disabletls", "insecureskipverify"}},
		"matrix":     {plain: noMentions, host: true, limit: chatText, unsafe: []string{"disableTLS"}},
		"mattermost": {plain: markdown, host: true, limit: chatText, unsafe: []string{"disabletls"}},
		"ntfy":       {title: "title", plain: asIs, host: true, open: true, header: true, alarm: [2]string{"priority", "max"}, unsafe: []string{"disabletls", "disabletlsverification"}},
		"pushover":   {title: "title", plain: asIs, limit: 900, alarm: [2]string{"priority", "1"}},
		"rocketchat": {plain: noLinks, host: true, limit: chatText},
		"slack":      {title: "title", plain: slackText, limit: chatText},
		"smtp":       {title: "subject", plain: asIs, host: true, open: true, header: true, deny: []string{"usehtml"}, unsafe: []string{"skiptlsverify"}},
		"teams":      {title: "title", plain: htmlMarkdown, limit: chatText},
		"telegram":   {plain: noMentions, limit: chatText, deny: []string{"parsemode"}, send: telegram, check: func(u *url.URL) error { _, err := telegramChats(u); return err }},
	}
}

// Services lists the services of kind shoutrrr that are taken.
func Services() []string { return slices.Sorted(maps.Keys(serviceTable())) }

// parseService reads the address of a service and refuses what would be unsafe. Its
// errors do not repeat it.
func parseService(address string, insecure bool) (*url.URL, service, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return nil, service{}, fmt.Errorf("the address of a service is of the form SERVICE://…, and SERVICE is one of %s", strings.Join(Services(), ", "))
	}
	sv, ok := serviceTable()[u.Scheme]
	if !ok {
		return nil, sv, fmt.Errorf("there is no service %.40q: there is %s", u.Scheme, strings.Join(Services(), ", "))
	}
	query, err := url.ParseQuery(strings.ReplaceAll(u.RawQuery, ";", "%3b"))
	if err != nil {
		return nil, sv, errors.New("the parameters of the address cannot be read")
	}
	near := insecure || sv.host && loopback(u.Hostname())
	for key, values := range query {
		value := cmp.Or(values...)
		for _, name := range sv.deny {
			if strings.EqualFold(key, name) && !slices.Contains([]string{"none", "no", "false", "0", "n"}, strings.ToLower(value)) {
				return nil, sv, fmt.Errorf("the parameter %s of %s would make markup of what others wrote: remove it", name, u.Scheme)
			}
		}
		for _, name := range sv.unsafe {
			if strings.EqualFold(key, name) && yes(value) && !near {
				return nil, sv, fmt.Errorf("the parameter %s of %s lets others read the message and the password: remove it, or set insecure: true", name, u.Scheme)
			}
		}
	}
	if u.Scheme == "discord" && u.Path != "" {
		return nil, sv, errors.New("the address of discord has no path: /raw would send the text as JSON")
	}
	return u, sv, errors.Join(secureMail(u, query, near), secureTopic(u, query, near), tryService(u))
}

// secureMail sees to it that a mail goes encrypted, or not at all.
func secureMail(u *url.URL, query url.Values, near bool) error {
	if u.Scheme != "smtp" || near {
		return nil
	}
	for key, values := range query {
		off := strings.EqualFold(key, "encryption") && strings.EqualFold(values[0], "none") ||
			(strings.EqualFold(key, "usestarttls") || strings.EqualFold(key, "starttls") || strings.EqualFold(key, "requirestarttls")) && !yes(values[0])
		if off {
			return fmt.Errorf("the parameter %s of smtp sends the mail and the password legibly: remove it, or set insecure: true", strings.ToLower(key))
		}
	}
	query.Set("requirestarttls", "yes")
	u.RawQuery = query.Encode()
	return nil
}

// secureTopic does the same for ntfy.
func secureTopic(u *url.URL, query url.Values, near bool) error {
	for key, values := range query {
		if u.Scheme == "ntfy" && strings.EqualFold(key, "scheme") && values[0] != "https" && !near {
			return errors.New("the parameter scheme of ntfy lets others read the message and the password: remove it, or set insecure: true")
		}
	}
	return nil
}

// tryService reads the address as shoutrrr does, without the network. Matrix signs in
// while it reads: of it only the parts are looked at.
func tryService(u *url.URL) error {
	if u.Scheme == "matrix" {
		if _, has := u.User.Password(); u.Host == "" || !has {
			return errors.New("the address of matrix is of the form matrix://USER:PASSWORD@HOST, or matrix://:TOKEN@HOST")
		}
		return nil
	}
	err := (&Desk{}).run(context.Background(), u.Scheme, func() error {
		if sv := serviceTable()[u.Scheme]; sv.check != nil {
			return sv.check(u)
		}
		s, err := (&router.ServiceRouter{}).NewService(u.Scheme)
		if err != nil {
			return err
		}
		return s.Initialize(copyOf(u), nil)
	})
	if err != nil {
		return fmt.Errorf("the address of %s cannot be used: %w", u.Scheme, hiderOf(u).error(err))
	}
	return nil
}

func copyOf(u *url.URL) *url.URL { c := *u; return &c }

// hiderOf knows the secrets of an address that was parsed.
func hiderOf(u *url.URL) hider { return newHider(u.String(), "", !serviceTable()[u.Scheme].host) }

// shoutrrr makes a sender for one of its services. Each message has a service of its
// own, since some keep what the one before has set. The library's log is off.
func (n *Notifier) shoutrrr(s Sink) func(context.Context, string, Event) error {
	return func(ctx context.Context, _ string, e Event) error {
		u, sv, err := parseService(s.URL, s.Insecure)
		if err != nil {
			return err
		}
		hide := newHider(s.URL, "", !sv.host)
		text, params := sv.message(e, u.Query())
		if sv.send != nil {
			return hide.error(sv.send(ctx, n.client(), u, text))
		}
		err = n.o.Desk.run(ctx, s.Name, func() error {
			service, err := (&router.ServiceRouter{}).NewService(u.Scheme)
			if err != nil {
				return err
			}
			if err := service.Initialize(u, nil); err != nil {
				return err
			}
			return service.Send(text, &params)
		})
		return hide.error(err)
	}
}

// message is an event as a service takes it.
func (sv service) message(e Event, set url.Values) (string, types.Params) {
	params := types.Params{}
	add := func(key, value string) {
		for have := range set {
			if strings.EqualFold(have, key) {
				return
			}
		}
		params[key] = value
	}
	for key, value := range sv.params {
		add(key, value)
	}
	if sv.alarm[0] != "" && e.Kind == NewBytes {
		add(sv.alarm[0], sv.alarm[1])
	}
	text := e.Text
	if sv.limit > 0 {
		text = plainLines(text, sv.limit)
	}
	title, text := sv.plain(e.Title), folded(sv.plain(text))
	switch {
	case sv.title == "":
		text = title + "\n" + text
	case sv.header:
		// RFC 2047: ASCII is left as it is, and no header gets a line more.
		params[sv.title] = mime.QEncoding.Encode("utf-8", title)
	default:
		params[sv.title] = title
	}
	if link(e.URL) {
		text += "\n" + e.URL
	}
	return text, params
}
