package cli

import "github.com/daybook-dev/daybook/encryption"

// Encryption is the cipher with the keys that the environment names, which all parts of the program
// share; nil: it names none.
func (a *App) Encryption() (*encryption.Cipher, error) {
	a.encrypting.Do(func() {
		if a.Environment.EncryptionKeys != "" {
			a.cipher, a.keysError = encryption.FromFile(a.Environment.EncryptionKeys)
		}
	})
	return a.cipher, a.keysError
}
