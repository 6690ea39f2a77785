package redact_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/text/redact"
)

func TestSecretsInPayloadsAreMasked(t *testing.T) {
	t.Parallel()
	raw := `{"user": "ann", "Api-Key": "abc", "deep": [{"client_secret": {"a": 1}, "n": 12345678901234567890.10}], "password": "", "accessToken": null,
	  "url": "https://ann:hunter2@example.com/x?page=2&access_token=abc&sig=ok", "headers": {"X-Any": "v"}, "note": "sent with Bearer abcdefgh123", "mine": "v", "html": "<b>&"}`
	got := redact.JSON("webhook", []byte(raw), "mine")
	assert.JSONEq(t, `{
  "Api-Key": "[redacted]",
  "accessToken": null,
  "deep": [
    {
      "client_secret": "[redacted]",
      "n": 12345678901234567890.10
    }
  ],
  "headers": {
    "X-Any": "[redacted]"
  },
  "html": "<b>&",
  "mine": "[redacted]",
  "note": "sent with Bearer [redacted]",
  "password": "",
  "url": "https://ann:[redacted]@example.com/x?page=2&access_token=[redacted]&sig=ok",
  "user": "ann"
}`, got)
	assert.Contains(t, got, "\n      \"n\": 12345678901234567890.10\n",
		"numbers are as they were, and the text is indented")
	assert.Contains(t, redact.JSON("other", []byte(raw)), `"X-Any": "v"`, "only the type that declares it")
	assert.Empty(t, redact.JSON("other", nil))
	assert.Equal(t, redact.Mask, redact.JSON("other", []byte(`{"password": "x`)), "what cannot be read is not shown")
	assert.Equal(t, "3", redact.JSON("other", []byte(`3`)))
}

func TestSecretNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"password", "Password", "db_password", "token", "refreshToken", "API-KEY", "x.api.key",
		"Authorization", "secret", "pin", "set-cookie",
	} {
		assert.True(t, redact.IsSecretName(name), name)
	}
	for _, name := range []string{
		"user", "pinned", "key", "idempotency_key", "author", "passenger", "description",
		"id",
	} {
		assert.False(t, redact.IsSecretName(name), name)
	}
}
