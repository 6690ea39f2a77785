package health

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/diagnosis"
	"github.com/daybook-dev/daybook/internal/text/phrase"
)

// staleGrace is how long an expired lease may wait for the worker that reclaims it: any does within
// fifteen seconds.
const staleGrace = 20 * time.Second

// stale looks for leases that expired and that no worker reclaims.
func (p *probe) stale(ctx context.Context, tx pgx.Tx, kind string) ([]Finding, error) {
	s, err := diagnosis.StaleLeases(ctx, tx, kind, p.OrgID, staleGrace)
	if err != nil || s.Count == 0 {
		return nil, err
	}
	f := Finding{
		Code: StaleLeases, Severity: Warning, Kind: kind, Count: s.Count, AtLeast: s.Count >= diagnosis.Most,
		OrgID: p.OrgID, Since: store.TimeOrNil(s.Since),
	}
	by := "Workers ended"
	if s.Worker != "" {
		by = "Worker " + clip(s.Worker, 80) + " ended"
	}
	words := jobWords(f)
	f.Says = fmt.Sprintf("%s with %s at work, and no worker has reclaimed them: the first lease expired %s ago.",
		by, plural(s.Count, words[0], words[1]), phrase.Age(p.clock().Sub(s.Since)))
	f.Todo = "Start `daybook worker`, which reclaims them at once. Where none can be started, have them be due again: " +
		"`daybook leases release`."
	f.follows = true
	p.open[kind], p.used[kind] = true, true
	return []Finding{f}, nil
}

// ahead looks for jobs whose times are of a clock that was set back since.
func (p *probe) ahead(ctx context.Context, tx pgx.Tx, kind string) ([]Finding, error) {
	n, last, err := diagnosis.JobsAhead(ctx, tx, kind, p.OrgID)
	if err != nil || n == 0 {
		return nil, err
	}
	one, more := "job has a time", "jobs have times"
	if kind == "tasks" {
		one, more = "task has a time", "tasks have times"
	}
	return []Finding{{
		Code: ClockSkew, Severity: Warning, Kind: kind, Count: n, AtLeast: n >= diagnosis.Most,
		Says: fmt.Sprintf("%s up to %s ahead of the database's clock: it was set back, or a standby whose clock is "+
			"behind was promoted.", plural(n, one, more), phrase.Age(last.Sub(p.clock()))),
		Todo: "Synchronise the database's clock (NTP). Workers end or keep such leases within two minutes; what waits " +
			"begins when the clock has come to its time. The runbook says how to have it begin now.",
	}}, nil
}
