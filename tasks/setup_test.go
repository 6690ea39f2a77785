package tasks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/tasks"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const workerRole = "worker_service_user"

// lines is a log that a test reads.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// bundle is a database with a business in schema app, and a worker that is logged in as
// worker_service_user.
type bundle struct {
	*pgtest.DB
	t        *testing.T
	worker   *pgxpool.Pool
	registry *tasks.Registry
	handlers engine.Handlers
	log      *lines
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{DB: pgtest.New(t), t: t, registry: tasks.NewRegistry(), log: &lines{}}
	b.worker = b.As(t, workerRole)
	b.exec(`CREATE SCHEMA app; GRANT USAGE ON SCHEMA app TO ` + workerRole +
		`; CREATE TABLE app.facts (n bigint GENERATED ALWAYS AS IDENTITY, what text, body jsonb)`)
	b.use(b.worker)
	return b
}

// use has the worker's before_handlers called by a pool.
func (b *bundle) use(pool *pgxpool.Pool) {
	b.handlers = engine.HandlersOf(b.registry, pool, slog.New(slog.NewTextHandler(b.log, nil)))
}

// function makes a function of the business, which the worker is granted. Its body is between BEGIN
// and END.
func (b *bundle) function(name, body string) {
	b.t.Helper()
	b.exec(fmt.Sprintf(`CREATE FUNCTION app.%[1]s(_payload jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
%[2]s
END $$;
REVOKE ALL ON FUNCTION app.%[1]s FROM PUBLIC;
GRANT EXECUTE ON FUNCTION app.%[1]s TO %[3]s`, name, body, workerRole))
}

// notes makes a function that notes its payload as a fact and returns an answer.
func (b *bundle) notes(name, answer string) {
	b.t.Helper()
	b.function(name, fmt.Sprintf(`INSERT INTO app.facts (what, body) VALUES ('%s', _payload); RETURN '%s';`, name,
		answer))
}

func (b *bundle) exec(query string, args ...any) {
	b.t.Helper()
	_, err := b.Pool.Exec(b.t.Context(), query, args...)
	require.NoError(b.t, err)
}

func (b *bundle) enqueue(taskType, payload string) {
	b.t.Helper()
	b.exec(`SELECT queues.enqueue($1, $2::jsonb)`, taskType, payload)
}

// claimed is a task that the worker holds.
type claimed struct {
	job   store.Job
	id    int64
	lease int64
}

// claim leases what is due.
func (b *bundle) claim() []claimed {
	b.t.Helper()
	rows, err := b.worker.Query(b.t.Context(),
		`SELECT task_id, task_type, payload, enqueued_at, task_lease_id, attempt FROM queues.dequeue_available_tasks(100, $1)`, b.registry.Names())
	require.NoError(b.t, err)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c claimed, err error) {
		err = row.Scan(&c.id, &c.job.Type, &c.job.Payload, &c.job.EnqueuedAt, &c.lease, &c.job.Attempt)
		c.job.ID = fmt.Sprint(c.id)
		return c, err
	})
	require.NoError(b.t, err)
	return all
}

// work works everything that is due, and completes it as a worker does.
func (b *bundle) work() []engine.Attempt {
	b.t.Helper()
	var all []engine.Attempt
	for _, c := range b.claim() {
		all = append(all, b.end(c, b.handlers.Work(b.t.Context(), c.job, nil)))
	}
	return all
}

// end ends a task by the functions that a worker has, and returns how.
func (b *bundle) end(c claimed, a engine.Attempt) engine.Attempt {
	b.t.Helper()
	ctx := b.t.Context()
	if a.Outcome == models.OutcomeCompleted {
		err := store.Begin(ctx, b.worker, func(tx pgx.Tx) error {
			if a.InTx != nil {
				if _, err := a.InTx(ctx, tx); err != nil {
					return err
				}
			}
			_, err := tx.Exec(ctx, `SELECT queues.complete_tasks(ARRAY[$1::bigint], ARRAY[$2::bigint])`, c.id, c.lease)
			return err
		})
		if err == nil {
			return a
		}
		a = b.handlers.Failed(c.job, err)
	}
	var err error
	if a.Unavailable || a.Outcome == models.OutcomeRescheduled {
		_, err = b.worker.Exec(ctx, `SELECT queues.give_back_tasks(ARRAY[$1::bigint], ARRAY[$2::bigint])`, c.id, c.lease)
	} else {
		require.Equal(b.t, models.OutcomeFailed, a.Outcome)
		_, err = b.worker.Exec(ctx, `SELECT queues.fail_task($1, $2), queues.complete_task($1)`, c.id, a.Message)
	}
	require.NoError(b.t, err)
	return a
}

// texts are the texts that a query returns.
func (b *bundle) texts(query string) []string {
	b.t.Helper()
	rows, err := b.Pool.Query(context.WithoutCancel(b.t.Context()), query)
	require.NoError(b.t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(b.t, err)
	return all
}

// facts are what the functions of the business have noted, and errors what was recorded of tasks.
func (b *bundle) facts() []string { return b.texts(`SELECT what FROM app.facts ORDER BY n`) }

func (b *bundle) errors() []string {
	return b.texts(`SELECT error_message FROM queues.error ORDER BY error_id`)
}

func (b *bundle) open() int { return len(b.texts(`SELECT task_id::text FROM queues.open_task`)) }

// fact is the body of the last fact of a name.
func (b *bundle) fact(what string) map[string]json.RawMessage {
	b.t.Helper()
	var raw []byte
	require.NoError(b.t, b.Pool.QueryRow(b.t.Context(),
		`SELECT body FROM app.facts WHERE what = $1 ORDER BY n DESC LIMIT 1`, what).Scan(&raw))
	var fields map[string]json.RawMessage
	require.NoError(b.t, json.Unmarshal(raw, &fields))
	return fields
}
