package queue_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/queue"
)

// Errors of requests for background jobs speak of what a job has, and say what to do.
func TestErrorsOfJobRequests(t *testing.T) {
	t.Parallel()
	b := setup(t)
	enqueue := func(q queue.Querier, org string, p queue.Payload) error {
		_, err := queue.EnqueueJob(t.Context(), q, org, p, queue.JobOptions{})
		return err
	}
	for name, c := range map[string]struct {
		err       error
		is        error
		says, not string
	}{
		"empty organization": {
			enqueue(b.Pool, "", welcome{}), queue.ErrEmptyID,
			"name the organization that the job belongs to", "document",
		},
		"long organization": {
			enqueue(b.Pool, string(make([]byte, 256)), welcome{}), queue.ErrIDTooLong,
			"the organization id must not be longer than 255 bytes", "document",
		},
		"nil payload": {enqueue(b.Pool, org, nil), queue.ErrPayloadInvalid, "queue.RawPayload", "document"},
		"nil Querier": {enqueue(nil, org, welcome{}), queue.ErrNoQuerier, "pass your transaction", "document"},
		"nil pool": {
			enqueue((*pgxpool.Pool)(nil), org, welcome{}), queue.ErrNoQuerier,
			"pass your transaction", "document",
		},
		"nil connection": {
			enqueue((*pgx.Conn)(nil), org, welcome{}), queue.ErrNoQuerier, "pass your transaction",
			"document",
		},
		"nil Querier of many": {second(queue.EnqueueJobs(t.Context(), nil,
			[]queue.NewJob{{OrgID: org, Payload: welcome{}}})), queue.ErrNoQuerier, "the Querier is nil", "document"},
		"nil Querier of retry": {
			second(queue.RetryJob(t.Context(), nil, "j", queue.RetryOptions{Delay: time.Second})),
			queue.ErrNoQuerier, "the Querier is nil", "document",
		},
		"nil Querier of cancel": {
			second(queue.CancelJob(t.Context(), nil, "j")), queue.ErrNoQuerier, "the Querier is nil",
			"document",
		},
	} {
		require.ErrorIs(t, c.err, c.is, name)
		assert.ErrorContains(t, c.err, c.says, name)
		assert.NotContains(t, c.err.Error(), c.not, name)
	}
}

func second[T any](_ T, err error) error { return err }
