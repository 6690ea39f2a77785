package jobs_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/encryption"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// admitted are the open jobs that hold a place of their key.
const admitted = `SELECT count(*) FROM daybook.jobs WHERE finished_at IS NULL AND limit_key IS NOT NULL AND fleet >= 0`

// TestLineWithoutAJob: what a person does with a job that stands in a line leaves the others of it
// their turn, and the job joins the line that it then belongs to, however long ago it was due.
func TestLineWithoutAJob(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stmt string
		// key of the job afterwards; empty: it has ended, or is gone.
		key string
	}{
		"cancelled": {stmt: `SELECT daybook.cancel_job($1)`},
		"removed":   {stmt: `DELETE FROM daybook.jobs WHERE id = $1`},
		"edited":    {stmt: `SELECT daybook.edit_job($1, '{"name": "other"}')`, key: "other"},
		"retried":   {stmt: `SELECT daybook.retry_job($1)`, key: "k"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			policy := jobs.Policy{Limit: jobs.Limit{By: "payload.name", Parallel: 1}}
			jobs.Register(b.registry, policy, func(context.Context, *jobs.Job[greet]) error { return nil })
			b.limit(policy.Limit)
			for range 3 {
				b.enqueue(greet{Name: "k"}, queue.JobOptions{})
				b.check()
			}
			require.Equal(t, 2, b.count(inLine))
			b.exec(`UPDATE daybook.jobs SET ready_at = ready_at - interval '1 hour' WHERE fleet = -2`)
			var next string
			require.NoError(t, b.Pool.QueryRow(t.Context(),
				`SELECT min(id) FROM daybook.jobs WHERE fleet = -2`).Scan(&next))
			b.exec(c.stmt, next)
			if c.key != "" {
				assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.jobs WHERE id = $1 AND limit_key = $2`, next, c.key))
			}
			for range 3 {
				b.check()
				assert.LessOrEqual(t, b.count(admitted+` AND limit_key = 'k'`), 1)
				b.work()
			}
			assert.Zero(t, b.count(open))
		})
	}
}

// TestEditedDeadLetterLinesUp: a dead letter that goes on with another payload waits in the line of
// the key that this has.
func TestEditedDeadLetterLinesUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	policy := jobs.Policy{Limit: jobs.Limit{By: "payload.name", Parallel: 1}}
	jobs.Register(b.registry, policy, func(_ context.Context, job *jobs.Job[greet]) error {
		if job.Payload.Name == "wrong" {
			return jobs.Final(errors.New("no"))
		}
		return nil
	})
	b.limit(policy.Limit)
	id := b.enqueue(greet{Name: "wrong"}, queue.JobOptions{})
	b.check()
	b.work()
	require.Equal(t, models.JobFailed, b.row(id).State)
	b.keyed(1, "k")
	b.check()
	b.exec(`SELECT daybook.edit_job($1, '{"name": "k"}', retry => 'now')`, id)
	b.check()
	assert.Equal(t, 1, b.count(inLine+` AND limit_key = 'k'`))
	for range 2 {
		b.work()
		b.check()
	}
	assert.Equal(t, 2, b.count(completed))
}

// TestEditGivesAKey: a job whose payload lacked the member that the limit is by has a limit once it is
// edited.
func TestEditGivesAKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.limit(jobs.Limit{By: "payload.name", Parallel: 1})
	id := b.enqueue(greet{}, queue.JobOptions{RunAt: time.Now().Add(time.Hour)})
	own := b.enqueue(greet{}, queue.JobOptions{LimitKey: "own"})
	for _, job := range []string{id, own} {
		b.exec(`SELECT daybook.edit_job($1, '{"name": "k"}')`, job)
	}
	const keyOf = `SELECT count(*) FROM daybook.jobs WHERE id = $1 AND limit_key = $2`
	assert.Equal(t, 1, b.count(keyOf, id, "k"))
	assert.Equal(t, 1, b.count(keyOf, own, "own"), "what a request named stays")
}

// TestStepsKeepTheLimit: an attempt that goes on behind its steps waits for its key's limit as the
// first did, and its place is another's meanwhile.
func TestStepsKeepTheLimit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var at crowd
	var snoozed sync.Map
	policy := jobs.Policy{Base: time.Millisecond, Limit: jobs.Limit{By: "payload.name", Parallel: 2}}
	jobs.Register(b.registry, policy, func(ctx context.Context, job *jobs.Job[greet]) error {
		at.enter()
		defer at.leave()
		if _, err := jobs.Step(ctx, job, "one", func(context.Context) (int, error) { return 1, nil }); err != nil {
			return err
		}
		if job.Attempt == 1 {
			return errors.New("again")
		}
		if _, was := snoozed.LoadOrStore(job.ID, true); !was {
			return jobs.Snooze(time.Millisecond)
		}
		return nil
	})
	b.limit(policy.Limit)
	b.keyed(20, "k")
	b.lanes(2, b.engineOn(b.Pool), "one")
	b.until(20, completed)
	assert.LessOrEqual(t, at.most.Load(), int32(2))
}

// TestKilledClaimFreesItsPlaces: what a worker held that claimed by SQL and was killed begins again
// with another one, however long ago it was due.
func TestKilledClaimFreesItsPlaces(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.limit(jobs.Limit{By: "payload.name", Parallel: 2})
	b.keyed(5, "k")
	b.exec(`SELECT daybook.start_job_worker('dead', '{greet}'), daybook.start_job_worker('living', '{greet}')`)
	const claim = `SELECT count(*) FROM daybook.claim_jobs($1, 10)`
	require.Equal(t, 2, b.count(claim, "dead"))
	require.Zero(t, b.count(claim, "living"), "all places are taken")
	b.exec(`UPDATE daybook.jobs SET last_attempted_at = last_attempted_at - interval '1 hour', ready_at = ready_at - interval '1 hour'
 WHERE state = 'leased'`)
	b.exec(`UPDATE daybook.job_workers SET last_seen = last_seen - interval '30 seconds'`)
	require.Equal(t, 2, b.count(claim, "living"))
	assert.Equal(t, 2, b.count(`SELECT count(*) FROM daybook.jobs WHERE state = 'leased'`))
	assert.Equal(t, 3, b.count(inLine))
}

// TestRateThatIsLocked: a transaction that removes what is on record of the rates of keys, as an erasure
// does, or a dry run of one, holds up neither other keys nor who looks at them; and these keys go on
// when it has ended.
func TestRateThatIsLocked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.limit(jobs.Limit{By: "payload.name", Rate: 1, Per: 300 * time.Millisecond})
	b.keyed(2, "held", "free")
	b.keyed(1, "rests")
	b.check()
	b.exec(`SELECT daybook.cancel_job(id) FROM daybook.jobs WHERE fleet >= 0`)
	require.Equal(t, 2, b.count(inLine))
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = tx.Exec(t.Context(), `DELETE FROM daybook.job_limit_rates WHERE limit_key <> 'free'`)
	require.NoError(t, err)
	check := func() {
		require.NoError(t, pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `SET LOCAL lock_timeout = '5s'; SELECT daybook.check_waits()`)
			return err
		}))
	}
	b.keyed(1, "rests")
	require.Eventually(t, func() bool {
		check()
		return b.count(inLine+` AND limit_key = 'free'`) == 0 && b.count(`SELECT count(*) FROM daybook.job_limit_rates WHERE limit_key = 'free'`) == 0
	}, long, 20*time.Millisecond)
	assert.Equal(t, 2, b.count(inLine))
	require.NoError(t, tx.Rollback(t.Context()))
	require.Eventually(t, func() bool {
		check()
		return b.count(inLine) == 0 && b.count(`SELECT count(*) FROM daybook.job_limit_rates`) == 0
	}, long, 20*time.Millisecond)
}

// TestLoweredLimit: what holds a place keeps it, and no other job begins until enough have ended.
func TestLoweredLimit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.limit(jobs.Limit{By: "payload.name", Parallel: 3})
	b.keyed(6, "k")
	b.check()
	b.limit(jobs.Limit{By: "payload.name", Parallel: 1})
	for left := 3; left > 0; left-- {
		b.check()
		assert.Equal(t, left, b.count(admitted))
		b.exec(`SELECT daybook.cancel_job(min(id)) FROM daybook.jobs WHERE finished_at IS NULL AND fleet >= 0`)
	}
	b.check()
	assert.Equal(t, 1, b.count(admitted))
	assert.Equal(t, 2, b.count(inLine))
	b.exec(`DELETE FROM daybook.jobs`)
	b.check()
	assert.Zero(t, b.count(`SELECT count(*) FROM daybook.job_limit_rates`))
}

// TestLimitByAnEncryptedMember: the database cannot read the key.
func TestLimitByAnEncryptedMember(t *testing.T) {
	t.Parallel()
	work := func(context.Context, *jobs.Job[payout]) error { return nil }
	by := func(member string) func() {
		return func() {
			r := jobs.NewRegistry()
			r.Encrypt(&encryption.Cipher{})
			jobs.Register(r, jobs.Policy{Limit: jobs.Limit{By: member, Parallel: 1}}, work)
		}
	}
	assert.PanicsWithValue(t, `jobs: Limit of payout is by payload.iban, which EncryptedMembers has encrypted: the database must `+
		`read it. Leave that member plain, or give each job a LimitKey`, by("payload.iban"))
	assert.NotPanics(t, by("payload.account_id"))
}
