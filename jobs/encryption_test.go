package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/encryption"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// payout is a payload with a secret.
type payout struct {
	AccountID string `json:"account_id"`
	IBAN      string `json:"iban,omitempty"`
}

func (payout) JobType() string            { return "payout" }
func (payout) EncryptedMembers() []string { return []string{"iban"} }

// secret must be found nowhere in the database, nor in the log.
const secret = "XX00-TEST-0815"

// keyFile is a file of age keys that tests change.
type keyFile struct {
	t     *testing.T
	path  string
	lines []string
}

func newKeys(t *testing.T) *keyFile {
	t.Helper()
	k := &keyFile{t: t, path: filepath.Join(t.TempDir(), "keys.txt")}
	k.add()
	return k
}

// add adds a key, which is the one for new values.
func (k *keyFile) add() {
	k.t.Helper()
	key, err := age.GenerateX25519Identity()
	assert.NoError(k.t, err)
	k.write(append(k.lines, key.String()))
}

func (k *keyFile) write(lines []string) {
	k.t.Helper()
	k.lines = lines
	// Renamed, so that a worker never reads half of it.
	assert.NoError(k.t, os.WriteFile(k.path+".new", []byte("# keys\n"+strings.Join(lines, "\n")+"\n"), 0o600))
	assert.NoError(k.t, os.Rename(k.path+".new", k.path))
}

func (k *keyFile) cipher() *encryption.Cipher {
	k.t.Helper()
	c, err := encryption.FromFile(k.path)
	require.NoError(k.t, err)
	return c
}

// holds reports whether the schemas of Daybook hold a text anywhere.
func (b *bundle) holds(text string) bool {
	b.t.Helper()
	rows, err := b.Pool.Query(b.t.Context(),
		`SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname IN ('daybook', 'queues', 'internal')`)
	require.NoError(b.t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(b.t, err)
	for _, table := range tables {
		if b.count(`SELECT count(*) FROM `+table+` t WHERE strpos(t::text, $1) > 0`, text) > 0 {
			return true
		}
	}
	return false
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// decrypted is a stored value in plain.
func decrypted(t *testing.T, c *encryption.Cipher, use encryption.Use, stored string) string {
	t.Helper()
	plain, err := c.Decrypt(t.Context(), encryption.Of{OrgID: org, JobType: "payout", Use: use}, json.RawMessage(stored))
	require.NoError(t, err, stored)
	return string(plain)
}

func TestPayloadIsEncrypted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	keys := newKeys(t)
	cipher := keys.cipher()
	var got []string
	b.registry.Encrypt(cipher)
	b.registry.Use(func(ctx context.Context, job *jobs.Info, next func(context.Context) error) error {
		got = append(got, string(job.Payload))
		return next(ctx)
	})
	b.registry.OnError(func(_ context.Context, _ *jobs.Info, f jobs.Failure) jobs.Verdict {
		got = append(got, f.Err.Error())
		return jobs.Leave
	})
	jobs.Register(b.registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[payout]) error {
		got = append(got, job.Payload.IBAN)
		require.NoError(t, job.Progress(ctx, "paying "+job.Payload.IBAN))
		earlier, err := job.EarlierAttempts(ctx)
		require.NoError(t, err)
		if job.Attempt == 2 {
			assert.Equal(t, "the bank does not know "+secret, earlier[0].Error, "a handler reads errors in plain")
		}
		got = append(got, must(jobs.Step(ctx, job, "look up", func(context.Context) (string, error) {
			return "looked up " + job.Payload.IBAN, nil
		})))
		switch job.Attempt {
		case 1:
			return fmt.Errorf("the bank does not know %s", job.Payload.IBAN)
		case 2:
			panic("lost " + job.Payload.IBAN)
		}
		job.SetResult(map[string]string{"paid": job.Payload.IBAN})
		return nil
	})
	id := b.enqueue(payout{AccountID: "a1", IBAN: secret}, queue.JobOptions{Encryption: cipher, MaxAttempts: 3})
	for range 3 {
		b.due()
		b.work()
	}

	j := b.row(id)
	assert.Equal(t, models.JobCompleted, j.State, j.Error)
	assert.JSONEq(t, fmt.Sprintf(`{"account_id":"a1","iban":"%s"}`, secret), got[0], "middleware sees it in plain")
	assert.Equal(t, secret, got[1])
	assert.Equal(t, "looked up "+secret, got[2])
	assert.Equal(t, "the bank does not know "+secret, got[3], "and so does the error handler")
	assert.Equal(t, "looked up "+secret, got[6], "the next attempt reads the step")
	assert.JSONEq(t, `{"paid": "`+secret+`"}`, decrypted(t, cipher, encryption.Result, j.Result))
	assert.False(t, b.holds(secret), "the database holds the secret")
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.jobs WHERE payload->>'account_id' = 'a1'`),
		"what is not named stays plain")
	assert.NotContains(t, b.log.String(), secret)
	var errs []string
	rows, err := b.Pool.Query(t.Context(), `SELECT error FROM daybook.attempts WHERE job_id = $1 AND error <> '' ORDER BY id`, id)
	require.NoError(t, err)
	errs, err = pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Len(t, errs, 2)
	assert.Equal(t, `"the bank does not know `+secret+`"`, decrypted(t, cipher, encryption.ErrorOf, errs[0]))
	assert.Contains(t, decrypted(t, cipher, encryption.ErrorOf, errs[1]), "panic: lost "+secret)
}

// TestErrorsThatAreNotCountedAreEncrypted: what a handler says of an attempt that the database
// failed is kept like other errors.
func TestErrorsThatAreNotCountedAreEncrypted(t *testing.T) {
	t.Parallel()
	fails := func(ctx context.Context, iban string) error {
		refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		return fmt.Errorf("paying to %s: %w", iban, store.Unavailable(ctx, refused))
	}
	for name, handler := range map[string]jobs.Func[payout]{
		"in the handler": func(ctx context.Context, job *jobs.Job[payout]) error { return fails(ctx, job.Payload.IBAN) },
		"put off": func(_ context.Context, job *jobs.Job[payout]) error {
			if job.Attempt == 1 {
				return fmt.Errorf("no %s: %w", job.Payload.IBAN, jobs.Snooze(time.Millisecond))
			}
			return jobs.Cancel("the account " + job.Payload.IBAN + " is closed")
		},
		"ended": func(_ context.Context, job *jobs.Job[payout]) error {
			panic(fmt.Sprintf("no %s", job.Payload.IBAN))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			cipher := newKeys(t).cipher()
			b.registry.Encrypt(cipher)
			jobs.Register(b.registry, jobs.Policy{}, handler)
			b.registry.OnError(func(_ context.Context, _ *jobs.Info, f jobs.Failure) jobs.Verdict { panic(f.Err) })
			b.enqueue(payout{AccountID: "a1", IBAN: secret}, queue.JobOptions{Encryption: cipher, MaxAttempts: 2})
			for range 3 {
				b.due()
				b.work()
			}
			assert.Positive(t, b.count(`SELECT count(*) FROM daybook.attempts`))
			assert.False(t, b.holds(secret), "the database holds the secret")
			assert.NotContains(t, b.log.String(), secret)
		})
	}
}

func TestPayloadsOfBulkHandlersAreEncrypted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cipher := newKeys(t).cipher()
	b.registry.Encrypt(cipher)
	jobs.RegisterBulk(b.registry, jobs.Policy{}, func(_ context.Context, _ pgx.Tx, all []*jobs.Job[payout]) ([]error, error) {
		errs := make([]error, len(all))
		for i, j := range all {
			assert.Equal(t, secret, j.Payload.IBAN)
			j.SetResult("paid " + secret)
			if j.Payload.AccountID == "bad" {
				errs[i] = jobs.Final(errors.New("unknown " + secret))
			}
		}
		return errs, nil
	})
	o := queue.JobOptions{Encryption: cipher}
	good, bad := b.enqueue(payout{"good", secret}, o), b.enqueue(payout{"bad", secret}, o)
	b.work()
	assert.Equal(t, models.JobCompleted, b.row(good).State)
	assert.Equal(t, `"paid `+secret+`"`, decrypted(t, cipher, encryption.Result, b.row(good).Result))
	assert.Equal(t, `"unknown `+secret+`"`, decrypted(t, cipher, encryption.ErrorOf, b.row(bad).Error))
	assert.False(t, b.holds(secret), "the database holds the secret")
	assert.NotContains(t, b.log.String(), secret)
}

// TestKeysAreChanged adds a key beside jobs that wait, and then erases the first one.
func TestKeysAreChanged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	keys := newKeys(t)
	b.registry.Encrypt(keys.cipher())
	var worked atomic.Int32
	jobs.Register(b.registry, jobs.Policy{MaxAttempts: 1}, func(_ context.Context, job *jobs.Job[payout]) error {
		worked.Add(1)
		assert.Equal(t, secret, job.Payload.IBAN)
		return nil
	})
	b.enqueue(payout{"a", secret}, queue.JobOptions{Encryption: keys.cipher()})
	lost := b.enqueue(payout{"b", secret}, queue.JobOptions{Encryption: keys.cipher()})
	b.exec(`UPDATE daybook.jobs SET ready_at = now() + interval '1 hour' WHERE id = $1`, lost)
	keys.add()
	b.enqueue(payout{"c", secret}, queue.JobOptions{Encryption: keys.cipher()})
	b.work()
	assert.EqualValues(t, 2, worked.Load(), "a job is worked under the key that it was enqueued with")
	assert.Equal(t, 2, b.count(`SELECT count(DISTINCT payload->'$encrypted'->>'key') FROM daybook.jobs`))

	keys.write(keys.lines[1:])
	registry := jobs.NewRegistry() // another process: this one remembers data keys for ten minutes
	registry.Encrypt(keys.cipher())
	jobs.Register(registry, jobs.Policy{MaxAttempts: 1}, func(context.Context, *jobs.Job[payout]) error {
		worked.Add(1)
		return nil
	})
	other := *b
	other.registry = registry
	b.engine = other.engineOn(b.Pool)
	b.due()
	b.work()
	assert.EqualValues(t, 2, worked.Load())
	assert.Equal(t, models.JobFailed, b.row(lost).State)
	assert.Equal(t, string(models.CodeKeyUnknown), b.row(lost).Code)
	assert.Contains(t, b.row(lost).Error, "has no private key of", "who looks for the key can read which, without having one")
}

// TestEncryptedValuesAreBound moves an encrypted payload to a job of another organization.
func TestEncryptedValuesAreBound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cipher := newKeys(t).cipher()
	b.registry.Encrypt(cipher)
	jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[payout]) error {
		t.Error("it was worked")
		return nil
	})
	id := b.enqueue(payout{"a", secret}, queue.JobOptions{Encryption: cipher})
	b.exec(`UPDATE daybook.jobs SET org_id = 'other' WHERE id = $1`, id)
	plain := b.enqueue(queue.RawPayload{Type: "payout", Data: json.RawMessage(`{"account_id": "a", "iban": "plain"}`)},
		queue.JobOptions{})
	b.work()
	assert.Equal(t, string(models.CodePayloadInvalid), b.row(id).Code)
	assert.Equal(t, models.JobFailed, b.row(id).State)
	assert.Equal(t, string(models.CodeNotEncrypted), b.row(plain).Code, "what came in plain is refused")
	assert.Equal(t, models.JobFailed, b.row(plain).State)
	assert.Contains(t, b.row(plain).Error, "enqueue it by package queue", "nothing was read that is to be hidden")
}

func TestEncryptionIsAskedFor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cipher := newKeys(t).cipher()
	enqueue := func(p queue.Payload, o queue.JobOptions) error {
		_, err := queue.EnqueueJob(t.Context(), b.Pool, org, p, o)
		return err
	}
	require.ErrorIs(t, enqueue(payout{"a", secret}, queue.JobOptions{}), queue.ErrNoEncryption)
	require.ErrorIs(t, enqueue(payout{"a", secret}, queue.JobOptions{Encryption: cipher, Unique: true}),
		queue.ErrEncryptedUnique)
	require.ErrorIs(t, queue.CheckJob(org, payout{"a", secret}, queue.JobOptions{}), queue.ErrNoEncryption)
	require.NoError(t, enqueue(greet{"Ada"}, queue.JobOptions{Encryption: cipher}))
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.jobs WHERE payload = '{"name": "Ada"}'`))
	misspelled := queue.JobOptions{Encryption: cipher, Encrypt: []string{"nme"}}
	require.ErrorIs(t, enqueue(greet{"Ada"}, misspelled), queue.ErrNoSuchMember)

	// A key is used again with the same plain members.
	first, err := queue.EnqueueJob(t.Context(), b.Pool, org, payout{"k", secret},
		queue.JobOptions{Encryption: cipher, IdempotencyKey: "k"})
	require.NoError(t, err)
	again, err := queue.EnqueueJobs(t.Context(), b.Pool, []queue.NewJob{{
		OrgID: org, Payload: payout{"k", secret},
		Options: queue.JobOptions{Encryption: cipher, IdempotencyKey: "k"},
	}})
	require.NoError(t, err)
	assert.True(t, again[0].Duplicate)
	assert.Equal(t, first.ID, again[0].ID)
	require.ErrorIs(t, enqueue(payout{"other", secret}, queue.JobOptions{Encryption: cipher, IdempotencyKey: "k"}),
		queue.ErrKeyReused)

	handler := func(context.Context, *jobs.Job[payout]) error { return nil }
	jobs.Register(b.registry, jobs.Policy{}, handler)
	require.ErrorIs(t, b.registry.Started(), queue.ErrNoEncryption)
	b.registry.Encrypt(cipher)
	require.NoError(t, b.registry.Started())
	assert.PanicsWithValue(t, `jobs: EncryptedMembers of misspelt names "ibann", which is no member of its payload: `+
		`give the names of its JSON, or encryption.AllMembers alone`, func() {
		jobs.Register(jobs.NewRegistry(), jobs.Policy{}, func(context.Context, *jobs.Job[misspelt]) error { return nil })
	})
}

// misspelt names a member to encrypt that it does not have.
type misspelt struct {
	IBAN string `json:"iban"`
}

func (misspelt) JobType() string            { return "misspelt" }
func (misspelt) EncryptedMembers() []string { return []string{"ibann"} }

// TestKeysAreRotatedUnderLoad adds keys while jobs are enqueued and worked.
func TestKeysAreRotatedUnderLoad(t *testing.T) {
	t.Parallel()
	const rounds, each = 8, 40
	b := setup(t)
	keys := newKeys(t)
	b.registry.Encrypt(keys.cipher())
	var worked atomic.Int32
	jobs.Register(b.registry, jobs.Policy{}, func(_ context.Context, job *jobs.Job[payout]) error {
		if job.Payload.IBAN == secret {
			worked.Add(1)
		}
		return nil
	})
	enqueued := make(chan error, 1)
	go func() {
		for range rounds {
			keys.add()
			cipher, err := encryption.FromFile(keys.path)
			batch := make([]queue.NewJob, each)
			for i := range batch {
				batch[i] = queue.NewJob{
					OrgID: org, Payload: payout{"a", secret}, Options: queue.JobOptions{Encryption: cipher},
				}
			}
			if err == nil {
				_, err = queue.EnqueueJobs(t.Context(), b.Pool, batch)
			}
			if err != nil {
				enqueued <- err
				return
			}
		}
		enqueued <- nil
	}()
	for done := false; !done; {
		select {
		case err := <-enqueued:
			require.NoError(t, err)
			done = true
		default:
		}
		b.work()
	}
	assert.EqualValues(t, rounds*each, worked.Load())
	assert.Equal(t, rounds, b.count(`SELECT count(DISTINCT payload->'$encrypted'->>'key') FROM daybook.jobs WHERE state = 'completed'`))
}

// TestEncryptedJobsAreEdited corrects the payload of a dead letter.
func TestEncryptedJobsAreEdited(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cipher := newKeys(t).cipher()
	b.registry.Encrypt(cipher)
	var got string
	jobs.Register(b.registry, jobs.Policy{}, func(_ context.Context, job *jobs.Job[payout]) error {
		if got = job.Payload.IBAN; got == "wrong" {
			return jobs.Final(errors.New("it is wrong"))
		}
		return nil
	})
	id := b.enqueue(payout{"a", "wrong"}, queue.JobOptions{Encryption: cipher})
	b.work()
	require.Equal(t, models.JobFailed, b.row(id).State)

	_, err := queue.EditJob(t.Context(), b.Pool, id, payout{"a", secret}, queue.EditOptions{})
	require.ErrorIs(t, err, queue.ErrNoEncryption)
	raw := queue.RawPayload{Type: "payout", Data: json.RawMessage(`{"account_id": "a", "iban": "` + secret + `"}`)}
	_, err = queue.EditJob(t.Context(), b.Pool, id, raw, queue.EditOptions{})
	require.ErrorContains(t, err, "is encrypted, and the new one is not")
	_, err = queue.EditJob(t.Context(), b.Pool, "absent", payout{"a", secret}, queue.EditOptions{Encryption: cipher})
	require.ErrorIs(t, err, queue.ErrJobNotFound)
	r, err := queue.EditJob(t.Context(), b.Pool, id, payout{"a", secret},
		queue.EditOptions{Encryption: cipher, Retry: queue.RetryNow})
	require.NoError(t, err)
	assert.Equal(t, queue.Requeued, r.Result)
	assert.False(t, b.holds(secret))
	b.work()
	assert.Equal(t, secret, got)
	assert.Equal(t, models.JobCompleted, b.row(id).State)

	// A patch leaves alone a job in which it would put in plain what is encrypted.
	id = b.enqueue(payout{"a", "wrong"}, queue.JobOptions{Encryption: cipher})
	b.exec(`SELECT daybook.edit_jobs(ARRAY[$1::text], '{pending}', '[{"op": "add", "path": "/iban", "value": "x"}]')`, id)
	assert.Zero(t, b.count(`SELECT count(*) FROM daybook.jobs WHERE id = $1 AND (payload ? 'iban' OR edits IS NOT NULL)`, id))
	b.work()
	assert.Equal(t, "wrong", got)
}
