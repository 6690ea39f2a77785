package handlers

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/models"
)

// NotificationSlack is a message to Slack.
type NotificationSlack struct {
	// Text is the message, 4000 characters at most.
	Text string `json:"text"`
	// Secret names the address of an incoming webhook, or a bot's token; default "default". See
	// Secrets.
	Secret string `json:"secret,omitempty"`
	// Channel is the channel's id or name; required with a token. An incoming webhook has a channel
	// of its own.
	Channel string `json:"channel,omitempty"`
	// Blocks is the message by Slack's Block Kit, of which Text is then the short form.
	Blocks json.RawMessage `json:"blocks,omitempty"`
}

func (p *NotificationSlack) check() error {
	if !longest(p.Text, 4000) {
		return invalid("text is missing, or has more than 4000 characters")
	}
	if p.Secret != "" && !secretName.MatchString(p.Secret) {
		return invalid("secret is the name of a secret, not an address or a token: store it as DAYBOOK_SLACK_SECRET_<NAME>")
	}
	if p.Channel != "" && !slackChannel.MatchString(p.Channel) {
		return invalid("channel is not like C0123456789 or #orders")
	}
	var blocks []any
	if len(p.Blocks) > 0 && (json.Unmarshal(p.Blocks, &blocks) != nil || len(blocks) > 50) {
		return invalid("blocks is not a list of up to 50 blocks")
	}
	return nil
}

// slackChannel is how Slack names a channel or a person.
var slackChannel = regexp.MustCompile(`^[#@]?[\p{L}\p{N}._-]{1,80}$`)

// slack sends a message, and returns the time by which Slack names it.
func (h *chat) slack(ctx context.Context, org string, p *NotificationSlack) (string, error) {
	secret, err := slackSecret.of(h.config.Secrets, org, p.Secret)
	if err != nil {
		return "", err
	}
	message := map[string]any{"text": p.Text}
	if len(p.Blocks) > 0 {
		message["blocks"] = p.Blocks
	}
	if _, ok := secretAddress(secret); ok {
		if p.Channel != "" {
			return "", invalid("channel: the secret is an incoming webhook, which has a channel of its own")
		}
		_, err := h.post(ctx, "send slack", secret, "", message, func(body []byte) string { return string(body) })
		return "", err
	}
	switch {
	case !isVisible(secret) || !strings.HasPrefix(secret, "xox"):
		return "", fail(models.CodeAuthenticationFailed,
			"the secret is neither the address of an incoming webhook, by https, nor a token, xoxb-…")
	case p.Channel == "":
		return "", invalid("channel is missing: the secret is a token, which may write to many")
	}
	message["channel"] = p.Channel
	answer, err := h.post(ctx, "send slack", h.config.SlackURL+"/chat.postMessage", secret, message,
		func(body []byte) string { return string(body) })
	if err != nil {
		return "", err
	}
	var said struct {
		OK        bool
		Error, TS string
	}
	if json.Unmarshal(answer.body, &said) != nil {
		f := failFinally("Slack answered without saying what became of the message")
		f.unsure = true
		return "", f
	}
	if said.OK {
		return said.TS, nil
	}
	f := slackFailure(strings.ReplaceAll(said.Error, secret, "***"))
	f.after = askedWait(answer.header, time.Now(), longestWait)
	return "", f
}

// slackFailure is what an error of Slack's API leads to, which comes with the status 200.
func slackFailure(code string) *failure {
	text := "Slack refused the message: " + clip(code)
	switch code {
	case "invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "missing_scope",
		"no_permission", "not_allowed_token_type", "org_login_required",
		"ekm_access_denied", "access_denied":
		return fail(models.CodeAuthenticationFailed, "%s", text)
	case "channel_not_found", "is_archived", "not_in_channel", "user_not_found":
		return fail(models.CodeNotFound, "%s", text)
	case "ratelimited", "rate_limited", "message_limit_exceeded":
		return fail(models.CodeRateLimited, "%s", text)
	case "internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org":
		return fail(models.CodeUpstream5xx, "%s", text)
	case "invalid_blocks", "invalid_blocks_format", "msg_too_long", "no_text":
		return invalid("%s", text)
	}
	return failFinally("%s", text)
}
