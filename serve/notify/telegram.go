package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
)

// telegramToken is how the token of a bot looks.
var telegramToken = regexp.MustCompile(`^[0-9]{1,20}:[A-Za-z0-9_-]{1,100}$`)

// telegram sends a text to the chats of an address as shoutrrr has them
// (telegram://ID:TOKEN@telegram?chats=…), by sendMessage of Telegram's Bot API
// (https://core.telegram.org/bots/api#sendmessage). shoutrrr's own code is not used:
// version 0.13 takes every answer that is not Telegram's JSON, and no answer at all,
// for a success.
func telegram(ctx context.Context, client *http.Client, u *url.URL, text string) error {
	chats, err := telegramChats(u)
	if err != nil {
		return err
	}
	password, _ := u.User.Password()
	address := "https://api.telegram.org/bot" + u.User.Username() + ":" + password + "/sendMessage"
	var errs []error
	for _, chat := range chats {
		if err := telegramSend(ctx, client, address, map[string]any{
			"chat_id": chat, "text": text, "link_preview_options": map[string]bool{"is_disabled": true},
			"disable_notification": u.Query().Has("notification") && !yes(u.Query().Get("notification")),
		}); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// telegramChats reads an address.
func telegramChats(u *url.URL) ([]string, error) {
	password, _ := u.User.Password()
	if !telegramToken.MatchString(u.User.Username() + ":" + password) {
		return nil, errors.New("it holds no token of a bot: telegram://ID:TOKEN@telegram?chats=CHAT")
	}
	var chats []string
	for key, values := range u.Query() {
		switch strings.ToLower(key) {
		case "chats", "channels":
			chats = append(chats, strings.FieldsFunc(strings.Join(values, ","), func(r rune) bool { return r == ',' || r == ' ' })...)
		case "notification", "preview", "parsemode":
		default:
			return nil, fmt.Errorf("there is no parameter %.40q", key)
		}
	}
	if len(chats) == 0 || len(chats) > 20 {
		return nil, errors.New("it names no chats, or more than 20: telegram://ID:TOKEN@telegram?chats=CHAT")
	}
	return chats, nil
}

func telegramSend(ctx context.Context, client *http.Client, address string, message map[string]any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("write the message as JSON: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return withoutAddress(err)
	}
	defer func() { _ = res.Body.Close() }() // it was only read
	var said struct {
		OK          bool   `json:"ok"`
		Description string `json:"description"`
	}
	err = json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&said)
	if res.StatusCode != http.StatusOK || err != nil || !said.OK {
		return fmt.Errorf("it answered %d: %s", res.StatusCode, plain.Cut(said.Description, 200))
	}
	return nil
}
