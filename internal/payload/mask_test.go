package payload_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/payload"
)

func TestSecretsInPayloadsAreMasked(t *testing.T) {
	t.Parallel()
	raw := `{"user": "ann", "Api-Key": "abc", "deep": [{"client_secret": {"a": 1}, "n": 12345678901234567890.10}], "password": "", "accessToken": null,
	  "url": "https://ann:hunter2@example.com/x?page=2&access_token=abc&sig=ok", "headers": {"X-Any": "v"}, "note": "sent with Bearer abcdefgh123", "mine": "v", "html": "<b>&"}`
	got := payload.MaskJSON("webhook", []byte(raw), "mine")
	assert.Equal(t, `{
  "Api-Key": "••••••",
  "accessToken": null,
  "deep": [
    {
      "client_secret": "••••••",
      "n": 12345678901234567890.10
    }
  ],
  "headers": {
    "X-Any": "••••••"
  },
  "html": "<b>&",
  "mine": "••••••",
  "note": "sent with Bearer ••••••",
  "password": "",
  "url": "https://ann:••••••@example.com/x?page=2&access_token=••••••&sig=ok",
  "user": "ann"
}`, got)
	assert.Contains(t, payload.MaskJSON("other", []byte(raw)), `"X-Any": "v"`, "only the type that declares it")
	assert.Empty(t, payload.MaskJSON("other", nil))
	assert.Equal(t, payload.Masked, payload.MaskJSON("other", []byte(`{"password": "x`)), "what cannot be read is not shown")
	assert.Equal(t, "3", payload.MaskJSON("other", []byte(`3`)))
}

func TestSecretNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"password", "Password", "db_password", "token", "refreshToken", "API-KEY", "x.api.key", "Authorization", "secret", "pin", "set-cookie"} {
		assert.True(t, payload.IsSecretName(name), name)
	}
	for _, name := range []string{"user", "pinned", "key", "idempotency_key", "author", "passenger", "description", "id"} {
		assert.False(t, payload.IsSecretName(name), name)
	}
}

func TestSecretsInErrorsAreMasked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"dial postgres://daybook:hunter2@db/x: refused":  "dial postgres://daybook:••••••@db/x: refused",
		"GET https://a/b?token=abc&x=1: 500":             "GET https://a/b?token=••••••&x=1: 500",
		"the answer to Basic dXNlcjpwYXNz is 401":        "the answer to Basic •••••• is 401",
		"token dbk_abcdefghijkl is revoked":              "token dbk_•••••• is revoked",
		"Basic rules hold, a=b, and nothing is a secret": "Basic rules hold, a=b, and nothing is a secret",
	} {
		assert.Equal(t, want, payload.MaskText(text))
	}
}
