package queue_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/queue"
)

func TestListenEventsWithoutPoolOrFunction(t *testing.T) {
	t.Parallel()
	require.ErrorIs(t, queue.ListenEvents(t.Context(), nil, queue.EventFilter{}, func(queue.Event) {}),
		queue.ErrNoQuerier)
	db := pgtest.New(t)
	require.ErrorIs(t, queue.ListenEvents(t.Context(), db.Pool, queue.EventFilter{}, nil), queue.ErrNoFunction)
}

func TestNilQueriersOfQueuesTasksAndCallbacks(t *testing.T) {
	t.Parallel()
	ctx, said := t.Context(), map[string]error{}
	_, said["SetQueue"] = queue.SetQueue(ctx, nil, queue.NamedQueue{Name: "q"})
	_, said["PauseQueue"] = queue.PauseQueue(ctx, nil, "q")
	_, said["ResumeQueue"] = queue.ResumeQueue(ctx, nil, "q")
	said["DeleteQueue"] = queue.DeleteQueue(ctx, nil, "q")
	_, said["EnqueueTask"] = queue.EnqueueTask(ctx, nil, queue.RawTask{Type: "t", Data: []byte(`{}`)},
		queue.TaskOptions{})
	_, said["EnqueueTasks"] = queue.EnqueueTasks(ctx, nil,
		[]queue.NewTask{{Payload: queue.RawTask{Type: "t", Data: []byte(`{}`)}}})
	_, said["EnqueueJobWithCallback"] = queue.EnqueueJobWithCallback(ctx, nil, "acme",
		queue.RawPayload{Type: "t", Data: []byte(`{}`)}, queue.CallbackOptions{Name: "c", Within: time.Hour},
		queue.JobOptions{})
	_, said["CompleteCallback"] = queue.CompleteCallback(ctx, nil, "token", map[string]any{})
	_, said["RepostAccountingJob"] = queue.RepostAccountingJob(ctx, nil, queue.Document{OrgID: "acme", ID: "d"})
	_, said["CancelAccountingJob"] = queue.CancelAccountingJob(ctx, nil, queue.Document{OrgID: "acme", ID: "d"})
	for request, err := range said {
		require.ErrorIs(t, err, queue.ErrNoQuerier, request)
	}
}

func TestQueuesThatCannotBeAreRefusedInGosWords(t *testing.T) {
	t.Parallel()
	for says, u := range map[string]queue.NamedQueue{
		"MaxParallel of the queue q is -1": {MaxParallel: -1},
		"PerProcess of the queue q is -1":  {PerProcess: -1},
		"Rate of the queue q is -2":        {Rate: -2},
		"Burst of the queue q is":          {Rate: 1, Burst: 1 << 31},
		"Per of the queue q is 1µs":        {Rate: 1, Per: time.Microsecond},
		"Rate is not":                      {Burst: 3},
		"a fleet is named by":              {Fleet: "a b"},
	} {
		u.Name = "q"
		_, err := queue.SetQueue(t.Context(), new(pgxpool.Pool), u)
		require.ErrorIs(t, err, queue.ErrInvalid)
		require.ErrorContains(t, err, says)
	}
	_, err := queue.SetQueue(t.Context(), new(pgxpool.Pool), queue.NamedQueue{Name: "1q"})
	require.ErrorIs(t, err, queue.ErrInvalid)
	require.ErrorContains(t, err, `"1q" cannot be the name of a queue`)
}
