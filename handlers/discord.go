package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/daybook-dev/daybook/models"
)

// NotificationDiscord is a message to Discord, by a webhook of one of its channels.
type NotificationDiscord struct {
	// Content is the message, 2000 characters at most.
	Content string `json:"content"`
	// Secret names the webhook's address; default "default". See Secrets.
	Secret string `json:"secret,omitempty"`
	// Username is the name that the message shows as its sender; empty: the webhook's own.
	Username string `json:"username,omitempty"`
}

func (p *NotificationDiscord) check() error {
	switch {
	case !longest(p.Content, 2000):
		return invalid("content is missing, or has more than 2000 characters")
	case p.Secret != "" && !secretName.MatchString(p.Secret):
		return invalid("secret is the name of a secret, not an address: store it as DAYBOOK_DISCORD_SECRET_<NAME>")
	case p.Username != "" && (!longest(p.Username, 80) || hasControl(p.Username)):
		return invalid("username has more than 80 characters, or line breaks")
	}
	return nil
}

// discord sends a message, and returns its id. Names of people and roles in the text call none of
// them.
func (h *chat) discord(ctx context.Context, org string, p *NotificationDiscord) (string, error) {
	secret, err := discordSecret.of(h.config.Secrets, org, p.Secret)
	if err != nil {
		return "", err
	}
	address, ok := secretAddress(secret)
	if !ok {
		return "", fail(models.CodeAuthenticationFailed,
			"the secret is not the address of a webhook, https://discord.com/api/webhooks/…")
	}
	query := address.Query()
	query.Set("wait", "true") // Discord answers when the message is there, and says its id
	address.RawQuery = query.Encode()
	message := map[string]any{"content": p.Content, "allowed_mentions": map[string]any{"parse": []string{}}}
	if p.Username != "" {
		message["username"] = p.Username
	}
	limit := 0.0
	answer, err := h.post(ctx, "send discord", address.String(), "", message, func(body []byte) string {
		var said struct {
			Message    string
			Code       int
			RetryAfter float64 `json:"retry_after"`
		}
		if json.Unmarshal(body, &said) != nil || said.Message == "" {
			return ""
		}
		limit = said.RetryAfter
		return said.Message + " (" + strconv.Itoa(said.Code) + ")"
	})
	if f, ok := errors.AsType[*failure](err); ok && f.code == models.CodeRateLimited && f.after == 0 {
		f.after = boundedWait(limit, longestWait)
	}
	if err != nil {
		return "", err
	}
	var sent struct{ ID string }
	_ = json.Unmarshal(answer.body, &sent)
	return sent.ID, nil
}
