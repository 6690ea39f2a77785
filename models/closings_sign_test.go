package models_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/models"
)

// signer is a key that is in hardware or in a service.
type signer struct {
	public crypto.PublicKey
	sign   func(message []byte, o crypto.SignerOpts) ([]byte, error)
}

func (s *signer) Public() crypto.PublicKey { return s.public }

func (s *signer) Sign(_ io.Reader, message []byte, o crypto.SignerOpts) ([]byte, error) {
	return s.sign(message, o)
}

func TestClosingsAreSignedByAnySigner(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	remote := &signer{public, func(message []byte, o crypto.SignerOpts) ([]byte, error) { return private.Sign(nil, message, o) }}
	for _, key := range []crypto.Signer{private, remote} {
		c := models.Closing{Number: 1, Hash: "00"}
		require.NoError(t, c.Sign(key))
		assert.True(t, c.SignedBy(public))
		assert.Equal(t, models.ClosingKeyID(public), c.KeyID)
	}
	for _, key := range []crypto.Signer{nil, ed25519.PrivateKey(nil), (*signer)(nil), (*ed25519.PrivateKey)(nil)} {
		c := models.Closing{Number: 1, Hash: "00"}
		require.NoError(t, c.Sign(key), "%T", key)
		assert.Equal(t, models.Closing{Number: 1, Hash: "00"}, c, "%T signs nothing", key)
	}
}

func TestKeysThatCannotSignClosings(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	other, _, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	for says, key := range map[string]crypto.Signer{
		"*ecdsa.PublicKey, not an ed25519.PublicKey": curve,
		"this one has 31 bytes, not 64":              private[:31],
		"the public key of this one has 0 bytes":     &signer{public: ed25519.PublicKey(nil)},
		"is not one of its public key": &signer{other, func(message []byte, o crypto.SignerOpts) ([]byte, error) {
			return private.Sign(nil, message, o)
		}},
	} {
		c := models.Closing{Number: 1, Hash: "00"}
		err := c.Sign(key)
		require.ErrorIs(t, err, models.ErrClosingKey, says)
		require.ErrorContains(t, err, says)
		assert.Equal(t, "MISUSE", failure.Of(err).Code)
		assert.Equal(t, models.Closing{Number: 1, Hash: "00"}, c, says)
	}
	unreachable := errors.New("the service does not answer")
	c := models.Closing{Number: 1, Hash: "00"}
	err = c.Sign(&signer{public, func([]byte, crypto.SignerOpts) ([]byte, error) { return nil, unreachable }})
	require.ErrorIs(t, err, unreachable)
	require.ErrorContains(t, err, "sign closing 1")
	assert.Nil(t, c.Signature)
}
