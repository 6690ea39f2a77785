package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/dev/released"
	"github.com/daybook-dev/daybook/models"
)

// application is what an application has beside Daybook's schemas: a function that jobs and tasks
// call, what that has done, and what enqueues them.
const application = `
CREATE SCHEMA app; CREATE TABLE app.visits (key text NOT NULL);
CREATE FUNCTION app.visit(_payload jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN INSERT INTO app.visits VALUES (_payload ->> 'key'); RETURN '{"status": "succeeded"}'; END $$;
CREATE FUNCTION app.job(key text, organization text DEFAULT 'acme') RETURNS text LANGUAGE sql AS
$$ SELECT job_id FROM daybook.enqueue_job(organization, 'db_function', jsonb_build_object('function', 'app.visit', 'argument', jsonb_build_object('key', key))) $$;
CREATE FUNCTION app.task(key text) RETURNS void LANGUAGE sql AS
$$ SELECT queues.enqueue('db_function', jsonb_build_object('task_type', 'db_function', 'db_function', 'app.visit', 'key', key)) $$;
CREATE FUNCTION app.document(id text) RETURNS text LANGUAGE sql AS
$$ INSERT INTO daybook.documents (org_id, id, type, direction, currency, issue_date, content) VALUES ('beta', id, 'payment', 'in', 'EUR', '2026-03-20', '{"amount": 100}');
SELECT job_id FROM daybook.mark_document_ready('beta', id) $$`

// keepDump writes a database in which every table has rows: of two organizations, open, at work by a
// worker that is gone, dead, done, archived and erased. `make keep` keeps that of a release, and
// programs that follow upgrade it.
func keepDump(t *testing.T) {
	t.Helper()
	require.NoError(t, released.MayKeep(checkout))
	require.Contains(t, []string{"root", "daybook"}, cli.SystemUser(), "the dump names who made it: make it in a container")
	b := setup(t)
	dir := t.TempDir()
	b.books(dir)
	b.queues(dir)
	b.sound()
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	require.NoError(t, err)
	_, err = io.WriteString(z, strings.ReplaceAll(b.DumpAll(t), dir, "/files"))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.Less(t, packed.Len(), 300<<10)
	require.NoError(t, os.WriteFile(released.Path(checkout, "dump.sql.gz"), packed.Bytes(), 0o644))
}

// emptyTables are Daybook's tables without a row.
func (b *bundle) emptyTables() (empty []string) {
	b.t.Helper()
	rows, _ := b.Pool.Query(b.t.Context(), `
SELECT r.oid::regclass::text FROM pg_class r WHERE r.relkind = 'r' AND r.relnamespace::regnamespace::text IN ('daybook', 'queues')
   AND (xpath('/row/n/text()', query_to_xml('SELECT count(*) AS n FROM ' || r.oid::regclass, true, true, '')))[1]::text = '0' ORDER BY 1`)
	defer rows.Close()
	for rows.Next() {
		var name string
		require.NoError(b.t, rows.Scan(&name))
		empty = append(empty, name)
	}
	require.NoError(b.t, rows.Err())
	return empty
}

// do runs lines: commands, which begin with daybook, and statements.
func (b *bundle) do(lines ...string) {
	b.t.Helper()
	for _, line := range lines {
		if args, is := strings.CutPrefix(line, "daybook "); is {
			b.ok(strings.Fields(args)...)
			continue
		}
		_, err := b.Pool.Exec(b.t.Context(), line)
		require.NoError(b.t, err, line)
	}
}

// books fills the accounting queue and the ledger.
func (b *bundle) books(dir string) {
	b.t.Helper()
	private := filepath.Join(dir, "closing.pem")
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(b.t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(b.t, err)
	write(b.t, private, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	b.t.Setenv("DAYBOOK_CLOSING_KEY", private)
	chart := write(b.t, filepath.Join(dir, "more.csv"), "code,name,type,role,section\n2900,Retained earnings,equity,,Equity\n4930,Exchange gains,income,exchange,Financial result\n")
	payments := write(b.t, filepath.Join(dir, "payments.ndjson"),
		`{"org_id": "acme", "id": "pay-1", "type": "payment", "direction": "in", "currency": "EUR", "issue_date": "2026-03-20", "content": {"amount": 1190, "counterparty": "Customer 1"}}
{"org_id": "acme", "id": "split", "type": "journal", "direction": "out", "currency": "EUR", "issue_date": "2026-01-21", "content": {"journal": {"reason": "split", "by": "acme", "entries": [{"account": "6300", "amount": 700, "dimensions": {"cost_centre": "one"}}, {"account": "1000", "amount": -700}]}}}
`)
	undone := write(b.t, filepath.Join(dir, "undone.ndjson"), `{"org_id": "acme", "id": "twice", "type": "payment", "direction": "in", "currency": "EUR", "issue_date": "2026-03-21", "content": {"amount": 5}}`+"\n")
	for _, org := range []string{"acme", "beta"} {
		b.sample(org)
		b.do("daybook accounts import "+chart+" --org "+org, "daybook periods add --org "+org+" --year 2025", "daybook periods add --org "+org+" --year 2026")
	}
	invoice := func(org, id string, net int64, on models.Date) *models.Document {
		d := fixture.Invoice(org, id, net)
		d.IssueDate, d.Content.Counterparty = on, "Customer 1"
		return d
	}
	march := models.NewDate(2026, 3, 14)
	dollars := invoice("acme", "dollars", 5000, march)
	dollars.Currency = "USD"
	fixture.Ready(b.t, b.Pool, invoice("acme", "inv-1", 1000, march), invoice("acme", "inv-2", 2000, march), dollars, invoice("acme", "gone", 100, march),
		invoice("acme", "last-year", 700, models.NewDate(2025, 6, 1)), invoice("acme", "january", 900, models.NewDate(2026, 1, 10)),
		invoice("acme", "february", 800, models.NewDate(2026, 2, 10)), fixture.Unbalanced("acme", "wrong"), invoice("beta", "inv-1", 3000, march))
	b.do("daybook import ndjson "+payments, "daybook import ndjson "+undone,
		"daybook journal put --org acme --date 2026-01-20 --reason tax --id tax --currency EUR 4400=1.00 3800=-1.00")
	b.work()
	fixture.Ready(b.t, b.Pool, invoice("acme", "inv-1", 1000, march), invoice("acme", "inv-2", 2500, march)) // confirmed; reversed and posted anew
	b.do(`SELECT daybook.mark_document_deleted('acme', 'gone')`, "daybook import undo 2")
	b.work()
	b.do("daybook accounting repost acme february", "daybook open-items reconcile inv-1 pay-1 --org acme",
		"daybook rates own EUR --org acme", "daybook rates set USD --on 2026-03-31 --rate 0.92 --org acme",
		"daybook exchange book --until 2026-03-31 --adjustment 1370 --gain 4930 --loss 6960 --org acme",
		"daybook year-end --org acme --year 2025 --to 2900")
	b.work()
	b.do("daybook periods close --org acme --year 2025", "daybook periods close --org acme --month 2026-01", "daybook periods close --org acme --month 2026-02", "daybook periods open --org acme --month 2026-02",
		"daybook organizations source daybook --org acme", "daybook organizations cap --org beta --max-in-flight 5",
		"daybook organizations rate --org beta --rate 1000", "daybook accounting enqueue acme later --version 1 --ready-at 2999-01-01T00:00:00Z",
		"daybook accounting enqueue acme unwanted --version 1", "daybook accounting cancel acme unwanted")
	b.legacy()
	b.do("daybook adopt accounting-queue --entries public.legacy_entries --apply")
}

// queues fills what jobs and tasks have, with the help of a worker.
func (b *bundle) queues(dir string) {
	b.t.Helper()
	b.t.Setenv("DAYBOOK_DB_FUNCTIONS", "app.visit")
	b.t.Setenv("DAYBOOK_METRICS_SAMPLE_EVERY", "1s")
	b.do(application, "daybook migrate up --roles", "GRANT USAGE ON SCHEMA app TO worker_service_user; GRANT EXECUTE ON FUNCTION app.visit TO worker_service_user")
	b.t.Setenv("DAYBOOK_TASKS_DATABASE_URL", b.As(b.t, "worker_service_user").Config().ConnString())
	b.do("daybook queues create bank --max-parallel 10 --rate 100 --per 1m --burst 3 --owner payments", "daybook queues create far --fleet far",
		"daybook jobs limit --queue bank --by org_id --parallel 2 --rate 1 --per 1000h",
		`SELECT app.job('done-1'), app.job('done-2', 'beta'), app.task('task-1')`,
		`SELECT daybook.enqueue_job('acme', 'db_function', '{"function": "app.visit", "argument": {"key": "bank-1"}}', queue => 'bank')`,
		`SELECT daybook.enqueue_job('acme', 'db_function', '{"function": "app.visit", "argument": {"key": "bank-2"}}', queue => 'bank')`,
		`SELECT daybook.enqueue_job('acme', 'db_function', '{"function": "app.forbidden"}')`,
		"daybook workflow start")
	end := b.worker("first", "")
	b.await(`SELECT count(*) FROM daybook.jobs WHERE finished_at IS NULL AND queue IS DISTINCT FROM 'bank'`, `SELECT count(*) FROM queues.open_task`,
		`SELECT count(*) = 0 FROM daybook.depths`, `SELECT count(*) = 0 FROM daybook.gauges`, `SELECT count(*) = 0 FROM daybook.history`)
	end()

	// Archived and erased.
	archive := filepath.Join(dir, "archive")
	old := b.background("webhook", "--org", "beta", "--link", "customer=1", "--skip-validation", "--key", "old")
	b.do(`UPDATE daybook.jobs SET state = 'completed', finished_at = clock_timestamp() - interval '40 days', run_count = 1 WHERE id = '`+old+`'`,
		"daybook archive move --before 720h --archive "+archive, "daybook jobs enqueue webhook --org beta --link customer=2 --skip-validation",
		"daybook erase --org beta --link customer=2 --archive "+archive+" --ground request",
		"daybook jobs enqueue mail --org acme --unique --priority high --max-attempts 7 --link order=17 --run-at 2999-01-01T00:00:00Z",
		"daybook jobs enqueue mail --org acme --debounce k --debounce-wait 1h", "daybook jobs enqueue mail --org acme --callback paid --callback-within 80000h",
		"daybook jobs enqueue mail --org acme --min-version 2 --key k")
	first := b.background("mail", "--org", "acme", "--sequence", "s")
	for _, flags := range []string{"--sequence s", "--after " + first, "--queue far", "--org beta"} {
		b.do("daybook jobs enqueue mail --org acme " + flags)
	}
	cancelled := b.background("mail", "--org", "acme")
	b.do("daybook jobs cancel "+cancelled, "daybook jobs retry --all --state cancelled --mode later", "daybook jobs cancel "+cancelled,
		`SELECT daybook.check_waits()`,
		`SELECT app.job('leased-1'), app.job('leased-2', 'beta'), app.job('due-1'), daybook.enqueue_job('acme', 'mail', '{"half": true}')`,
		// Claimed by a worker that is gone, which has kept a step.
		`SELECT daybook.start_job_worker('gone', '{mail,db_function}')`, `SELECT daybook.claim_jobs('gone', 100)`,
		`SELECT daybook.keep_step(id, fence, 'half', '{"n": 1}') FROM daybook.jobs WHERE payload = '{"half": true}'`,
		"daybook jobs enqueue mail --org acme --after "+first, "daybook tokens create --name shop --scope read --all-orgs",
		`INSERT INTO daybook.console_sessions (hash, token_id, expires_at) SELECT sha256('session'), id, '2999-01-01' FROM daybook.api_tokens`,
		// What needs servers elsewhere, a thousand failed documents, or a command that is interrupted.
		`INSERT INTO daybook.webhook_deliveries (job_id, attempt, url, status, ok, duration_ms) VALUES ('`+old+`', 1, 'http://example.com/', 202, true, 1)`,
		`INSERT INTO daybook.job_deliveries (job_id, channel, state, attempt, generation) VALUES ('`+cancelled+`', 'email', 'sent', 1, 0)`,
		`INSERT INTO daybook.job_workflows (job_id, namespace, grace_seconds) VALUES ('`+cancelled+`', 'default', 60)`,
		`INSERT INTO daybook.accounting_returns (org_id, code, up_to) VALUES ('acme', 'TOTALS_DIFFER', clock_timestamp())`,
		`WITH o AS (INSERT INTO daybook.bulk_operations (action, mode, actor, states, matched) VALUES ('retry', 'later', 'acme', '{cancelled}', 1) RETURNING id)
INSERT INTO daybook.bulk_batches (operation_id, n, job_ids) SELECT id, 0, '{`+cancelled+`}' FROM o`,
		// An attempt at a document that ended with its worker's process.
		`UPDATE daybook.documents SET accounting_ready_version = accounting_ready_version + 1 WHERE org_id = 'beta'`,
		`SELECT daybook.enqueue_accounting_job('beta', 'inv-1', 2)`,
		`UPDATE daybook.accounting_work_queue SET state = 'leased', turn_id = 'gone/1', fence = 1, leased_generation = generation, run_count = 1, worker = 'gone',
       attempt_started_at = now() - interval '1 hour', last_attempted_at = now() - interval '1 hour' WHERE org_id = 'beta' AND document_id = 'inv-1'`,
		// Tasks: one leased by a client that is gone, one with an error, one paused.
		`SELECT app.task('task-2')`, `
WITH l AS (INSERT INTO queues.task_lease (task_id, leased_at, expires_at) SELECT task_id, now() - interval '1 hour', now() - interval '55 minutes' FROM queues.open_task RETURNING *)
UPDATE queues.open_task o SET leases = 1, task_lease_id = l.task_lease_id, leased_until = l.expires_at, arrived = pg_current_xact_id() FROM l WHERE l.task_id = o.task_id`,
		`SELECT queues.fail_task(task_id, 'busy') FROM queues.open_task`,
		`SELECT app.task('task-3')`, "daybook tasks enqueue email --payload {}", "daybook tasks pause --type email")
}

// await waits until each query counts nothing, or is false.
func (b *bundle) await(queries ...string) {
	b.t.Helper()
	left := map[string]string{}
	if !assert.Eventually(b.t, func() bool {
		clear(left)
		for _, q := range queries {
			var n string
			if err := b.Pool.QueryRow(context.WithoutCancel(b.t.Context()), `SELECT (`+q+`)::text`).Scan(&n); err != nil || n != "0" && n != "false" {
				left[q] = fmt.Sprint(n, " ", err)
			}
		}
		return len(left) == 0
	}, pgtest.Patience, 100*time.Millisecond) {
		require.Fail(b.t, "it does not come to that", "%v", slices.Collect(maps.Keys(left)))
	}
}
