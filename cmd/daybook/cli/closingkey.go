package cli

import (
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"os"
)

// ClosingKey is the private key that signs closings, which the environment names; nil: it names
// none.
func (a *App) ClosingKey() (crypto.Signer, error) {
	path := a.Environment.ClosingKey
	if path == "" {
		return nil, nil //nolint:nilnil // closings are not signed
	}
	parsed, err := readPEM(path, x509.ParsePKCS8PrivateKey)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, Usagef("DAYBOOK_CLOSING_KEY: %s has no private Ed25519 key (`openssl genpkey -algorithm ed25519` makes one)", path)
	}
	return key, nil
}

// ClosingPublicKey reads the public key of those that sign closings.
func ClosingPublicKey(path string) (ed25519.PublicKey, error) {
	parsed, err := readPEM(path, x509.ParsePKIXPublicKey)
	key, ok := parsed.(ed25519.PublicKey)
	if err == nil && !ok {
		err = Usagef("%s has no public Ed25519 key (`openssl pkey -pubout` writes that of a private one)", path)
	}
	return key, err
}

// readPEM reads the first block of a file of PEM; one that is none is nil.
func readPEM(path string, parse func(der []byte) (any, error)) (any, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, Usagef("the key: %v", err)
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return nil, nil //nolint:nilnil // the callers say what it has to be
	}
	key, err := parse(block.Bytes)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // the callers say what it has to be, and no error tells of a key
	}
	return key, nil
}
