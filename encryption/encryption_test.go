package encryption_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"filippo.io/age"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/encryption"
)

var payoutOf = encryption.Of{OrgID: "acme", JobType: "payout", Use: encryption.Payload}

// service is a key management service of the plainest kind: it keeps data keys by a number.
type service struct {
	mu    sync.Mutex
	kept  [][]byte
	calls int
}

func (s *service) Wrap(_ context.Context, dataKey []byte) (keyID string, wrapped []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, bytes.Clone(dataKey))
	s.calls++
	return "master/1", fmt.Append(nil, len(s.kept)-1), nil
}

func (s *service) Unwrap(_ context.Context, keyID string, wrapped []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	var n int
	if _, err := fmt.Sscan(string(wrapped), &n); err != nil || keyID != "master/1" || n >= len(s.kept) {
		return nil, encryption.ErrKeyUnknown
	}
	return s.kept[n], nil
}

func TestMembers(t *testing.T) {
	t.Parallel()
	keys := &service{}
	c := encryption.New(keys)
	object := json.RawMessage(`{"account": "a", "iban": "XX00", "lines": [1.50, {"n": 9007199254740993}]}`)
	for name, members := range map[string][]string{
		"some": {"iban", "lines", "absent"}, "all": {encryption.AllMembers},
	} {
		hidden, err := c.EncryptMembers(t.Context(), payoutOf, object, members)
		require.NoError(t, err, name)
		assert.NotContains(t, string(hidden), "XX00", name)
		assert.Equal(t, "master/1", encryption.KeyOf(hidden), name)
		assert.True(t, encryption.Encrypts(hidden, members), name)
		plain, err := c.Decrypt(t.Context(), payoutOf, hidden)
		require.NoError(t, err, name)
		assert.JSONEq(t, string(object), string(plain), name)
		assert.Contains(t, string(plain), "9007199254740993", "numbers stay as they are written")
	}
	same, err := c.EncryptMembers(t.Context(), payoutOf, object, []string{"absent"})
	require.NoError(t, err)
	assert.Equal(t, object, same)
	assert.False(t, encryption.Encrypts(object, []string{"iban"}))
	assert.Empty(t, encryption.KeyOf(object))
	assert.Empty(t, encryption.KeyOf(json.RawMessage(`["$encrypted"]`)))
	_, err = c.EncryptMembers(t.Context(), payoutOf, json.RawMessage(`{"$encrypted": 1, "iban": "x"}`), []string{"iban"})
	require.ErrorIs(t, err, encryption.ErrReserved)
	assert.Equal(t, 2, keys.calls, "one data key serves all, wrapped once and unwrapped once")
}

func TestValuesOfAnyKind(t *testing.T) {
	t.Parallel()
	c := encryption.New(&service{})
	for _, value := range []string{`"text"`, `null`, `17`, `[1,2]`, `{"a":1}`, `{}`} {
		hidden, err := c.Encrypt(t.Context(), payoutOf, json.RawMessage(value))
		require.NoError(t, err)
		plain, err := c.Decrypt(t.Context(), payoutOf, hidden)
		require.NoError(t, err)
		assert.Equal(t, value, string(plain))
		same, err := c.Decrypt(t.Context(), payoutOf, json.RawMessage(value))
		require.NoError(t, err)
		assert.Equal(t, value, string(same), "what is not encrypted stays")
	}
}

// TestValuesAreAuthentic alters each byte of an encrypted value, and asks for it as another one.
func TestValuesAreAuthentic(t *testing.T) {
	t.Parallel()
	c := encryption.New(&service{})
	hidden, err := c.Encrypt(t.Context(), payoutOf, json.RawMessage(`"secret"`))
	require.NoError(t, err)
	for _, of := range []encryption.Of{
		{OrgID: "other", JobType: "payout", Use: encryption.Payload},
		{OrgID: "acme", JobType: "refund", Use: encryption.Payload},
		{OrgID: "acme", JobType: "payout", Use: encryption.Result},
	} {
		_, err := c.Decrypt(t.Context(), of, hidden)
		require.ErrorIs(t, err, encryption.ErrNotAuthentic, of)
	}
	var stored map[string]map[string]any
	require.NoError(t, json.Unmarshal(hidden, &stored))
	data, ok := stored[encryption.Member]["data"].(string)
	require.True(t, ok)
	for i := range data {
		changed := []byte(data)
		if changed[i] = 'A'; data[i] == 'A' {
			changed[i] = 'B'
		}
		altered := bytes.Replace(hidden, []byte(data), changed, 1)
		plain, err := c.Decrypt(t.Context(), payoutOf, altered)
		// The last character before the padding has bits that no byte has.
		if err == nil {
			assert.Equal(t, `"secret"`, string(plain))
			assert.Greater(t, i, len(data)-4)
		}
	}
}

func TestFileOfKeys(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.txt")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	_, err := encryption.FromFile(path)
	require.ErrorIs(t, err, encryption.ErrKeyFile, "there is no file")
	for text, says := range map[string]string{
		"": "holds no key", "# only a comment\n": "holds no key", "\nAGE-SECRET-KEY-1MISTYPED": "line 2",
	} {
		write(text)
		_, err := encryption.FromFile(path)
		require.ErrorIs(t, err, encryption.ErrKeyFile, text)
		assert.ErrorContains(t, err, says)
		assert.NotContains(t, err.Error(), "MISTYPED", "an error never quotes a key")
	}
	key, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	write("# created: today\n# public key: " + key.Recipient().String() + "\n" + key.String() + "\n")
	both, err := encryption.FromFile(path)
	require.NoError(t, err)

	public := filepath.Join(t.TempDir(), "public.txt")
	require.NoError(t, os.WriteFile(public, []byte(key.Recipient().String()), 0o600))
	sender, err := encryption.FromFile(public)
	require.NoError(t, err)
	hidden, err := sender.Encrypt(t.Context(), payoutOf, json.RawMessage(`"x"`))
	require.NoError(t, err)
	assert.Equal(t, key.Recipient().String(), encryption.KeyOf(hidden))
	_, err = sender.Decrypt(t.Context(), payoutOf, hidden)
	require.ErrorIs(t, err, encryption.ErrKeyUnknown, "public keys alone cannot decrypt")
	plain, err := both.Decrypt(t.Context(), payoutOf, hidden)
	require.NoError(t, err)
	assert.Equal(t, `"x"`, string(plain))
	assert.Less(t, len(hidden), 400, strings.Repeat("-", len(hidden)))
}

func BenchmarkEncrypt(b *testing.B) {
	c := encryption.New(&service{})
	object := json.RawMessage(`{"account": "a", "iban": "XX00", "name": "a name of some length"}`)
	for b.Loop() {
		hidden, err := c.EncryptMembers(b.Context(), payoutOf, object, []string{"iban", "name"})
		if err == nil {
			_, err = c.Decrypt(b.Context(), payoutOf, hidden)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
