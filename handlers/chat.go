package handlers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/daybook-dev/daybook/internal/telemetry/span"
	"github.com/daybook-dev/daybook/models"
)

// ChatConfig says how Slack and Discord are asked.
type ChatConfig struct {
	// SlackURL is where Slack's API is; default https://slack.com/api.
	SlackURL string `env:"SLACK_URL"`
	// Timeout bounds a request with its answer; default 20 s.
	Timeout time.Duration `env:"CHAT_TIMEOUT"`
	// Secrets finds the addresses and tokens that payloads name.
	Secrets Secrets `env:"-"`
}

// chat sends messages to Slack and Discord.
type chat struct {
	config ChatConfig
	upstream
}

func newChat(c ChatConfig) (*chat, error) {
	c.SlackURL = strings.TrimRight(cmp.Or(c.SlackURL, "https://slack.com/api"), "/")
	c.Timeout = cmp.Or(c.Timeout, 20*time.Second)
	switch {
	case !isSafe(c.SlackURL):
		return nil, errors.New("notification: SLACK_URL must be an address of https, or of this machine, without user and password")
	case c.Timeout < 0:
		return nil, errors.New("notification: CHAT_TIMEOUT must not be negative")
	}
	return &chat{config: c, upstream: newUpstream(c.Timeout)}, nil
}

// post sends JSON. An answer that is no success is a failure without the server's words, which
// words finds in its body.
func (h *chat) post(ctx context.Context, name, address, token string, body any,
	words func([]byte) string,
) (reply, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		return reply{}, invalid("the message cannot be written as JSON")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, &b)
	if err != nil {
		// the error repeats it
		return reply{}, fail(models.CodeAuthenticationFailed, "the secret has no address that can be asked")
	}
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	ctx, sending := span.Start(ctx,
		span.Span{Name: name, Kind: span.Client, Attrs: []span.Attr{{Key: "server.address", Value: r.URL.Hostname()}}})
	answer, err := h.ask(r.WithContext(ctx))
	if err != nil {
		sending.End(err)
		return reply{}, err
	}
	sending.Set(span.Attr{Key: "http.response.status_code", Value: answer.status})
	if answer.ok() {
		sending.End(nil)
		return answer, nil
	}
	sending.End(errNotSent)
	said := words(answer.body)
	for _, secret := range []string{token, r.URL.Path} {
		if len(secret) > 1 {
			said = strings.ReplaceAll(said, secret, "***")
		}
	}
	return reply{}, judge(r, answer, said)
}

// secretAddress is a secret that is the address of a server; ok is false for every other one.
func secretAddress(secret string) (*url.URL, bool) {
	if !isSafe(secret) {
		return nil, false
	}
	u, err := url.Parse(secret)
	return u, err == nil
}

// longest reports whether a text has content, and at most n characters.
func longest(text string, n int) bool {
	return strings.TrimSpace(text) != "" && utf8.RuneCountInString(text) <= n
}
