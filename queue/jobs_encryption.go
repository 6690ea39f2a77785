package queue

import (
	"context"
	"encoding/json"
	"fmt"
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
		"members of the payload are to be encrypted, and there are no keys: set JobOptions.Encryption, or "+
			"DAYBOOK_ENCRYPTION_KEYS for the command and the server")
	// ErrNoSuchMember: JobOptions.Encrypt or EditOptions.Encrypt names a member that the payload has
	// not: stored as it is, a misspelled one would stay in plain.
	ErrNoSuchMember = failure.New(failure.PayloadInvalid, "the payload has no such member to encrypt")
	// ErrEncryptedUnique: a payload with encrypted members cannot be compared or merged with those of
	// other jobs.
	ErrEncryptedUnique = failure.New(failure.Misuse, "a job with encrypted members cannot be Unique or "+
		"KeepMerged, because encrypted payloads differ each time: give it an IdempotencyKey, or debounce it by KeepNewest")
)

// checkEncryption refuses what is not encrypted as its payload asks for.
func checkEncryption(j NewJob) error {
	switch {
	case len(encryptedMembers(j)) == 0:
		return nil
	case j.Options.Encryption == nil:
		return ErrNoEncryption
	case j.Options.Unique, j.Options.Debounce.Keep == KeepMerged:
		return ErrEncryptedUnique
	}
	return nil
}

// encryptedMembers are those that a job's options and payload name.
func encryptedMembers(j NewJob) []string { return membersOf(j.Payload, j.Options.Encrypt) }

func membersOf(p Payload, further []string) []string {
	if e, ok := p.(EncryptedPayload); ok {
		return slices.Concat(e.EncryptedMembers(), further)
	}
	return further
}

// encryptedRow checks a job, writes its payload and encrypts what the payload names.
func encryptedRow(ctx context.Context, j NewJob) (store.NewJob, error) {
	row, err := newJobRow(j)
	members := encryptedMembers(j)
	if err != nil || len(members) == 0 {
		return row, err
	}
	if err := checkNamed(row.Payload, j.Options.Encrypt); err != nil {
		return row, err
	}
	row.Payload, err = encryptedJSON(ctx, j.Options.Encryption, j.OrgID, row.Type, row.Payload, members)
	return row, err
}

// checkNamed refuses names of members that a payload has not.
func checkNamed(raw json.RawMessage, names []string) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	for _, name := range names {
		if _, there := all[name]; !there && name != encryption.AllMembers {
			return fmt.Errorf("%w: %q: correct the name, or leave it out", ErrNoSuchMember, name)
		}
	}
	return nil
}

func encryptedJSON(ctx context.Context, c *encryption.Cipher, org, jobType string, raw json.RawMessage,
	members []string,
) (json.RawMessage, error) {
	of := encryption.Of{OrgID: org, JobType: jobType, Use: encryption.Payload}
	out, err := c.EncryptMembers(ctx, of, raw, members)
	if err == nil {
		err = payload.Check(out)
	}
	return out, err
}

// encryptedEdit is a job's new payload with its members encrypted.
func encryptedEdit(ctx context.Context, q Querier, jobID, jobType string, raw json.RawMessage, members []string,
	c *encryption.Cipher,
) (json.RawMessage, error) {
	if c == nil {
		return nil, ErrNoEncryption
	}
	org, err := store.OrganizationOfJob(ctx, q, jobID)
	if err != nil {
		return nil, err
	}
	return encryptedJSON(ctx, c, org, jobType, raw, members)
}
