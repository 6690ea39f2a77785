package models

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
)

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

// SignedText is what the signature of a closing signs.
func (c *Closing) SignedText() string { return "daybook closing " + c.Hash }

// Sign signs the closing: Signature and KeyID are the key's after it.
func (c *Closing) Sign(key ed25519.PrivateKey) {
	c.Signature = ed25519.Sign(key, []byte(c.SignedText()))
	public, _ := key.Public().(ed25519.PublicKey)
	c.KeyID = ClosingKeyID(public)
}

// SignedBy reports whether the closing has a signature of the key, and of what the closing is.
// It does not compute the hash anew, which daybook.closing_hash does.
func (c *Closing) SignedBy(key ed25519.PublicKey) bool {
	return len(c.Signature) == ed25519.SignatureSize && ed25519.Verify(key, []byte(c.SignedText()), c.Signature)
}
