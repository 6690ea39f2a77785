//go:build browser

package browser_test

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/watching/sampler"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// markup is a text that runs a script wherever a page takes it for HTML.
const markup = `<img src=x onerror="alert('x')"><script>alert('x')</script>"'>`

// world gives a database something of everything: an organization with books, documents that are
// posted, failed and waiting, jobs in every state, tasks, and a sample of all that.
func (b *tab) world() {
	b.t.Helper()
	fixture.Organization(b.t, b.Pool, "acme")
	b.books()
	fixture.Ready(b.t, b.Pool,
		fixture.Invoice("acme", "INV-1001", 119_00), fixture.Invoice("acme", "INV-1002", 2380_00),
		fixture.Invoice("acme", "INV-1003", 59_50), fixture.Unbalanced("acme", "INV-1004"))
	queuetest.DrainAccounting(b.t, b.Pool, queuetest.AccountingOptions{})
	fixture.Ready(b.t, b.Pool, fixture.Hostile("acme", markup, markup), fixture.Invoice("acme", "INV-1005", 250_00))
	b.jobs()
	b.exec(`SELECT daybook.set_queue('bank', 'shop', 10, 100, 60, NULL, 'payments'), daybook.set_queue('reports')`)
	b.exec(`SELECT daybook.pause_queue('reports'), daybook.enqueue_job('acme', 'call', '{}', queue => 'bank')`)
	b.exec(`SELECT queues.enqueue('db_function', '{"db_function": "app.none"}')`)
	b.sample()
}

func (b *tab) exec(stmt string, args ...any) {
	b.t.Helper()
	_, err := b.Pool.Exec(b.t.Context(), stmt, args...)
	require.NoError(b.t, err)
}

// Payloads of an application's jobs.
type (
	mail struct {
		Note     string `json:"note"`
		Password string `json:"password"`
	}
	call struct {
		Note string `json:"note"`
	}
)

func (mail) JobType() string { return "mail" }
func (call) JobType() string { return "call" }

// jobs enqueues a few jobs and works them: calls end well, mails are dead letters after one
// attempt.
func (b *tab) jobs() {
	b.t.Helper()
	registry := mailsAndCalls(" " + markup)
	for range 3 {
		b.enqueue(mail{markup, "hunter2"}, queue.JobOptions{})
		b.enqueue(call{markup}, queue.JobOptions{})
	}
	queuetest.DrainJobs(b.t, b.Pool, registry, queuetest.JobsOptions{})
	b.enqueue(call{"tomorrow"}, queue.JobOptions{RunAt: time.Now().Add(24 * time.Hour), IdempotencyKey: markup})
}

// mailsAndCalls has handlers: calls end well, mails are dead letters after one attempt.
func mailsAndCalls(says string) *jobs.Registry {
	registry := jobs.NewRegistry()
	policy := jobs.Policy{Owner: "platform team", MaxAttempts: 1}
	jobs.Register(registry, policy, func(context.Context, *jobs.Job[call]) error { return nil })
	jobs.Register(registry, policy, func(context.Context, *jobs.Job[mail]) error {
		return jobs.WithCode("NETWORK_ERROR", errors.New("dial tcp 10.0.0.7:587: connection refused"+says))
	})
	return registry
}

func (b *tab) enqueue(p queue.Payload, o queue.JobOptions) {
	b.t.Helper()
	_, err := queue.EnqueueJob(b.t.Context(), b.Pool, "acme", p, o)
	require.NoError(b.t, err)
}

// sample has the pages know how the queues stand.
func (b *tab) sample() {
	b.t.Helper()
	require.NoError(b.t, sampler.New(sampler.Options{
		Pool: b.Pool, Name: "test",
		Every: time.Second,
	}).Sample(b.t.Context()))
}
