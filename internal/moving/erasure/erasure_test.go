package erasure_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/moving/archive"
	"github.com/daybook-dev/daybook/internal/moving/erasure"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// person fills the database with texts about a person (MARK-<who>) in an organization: in each
// table and column that may have one.
func person(t *testing.T, pool *pgxpool.Pool, org, who string) {
	t.Helper()
	mark := "MARK-" + who
	fixture.Tx(t, pool, func(ctx context.Context, tx pgx.Tx) {
		require.NoError(t, store.PutOrganization(ctx, tx, org, "Organization "+org))
		_, err := ledgerdb.PutAccounts(ctx, tx, org,
			[]models.Account{
				{Code: "1200", Name: "Receivables", Type: models.AccountAsset},
				{Code: "4400", Name: "Sales", Type: models.AccountIncome},
			}, nil)
		require.NoError(t, err)
		d := fixture.Invoice(org, "doc-"+who, 1000)
		d.Content.Counterparty = mark
		d.Content.Attributes = map[string]string{"email": mark}
		for i := range d.Content.Lines {
			d.Content.Lines[i].Description = mark
		}
		_, err = ledgerdb.PutDocument(ctx, tx, d)
		require.NoError(t, err)
	})
	for i, state := range []string{"completed", "cancelled", "failed", "pending"} {
		id := fmt.Sprintf("%s-%s-%s", org, who, state)
		_, err := pool.Exec(t.Context(), `
WITH job AS (
    INSERT INTO daybook.jobs (id, org_id, type, payload, idempotency_key, input_hash, state, run_count, result, progress, last_error, last_error_code, edits, finished_at,
                              completed_turn_id, completed_fence, completed_by, completed_started_at)
    VALUES ($1, $2, 'webhook', jsonb_build_object('name', $3::text), $3 || $4, sha256('x'), $4::text::daybook.job_state, 1, jsonb_build_object('to', $3), jsonb_build_object('at', $3), $3, 'TIMEOUT',
            jsonb_build_array(jsonb_build_object('at', clock_timestamp(), 'by', $3, 'attempts', 1, 'payload', jsonb_build_object('name', $3))),
            CASE WHEN $4 <> 'pending' THEN clock_timestamp() - interval '40 days' END,
            CASE WHEN $4 = 'completed' THEN $3 END, CASE WHEN $4 = 'completed' THEN 8 END, CASE WHEN $4 = 'completed' THEN $3 END, CASE WHEN $4 = 'completed' THEN clock_timestamp() END)
), attempts AS (
    INSERT INTO daybook.attempt_log (job_id, org_id, kind, type, attempt, outcome, error_code, error, started_at, turn_id, fence)
    VALUES ($1, $2, 'jobs', 'webhook', 1, 'retried', 'TIMEOUT', $3, clock_timestamp(), 'turn', 7)
), receipts AS (
    INSERT INTO daybook.webhook_deliveries (job_id, attempt, url, ok, duration_ms, org_id) VALUES ($1, 1, 'https://example.com/' || $3, true, 3, $2)
), deliveries AS (
    INSERT INTO daybook.job_deliveries (job_id, channel, state, attempt, generation, reference, error) VALUES ($1, 'email', 'sent', 1, 0, $3, $3)
), actions AS (
    INSERT INTO daybook.actions (via, action, actor, org_id, subject, details, outcome) VALUES ('cli', 'jobs.retry', 'operator', $2, $1, jsonb_build_object('why', $3), 'done')
), adopted AS (
    INSERT INTO daybook.adopted_rows (legacy_table, legacy_id, kind, org_id, job_id, taken_state, legacy_row)
    VALUES ('public.legacy', $1, 'jobs', $2, $1, 'pending', jsonb_build_object('payload', $3))
)
SELECT`, id, org, mark, state)
		require.NoError(t, err)
		_, err = pool.Exec(t.Context(), `INSERT INTO daybook.job_links (job_id, kind, id) VALUES ($1, 'customer', $2)`, id,
			mark)
		require.NoError(t, err)
		_ = i
	}
	_, err := pool.Exec(t.Context(), `
WITH job AS (INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, state, finished_at, last_error, last_error_code)
             VALUES ($1, 'doc-' || $2, 1, 'completed', clock_timestamp(), 'MARK-' || $2, 'UNBALANCED') ON CONFLICT (org_id, document_id) DO UPDATE SET state = 'completed', finished_at = clock_timestamp(), last_error = 'MARK-' || $2 RETURNING id)
INSERT INTO daybook.attempt_log (job_id, org_id, document_id, version, attempt, outcome, error_code, error, started_at, turn_id, fence)
SELECT id, $1, 'doc-' || $2, 1, 1, 'retried', 'UNBALANCED', 'MARK-' || $2, '2026-01-01', 't', 1 FROM job`, org, who)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `INSERT INTO daybook.actions (via, action, actor, org_id, subject, details, outcome)
VALUES ('cli', 'jobs.cancel', 'operator', $1, '', jsonb_build_object('link', 'customer=MARK-' || $2), 'done'),
       ('cli', 'accounting.retry', 'operator', $1, $1 || ' doc-' || $2, jsonb_build_object('note', 'MARK-' || $2), 'done')`, org, who)
	require.NoError(t, err)
	// The document as it was before an import changed it.
	_, err = pool.Exec(t.Context(), `
WITH import AS (INSERT INTO daybook.imports (org_id, format, files, actor) VALUES ($1, 'ndjson', '', 'operator') RETURNING id)
INSERT INTO daybook.import_documents (import_id, document_id, created, version, former)
SELECT id, 'doc-' || $2, false, 1, jsonb_build_object('content', jsonb_build_object('counterparty', 'MARK-' || $2)) FROM import`,
		org, who)
	require.NoError(t, err)
	// The document is not the first of its group, whose documents each have the reason.
	_, err = pool.Exec(t.Context(), `
WITH one AS MATERIALIZED (SELECT nextval('daybook.reconciled_group_seq') AS id)
INSERT INTO daybook.reconciled (org_id, document_id, group_id, matched_by, reason, actor)
SELECT $1, of || $2, one.id, 'hand', 'MARK-' || $2, 'MARK-' || $2 FROM one, unnest('{before-,doc-,with-}'::text[]) AS of`, org, who)
	require.NoError(t, err)
}

// besidesJobs fills the database with what an erasure of all of an organization erases, and one of a
// link leaves alone.
func besidesJobs(t *testing.T, pool *pgxpool.Pool, org, who string) {
	t.Helper()
	mark := "MARK-" + who
	_, err := pool.Exec(t.Context(), `
WITH receipt AS (
    INSERT INTO daybook.webhook_deliveries (job_id, attempt, url, ok, duration_ms, org_id) VALUES ('gone', 1, 'https://example.com/' || $2, true, 1, $1)
), token AS (
    INSERT INTO daybook.api_tokens (org_id, name, scopes, hash) VALUES ($1, $2, '{read}', sha256('x')) RETURNING id
), session AS (
    INSERT INTO daybook.console_sessions (hash, token_id, expires_at) SELECT sha256('y'), id, clock_timestamp() + interval '1 hour' FROM token
), import AS (
    INSERT INTO daybook.imports (org_id, format, files, actor) VALUES ($1, 'ubl', $2 || '.xml', 'operator')
), operation AS (
    INSERT INTO daybook.bulk_operations (org_id, action, states, patch, actor)
    VALUES ($1, 'edit', '{failed}', jsonb_build_array(jsonb_build_object('op', 'add', 'path', '/name', 'value', $2)), $2)
), name AS (
    UPDATE daybook.organizations SET name = $2 WHERE id = $1
), action AS (
    INSERT INTO daybook.actions (via, action, actor, org_id, subject, outcome) VALUES ('cli', 'accounting.retry', 'operator', $1, $2, 'done')
), step AS (
    INSERT INTO daybook.job_steps (job_id, name, position, attempt, result, started_at)
    SELECT min(id), 's', 1, 1, to_jsonb($2::text), clock_timestamp() FROM daybook.jobs WHERE org_id = $1
)
INSERT INTO daybook.job_limit_rates (scope, org_id, limit_key, next_at, look_at) VALUES ('webhook', $1, $2, clock_timestamp(), clock_timestamp())`,
		org, mark)
	require.NoError(t, err)
}

// found are the tables of both schemas that hold a text, with how many rows: every row of every
// table is read.
func found(t *testing.T, pool *pgxpool.Pool, text string) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), `
SELECT format('%I.%I', table_schema, table_name) FROM information_schema.tables WHERE table_schema IN ('daybook', 'queues') AND table_type = 'BASE TABLE' ORDER BY 1`)
	require.NoError(t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Greater(t, len(tables), 25)
	var holding []string
	for _, table := range tables {
		if n := fixture.Count(t, pool, `SELECT count(*) FROM `+table+` AS x WHERE strpos(to_jsonb(x)::text, $1) > 0`,
			text); n > 0 {
			holding = append(holding, fmt.Sprintf("%s: %d", table, n))
		}
	}
	return holding
}

// files are the files of an archive that hold a text, as it is stored or unpacked.
func files(t *testing.T, a *archive.Archive, pool *pgxpool.Pool, text string) (holding []string) {
	t.Helper()
	known, err := store.Archives(t.Context(), pool, "")
	require.NoError(t, err)
	for _, f := range known {
		lines, err := a.Lines(t.Context(), f)
		require.NoError(t, err)
		if slices.ContainsFunc(lines, func(l json.RawMessage) bool { return strings.Contains(string(l), text) }) {
			holding = append(holding, f.Key)
		}
	}
	return holding
}

// packed is a file of one line.
func packed(t *testing.T, line string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write([]byte(line + "\n"))
	require.NoError(t, errors.Join(err, z.Close()))
	return out.Bytes()
}

func filled(t *testing.T) (*pgtest.DB, *archive.Archive, string) {
	t.Helper()
	db := pgtest.New(t)
	dir := t.TempDir()
	a, err := archive.Open(t.Context(), dir)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, a.Close()) })
	for _, org := range []string{"org_1", "org_2"} {
		person(t, db.Pool, org, org+"-archived")
	}
	person(t, db.Pool, "org_1", "neighbour-archived")
	for _, kind := range []archive.Kind{archive.Jobs, archive.Attempts} {
		_, err = a.Move(t.Context(), db.Pool, kind, store.Retention{Before: time.Now().AddDate(0, 0, -30), Batch: 100},
			archive.Batch{})
		require.NoError(t, err)
	}
	return db, a, dir
}

// Nothing of the text of one link is left anywhere, and nothing of its neighbours is touched.
func TestEraseALink(t *testing.T) {
	t.Parallel()
	db, a, _ := filled(t)
	// The same link in another organization, and another link in the same one.
	person(t, db.Pool, "org_1", "ada")
	person(t, db.Pool, "org_2", "ada2")
	person(t, db.Pool, "org_1", "adam")
	_, err := db.Pool.Exec(t.Context(),
		`INSERT INTO daybook.job_links SELECT id, 'customer', 'MARK-ada' FROM daybook.jobs WHERE org_id = 'org_2'`)
	require.NoError(t, err)
	count := func(who string) []string { return found(t, db.Pool, "MARK-"+who+`"`) }
	adam, other := count("adam"), count("ada2")
	scope := store.EraseScope{OrgID: "org_1", Kind: "customer", ID: "MARK-ada"}

	dry, err := erasure.Erase(t.Context(), db.Pool, scope, erasure.Options{Actor: "operator", Archive: a, DryRun: true})
	require.NoError(t, err)
	assert.Zero(t, fixture.Count(t, db.Pool, `SELECT count(*) FROM daybook.erasures`))
	proof, err := erasure.Erase(t.Context(), db.Pool, scope,
		erasure.Options{Actor: "operator", Ground: "asked", Archive: a, Batch: 1})
	require.NoError(t, err)
	assert.Equal(t, dry.Counts, proof.Counts, "the dry run said what was erased")
	assert.Equal(t, int64(4), proof.Counts["jobs"])
	assert.Equal(t, int64(5), proof.Counts["actions"])
	assert.NotNil(t, proof.FinishedAt)
	assert.Zero(t, proof.OpenJobs)
	assert.True(t, erasure.About(proof, scope))
	assert.False(t, erasure.About(proof, store.EraseScope{OrgID: "org_1", Kind: "customer", ID: "MARK-adam"}))

	// The link is no document: that is erased by its own id.
	assert.Equal(t, []string{
		"daybook.accounting_work_queue: 1", "daybook.actions: 1", "daybook.attempt_log: 1",
		"daybook.documents: 1", "daybook.import_documents: 1", "daybook.job_links: 6", "daybook.reconciled: 3",
	}, count("ada"))
	document := store.EraseScope{OrgID: "org_1", Kind: "document", ID: "doc-ada"}
	_, err = erasure.Erase(t.Context(), db.Pool, document, erasure.Options{Actor: "operator", Archive: a})
	require.NoError(t, err)
	assert.Equal(t, []string{"daybook.job_links: 6"}, count("ada"), "of the other organization")
	assert.Equal(t, adam, count("adam"))
	assert.Equal(t, other, count("ada2"))
	again, err := erasure.Erase(t.Context(), db.Pool, scope, erasure.Options{Actor: "operator", Archive: a})
	require.NoError(t, err)
	assert.Empty(t, again.Counts, "nothing is left")
}

// All of an organization: nothing is left in any table or file but what the ledger keeps, and
// nothing of another one is touched.
func TestEraseAnOrganization(t *testing.T) {
	t.Parallel()
	db, a, _ := filled(t)
	person(t, db.Pool, "org_1", "one")
	person(t, db.Pool, "org_2", "two")
	besidesJobs(t, db.Pool, "org_1", "one")
	two := found(t, db.Pool, "MARK-two")
	proof, err := erasure.Erase(t.Context(), db.Pool, store.EraseScope{OrgID: "org_1"},
		erasure.Options{Actor: "operator", Archive: a, Batch: 3})
	require.NoError(t, err)
	for _, who := range []string{"one", "org_1-archived", "neighbour-archived"} {
		assert.Empty(t, found(t, db.Pool, "MARK-"+who), who)
		assert.Empty(t, files(t, a, db.Pool, "MARK-"+who), who)
	}
	assert.Equal(t, two, found(t, db.Pool, "MARK-two"))
	assert.NotEmpty(t, files(t, a, db.Pool, "MARK-org_2-archived"))
	assert.Equal(t, int64(3), proof.Counts["documents"])
	assert.Equal(t, int64(4), proof.Counts["archived_jobs"])
	var content string
	require.NoError(t, db.Pool.QueryRow(t.Context(),
		`SELECT content::text FROM daybook.documents WHERE id = 'doc-one'`).Scan(&content))
	assert.Contains(t, content, `"counterparty": "[erased]"`)
	assert.Contains(t, content, `"net"`, "what was posted stays")
	assert.Contains(t, content, `"rate"`, "rates are part of it")
	v, err := a.Verify(t.Context(), db.Pool)
	require.NoError(t, err)
	assert.Empty(t, v.Damaged)
	assert.Empty(t, v.Unrecorded)
	// What is restored now does not bring it back.
	known, err := store.Archives(t.Context(), db.Pool, "")
	require.NoError(t, err)
	for _, f := range known {
		_, err := a.Restore(t.Context(), db.Pool, f, "")
		require.NoError(t, err)
	}
	assert.Empty(t, found(t, db.Pool, "MARK-org_1-archived"))
}

// What is erased in a posted document is no change of which the ledger knows nothing: the audit
// finds the books sound.
func TestErasureLeavesTheBooksSound(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	fixture.Organization(t, db.Pool, "org_1")
	invoice := fixture.Invoice("org_1", "doc-ada", 1000)
	invoice.Content.Counterparty = "Ada"
	fixture.Ready(t, db.Pool, invoice)
	queuetest.DrainAccounting(t, db.Pool, queuetest.AccountingOptions{}).RequireCompleted(t)
	proof, err := erasure.Erase(t.Context(), db.Pool, store.EraseScope{OrgID: "org_1", Kind: "document", ID: "doc-ada"},
		erasure.Options{Actor: "operator"})
	require.NoError(t, err)
	require.Equal(t, int64(1), proof.Counts["documents"])
	queuetest.RequireSound(t, db.Pool, nil)
}

// A job that is being worked is cancelled after its attempt; the erasure that follows finds it.
func TestErasureOfAJobThatIsBeingWorked(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	person(t, db.Pool, "org_1", "ada")
	_, err := db.Pool.Exec(t.Context(),
		`UPDATE daybook.jobs SET state = 'leased', turn_id = 't', fence = 1, leased_generation = generation, attempt_started_at = clock_timestamp(), last_attempted_at = clock_timestamp(), working = true WHERE state = 'pending'`)
	require.NoError(t, err)
	scope := store.EraseScope{OrgID: "org_1", Kind: "customer", ID: "MARK-ada"}
	proof, err := erasure.Erase(t.Context(), db.Pool, scope, erasure.Options{Actor: "operator"})
	require.NoError(t, err)
	assert.Equal(t, int64(1), proof.OpenJobs)
	assert.Equal(t, 1, fixture.Count(t, db.Pool, `SELECT count(*) FROM daybook.jobs WHERE cancel_requested`))
	_, err = db.Pool.Exec(t.Context(),
		`UPDATE daybook.jobs SET state = 'cancelled', cancel_requested = false, turn_id = NULL, fence = NULL, leased_generation = NULL, attempt_started_at = NULL, working = false, finished_at = clock_timestamp()`)
	require.NoError(t, err)
	proof, err = erasure.Erase(t.Context(), db.Pool, scope, erasure.Options{Actor: "operator"})
	require.NoError(t, err)
	assert.Zero(t, proof.OpenJobs)
	assert.Zero(t, fixture.Count(t, db.Pool, `SELECT count(*) FROM daybook.jobs`))
}

// TestErasureLeavesTheLineOfALimit: jobs of others wait for the rate of the key that the erased one had.
func TestErasureLeavesTheLineOfALimit(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	person(t, db.Pool, "org_1", "ada")
	person(t, db.Pool, "org_1", "bob")
	_, err := db.Pool.Exec(t.Context(), `
WITH jobs AS (
    UPDATE daybook.jobs SET limit_scope = 'webhook', limit_key = 'org_1' WHERE state IN ('completed', 'pending') AND id NOT LIKE '%ada-pending'
)
INSERT INTO daybook.job_limit_rates (scope, org_id, limit_key, next_at, look_at)
VALUES ('webhook', 'org_1', 'org_1', clock_timestamp() + interval '1 hour', clock_timestamp() + interval '1 minute')`)
	require.NoError(t, err)
	for _, left := range []struct {
		who   string
		rates int
	}{{"ada", 1}, {"bob", 0}} {
		_, err = erasure.Erase(t.Context(), db.Pool, store.EraseScope{OrgID: "org_1", Kind: "customer", ID: "MARK-" + left.who},
			erasure.Options{Actor: "operator"})
		require.NoError(t, err)
		assert.Equal(t, left.rates, fixture.Count(t, db.Pool, `SELECT count(*) FROM daybook.job_limit_rates`), left.who)
	}
}

// TestErasureBesideANewJobOfALimit: a job comes to wait for the rate of a key while an erasure removes
// what is on record of that. It stays, because nothing else has the job go on.
func TestErasureBesideANewJobOfALimit(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, err := db.Pool.Exec(t.Context(), `
SELECT daybook.set_job_limit('greet', by => 'org_id', rate => 1, rate_seconds => 2);
SELECT daybook.enqueue_job('org_1', 'greet', '{}');
SELECT daybook.check_waits();
SELECT daybook.cancel_job(id) FROM daybook.jobs`)
	require.NoError(t, err)
	tx, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = tx.Exec(t.Context(), `SELECT daybook.enqueue_job('org_1', 'greet', '{}'); SELECT daybook.check_waits()`)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		_, err := erasure.Erase(t.Context(), db.Pool, store.EraseScope{OrgID: "org_1"}, erasure.Options{Actor: "ops"})
		ended <- err
	}()
	const waits = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
	require.Eventually(t, func() bool { return fixture.Count(t, db.Pool, waits) == 1 }, time.Minute, 20*time.Millisecond)
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, <-ended)
	require.Eventually(t, func() bool {
		_, err := db.Pool.Exec(t.Context(), `SELECT daybook.check_waits()`)
		require.NoError(t, err)
		return fixture.Count(t, db.Pool, `SELECT count(*) FROM daybook.jobs WHERE finished_at IS NULL AND fleet = -2`) == 0
	}, time.Minute, 50*time.Millisecond)
}

// TestErasureBesideALockedBatch: a transaction holds the first batch of open jobs. The others are
// cancelled and erased meanwhile, and those after it ends.
func TestErasureBesideALockedBatch(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	person(t, db.Pool, "acme", "ada")
	tx, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	_, err = tx.Exec(t.Context(), `SELECT FROM daybook.jobs WHERE state = 'failed' FOR UPDATE`)
	require.NoError(t, err)
	proofs := make(chan store.Erasure, 1)
	go func() {
		proof, err := erasure.Erase(t.Context(), db.Pool, store.EraseScope{OrgID: "acme"},
			erasure.Options{Actor: "ops", Batch: 1, Wait: time.Minute})
		assert.NoError(t, err)
		proofs <- proof
	}()
	require.Eventually(t, func() bool { return fixture.Count(t, db.Pool, `SELECT count(*) FROM daybook.jobs`) == 1 },
		20*time.Second, 20*time.Millisecond, "all but the locked job are erased")
	require.NoError(t, tx.Rollback(t.Context()))
	assert.Zero(t, (<-proofs).OpenJobs)
}

// Killed after the new file is on record, and before the old one is deleted: the next erasure
// deletes it. Counts are those of what was committed.
func TestErasureThatIsCutOff(t *testing.T) {
	t.Parallel()
	db, a, dir := filled(t)
	scope := store.EraseScope{OrgID: "org_1"}
	_, err := db.Pool.Exec(t.Context(), `
CREATE FUNCTION public.crash() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'cut off'; END $$;
CREATE TRIGGER crash BEFORE DELETE ON daybook.archives FOR EACH ROW EXECUTE FUNCTION public.crash()`)
	require.NoError(t, err)
	_, err = erasure.Erase(t.Context(), db.Pool, scope, erasure.Options{Actor: "operator", Archive: a})
	require.ErrorContains(t, err, "erase again")
	list, err := store.Erasures(t.Context(), db.Pool, "", "org_1")
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Nil(t, list[0].FinishedAt)
	assert.Equal(t, int64(4), list[0].Counts["archived_jobs"])
	// A file of a transaction that did not commit holds the organization's rows as well.
	orphan := filepath.Join(dir, "jobs", "2026-01", "orphan.ndjson.gz")
	require.NoError(t, os.MkdirAll(filepath.Dir(orphan), 0o750))
	require.NoError(t, os.WriteFile(orphan,
		packed(t, `{"kind": "jobs", "org_id": "org_1", "jobs": [], "attempts": [], "links": [], "receipts": []}`), 0o600))
	other := filepath.Join(dir, "jobs", "2026-01", "other.ndjson.gz")
	require.NoError(t, os.WriteFile(other,
		packed(t, `{"kind": "jobs", "org_id": "org_2", "jobs": [], "attempts": [], "links": [], "receipts": []}`), 0o600))

	_, err = db.Pool.Exec(t.Context(), `DROP TRIGGER crash ON daybook.archives`)
	require.NoError(t, err)
	_, err = erasure.Erase(t.Context(), db.Pool, scope, erasure.Options{Actor: "operator", Archive: a})
	require.NoError(t, err)
	assert.NoFileExists(t, orphan)
	assert.FileExists(t, other)
	known, err := store.Archives(t.Context(), db.Pool, "")
	require.NoError(t, err)
	for _, f := range known {
		assert.Nil(t, f.ErasedAt)
		assert.Equal(t, []string{"org_2"}, f.Organizations)
	}
}

// However many batches an erasure takes, it reads each row a few times: not those that it has
// passed again with each batch.
func TestErasureReadsEachRowOnce(t *testing.T) {
	t.Parallel()
	const rows, batch = 1000, 20
	tables := []string{
		"daybook.jobs", "daybook.attempt_log", "daybook.adopted_rows", "daybook.actions",
		"daybook.accounting_work_queue",
	}
	for name, scope := range map[string]store.EraseScope{
		"an organization": {OrgID: "acme"},
		"a link":          {OrgID: "acme", Kind: "customer", ID: "ada"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			for _, table := range tables {
				_, err := db.Pool.Exec(t.Context(), `ALTER TABLE `+table+` SET (autovacuum_enabled = off)`)
				require.NoError(t, err)
			}
			for _, org := range []string{"aaa", "acme"} {
				_, err := db.Pool.Exec(t.Context(), `
WITH jobs AS (
    INSERT INTO daybook.jobs (org_id, type, payload, state, finished_at) SELECT $1, 'mail', '{}', 'cancelled', clock_timestamp() FROM generate_series(1, $2::int) RETURNING id
), attempts AS (
    INSERT INTO daybook.attempt_log (job_id, org_id, kind, type, attempt, outcome, error_code, error, started_at, turn_id, fence)
    SELECT id, $1, 'jobs', 'mail', 1, 'retried', 'TIMEOUT', 'e', clock_timestamp(), 'turn', 7 FROM jobs
), links AS (
    INSERT INTO daybook.job_links (job_id, kind, id) SELECT id, 'customer', 'ada' FROM jobs
), adopted AS (
    INSERT INTO daybook.adopted_rows (legacy_table, legacy_id, kind, org_id, job_id, taken_state, legacy_row) SELECT 'public.legacy', id, 'jobs', $1, id, 'pending', '{}' FROM jobs
), actions AS (
    INSERT INTO daybook.actions (via, action, actor, org_id, subject, details, outcome) SELECT 'cli', 'jobs.retry', 'operator', $1, '', '{"why": "x"}', 'done' FROM jobs
), documents AS (
    INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, state, finished_at, last_error, last_error_code)
    SELECT $1, id, 1, 'completed', clock_timestamp(), 'e', 'UNBALANCED' FROM jobs RETURNING id, document_id
)
INSERT INTO daybook.attempt_log (job_id, org_id, document_id, version, attempt, outcome, error_code, error, started_at, turn_id, fence)
SELECT id, $1, document_id, 1, 1, 'retried', 'UNBALANCED', 'e', clock_timestamp(), 't', 1 FROM documents`, org, rows)
				require.NoError(t, err)
			}
			pool, reads := fixture.Reads(t, db.Pool)
			proof, err := erasure.Erase(t.Context(), pool, scope, erasure.Options{Actor: "ops", Batch: batch})
			require.NoError(t, err)
			assert.EqualValues(t, rows, proof.Counts["jobs"])
			assert.EqualValues(t, rows, proof.Counts["adopted_rows"])
			for _, table := range tables {
				read, _ := reads(table)
				assert.Less(t, read, int64(20*2*rows), table)
			}
		})
	}
}

// The proof stays as it is, and so does the log of actions but for erasures.
func TestProofsStay(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	person(t, db.Pool, "org_1", "ada")
	proof, err := erasure.Erase(t.Context(), db.Pool, store.EraseScope{OrgID: "org_1"},
		erasure.Options{Actor: "operator"})
	require.NoError(t, err)
	for _, statement := range []string{
		`UPDATE daybook.erasures SET counts = '{}'`, `DELETE FROM daybook.erasures`, `TRUNCATE daybook.erasures`,
		`DELETE FROM daybook.actions`, `UPDATE daybook.actions SET actor = 'other'`,
		`UPDATE daybook.actions SET subject = '', details = jsonb_build_object('erased', '` + proof.ID + `')`,
	} {
		_, err := db.Pool.Exec(t.Context(), statement)
		var refused interface{ SQLState() string }
		require.ErrorAs(t, err, &refused, statement)
		assert.Equal(t, "DB004", refused.SQLState(), statement)
	}
}

// TestErasureBesideANewVersion: an application writes a new version of a posted document and asks
// for it, in a transaction that is open when the erasure comes to the document. The attributes that
// its rules may ask for stay until it is posted, as those of any other open document.
func TestErasureBesideANewVersion(t *testing.T) {
	t.Parallel()
	for name, beside := range map[string]bool{"before the erasure": false, "beside it": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			fixture.Organization(t, db.Pool, "org_1")
			fixture.Ready(t, db.Pool, fixture.Invoice("org_1", "doc", 1000))
			_, err := db.Pool.Exec(t.Context(),
				`UPDATE daybook.accounting_work_queue SET state = 'completed', finished_at = clock_timestamp(), run_count = 1`)
			require.NoError(t, err)

			tx, err := db.Pool.Begin(t.Context())
			require.NoError(t, err)
			defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
			d := fixture.Invoice("org_1", "doc", 2000)
			d.Content.Attributes = map[string]string{"cost_center": "42"}
			_, err = ledgerdb.PutDocument(t.Context(), tx, d)
			require.NoError(t, err)
			_, err = store.MarkDocumentReady(t.Context(), tx, "org_1", "doc", models.PriorityNormal)
			require.NoError(t, err)
			if !beside {
				require.NoError(t, tx.Commit(t.Context()))
			}
			done := make(chan error, 1)
			go func() {
				_, err := erasure.Erase(context.WithoutCancel(t.Context()), db.Pool, store.EraseScope{OrgID: "org_1"},
					erasure.Options{Actor: "test"})
				done <- err
			}()
			if beside {
				require.Eventually(t, func() bool {
					return fixture.Count(t, db.Pool,
						`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%daybook.documents d%'`) == 1
				}, time.Minute, 5*time.Millisecond)
				require.NoError(t, tx.Commit(t.Context()))
			}
			require.NoError(t, <-done)
			assert.Equal(t, 1, fixture.Count(t, db.Pool,
				`SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'pending'`), "it is still to be posted")
			assert.Equal(t, 1, fixture.Count(t, db.Pool,
				`SELECT count(*) FROM daybook.documents WHERE content -> 'total' = '2380'`))
			assert.Equal(t, 1, fixture.Count(t, db.Pool,
				`SELECT count(*) FROM daybook.documents WHERE content #>> '{attributes,cost_center}' = '42'`),
				"its rules may ask for it")
		})
	}
}
