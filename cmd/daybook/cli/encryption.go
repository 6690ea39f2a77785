package cli

import "github.com/daybook-dev/daybook/encryption"

// Encryption is the cipher with the keys that the environment names; nil: it names none.
func (a *App) Encryption() (*encryption.Cipher, error) {
	if a.Environment.EncryptionKeys == "" {
		return nil, nil //nolint:nilnil // that there are no keys is no error
	}
	return encryption.FromFile(a.Environment.EncryptionKeys)
}
