package handlers

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCredentialsWantHTTPS: an address that gets credentials of the configuration is one of https, or of
// this machine.
func TestCredentialsWantHTTPS(t *testing.T) {
	t.Parallel()
	configured := map[string]func(address string) error{
		"FILES_SIGNER_URL": func(address string) error {
			_, err := NewFileDelete(t.Context(), FileDeleteConfig{SignerURL: address})
			return err
		},
		"AIRTABLE_URL": func(address string) error {
			_, err := NewAirtable(AirtableConfig{URL: address})
			return err
		},
		"TWILIO_URL": func(address string) error {
			_, err := NewSMS(SMSConfig{URL: address, AccountSID: "AC0123456789abcdef0123456789abcdef", From: "+4915112345678"})
			return err
		},
		"PLAID_URL": func(address string) error {
			_, err := NewPlaid(&pgxpool.Pool{}, PlaidConfig{URL: address, ClientID: "c"})
			return err
		},
		"SLACK_URL": func(address string) error {
			_, err := newChat(ChatConfig{SlackURL: address})
			return err
		},
		"FCM_URL": func(address string) error {
			_, err := newPusher(PushConfig{FCMURL: address})
			return err
		},
	}
	for name, configure := range configured {
		for _, safe := range []string{"https://example.com", "http://127.0.0.1:1", "http://[::1]:1", "http://localhost:1"} {
			require.NoError(t, configure(safe), "%s %s", name, safe)
		}
		for _, unsafe := range []string{
			"http://example.com", "http://10.0.0.1", "http://localhost.example.com", "http://127.0.0.1.example.com", "ftp://127.0.0.1",
			"https://user:password@example.com",
		} {
			assert.ErrorContains(t, configure(unsafe), name+" must be an address of https", unsafe)
		}
	}
	_, ok := secretAddress("http://hooks.example.com/s3cret")
	assert.False(t, ok, "the address of a channel is a secret")
}
