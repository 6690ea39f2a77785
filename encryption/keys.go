package encryption

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"strings"

	"filippo.io/age"

	"github.com/daybook-dev/daybook/failure"
)

// DataKeyBytes is the length of a data key.
const DataKeyBytes = 16

// Keys wraps data keys. It is safe for concurrent use. FromFile has one of age keys; for a key
// management service implement it and call New.
type Keys interface {
	// Wrap encrypts a data key of DataKeyBytes under the key for new values, and names that key: 1 to
	// 255 bytes of ASCII. It is called about once in ten minutes.
	Wrap(ctx context.Context, dataKey []byte) (keyID string, wrapped []byte, err error)
	// Unwrap decrypts what Wrap has encrypted under the key of that name. Its error is ErrKeyUnknown
	// when there is no such key here. It is called once in ten minutes for each wrapped data key that
	// is met.
	Unwrap(ctx context.Context, keyID string, wrapped []byte) (dataKey []byte, err error)
}

var (
	// ErrKeyUnknown: the key under which a value was encrypted is not among the keys here. It has not
	// come yet, or was erased.
	ErrKeyUnknown = failure.New(failure.KeyUnknown, "the key of the encrypted value is not here")
	// ErrKeyFile: a file of keys cannot be read, or holds what is no key.
	ErrKeyFile = failure.New(failure.Usage, "the file of encryption keys is wrong")
)

// keyFile is a file of age keys. It is read anew for each data key, so that a key that is added or
// erased counts without a restart.
type keyFile struct{ path string }

// FromFile returns a cipher with the age keys of a file, in the form that age-keygen writes: one key
// a line, X25519 only; empty lines and those that begin with # are passed over. The last key is for
// new values. A program that only enqueues may have public keys alone (age1…), and cannot decrypt.
//
// The name of a key is its public key. Errors: ErrKeyFile.
func FromFile(path string) (*Cipher, error) {
	f := keyFile{path}
	if _, err := f.read(); err != nil {
		return nil, err
	}
	return New(f), nil
}

// ageKeys are the keys of a file: private ones by the name of their public key.
type ageKeys struct {
	identities map[string]*age.X25519Identity
	last       *age.X25519Recipient
}

func (f keyFile) read() (ageKeys, error) {
	raw, err := os.ReadFile(f.path)
	if err != nil {
		return ageKeys{}, fmt.Errorf("%w: %w", ErrKeyFile, err)
	}
	keys := ageKeys{identities: map[string]*age.X25519Identity{}}
	number := 0
	for lines := bufio.NewScanner(bytes.NewReader(raw)); lines.Scan(); {
		number++
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		identity, err := age.ParseX25519Identity(line)
		if err == nil {
			keys.last = identity.Recipient()
			keys.identities[keys.last.String()] = identity
			continue
		}
		// The error would hold the line, which may be a private key that was mistyped.
		if keys.last, err = age.ParseX25519Recipient(line); err != nil {
			return ageKeys{}, fmt.Errorf("%w: line %d of %s is no X25519 key of age (AGE-SECRET-KEY-1… or age1…)",
				ErrKeyFile, number, f.path)
		}
	}
	if keys.last == nil {
		return ageKeys{}, fmt.Errorf("%w: %s holds no key: make one with age-keygen -o %[2]s", ErrKeyFile, f.path)
	}
	return keys, nil
}

// shareBytes is the length of the public share with which age's X25519 stanzas begin.
const shareBytes = 32

// Wrap implements Keys.
func (f keyFile) Wrap(_ context.Context, dataKey []byte) (keyID string, wrapped []byte, err error) {
	keys, err := f.read()
	if err != nil {
		return "", nil, err
	}
	stanzas, err := keys.last.Wrap(dataKey)
	if err != nil {
		return "", nil, err
	}
	share, err := base64.RawStdEncoding.DecodeString(stanzas[0].Args[0])
	return keys.last.String(), append(share, stanzas[0].Body...), err
}

// Unwrap implements Keys.
func (f keyFile) Unwrap(_ context.Context, keyID string, wrapped []byte) ([]byte, error) {
	keys, err := f.read()
	if err != nil {
		return nil, err
	}
	identity := keys.identities[keyID]
	if identity == nil {
		return nil, fmt.Errorf("%w: %s has no private key of %.80q", ErrKeyUnknown, f.path, keyID)
	}
	if len(wrapped) <= shareBytes {
		return nil, ErrNotAuthentic
	}
	dataKey, err := identity.Unwrap([]*age.Stanza{{
		Type: "X25519", Args: []string{base64.RawStdEncoding.EncodeToString(wrapped[:shareBytes])}, Body: wrapped[shareBytes:],
	}})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotAuthentic, err)
	}
	return dataKey, nil
}
