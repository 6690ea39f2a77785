package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/queue"
)

// remind is the payload of a task.
type remind struct {
	Note string `json:"note"`
}

func (remind) TaskType() string { return "remind" }

// everythingOfTasks makes one request of each kind about tasks: four tasks are left.
func everythingOfTasks(ctx context.Context, q queue.Querier) error {
	p := remind{Note: "ä \"quoted\", {braced} \\ ' \n\tc€😀 NULL"}
	one, err := queue.EnqueueTask(ctx, q, p, queue.TaskOptions{ScheduledAt: time.Now().Add(hour)})
	if err != nil {
		return err
	}
	more, err := queue.EnqueueTasks(ctx, q, []queue.NewTask{
		{Payload: queue.RawTask{Type: "t", Data: json.RawMessage(`{"null": null, "n": 1.50, "l": ["a,b", "{}"]}`)}},
		{Payload: p, Options: queue.TaskOptions{ScheduledAt: time.Now().Add(-hour)}},
		{Payload: queue.RawTask{Type: "t"}},
	})
	if err != nil {
		return err
	}
	if len(more) != 3 || more[0].ID <= one.ID || more[1].ID <= more[0].ID || more[2].ID <= more[1].ID {
		return errors.New("not one id for each task, in their order")
	}
	return nil
}

func (b *bundle) tasks() int {
	return fixture.Count(b.t, b.Pool, `SELECT count(*) FROM queues.open_task`)
}

func TestRequestsForTasksFollowTheCallersTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	there := 0
	for name, tx := range transactions(b) {
		err := tx(t.Context(), func(q queue.Querier) error {
			return errors.Join(everythingOfTasks(t.Context(), q),
				errRollback)
		})
		require.EqualError(t, err, errRollback.Error(), name)
		require.Equal(t, there, b.tasks(), "%s: tasks after the rollback", name)
		require.NoError(t, tx(t.Context(), func(q queue.Querier) error { return everythingOfTasks(t.Context(), q) }), name)
		there += 4
		require.Equal(t, there, b.tasks(), "%s: tasks after the commit", name)
		require.Equal(t, there/2,
			fixture.Count(t, b.Pool, `SELECT count(*) FROM queues.task WHERE payload = jsonb_build_object('note', $1::text)`,
				"ä \"quoted\", {braced} \\ ' \n\tc€😀 NULL"), name)
		require.Equal(t, there/4,
			fixture.Count(t, b.Pool, `SELECT count(*) FROM queues.task WHERE payload::text = '{"l": ["a,b", "{}"], "n": 1.50, "null": null}'`), name)
	}
	require.Equal(t, there/2,
		fixture.Count(t, b.Pool, `SELECT count(*) FROM queues.task WHERE scheduled_at = enqueued_at`), "no time is now")
}

func TestTasksWithoutATransactionCommitByThemselves(t *testing.T) {
	t.Parallel()
	b := setup(t)
	there := 0
	for name, q := range handles(t, b) {
		require.NoError(t, everythingOfTasks(t.Context(), q), name)
		there += 4
		require.Equal(t, there, b.tasks(), name)
	}
	q := queue.GORM(b.gormDB(gorm.Config{}))
	require.ErrorIs(t, second(queue.EnqueueTask(t.Context(), q, remind{}, queue.TaskOptions{})), queue.ErrNoTransaction)
	require.ErrorIs(t, second(queue.EnqueueTasks(t.Context(), q, []queue.NewTask{{Payload: remind{}}})),
		queue.ErrNoTransaction)
	assert.Equal(t, there, b.tasks())
}

func TestEachWayToSendAStatementAboutTasks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		config, err := pgx.ParseConfig(b.URL)
		require.NoError(t, err)
		config.DefaultQueryExecMode = mode
		conn, err := pgx.ConnectConfig(t.Context(), config)
		require.NoError(t, err)
		assert.NoError(t, everythingOfTasks(t.Context(), conn), mode.String())
		require.NoError(t, conn.Close(t.Context()))
	}
}

func TestErrorsOfTaskRequests(t *testing.T) {
	t.Parallel()
	b := setup(t)
	enqueue := func(q queue.Querier, p queue.TaskPayload, at time.Time) error {
		return second(queue.EnqueueTask(t.Context(), q, p, queue.TaskOptions{ScheduledAt: at}))
	}
	raw := func(data string) error {
		return enqueue(b.Pool, queue.RawTask{Type: "t", Data: json.RawMessage(data)}, time.Time{})
	}
	for name, c := range map[string]struct {
		err  error
		is   error
		says string
	}{
		"nil payload": {enqueue(b.Pool, nil, time.Time{}), queue.ErrPayloadInvalid, "queue.RawTask"},
		"no type":     {enqueue(b.Pool, queue.RawTask{}, time.Time{}), queue.ErrInvalidTaskType, `not ""`},
		"a type in capitals": {
			enqueue(b.Pool, queue.RawTask{Type: "Email"}, time.Time{}), queue.ErrInvalidTaskType,
			`not "Email"`,
		},
		"all types": {
			enqueue(b.Pool, queue.RawTask{Type: "*"}, time.Time{}), queue.ErrInvalidTaskType,
			`not "*"`,
		},
		"a long type": {
			enqueue(b.Pool, queue.RawTask{Type: strings.Repeat("t", 64)}, time.Time{}),
			queue.ErrInvalidTaskType, "63 at most",
		},
		"no JSON":   {raw(`{`), queue.ErrPayloadInvalid, "unexpected end of JSON input"},
		"no object": {raw(`[]`), queue.ErrPayloadInvalid, "it must be a JSON object"},
		"NUL":       {raw(`{"a": "\u0000"}`), queue.ErrPayloadInvalid, "must not hold the character"},
		"a large payload": {
			raw(`{"a": "` + strings.Repeat("x", 131072) + `"}`), queue.ErrPayloadTooLarge,
			"keep what is large elsewhere",
		},
		"a time without end": {
			enqueue(b.Pool, remind{}, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)),
			queue.ErrInvalidTime, "between the years 1 and 9999",
		},
		"nil Querier": {enqueue(nil, remind{}, time.Time{}), queue.ErrNoQuerier, "pass your transaction"},
		"nil pool": {
			enqueue((*pgxpool.Pool)(nil), remind{}, time.Time{}), queue.ErrNoQuerier,
			"pass your transaction",
		},
		"nil Querier of many": {
			second(queue.EnqueueTasks(t.Context(), nil, []queue.NewTask{{Payload: remind{}}})),
			queue.ErrNoQuerier, "the Querier is nil",
		},
		"the second of many": {
			second(queue.EnqueueTasks(t.Context(), b.Pool,
				[]queue.NewTask{{Payload: remind{}}, {Payload: queue.RawTask{Type: "1"}}})), queue.ErrInvalidTaskType,
			"task 1: ",
		},
	} {
		require.ErrorIs(t, c.err, c.is, name)
		assert.ErrorContains(t, c.err, c.says, name)
	}
	assert.Zero(t, b.tasks())
	require.NoError(t, raw(`{"a": `+strings.Repeat(`[`, 100)+strings.Repeat(`]`, 100)+`}`),
		"a task's payload may be as deep as it wants")
	none, err := queue.EnqueueTasks(t.Context(), b.Pool, nil)
	require.NoError(t, err)
	assert.Empty(t, none)
}
