package queuetest

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// JobsOptions say how far DrainJobs goes. The zero value of each field is its default.
type JobsOptions struct {
	// Advance is how much time passes; default none. Jobs that fall due within it are worked as well,
	// in the order of their times: retries after their delays, snoozed jobs, jobs with a later RunAt.
	// Jobs that wait longer are due that much earlier afterwards. Only the times of waiting jobs
	// change; clocks do not.
	Advance time.Duration
	// Timeout is how long draining may take, in real time, until the test fails; default 1 minute.
	Timeout time.Duration
	// Fleet is the fleet whose jobs are worked; default the one without a name, which works the jobs
	// that are in no named queue.
	Fleet string
}

// DrainedJobs is what became of background jobs.
type DrainedJobs struct {
	Counts
	// Jobs are those that were attempted, as they are now, in the order in which they were enqueued.
	Jobs []Job[queue.RawPayload]
}

// DrainJobs works every background job that is due with the handlers of the registry, until nothing
// is due: what handlers enqueue is worked as well. Jobs of paused organizations are not worked.
// Like a worker that starts, it first makes dead letters due again that had no handler, if the
// registry has one now. It sets no limit by key (jobs.Policy.Limit), as a worker that starts does: those
// in the database hold, by their own times, which Advance does not change.
//
// Handlers that fail do not fail the test; see RequireCompleted.
func DrainJobs(tb testing.TB, pool *pgxpool.Pool, registry *jobs.Registry, o JobsOptions) DrainedJobs {
	tb.Helper()
	requirePool(tb, pool)
	requireRegistry(tb, registry)
	s := store.NewQueue(pool, store.JobsOf(o.Fleet))
	if err := s.Join(tb.Context()); err != nil {
		tb.Fatalf("queuetest: %v", err)
	}
	if _, err := s.ReturnMissing(tb.Context(), registry.Names()); err != nil {
		tb.Fatalf("queuetest: %v", err)
	}
	e := engine.NewJobs(s, registry, engine.Options{Log: logTo(tb)})
	defer e.Close()
	d := newDrainer(tb, s, e, o.Advance, o.Timeout)
	d.run()
	rows, err := store.EnqueuedRows(tb.Context(), pool, "", d.turn.ID)
	if err != nil {
		tb.Fatalf("queuetest: %v", err)
	}
	drained := DrainedJobs{Counts: d.counts}
	for _, r := range rows {
		job, err := decode[queue.RawPayload](r)
		if err != nil {
			tb.Fatalf("queuetest: job %s: %v", r.ID, err)
		}
		drained.Jobs = append(drained.Jobs, job)
	}
	return drained
}

// States counts the jobs by state.
func (d DrainedJobs) States() map[models.JobState]int {
	counts := map[models.JobState]int{}
	for _, j := range d.Jobs {
		counts[j.State]++
	}
	return counts
}

// RequireCompleted fails the test, and lists the others with their errors, unless every job that
// was attempted is completed.
func (d DrainedJobs) RequireCompleted(tb testing.TB) {
	tb.Helper()
	var others []string
	for _, j := range d.Jobs {
		if j.State != models.JobCompleted {
			others = append(others, "\n  "+j.Type+"  org "+j.OrgID+"  "+describe(string(j.State), j.ReadyAt)+"  "+
				failure(string(j.ErrorCode), j.Error)+
				"  "+shorten(string(j.Payload.Data)))
		}
	}
	if len(others) > 0 {
		tb.Fatalf("queuetest: %d of %d jobs are not completed:%s", len(others), len(d.Jobs), strings.Join(others, ""))
	}
}
