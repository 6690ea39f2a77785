package queue

import (
	"context"
	"slices"

	"github.com/daybook-dev/daybook/encryption"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/payload"
	"github.com/daybook-dev/daybook/internal/store"
)

// EncryptedPayload is a payload of which members are encrypted in the database, with the job's
// result, progress and errors: docs/encryption.md.
type EncryptedPayload interface {
	Payload
	// EncryptedMembers are names of members of the JSON object, or encryption.AllMembers alone. They
	// must not depend on the value.
	EncryptedMembers() []string
}

var (
	// ErrNoEncryption: members are named to be encrypted, and there are no keys.
	ErrNoEncryption = failure.New(failure.KeyUnknown,
		"members of the payload are to be encrypted, and there are no keys: set JobOptions.Encryption")
	// ErrEncryptedUnique: a payload with encrypted members cannot be compared with those of other
	// jobs.
	ErrEncryptedUnique = failure.New(failure.Misuse, "a job with encrypted members cannot be Unique, because encrypted "+
		"payloads differ each time: give it an IdempotencyKey or a Sequence")
)

// checkEncryption refuses what is not encrypted as its payload asks for.
func checkEncryption(j NewJob) error {
	switch {
	case len(encryptedMembers(j)) == 0:
		return nil
	case j.Options.Encryption == nil:
		return ErrNoEncryption
	case j.Options.Unique:
		return ErrEncryptedUnique
	}
	return nil
}

// encryptedMembers are those that a job's options and payload name.
func encryptedMembers(j NewJob) []string {
	if p, ok := j.Payload.(EncryptedPayload); ok {
		return slices.Concat(p.EncryptedMembers(), j.Options.Encrypt)
	}
	return j.Options.Encrypt
}

// encryptedRow checks a job, writes its payload and encrypts what the payload names.
func encryptedRow(ctx context.Context, j NewJob) (store.NewJob, error) {
	row, err := newJobRow(j)
	members := encryptedMembers(j)
	if err != nil || len(members) == 0 {
		return row, err
	}
	of := encryption.Of{OrgID: j.OrgID, JobType: row.Type, Use: encryption.Payload}
	row.Payload, err = j.Options.Encryption.EncryptMembers(ctx, of, row.Payload, members)
	if err == nil {
		err = payload.Check(row.Payload)
	}
	return row, err
}
