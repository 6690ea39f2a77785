package answers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/daybook-dev/daybook/encryption"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/models"
)

// Decrypt replaces what is encrypted of a job, of its earlier payloads, and of the attempts that are
// shown with it, by what it was. c is nil where there are no keys. Errors: encryption.ErrKeyUnknown and
// encryption.ErrNotAuthentic.
func Decrypt(ctx context.Context, c *encryption.Cipher, d *listing.JobDetail) error {
	switch {
	case c == nil && encryption.KeyOf(d.Payload) == "":
		return nil // it is in plain
	case c == nil:
		return fmt.Errorf("%w: set DAYBOOK_ENCRYPTION_KEYS to the file of keys", encryption.ErrKeyUnknown)
	}
	opened := func(use encryption.Use, v json.RawMessage) (json.RawMessage, error) {
		return c.Decrypt(ctx, encryption.Of{OrgID: d.OrgID, JobType: d.Type, Use: use}, v)
	}
	type kept struct {
		use encryption.Use
		v   *json.RawMessage
	}
	values := []kept{{encryption.Payload, &d.Payload}, {encryption.Result, &d.Result}, {encryption.Progress, &d.Progress}}
	for i := range d.Steps {
		values = append(values, kept{encryption.Step, &d.Steps[i].Result})
	}
	for _, k := range values {
		plain, err := opened(k.use, *k.v)
		if err != nil {
			return err
		}
		*k.v = plain
	}
	texts := []*string{d.LastError}
	for i := range d.Attempts {
		texts = append(texts, d.Attempts[i].Error)
	}
	for _, e := range texts {
		if e == nil || encryption.KeyOf(json.RawMessage(*e)) == "" {
			continue
		}
		plain, err := opened(encryption.ErrorOf, json.RawMessage(*e))
		if err == nil {
			err = json.Unmarshal(plain, e)
		}
		if err != nil {
			return err
		}
	}
	return decryptEdits(d.Edits, opened)
}

// decryptEdits replaces earlier payloads by what they were. One under a key that is gone stays: that
// hides nothing of the job as it is.
func decryptEdits(edits []models.JobEdit,
	opened func(encryption.Use, json.RawMessage) (json.RawMessage, error),
) error {
	for i := range edits {
		plain, err := opened(encryption.Payload, edits[i].Payload)
		switch {
		case err == nil:
			edits[i].Payload = plain
		case !errors.Is(err, encryption.ErrKeyUnknown):
			return err
		}
	}
	return nil
}

// ErrorText is what people are shown of an error's text that may be encrypted.
func ErrorText(e *string) string {
	if key := encryption.KeyOf(json.RawMessage(Text(e))); key != "" {
		return "encrypted under the key " + key
	}
	return Text(e)
}
