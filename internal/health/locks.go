package health

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/phrase"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/diagnosis"
)

// standby looks whether commits wait for a synchronous standby that is not there. Doctor itself only reads, so its own transactions end.
func (p *probe) standby(ctx context.Context, tx pgx.Tx) ([]Finding, error) {
	s, err := diagnosis.ReadStandby(ctx, tx)
	if err != nil || !s.Missing && s.Waiting == 0 {
		return nil, err
	}
	f := Finding{Code: StandbyMissing, Severity: Critical, Count: s.Waiting, Since: store.TimeOrNil(s.Since)}
	names := "synchronous_standby_names is " + clip(strconv.Quote(s.Names), 100)
	f.Says = "Every commit waits for a synchronous standby, and none is connected (" + names + ")"
	if !s.Missing {
		f.Says = "Commits wait for a synchronous standby (" + names + ")"
	}
	if s.Waiting > 0 {
		f.Says += fmt.Sprintf(": %s, the first one for %s", sessionsWait(s.Waiting), phrase.Age(p.clock().Sub(s.Since)))
	}
	f.Says += "."
	f.Todo = "Start the standby, or look why it lags: `SELECT application_name, state, sync_state, replay_lag FROM pg_stat_replication`. To go on without it, when what a failover " +
		"would lose may be lost: `ALTER SYSTEM SET synchronous_standby_names = ''`, then `SELECT pg_reload_conf()`."
	return []Finding{f}, nil
}

func sessionsWait(n int64) string { return plural(n, "session waits", "sessions wait") }

// Locks names the transactions that keep others from writing whole tables of Daybook's.
func Locks(ctx context.Context, pool *pgxpool.Pool) []Finding {
	p := &probe{Options: Options{Pool: pool, Timeout: DefaultTimeout, Now: time.Now}}
	p.once(ctx, checkLocks, p.locks)
	return p.findings
}

// locks looks for transactions that keep others from writing whole tables. A lock on the table of a kind's jobs stops the kind; of a lock on another table
// only the checks and workers that need it can tell.
func (p *probe) locks(ctx context.Context, tx pgx.Tx) (found []Finding, err error) {
	// Else what an earlier check of the transaction read of the sessions would still hold.
	if _, err := tx.Exec(ctx, `SELECT pg_stat_clear_snapshot()`); err != nil {
		return nil, store.Wrap("look for locked tables", err)
	}
	list, err := diagnosis.TableLocks(ctx, tx)
	for _, l := range list {
		f := Finding{Code: TableLocked, Severity: Warning, Kind: l.Kind, Count: l.Tables, Since: store.TimeOrNil(l.Since), Example: strconv.Itoa(int(l.PID))}
		if s := p.severity(l.Kind); l.Kind != "" && s == Critical {
			f.Severity = s
		}
		table := l.Table
		if l.Tables > 1 {
			table += fmt.Sprintf(" and %s more", plural(l.Tables-1, "table", "tables"))
		}
		since := ""
		if !l.Since.IsZero() {
			since = " for " + phrase.Age(p.clock().Sub(l.Since))
		}
		waits := ""
		if l.Waiting > 0 {
			waits = "; " + sessionsWait(l.Waiting)
		}
		if l.PID == 0 {
			f.Example = ""
			f.Says = fmt.Sprintf("A prepared transaction has locked %s%s.", table, waits)
			f.Todo = "Look which: `SELECT gid, prepared, owner FROM pg_prepared_xacts`. Let its coordinator end it, or: `ROLLBACK PREPARED 'GID'`."
		} else {
			f.Says = fmt.Sprintf("Process %d%s has locked %s%s%s.", l.PID, whose(l.User, l.Application, l.State), table, since, waits)
			if l.Query != "" {
				f.Says += " Its last statement: " + clip(l.Query, 120) + "."
			}
			f.Todo = fmt.Sprintf("Let it end, or end it where it was begun. If that cannot be: `SELECT pg_terminate_backend(%d)` rolls it back. Workers go on by themselves.", l.PID)
		}
		found = append(found, f)
	}
	return found, err
}
