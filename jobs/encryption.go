package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/encryption"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/telemetry/span"
	"github.com/daybook-dev/daybook/models"
)

// Encrypt has the worker decrypt payloads that were encrypted when they were enqueued, and encrypt
// the results, progress and errors of their jobs. Handlers, middleware and the error handler see all
// in plain. It panics when a worker uses the registry already.
func (r *Registry) Encrypt(c *encryption.Cipher) {
	r.mayChange("Encrypt")
	r.encryption = c
}

// checkEncrypted panics when the payload has not the members that it names.
func (t *registered) checkEncrypted() {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(t.schema.JSON(), &schema); err != nil || len(schema.Properties) == 0 {
		return // it writes its own JSON
	}
	for _, name := range t.encrypted {
		if _, has := schema.Properties[name]; !has && (name != encryption.AllMembers || len(t.encrypted) > 1) {
			panic(fmt.Sprintf("jobs: EncryptedMembers of %s names %q, which is no member of its payload: give the names of "+
				"its JSON, or encryption.AllMembers alone", t.jobType, name))
		}
	}
}

// checkLimitedBy panics when the type's limit is by a member that is encrypted.
func (t *registered) checkLimitedBy() {
	path, ofPayload := strings.CutPrefix(t.policy.Limit.By, "payload.")
	member, _, _ := strings.Cut(path, ".")
	if ofPayload && (slices.Contains(t.encrypted, member) || slices.Contains(t.encrypted, encryption.AllMembers)) {
		panic(fmt.Sprintf("jobs: Limit of %s is by %s, which EncryptedMembers has encrypted: the database must read it. "+
			"Leave that member plain, or give each job a LimitKey", t.jobType, t.policy.Limit.By))
	}
}

// of names a value of a job.
func of(job store.Job, use encryption.Use) encryption.Of {
	return encryption.Of{OrgID: job.OrgID, JobType: job.Type, Use: use}
}

// confidential reports whether what a job says is encrypted: its payload is, or its type says so.
func (t *registered) confidential(job store.Job) bool {
	return len(t.encrypted) > 0 || encryption.KeyOf(job.Payload) != ""
}

// open returns the job with its payload in plain. An attempt whose payload could not be read has its
// error on record in plain: nothing of the payload can be in it, and it may name the key that is
// missing.
func (t *registered) open(ctx context.Context, job store.Job) (store.Job, error) {
	if !t.confidential(job) {
		return job, nil
	}
	if !encryption.Encrypts(job.Payload, t.encrypted) {
		return job, WithCode(models.CodeNotEncrypted, fmt.Errorf("the payload has members in plain that %s encrypts: "+
			"enqueue it by package queue with JobOptions.Encryption, or by a server that has the keys", t.jobType))
	}
	if t.registry.encryption == nil {
		return job, WithCode(models.CodeKeyUnknown, errors.New("the payload is encrypted, and this worker has no keys: "+
			"set DAYBOOK_ENCRYPTION_KEYS, or call Registry.Encrypt"))
	}
	plain, err := t.registry.encryption.Decrypt(ctx, of(job, encryption.Payload), job.Payload)
	switch {
	case errors.Is(err, encryption.ErrKeyUnknown):
		return job, WithCode(models.CodeKeyUnknown, err)
	case errors.Is(err, encryption.ErrNotAuthentic):
		return job, WithCode(models.CodePayloadInvalid, err)
	case err != nil:
		return job, err
	}
	job.Payload = plain
	return job, nil
}

// private encrypts and decrypts what is kept of a job; nil: all is kept as it is.
type private struct {
	cipher *encryption.Cipher
	job    store.Job
}

// private is for a job as it is stored; nil: its type encrypts nothing.
func (t *registered) private(job store.Job) *private {
	if t.registry.encryption == nil || !t.confidential(job) {
		return nil
	}
	return &private{t.registry.encryption, job}
}

// context is one in which spans say nothing of what is encrypted.
func (p *private) context(ctx context.Context) context.Context {
	if p == nil {
		return ctx
	}
	return span.Private(ctx)
}

func (p *private) seal(ctx context.Context, use encryption.Use, v json.RawMessage) (json.RawMessage, error) {
	if p == nil {
		return v, nil
	}
	return p.cipher.Encrypt(ctx, of(p.job, use), v)
}

func (p *private) open(ctx context.Context, use encryption.Use, v json.RawMessage) (json.RawMessage, error) {
	if p == nil {
		return v, nil
	}
	return p.cipher.Decrypt(ctx, of(p.job, use), v)
}

// errorText is an error that is on record, in plain, or as it is kept when that cannot be.
func (p *private) errorText(ctx context.Context, kept string) string {
	if p == nil {
		return kept
	}
	var text string
	plain, err := p.open(ctx, encryption.ErrorOf, json.RawMessage(kept))
	if err != nil || json.Unmarshal(plain, &text) != nil {
		return kept
	}
	return text
}

const (
	// errorBytes is how much of an error's text is encrypted at first, and hiddenBytes how long the
	// outcome may be: the database cuts longer ones, which then could not be decrypted.
	errorBytes, hiddenBytes = 2048, 4096
	// hideLimit is how long the keys may take: the attempt waits for them to end.
	hideLimit = 5 * time.Second
)

// hider encrypts what is put on record of an error; nil: the job's type encrypts nothing.
func (p *private) hider() func(message string) string {
	if p == nil {
		return nil
	}
	return p.hide
}

func (p *private) hide(message string) string {
	ctx, cancel := context.WithTimeout(context.Background(), hideLimit)
	defer cancel()
	for most := errorBytes; ; most /= 2 {
		text, err := json.Marshal(strings.ToValidUTF8(message[:min(len(message), most)], ""))
		var hidden json.RawMessage
		if err == nil {
			hidden, err = p.seal(ctx, encryption.ErrorOf, text)
		}
		if err != nil {
			return "the error's text is not kept, because it could not be encrypted"
		}
		if len(hidden) <= hiddenBytes {
			return string(hidden)
		}
	}
}
