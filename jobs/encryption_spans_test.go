package jobs_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/telemetry/span"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// ends records how spans end.
type ends struct {
	span.Running
	errs chan<- error
}

func (e ends) End(err error) { e.errs <- err }

// TestSpansOfEncryptedJobs say nothing of errors, wherever they start: in the handler and in its
// transaction.
//
//nolint:paralleltest // spans are the process's
func TestSpansOfEncryptedJobs(t *testing.T) {
	b := setup(t)
	cipher := newKeys(t).cipher()
	b.registry.Encrypt(cipher)
	ask := func(ctx context.Context) {
		_, asking := span.Start(ctx, span.Span{Name: "ask"})
		asking.End(errors.New("no " + secret))
	}
	jobs.Register(b.registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[payout]) error {
		ask(ctx)
		job.InTx(func(ctx context.Context, _ pgx.Tx) error { ask(ctx); return nil })
		return nil
	})
	errs := make(chan error, 100)
	span.SetStarter(func(ctx context.Context, _ span.Span) (context.Context, span.Running) {
		return ctx, ends{errs: errs}
	})
	defer span.SetStarter(nil)
	id := b.enqueue(payout{AccountID: "a1", IBAN: secret}, queue.JobOptions{Encryption: cipher})
	b.work()
	require.Equal(t, models.JobCompleted, b.row(id).State)
	close(errs)
	var n int
	for err := range errs {
		n++
		assert.ErrorIs(t, err, span.ErrPrivate)
	}
	assert.Equal(t, 2, n)
}
