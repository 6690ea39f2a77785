package listing_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/listing"
)

// anyPayload lets every payload through.
func anyPayload(string, json.RawMessage) error { return nil }

// manyLetters makes dead letters.
func (b *jobsBundle) manyLetters(n int) {
	b.t.Helper()
	b.exec(`
INSERT INTO daybook.jobs (id, org_id, type, payload, state, last_error, last_error_code, finished_at, run_count)
SELECT lpad(i::text, 8, '0'), 'o', 't', '{"currency": "EU"}', 'failed', 'e', 'X', clock_timestamp(), 3 FROM generate_series(1, $1) i`, n)
}

// cutting ends its connection in the middle of the given batch, as an outage does.
type cutting struct {
	store.Querier
	left int
}

func (c *cutting) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if c.left--; c.left == 0 {
		return c.Querier.QueryRow(ctx, `WITH cut AS (SELECT pg_terminate_backend(pg_backend_pid())) SELECT daybook.work_bulk_batch($1) FROM cut`, args...)
	}
	return c.Querier.QueryRow(ctx, sql, args...)
}

// TestManyEditsThatAreInterrupted: an edit of 10,000 jobs whose connection is cut is gone on with,
// by two at once, and edits each job once. A job that an application holds locked is left alone, and
// nothing waits for it.
func TestManyEditsThatAreInterrupted(t *testing.T) {
	t.Parallel()
	b := setupJobs(t)
	const n = 10_000
	b.manyLetters(n)
	held, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = held.Rollback(context.Background()) }()
	_, err = held.Exec(t.Context(), `SELECT FROM daybook.jobs WHERE id = '00005000' FOR UPDATE`)
	require.NoError(t, err)
	op, err := b.listing.StartEdit(t.Context(), listing.BulkJobs{All: true}, listing.BulkEdit{
		Patch: json.RawMessage(`[{"op": "replace", "path": "/currency", "value": "EUR"}, {"op": "add", "path": "/n", "value": 1}]`),
		Retry: "now", By: "ann", Check: anyPayload,
	})
	require.NoError(t, err)
	require.Equal(t, n, op.Matched)
	err = store.RunBulk(t.Context(), &cutting{Querier: b.Pool, left: 5}, op.ID)
	require.Error(t, err)
	_, refused := errors.AsType[*pgconn.PgError](err)
	require.True(t, refused || store.IsUnavailable(err), err)

	began := time.Now()
	ended := make(chan error, 2)
	for range 2 {
		go func() { ended <- store.RunBulk(t.Context(), b.Pool, op.ID) }()
	}
	require.NoError(t, errors.Join(<-ended, <-ended))
	t.Logf("%d jobs in %s", n, time.Since(began))
	op, err = b.listing.BulkOperation(t.Context(), "", op.ID)
	require.NoError(t, err)
	assert.NotNil(t, op.FinishedAt)
	assert.Equal(t, []int{n, n - 1, 1}, []int{op.Matched, op.Changed, op.LeftAlone})
	assert.Equal(t, n-1, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.jobs WHERE state = 'pending' AND payload = '{"currency": "EUR", "n": 1}' AND jsonb_array_length(edits) = 1`))
	assert.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.jobs WHERE state = 'failed' AND edits IS NULL`))
}

// TestOnlyWhatWasTriedIsEdited: a dead letter that comes while a patch is tried is not edited, nor one
// whose payload is replaced before its turn: no check has seen what they would become.
func TestOnlyWhatWasTriedIsEdited(t *testing.T) {
	t.Parallel()
	b := setupJobs(t)
	b.manyLetters(3)
	var tried []string
	op, err := b.listing.StartEdit(t.Context(), listing.BulkJobs{All: true}, listing.BulkEdit{
		Patch: json.RawMessage(`[{"op": "replace", "path": "/currency", "value": "EUR"}]`), Retry: "now", By: "ann",
		Check: func(_ string, payload json.RawMessage) error {
			if tried = append(tried, string(payload)); len(tried) == 1 {
				b.exec(`
INSERT INTO daybook.jobs (id, org_id, type, payload, state, last_error, last_error_code, finished_at, run_count)
VALUES ('later', 'o', 't', '{"currency": "EU", "wrong": true}', 'failed', 'e', 'X', clock_timestamp(), 3)`)
			}
			return nil
		},
	})
	require.NoError(t, err)
	require.Equal(t, 3, op.Matched)
	b.exec(`SELECT daybook.edit_job('00000002', '{"currency": "EU", "wrong": true}')`)
	require.NoError(t, store.RunBulk(t.Context(), b.Pool, op.ID))
	op, err = b.listing.BulkOperation(t.Context(), "", op.ID)
	require.NoError(t, err)
	assert.Equal(t, []int{3, 2, 1}, []int{op.Matched, op.Changed, op.LeftAlone})
	assert.Equal(t, 2, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.jobs WHERE state = 'pending' AND payload = '{"currency": "EUR"}'`))
	assert.Equal(t, 2, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.jobs WHERE state = 'failed' AND payload = '{"currency": "EU", "wrong": true}'`))
}
