package workers

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/activities"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
)

// DueJobs works background jobs that are due when it is asked to, without Temporal: for programs that are called by cron. It
// shares the queue with workers, under the same leases.
type DueJobs struct {
	store  *store.Store
	engine *engine.Engine
	worker string
}

// DueReport counts what became of the jobs of one run.
type DueReport struct {
	Completed, Retried, Rescheduled, Failed, Cancelled int
}

// NewDueJobs returns a DueJobs. Close it.
func NewDueJobs(pool *pgxpool.Pool, registry *jobs.Registry, log *slog.Logger) (*DueJobs, error) {
	if pool == nil || registry == nil {
		return nil, errors.New("workers: the pool and the registry are required")
	}
	if log == nil {
		log = slog.Default()
	}
	s := store.NewQueue(pool, store.Jobs)
	return &DueJobs{
		store: s, engine: engine.NewJobs(s, registry, engine.Options{Log: log}), worker: activities.ProcessName() + "/due",
	}, nil
}

// Run works at most limit jobs that are due, once each. When ctx ends it begins no further one, gives back what it has not
// begun, and gives those that run twenty seconds to end.
func (d *DueJobs) Run(ctx context.Context, limit int) (DueReport, error) {
	// The turn's name must be nobody else's, in any process at any time: a fence is.
	fence, err := d.store.NextFence(ctx)
	if err != nil {
		return DueReport{}, err
	}
	turn := store.Turn{ID: "due/" + strconv.FormatInt(fence, 10), Worker: d.worker}
	if _, err := d.engine.Fetch(ctx, engine.FetchRequest{Turn: turn, Batch: limit}); err != nil {
		return DueReport{}, err
	}
	// A turn without length works what was fetched and leases no more.
	r, err := d.engine.Process(ctx, engine.TurnRequest{Turn: turn, Batch: limit, Length: 0})
	if err != nil {
		err = errors.Join(err, d.release(ctx, turn))
	}
	return DueReport{Completed: r.Completed, Retried: r.Retried, Rescheduled: r.Rescheduled, Failed: r.Failed, Cancelled: r.Cancelled}, err
}

// release gives back what a run that failed holds: there is no later activity that would take it over.
func (d *DueJobs) release(ctx context.Context, turn store.Turn) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	_, err := d.engine.ReleaseTurn(ctx, turn)
	return err
}

// Close ends what it keeps open. The pool stays the caller's.
func (d *DueJobs) Close() { d.engine.Close() }
