package health

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store/diagnosis"
)

// staleGrace is how long an expired lease may wait for the worker that reclaims it: any does within fifteen seconds.
const staleGrace = 20 * time.Second

// stale looks for leases that expired and that no worker reclaims.
func (p *probe) stale(ctx context.Context, tx pgx.Tx, kind string) ([]Finding, error) {
	s, err := diagnosis.StaleLeases(ctx, tx, kind, staleGrace)
	if err != nil || s.Count == 0 {
		return nil, err
	}
	f := Finding{Code: StaleLeases, Severity: Warning, Kind: kind, Count: s.Count, AtLeast: s.Count >= diagnosis.Most, Since: moment(s.Since)}
	by := ""
	if s.Worker != "" {
		by = " of worker " + clip(s.Worker, 80)
	}
	expired := "has expired"
	if s.Count > 1 {
		expired = "have expired"
	}
	f.Says = fmt.Sprintf("%s%s %s, the first one %s ago, and no worker has reclaimed them: the worker that held them ended, and no other works %s.",
		plural(s.Count, "lease", "leases"), by, expired, Age(p.clock().Sub(s.Since)), kind)
	f.Todo = "Start `daybook worker`; any worker reclaims them. Without one: `daybook leases release`."
	p.open[kind], p.used[kind] = true, true
	return []Finding{f}, nil
}
