package handlers

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// A name resolves for the organizations that it is bound to, and for no other.
func TestSecretsAreBoundToOrganizations(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for file, content := range map[string]string{
		"inafile": "s", "inafile.orgs": "acme\na,comma\r\n",
		"everyone.orgs": "*\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600))
	}
	s := environmentSecrets(map[string]string{
		"DAYBOOK_SECRETS_DIR": dir, "DAYBOOK_WEBHOOK_SECRET_SHOP": "s", "DAYBOOK_SECRET_ORGS_SHOP": " acme, beta ",
		"DAYBOOK_WEBHOOK_SECRET_EVERYONE": "s", "DAYBOOK_WEBHOOK_SECRET_UNBOUND": "s",
		"DAYBOOK_WEBHOOK_AUTHORIZATION_SHOP": "s",
	})
	for _, c := range []struct {
		org, name string
		says      string
	}{
		{"acme", "shop", ""},
		{"beta", "shop", ""},
		{"gamma", "shop", "not bound to the organization gamma"},
		{"acm", "shop", "not bound to the organization acm"},
		{"*", "shop", "not bound"},
		{"", "shop", "not bound"},
		{"acme", "inafile", ""},
		{"gamma", "inafile", "not bound to the organization gamma"},
		{"gamma", "everyone", ""},
		{"acme", "unbound", "DAYBOOK_SECRET_ORGS_UNBOUND"},
	} {
		for _, kind := range []string{"WEBHOOK_SECRET_", "WEBHOOK_AUTHORIZATION_"} {
			if kind == "WEBHOOK_AUTHORIZATION_" && c.name != "shop" {
				continue
			}
			v, err := s.named(c.org, kind, c.name, "")
			if c.says == "" {
				require.NoError(t, err, "%s for %s", c.name, c.org)
				assert.Equal(t, "s", v)
				continue
			}
			require.ErrorContains(t, err, c.says, "%s for %s", c.name, c.org)
			assert.Empty(t, v)
		}
	}
}

// One organization does not sign with another's secret, nor send its authorization.
func TestAnotherOrganizationsSecret(t *testing.T) {
	t.Parallel()
	r := receive(t, nil)
	b := setup(t)
	b.hooks(WebhookConfig{Secrets: secretsOf(map[string]string{
		"DAYBOOK_WEBHOOK_SECRET_TENANT_A": newSecret, "DAYBOOK_WEBHOOK_AUTHORIZATION_TENANT_A": "example.com Bearer abc",
		"DAYBOOK_SECRET_ORGS_TENANT_A":   "tenant-a",
		"DAYBOOK_WEBHOOK_SECRET_DEFAULT": newSecret, "DAYBOOK_SECRET_ORGS_DEFAULT": "tenant-a",
	})})
	for _, p := range []Webhook{{URL: r.URL, Secret: "tenant_a"}, {URL: r.URL, Authorization: "tenant_a"}} {
		id := b.enqueueFor("tenant-b", p, queue.JobOptions{})
		b.work()
		j := b.job(id)
		assert.Equal(t, models.JobFailed, j.State)
		assert.Equal(t, models.CodeAuthenticationFailed, j.Code)
		assert.Contains(t, j.Error, "not bound to the organization tenant-b")
	}
	assert.Empty(t, r.requests(), "nothing was sent")

	b.enqueueFor("tenant-b", Webhook{URL: r.URL}, queue.JobOptions{})
	b.enqueueFor("tenant-a", Webhook{URL: r.URL, Headers: map[string]string{"X-Who": "a"}}, queue.JobOptions{})
	b.work()
	require.Len(t, r.requests(), 2)
	for _, got := range r.requests() {
		signed := got.header.Get("Webhook-Signature") != ""
		assert.Equal(t, got.header.Get("X-Who") == "a", signed, "the default secret signs for whom it is bound to")
	}
}

// The sender of emails may be bound to organizations, too.
func TestSenderIsBoundToOrganizations(t *testing.T) {
	t.Parallel()
	h, err := NewEmail(EmailConfig{Host: "127.0.0.1", Port: 1, From: "a@example.com", Organizations: []string{"acme"}})
	require.NoError(t, err)
	c := callFor(Email{To: []string{"b@example.com"}, Text: "x"})
	var f *failure
	require.ErrorAs(t, h.deliver(t.Context(), c), &f)
	assert.Equal(t, models.CodeAuthenticationFailed, f.code)
	assert.ErrorContains(t, f, "DAYBOOK_SMTP_ORGS")
}
