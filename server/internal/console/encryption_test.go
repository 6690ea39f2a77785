package console_test

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
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/server/internal/console"
)

// TestEncryptedJob is shown in plain on demand, to those who may.
func TestEncryptedJob(t *testing.T) {
	t.Parallel()
	key, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "keys.txt")
	require.NoError(t, os.WriteFile(path, []byte(key.String()), 0o600))
	cipher, err := encryption.FromFile(path)
	require.NoError(t, err)
	s := newSiteWith(t, func(o *console.Options) { o.Encryption = cipher })
	made, err := queue.EnqueueJob(t.Context(), s.Pool, "acme",
		queue.RawPayload{Type: "letter", Data: []byte(`{"to": "a1", "text": "quite private"}`)},
		queue.JobOptions{Encryption: cipher, Encrypt: []string{"text"}})
	require.NoError(t, err)

	s.signIn("acme", tokens.ScopeRead, tokens.ScopeOperate)
	_, body := s.get("/console/jobs/" + made.ID)
	assert.Contains(t, body, key.Recipient().String())
	assert.NotContains(t, body, "quite private")
	assert.NotContains(t, body, "Show in plain")
	status, _ := s.post("/console/jobs/"+made.ID+"/decrypt", nil)
	assert.Equal(t, http.StatusForbidden, status)

	s.signIn("acme", tokens.ScopeRead, tokens.ScopeDecrypt)
	_, body = s.get("/console/jobs/" + made.ID)
	assert.Contains(t, body, "Show in plain")
	status, body = s.post("/console/jobs/"+made.ID+"/decrypt", nil)
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, body, "quite private")
	assert.NotContains(t, body, "Show in plain")
	list, err := actions.List(t.Context(), s.Pool, actions.Filter{})
	require.NoError(t, err)
	assert.Equal(t, "jobs.decrypt", list[0].Action)
	assert.Equal(t, made.ID, list[0].Subject)
	assert.Equal(t, actions.Done, list[0].Outcome)
}
