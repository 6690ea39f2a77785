package adopt_test

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
)

//go:embed testdata/legacy.sql
var legacySQL string

// entriesView is what the operator writes over the legacy ledger.
const entriesView = `
CREATE VIEW legacy_entries AS
SELECT org_id, document_id, account, 'debit' AS side, debit_cents AS amount, currency, booked_on AS posting_date FROM financial_entries WHERE debit_cents <> 0
 UNION ALL
SELECT org_id, document_id, account, 'credit', credit_cents, currency, booked_on FROM financial_entries WHERE credit_cents <> 0`

// legacy is an application with a legacy queue and ledger, beside Daybook in one database.
type legacy struct {
	*pgtest.DB
	t    *testing.T
	orgs []string
	// app is the application's pool: its tables are in public, and unqualified names are its own.
	app *pgxpool.Pool
}

// newLegacy makes the application with n documents, in every state of the queue, of three
// organizations that Daybook knows with chart and rules. Document i is doc-i. The documents of the
// states, by i modulo 20:
//
//	0-7    completed, and posted           8-12   pending
//	13     pending, version 1 is posted    14     pending after two failed attempts
//	15     failed                          16     cancelled: deleted, and never posted
//	17     leased for an hour              18     leased for an hour, and posted before its worker died
//	19     completed without an amount
func newLegacy(t *testing.T, n int) *legacy {
	t.Helper()
	l := &legacy{DB: pgtest.New(t), t: t, orgs: []string{"org_a", "org_b", "org_c"}}
	config, err := pgxpool.ParseConfig(l.URL)
	require.NoError(t, err)
	config.ConnConfig.RuntimeParams["search_path"] = "public"
	config.MaxConns = 8
	l.app, err = pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(l.app.Close)
	for _, org := range l.orgs {
		fixture.Organization(t, l.Pool, org)
	}
	l.exec(legacySQL + ";" + entriesView)
	l.exec(`INSERT INTO organization SELECT o, o FROM unnest($1::text[]) o`, l.orgs)
	l.exec(`
INSERT INTO documents (id, org_id, net, accounting_ready_at, accounting_ready_version, deleted_at)
SELECT 'doc-' || i, ($2::text[])[i % 3 + 1], CASE WHEN i % 20 = 19 THEN 0 ELSE 100 * (i % 500 + 1) END, now() AT TIME ZONE 'UTC',
       CASE WHEN i % 20 = 13 THEN 2 ELSE 1 END, CASE WHEN i % 20 = 16 THEN now() AT TIME ZONE 'UTC' END
  FROM generate_series(1, $1) i`, n, l.orgs)
	l.exec(`
INSERT INTO accounting_work_queue (id, created_at, updated_at, org_id, document_id, version_hint, ready_at, state, run_count, last_attempted_at, last_error)
SELECT 'c' || md5(i::text), at.utc - interval '1 day', at.utc - interval '2 hours', ($2::text[])[i % 3 + 1], 'doc-' || i, CASE WHEN k = 13 THEN 2 ELSE 1 END,
       at.utc - interval '3 hours',
       (CASE WHEN k <= 7 OR k = 19 THEN 'completed' WHEN k <= 14 THEN 'pending' WHEN k = 15 THEN 'failed' WHEN k = 16 THEN 'cancelled' ELSE 'leased' END)::"ACCOUNTING_JOB_STATE",
       CASE WHEN k BETWEEN 8 AND 13 THEN 0 WHEN k = 14 THEN 2 WHEN k = 15 THEN 6 ELSE 1 END,
       CASE WHEN k NOT BETWEEN 8 AND 13 THEN at.utc - interval '1 hour' END, CASE WHEN k IN (14, 15) THEN 'connection reset' END
  FROM generate_series(1, $1) i, LATERAL (SELECT i % 20 AS k) m, LATERAL (SELECT now() AT TIME ZONE 'UTC' AS utc) at`,
		n, l.orgs)
	for i := 1; i <= n; i++ {
		if k := i % 20; k <= 7 || k == 13 || k == 18 {
			net := int64(100 * (i%500 + 1))
			if k == 13 {
				net += 5000 // version 1 was another amount
			}
			require.NoError(t, legacyPost(t.Context(), l.app, l.orgs[i%3], fmt.Sprint("doc-", i), net))
		}
	}
	return l
}

func (l *legacy) exec(stmt string, args ...any) {
	l.t.Helper()
	_, err := l.app.Exec(l.t.Context(), stmt, args...)
	require.NoError(l.t, err)
}

// state is the state of a document's legacy row.
func (l *legacy) state(document string) (state string) {
	l.t.Helper()
	require.NoError(l.t, l.app.QueryRow(l.t.Context(), `SELECT state FROM accounting_work_queue WHERE document_id = $1`,
		document).Scan(&state))
	return state
}

// execer is a pool or a transaction.
type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// legacyPost is the legacy ledger's posting: what is posted of the document is taken back, and the
// new amounts posted. One that came to zero has no entries.
func legacyPost(ctx context.Context, q execer, org, document string, net int64) error {
	const post = `
WITH before AS (
    SELECT account, sum(debit_cents - credit_cents) AS net FROM financial_entries WHERE org_id = $1 AND document_id = $2 GROUP BY account
)
INSERT INTO financial_entries (org_id, document_id, account, debit_cents, credit_cents, booked_on)
SELECT $1, $2, account, greatest(-net, 0), greatest(net, 0), date '2026-03-01' FROM before WHERE net <> 0
 UNION ALL
SELECT $1, $2, account, debit, credit, date '2026-03-01'
  FROM (VALUES ('1200', $3::bigint + $3 * 19 / 100, 0::bigint), ('3800', 0, $3 * 19 / 100), ('4400', 0, $3)) AS n (account, debit, credit)
 WHERE debit + credit <> 0`
	if _, err := q.Exec(ctx, post, org, document, net); err != nil {
		return err
	}
	_, err := q.Exec(ctx, `UPDATE documents SET accounting_impact_created_at = now() AT TIME ZONE 'UTC' WHERE id = $1`,
		document)
	return err
}

// legacyWorker leases and posts as the legacy worker does, until the context ends.
func legacyWorker(ctx context.Context, pool *pgxpool.Pool) error {
	const lease = `
UPDATE accounting_work_queue SET state = 'leased', run_count = run_count + 1, last_attempted_at = now() AT TIME ZONE 'UTC'
 WHERE id IN (SELECT id FROM accounting_work_queue
               WHERE state = 'pending' AND ready_at <= now() AT TIME ZONE 'UTC'
                  OR state = 'leased' AND last_attempted_at < now() AT TIME ZONE 'UTC' - interval '15 minutes' AND id < 'c2'
               ORDER BY ready_at LIMIT 5 FOR UPDATE SKIP LOCKED)
RETURNING id, org_id, document_id, version_hint`
	for ctx.Err() == nil {
		// What is leased is finished, also when the worker is told to stop.
		rows, err := pool.Query(context.WithoutCancel(ctx), lease)
		if err != nil {
			return err
		}
		type job struct {
			ID, Org, Document string
			Version           int64
		}
		jobs, err := pgx.CollectRows(rows, pgx.RowToStructByPos[job])
		if err != nil {
			return err
		}
		for _, j := range jobs {
			if err := legacyWork(context.WithoutCancel(ctx), pool, j.ID, j.Org, j.Document, j.Version); err != nil {
				return err
			}
		}
		if len(jobs) == 0 {
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	return nil
}

// legacyWork posts one document in the version that the job was leased for.
func legacyWork(ctx context.Context, pool *pgxpool.Pool, id, org, document string, version int64) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		var net, have, now int64
		var deleted *time.Time
		var state string
		// The document first, as the code that enqueues does: the other way round the two would wait
		// for each other.
		if err := tx.QueryRow(ctx,
			`SELECT net, accounting_ready_version, deleted_at FROM documents WHERE id = $1 FOR UPDATE`, document).Scan(&net,
			&have, &deleted); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `SELECT state, version_hint FROM accounting_work_queue WHERE id = $1 FOR UPDATE`,
			id).Scan(&state, &now); err != nil {
			return err
		}
		if state != "leased" || now != version {
			return nil // it was asked for again
		}
		switch {
		case deleted != nil:
			_, err := tx.Exec(ctx, `UPDATE accounting_work_queue SET state = 'cancelled' WHERE id = $1`, id)
			return err
		case have != version:
			_, err := tx.Exec(ctx, `UPDATE accounting_work_queue SET state = 'pending', version_hint = $2 WHERE id = $1`, id,
				have)
			return err
		}
		if err := legacyPost(ctx, tx, org, document, net); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE accounting_work_queue SET state = 'completed', updated_at = now() AT TIME ZONE 'UTC' WHERE id = $1`, id)
		return err
	})
}

// legacyEnqueuer changes documents and enqueues them as old code does, until the context ends. New
// documents are among them.
func legacyEnqueuer(ctx context.Context, pool *pgxpool.Pool, documents int, orgs []string) error {
	random := rand.New(rand.NewPCG(1, 2))
	for n := 0; ctx.Err() == nil; n++ {
		i := random.IntN(documents) + 1
		if n%10 == 0 {
			i = documents + n/10 + 1
		}
		if err := legacyEnqueue(context.WithoutCancel(ctx), pool, orgs[i%3], fmt.Sprint("doc-", i),
			int64(random.IntN(100000)+1)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Millisecond):
		}
	}
	return nil
}

// legacyEnqueue writes a document and enqueues its next version, in one transaction. A deleted
// document stays as it is.
func legacyEnqueue(ctx context.Context, pool *pgxpool.Pool, org, document string, net int64) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		var version int64
		err := tx.QueryRow(ctx, `
INSERT INTO documents AS d (id, org_id, net, accounting_ready_at, accounting_ready_version) VALUES ($1, $2, $3, now() AT TIME ZONE 'UTC', 1)
ON CONFLICT (id) DO UPDATE SET net = excluded.net, accounting_ready_at = excluded.accounting_ready_at, accounting_ready_version = d.accounting_ready_version + 1
 WHERE d.deleted_at IS NULL
RETURNING accounting_ready_version`, document, org, net).Scan(&version)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
INSERT INTO accounting_work_queue (id, updated_at, org_id, document_id, version_hint) VALUES ('c' || md5($2 || ($3::bigint)::text), now() AT TIME ZONE 'UTC', $1, $2, $3)
ON CONFLICT (org_id, document_id) DO UPDATE
   SET version_hint = excluded.version_hint, state = 'pending', ready_at = now() AT TIME ZONE 'UTC', run_count = 0, last_error = NULL, updated_at = excluded.updated_at`,
			org, document, version)
		return err
	})
}

// legacyDocuments is an accounting.Source over the application's documents.
type legacyDocuments struct{}

// LockAndRead implements accounting.Source.
func (legacyDocuments) LockAndRead(ctx context.Context, tx pgx.Tx, keys []accounting.Key) ([]accounting.Found, error) {
	const stmt = `
SELECT k.n, d.id IS NOT NULL, EXISTS (SELECT FROM public.documents x WHERE x.id = k.id), coalesce(d.net, 0), d.accounting_ready_at, coalesce(d.accounting_ready_version, 0), d.deleted_at
  FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (org, id, n)
  LEFT JOIN LATERAL (SELECT * FROM public.documents x WHERE x.id = k.id AND x.org_id = k.org FOR NO KEY UPDATE SKIP LOCKED) d ON true`
	orgs, ids := make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		orgs[i], ids[i] = k.OrgID, k.ID
	}
	rows, err := tx.Query(ctx, stmt, orgs, ids)
	if err != nil {
		return nil, err
	}
	found := make([]accounting.Found, len(keys))
	var n int
	var got, there bool
	var net, version int64
	var ready, deleted *time.Time
	_, err = pgx.ForEachRow(rows, []any{&n, &got, &there, &net, &ready, &version, &deleted}, func() error {
		switch {
		case !there:
			found[n-1].State = accounting.Unknown
		case !got:
			found[n-1].State = accounting.Locked
		default:
			d := fixture.Invoice(keys[n-1].OrgID, keys[n-1].ID, net)
			d.AccountingReadyAt, d.AccountingReadyVersion, d.DeletedAt = ready, version, deleted
			found[n-1] = accounting.Found{State: accounting.Here, Document: d}
		}
		return nil
	})
	return found, err
}

// SetPosted implements accounting.Source.
func (legacyDocuments) SetPosted(ctx context.Context, tx pgx.Tx, keys []accounting.Key, live []bool) error {
	for i, k := range keys {
		if _, err := tx.Exec(ctx,
			`UPDATE public.documents SET accounting_impact_created_at = CASE WHEN $2 THEN now() AT TIME ZONE 'UTC' END WHERE id = $1`, k.ID, live[i]); err != nil {
			return err
		}
	}
	return nil
}
