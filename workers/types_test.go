package workers_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/encryption"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/jobs"
)

// secretErrand is a job with a member that is kept encrypted.
type secretErrand struct {
	Word string `json:"word"`
}

func (secretErrand) JobType() string            { return "secret_errand" }
func (secretErrand) EncryptedMembers() []string { return []string{"word"} }

// TestEncryptedTypesAreOnRecord: workers by SQL are not given these types.
func TestEncryptedTypesAreOnRecord(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "keys.txt")
	require.NoError(t, os.WriteFile(path, []byte(key.String()+"\n"), 0o600))
	cipher, err := encryption.FromFile(path)
	require.NoError(t, err)
	r := errands()
	r.Encrypt(cipher)
	jobs.Register(r, jobs.Policy{Aliases: []string{"hidden_errand"}},
		func(context.Context, *jobs.Job[secretErrand]) error { return nil })
	b.startJobs(r)
	b.eventually("the types are on record", 20*time.Second, func() bool {
		return fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.job_types WHERE kind = 'jobs'`) == 3
	})
	require.Equal(t, 2, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.job_types WHERE encrypts AND type IN ('secret_errand', 'hidden_errand')`))
}
