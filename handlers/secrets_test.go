package handlers

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models"
)

func TestSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "orders"), []byte("from the file\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "empty"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "smtp.password"), []byte("hunter2"), 0o600))
	s := environmentSecrets(map[string]string{
		"DAYBOOK_SECRETS_DIR": dir, "DAYBOOK_WEBHOOK_SECRET_BIG_SHOP": " from the environment ",
		"DAYBOOK_WEBHOOK_SECRET_BLANK": " ",
		"DAYBOOK_SECRET_ORGS_BIG_SHOP": "*", "DAYBOOK_SECRET_ORGS_ORDERS": org,
	})

	v, err := s.named(org, "WEBHOOK_SECRET_", "big-shop", "")
	require.NoError(t, err)
	assert.Equal(t, "from the environment", v)
	v, err = s.named(org, "WEBHOOK_SECRET_", "orders", "")
	require.NoError(t, err)
	assert.Equal(t, "from the file", v)
	for _, name := range []string{"missing", "empty", "blank"} {
		_, err = s.named(org, "WEBHOOK_SECRET_", name, "")
		require.ErrorIs(t, err, errNoSecret, name)
		var f *failure
		require.ErrorAs(t, err, &f)
		assert.Equal(t, models.CodeAuthenticationFailed, f.code, name)
		assert.ErrorContains(t, err, "DAYBOOK_WEBHOOK_SECRET_", name)
	}
	for _, name := range []string{"", "../orders", "smtp.password", "Orders", "a/b", "-a", "a b", ".", "a\x00"} {
		_, err = s.named(org, "WEBHOOK_SECRET_", name, "")
		var f *failure
		require.ErrorAs(t, err, &f, name)
		assert.Equal(t, models.CodePayloadInvalid, f.code, name)
	}
	_, err = Secrets{Lookup: func(string) (string, bool) { return "", false }}.find("DAYBOOK_X", "x")
	require.ErrorContains(t, err, "DAYBOOK_SECRETS_DIR")
}
