package httpapi_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"filippo.io/age"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/encryption"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/server/internal/httpapi"
)

// TestEncryptionOverHTTP encrypts a member of a payload, and shows it to a token that may see it.
func TestEncryptionOverHTTP(t *testing.T) {
	t.Parallel()
	key, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "keys.txt")
	require.NoError(t, os.WriteFile(path, []byte(key.String()), 0o600))
	cipher, err := encryption.FromFile(path)
	require.NoError(t, err)
	b := setupWith(t, func(o *httpapi.Options) { o.Encryption = cipher })

	a := b.send(b.everything, http.MethodPost, "/api/jobs/enqueue", object{
		"orgId": "acme", "type": "payout", "payload": object{"iban": "XX00-TEST", "account_id": "a1"},
		"encrypt": []string{"iban"},
	})
	require.Equal(t, http.StatusCreated, a.status, string(a.body))
	var made struct{ ID string }
	a.into(t, &made)
	a = b.send(b.everything, http.MethodGet, "/api/jobs/"+made.ID, nil)
	assert.NotContains(t, string(a.body), "XX00-TEST")
	assert.Contains(t, string(a.body), `"account_id":"a1"`)
	assert.Contains(t, string(a.body), key.Recipient().String())

	a = b.send(b.token("", tokens.ScopeRead, tokens.ScopeOperate), http.MethodPost, "/api/jobs/"+made.ID+"/decrypt", nil)
	assert.Equal(t, http.StatusForbidden, a.status)
	a = b.send(b.token("other", tokens.ScopeDecrypt), http.MethodPost, "/api/jobs/"+made.ID+"/decrypt", nil)
	assert.Equal(t, http.StatusNotFound, a.status)
	a = b.send(b.token("acme", tokens.ScopeDecrypt), http.MethodPost, "/api/jobs/"+made.ID+"/decrypt", nil)
	require.Equal(t, http.StatusOK, a.status, string(a.body))
	assert.Contains(t, string(a.body), `"payload":{"account_id":"a1","iban":"XX00-TEST"}`)
	list, err := actions.List(t.Context(), b.Pool, actions.Filter{})
	require.NoError(t, err)
	assert.Equal(t, "jobs.decrypt", list[0].Action)
	assert.Equal(t, made.ID, list[0].Subject)
	assert.Equal(t, "acme", *list[0].OrgID)
}

// TestEncryptionWithoutKeys asks a server for it that has none.
func TestEncryptionWithoutKeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.send(b.everything, http.MethodPost, "/api/jobs/enqueue", object{
		"orgId": "acme", "type": "payout", "payload": object{"iban": "XX00-TEST"}, "encrypt": []string{"iban"},
	})
	assert.Equal(t, "KEY_UNKNOWN", a.code(), string(a.body))
	assert.Equal(t, http.StatusConflict, a.status)
	id := b.enqueue(object{"payload": object{"$encrypted": object{"key": "age1", "wrapped": "", "data": ""}}})
	a = b.send(b.everything, http.MethodPost, "/api/jobs/"+id+"/decrypt", nil)
	assert.Equal(t, "KEY_UNKNOWN", a.code(), string(a.body))
}
