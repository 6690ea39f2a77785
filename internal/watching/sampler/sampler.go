package sampler

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/figures"
	"github.com/daybook-dev/daybook/internal/watching/health"
	"github.com/daybook-dev/daybook/models/locks"
)

const (
	// lockKey is the second key of the lock under which a sample is written (locks.Sampler).
	lockKey = 1
	// silentAfter is for how many pauses the process that samples may be silent before another one
	// samples.
	silentAfter = 2.7
	// share bounds which part of its time the sampler has the database work: a sample that took it a
	// second is followed by a pause of 20 at least.
	share = 20
	// sampleLimit bounds a whole sample.
	sampleLimit = 30 * time.Second
	// pruneEvery is the pause between two removals of old figures.
	pruneEvery = 10 * time.Minute
)

// Options say how to sample. Pool and Name are required.
type Options struct {
	// Pool is the database's; its role may write daybook.gauges, daybook.depths and daybook.history.
	// It stays the caller's to close.
	Pool *pgxpool.Pool
	// Name names the process; no two processes have the same.
	Name string
	// Worker is the name under which workers of the process show that they live: when
	// it is killed, another process knows at once. Empty: others wait until it is silent for too long.
	Worker string
	// Temporal is asked for the workflows; nil: nothing is known of them. TemporalAddress and
	// Namespace are those of health.Options.
	Temporal                   client.Client
	TemporalAddress, Namespace string
	// Standby leaves sampling to processes that are not, such as workers, which know Temporal.
	Standby bool
	// Organizations has the gauges name the organizations that have most due jobs.
	Organizations bool
	// Every is the pause between two samples; default figures.SampleEvery.
	Every time.Duration
	// Log is told of samples that fail; default slog.Default().
	Log *slog.Logger
}

// Sampler samples, or leaves it to another process.
type Sampler struct {
	options Options
	// last is the last sample of this process; nil: another process samples, or none.
	last atomic.Pointer[taken]
	// failing says that the last try failed, which the log was told of. It belongs to Run, as pruned
	// and worked do.
	failing bool
	pruned  time.Time
	// worked is how long the last try took, without the time in which Temporal was waited for.
	worked time.Duration
}

// taken is a sample, and when it was taken by this machine's clock.
type taken struct {
	gauges figures.Gauges
	at     time.Time
}

// New returns a sampler that does nothing before Run.
func New(o Options) *Sampler {
	o.Every = cmp.Or(o.Every, figures.SampleEvery)
	o.Log = cmp.Or(o.Log, slog.Default())
	return &Sampler{options: o}
}

// Gauges returns the last sample, if this process is the one that samples: then it is the one that
// publishes them. A sample that is not followed by another one in time counts no more.
func (s *Sampler) Gauges() (figures.Gauges, bool) {
	t := s.last.Load()
	if t == nil || time.Since(t.at) > time.Duration(silentAfter*float64(max(s.options.Every,
		share*time.Duration(t.gauges.Database.TookSeconds*float64(time.Second))))) {
		return figures.Gauges{}, false
	}
	return t.gauges, true
}

// Run samples until ctx ends; then it leaves sampling to another process at once.
func (s *Sampler) Run(ctx context.Context) {
	defer s.leave(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		err := s.Sample(ctx)
		if ctx.Err() != nil {
			return
		}
		s.tell(err)
		timer.Reset(max(s.options.Every-time.Since(began), (share-1)*s.worked))
	}
}

// tell logs that sampling fails, once, and that it works again.
func (s *Sampler) tell(err error) {
	switch {
	case err != nil && !s.failing:
		s.options.Log.Warn("the queues' figures cannot be sampled; trying again", "error", store.Advised(err), "in",
			s.options.Every.String())
	case err == nil && s.failing:
		s.options.Log.Info("the queues' figures are sampled again")
	}
	s.failing = err != nil
}

// Sample takes one sample, unless another process does.
func (s *Sampler) Sample(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sampleLimit)
	defer cancel()
	s.worked = 0 // an earlier sample says nothing of how long it takes to read who samples
	if s.last.Load() == nil {
		// Likely another process samples: that is cheaper to know now than behind the checks.
		if _, mine, err := s.mine(ctx, s.options.Pool); err != nil || !mine {
			return err
		}
	}
	began := time.Now()
	var waited time.Duration
	defer func() { s.worked = time.Since(began) - waited }()
	var g figures.Gauges
	mine, wrote := true, false
	write := func(ctx context.Context, tx pgx.Tx, report health.Report) error {
		wrote = true
		locked, err := lock(ctx, tx)
		if err != nil || !locked {
			mine = false
			return err
		}
		var before figures.Gauges
		if before, mine, err = s.mine(ctx, tx); err != nil || !mine {
			return err
		}
		g, err = s.read(ctx, tx, before)
		if err != nil {
			return err
		}
		g.Holder = s.options.Name
		if s.options.Worker != "" {
			if g.Database.Sessions, err = figures.ReadSessions(ctx, tx, s.options.Worker); err != nil {
				return err
			}
		}
		s.addReport(&g, before, report)
		waited = report.Waited
		g.Database.TookSeconds = (time.Since(began) - waited).Seconds()
		return figures.WriteGauges(ctx, tx, g)
	}
	report, err := health.CheckThen(ctx, health.Options{
		Pool: s.options.Pool, Temporal: s.options.Temporal, TemporalAddress: s.options.TemporalAddress,
		Namespace: s.options.Namespace,
	}, write)
	if !wrote {
		// What the checks could not do says nothing of what is counted.
		err = store.Begin(ctx, s.options.Pool, func(tx pgx.Tx) error { return write(ctx, tx, report) })
	}
	if err != nil || !mine {
		s.last.Store(nil)
		return err
	}
	g.SampledAt = report.At
	s.last.Store(&taken{g, time.Now()})
	return s.prune(ctx)
}

// mine reads the last sample and says whether the next one is this process's.
func (s *Sampler) mine(ctx context.Context, q store.Querier) (figures.Gauges, bool, error) {
	g, err := figures.ReadGauges(ctx, q)
	if err != nil {
		return g, false, err
	}
	patience := max(s.options.Every, time.Duration(share*g.Database.TookSeconds*float64(time.Second)))
	free := g.SampledAt.IsZero() || g.Holder == "" || g.Age > time.Duration(silentAfter*float64(patience)) ||
		g.Database.Standby && !s.options.Standby
	if free || g.Holder == s.options.Name {
		return g, true, nil
	}
	ended, err := figures.HolderEnded(ctx, q, g)
	return g, ended, err
}

// lock takes the lock under which a sample is written, until the transaction ends.
func lock(ctx context.Context, tx pgx.Tx) (locked bool, err error) {
	err = tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1, $2)`, locks.Sampler, lockKey).Scan(&locked)
	return locked, store.Wrap("take the lock of the sampler", err)
}

// leave lets another process sample at once.
func (s *Sampler) leave(ctx context.Context) {
	if s.last.Swap(nil) == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	// Without it the others wait until the last sample is old.
	_ = figures.Leave(ctx, s.options.Pool, s.options.Name)
}

func (s *Sampler) prune(ctx context.Context) error {
	if time.Since(s.pruned) < pruneEvery {
		return nil
	}
	s.pruned = time.Now()
	_, err := figures.Prune(ctx, s.options.Pool)
	return err
}
