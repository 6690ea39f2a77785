package handlers

import (
	"encoding/json"
	netmail "net/mail"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models"
)

// A payload may name a template and another sender, and have its recipient as a text.
func TestEmailByTemplate(t *testing.T) {
	t.Parallel()
	m := serveMail(t, EmailPlain)
	b := setup(t)
	b.mails(m, func(c *EmailConfig) {
		c.Templates, c.Senders, c.ReplyTo = templateDir(t, welcome()), []string{"@news.example.com"},
			[]string{"desk@example.com"}
	})
	var p Email
	require.NoError(t, json.Unmarshal([]byte(`{"to": "ada@example.com", "from": "News <hello@news.example.com>", "replyTo": "Desk <DESK@example.com>",
		"template": "welcome", "templateParams": {"name": "Ada", "link": "https://example.com/"}}`), &p))
	result[EmailResult](t, b.run(p))
	require.Len(t, m.messages(), 1)
	got := m.messages()[0]
	assert.Equal(t, "hello@news.example.com", got.from)
	read, err := netmail.ReadMessage(strings.NewReader(got.data))
	require.NoError(t, err)
	assert.Equal(t, "Welcome, Ada", read.Header.Get("Subject"))
	assert.Equal(t, `"News" <hello@news.example.com>`, read.Header.Get("From"))
	assert.Contains(t, read.Header.Get("Reply-To"), "DESK@example.com")
	assert.Contains(t, got.data, "Hello Ada -- the shop")
	assert.Contains(t, got.data, "<main>")
}

func TestEmailRefusesSendersAndTemplates(t *testing.T) {
	t.Parallel()
	m := serveMail(t, EmailPlain)
	b := setup(t)
	b.mails(m, func(c *EmailConfig) {
		c.Templates, c.Senders, c.ReplyTo = templateDir(t, welcome()), []string{"@news.example.com"},
			[]string{"desk@example.com"}
	})
	for want, p := range map[string]Email{
		"DAYBOOK_SMTP_SENDERS": {
			To: Recipients{"a@example.com"}, Subject: "s", Text: "t",
			From: "boss@example.com",
		},
		"from: address 1": {
			To: Recipients{"a@example.com"}, Subject: "s", Text: "t",
			From: "a@news.example.com\r\nBcc: b@example.com",
		},
		"DAYBOOK_SMTP_REPLY_TO": {
			To: Recipients{"a@example.com"}, Subject: "s", Text: "t",
			ReplyTo: "eve@example.com",
		},
		"does not have: name, link":      {To: Recipients{"a@example.com"}, Template: "welcome"},
		"there is no template \"other\"": {To: Recipients{"a@example.com"}, Template: "other"},
	} {
		j := b.run(p)
		assert.Equal(t, models.CodePayloadInvalid, j.Code, want)
		assert.Contains(t, j.Error, want)
	}
	assert.Empty(t, m.messages())
}

// What needs no directory is found when a job is enqueued.
func TestEmailCheck(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"to": "a@example.com", "template": "welcome"}`:         "",
		`{"to": ["a@example.com"], "subject": "s", "text": "t"}`: "",
		`{"to": 5, "subject": "s", "text": "t"}`:                 "to: address 1",
		`{"to": "a@example.com", "template": "../x"}`:            "no template's name",
		`{"to": "a@example.com", "template": "x", "text": "t"}`: "beside text " +
			"or html",
		`{"to": "a@example.com", "subject": "s", "text": "t", "templateParams": {}}`:                      "without template",
		`{"to": "a@example.com", "text": "t"}`:                                                            "subject is missing",
		`{"to": "a@example.com", "subject": "s", "text": "t", "reply_to": "a@b.de", "replyTo": "c@d.de"}`: "differ",
	} {
		var p Email
		require.NoError(t, json.Unmarshal([]byte(raw), &p))
		if want == "" {
			assert.NoError(t, p.Check(), raw)
		} else {
			assert.ErrorContains(t, p.Check(), want, raw)
		}
	}
	_, err := NewEmail(EmailConfig{Host: "h", From: "a@example.com", Senders: []string{"example.com"}})
	require.ErrorContains(t, err, "SMTP_SENDERS")
}
