package answers

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/daybook-dev/daybook/encryption"
	"github.com/daybook-dev/daybook/internal/store/listing"
)

// Decrypt replaces what is encrypted of a job, and of the attempts that are shown with it, by what
// it was. c is nil where there are no keys. Errors: encryption.ErrKeyUnknown and
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
	for use, v := range map[encryption.Use]*json.RawMessage{
		encryption.Payload: &d.Payload, encryption.Result: &d.Result, encryption.Progress: &d.Progress,
	} {
		plain, err := opened(use, *v)
		if err != nil {
			return err
		}
		*v = plain
	}
	for i := range d.Steps {
		plain, err := opened(encryption.Step, d.Steps[i].Result)
		if err != nil {
			return err
		}
		d.Steps[i].Result = plain
	}
	errors := []*string{d.LastError}
	for i := range d.Attempts {
		errors = append(errors, d.Attempts[i].Error)
	}
	for _, e := range errors {
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
	return nil
}

// ErrorText is what people are shown of an error's text that may be encrypted.
func ErrorText(e *string) string {
	if key := encryption.KeyOf(json.RawMessage(Text(e))); key != "" {
		return "encrypted under the key " + key
	}
	return Text(e)
}
