package models

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"reflect"

	"github.com/daybook-dev/daybook/failure"
)

// ErrClosingKey: what is to sign closings is no Ed25519 key, or signs with another key than its
// public one.
var ErrClosingKey = failure.New(failure.Misuse, "closings are signed by an Ed25519 key")

// ClosingKeyID names a key that signs closings: the first 16 bytes of the SHA-256 of its DER form,
// in hexadecimal.
func ClosingKeyID(key ed25519.PublicKey) string {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "" // no ed25519.PublicKey fails
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:16])
}

// ClosingPublicKey is the public key of one that signs closings: an ed25519.PrivateKey, or a key
// in hardware or in a service, whose Public is an ed25519.PublicKey. Of a key that is nil it is nil.
//
// Errors: ErrClosingKey.
func ClosingPublicKey(key crypto.Signer) (ed25519.PublicKey, error) {
	switch v := reflect.ValueOf(key); v.Kind() { //nolint:exhaustive // the kinds of keys that can be nil
	case reflect.Invalid:
		return nil, nil
	case reflect.Pointer, reflect.Slice:
		if v.IsNil() {
			return nil, nil
		}
	}
	if private, ok := key.(ed25519.PrivateKey); ok && len(private) != ed25519.PrivateKeySize {
		return nil, fmt.Errorf("%w: this one has %d bytes, not %d", ErrClosingKey, len(private), ed25519.PrivateKeySize)
	}
	public, ok := key.Public().(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("%w: the public key of this one is a %T, not an ed25519.PublicKey", ErrClosingKey, key.Public())
	}
	if len(public) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("%w: the public key of this one has %d bytes, not %d", ErrClosingKey, len(public), ed25519.PublicKeySize)
	}
	return public, nil
}

// SignedText is what the signature of a closing signs.
func (c *Closing) SignedText() string { return "daybook closing " + c.Hash }

// Sign signs the closing: Signature and KeyID are the key's after it. A key that is nil signs
// nothing.
//
// Errors: ErrClosingKey, and those of the key.
func (c *Closing) Sign(key crypto.Signer) error {
	public, err := ClosingPublicKey(key)
	if err != nil || public == nil {
		return err
	}
	signed := *c
	// No hash: Ed25519 signs the text itself.
	if signed.Signature, err = key.Sign(rand.Reader, []byte(c.SignedText()), crypto.Hash(0)); err != nil {
		return fmt.Errorf("sign closing %d: %w", c.Number, err)
	}
	if !signed.SignedBy(public) {
		return fmt.Errorf("%w: the signature of this one is not one of its public key", ErrClosingKey)
	}
	c.Signature, c.KeyID = signed.Signature, ClosingKeyID(public)
	return nil
}

// SignedBy reports whether the closing has a signature of the key, and of what the closing is.
// It does not compute the hash anew, which daybook.closing_hash does.
func (c *Closing) SignedBy(key ed25519.PublicKey) bool {
	return len(c.Signature) == ed25519.SignatureSize && ed25519.Verify(key, []byte(c.SignedText()), c.Signature)
}
