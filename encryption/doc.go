// Package encryption keeps payloads, results, progress and errors of background jobs unreadable in
// the database, its backups and the archive. What is encrypted is bound to its organization, its
// job type and its use, so that a row cannot be made to show another's.
//
//	type Payout struct {
//		AccountID string `json:"account_id"` // stays plain
//		IBAN      string `json:"iban"`
//	}
//
//	func (Payout) JobType() string            { return "payout" }
//	func (Payout) EncryptedMembers() []string { return []string{"iban"} }
//
//	keys, err := encryption.FromFile("/etc/daybook/keys.txt") // as age-keygen writes it
//	…
//	registry.Encrypt(keys) // the worker's
//	queue.EnqueueJob(ctx, tx, "acme", Payout{…}, queue.JobOptions{Encryption: keys})
//
// A value is encrypted by AES-256-GCM under a data key that lives for ten minutes; the data key is
// stored beside the value, wrapped by a key that only Keys knows. A value can be read for as long
// as that key is there: new keys rewrite nothing, and without its key a value is lost.
package encryption
