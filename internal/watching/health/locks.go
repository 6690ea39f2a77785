package health

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/diagnosis"
	"github.com/daybook-dev/daybook/internal/text/phrase"
)

// standby looks whether commits wait for a synchronous standby that is not there. Doctor itself
// only reads, so its own transactions end.
func (p *probe) standby(ctx context.Context, tx pgx.Tx) ([]Finding, error) {
	s, err := diagnosis.ReadStandby(ctx, tx)
	var found []Finding
	if s.Patroni && len(s.Overrides) > 0 {
		found = append(found, overridden(s.Overrides))
	}
	if err != nil || !s.Missing && s.Waiting == 0 {
		return found, err
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
	f.Todo = "Start the standby, or look why it lags: `SELECT application_name, state, sync_state, replay_lag FROM " +
		"pg_stat_replication`. To go on without it, when what a failover would lose may be lost: "
	if s.Patroni {
		f.Todo += "`patronictl edit-config --set synchronous_mode=false`. Set nothing by ALTER SYSTEM: Patroni would not " +
			"undo it after the outage."
	} else {
		f.Todo += "`ALTER SYSTEM SET synchronous_standby_names = ''`, then `SELECT pg_reload_conf()`; afterwards " +
			"`ALTER SYSTEM RESET synchronous_standby_names`. Where a manager of the cluster writes the settings, use its " +
			"command instead: what ALTER SYSTEM sets outlasts what it writes."
	}
	return append(found, f), nil
}

// overridden is the finding of settings of synchronous commits that the cluster's manager cannot
// change.
func overridden(names []string) Finding {
	var resets []string
	for _, name := range names {
		resets = append(resets, "`ALTER SYSTEM RESET "+name+"`")
	}
	is := "was"
	if len(names) > 1 {
		is = "were"
	}
	return Finding{
		Code: SettingOverridden, Severity: Warning, Example: names[0], Count: int64(len(names)),
		Says: phrase.And(names) + " " + is + " set by ALTER SYSTEM. That outranks what Patroni writes, so a failover may " +
			"lose what Patroni was told to keep.",
		Todo: phrase.And(resets) + ", then `SELECT pg_reload_conf()`; set it by `patronictl edit-config`.",
	}
}

func sessionsWait(n int64) string { return plural(n, "session waits", "sessions wait") }

// Locks names the transactions that keep others from writing whole tables of Daybook's.
func Locks(ctx context.Context, pool *pgxpool.Pool) []Finding {
	p := &probe{Options: Options{Pool: pool, Timeout: DefaultTimeout, Now: time.Now}}
	p.once(ctx, checkLocks, p.locks)
	return p.findings
}

// locks looks for transactions that keep others from writing whole tables. A lock on the table of a
// kind's jobs stops the kind; of a lock on another table only the checks and workers that need it
// can tell.
func (p *probe) locks(ctx context.Context, tx pgx.Tx) (found []Finding, err error) {
	// Else what an earlier check of the transaction read of the sessions would still hold.
	if _, err := tx.Exec(ctx, `SELECT pg_stat_clear_snapshot()`); err != nil {
		return nil, store.Wrap("look for locked tables", err)
	}
	list, err := diagnosis.TableLocks(ctx, tx)
	at := map[string]int{}
	for _, l := range list {
		holder := lockHolder(l)
		if i, known := at[holder]; known {
			found[i].locksMore(l, p.severity(l.Kind))
			continue
		}
		at[holder] = len(found)
		found = append(found, p.lockFinding(l))
	}
	for i := range found {
		found[i].Says = strings.ReplaceAll(found[i].Says, lockedTables, lockedTable(list, found[i]))
	}
	return found, err
}

// lockedTables stands for the tables that a transaction has locked, until all are known.
const lockedTables = "{tables}"

// lockedTable names one of the tables that a finding is about, and counts the others.
func lockedTable(list []diagnosis.TableLock, f Finding) string {
	shared := len(f.AboutKinds()) == 0
	i := slices.IndexFunc(list,
		func(l diagnosis.TableLock) bool { return f.Example == lockHolder(l) && (shared || l.Kind != "") })
	if f.Count == 1 {
		return list[i].Table
	}
	return list[i].Table + " and " + plural(f.Count-1, "more table", "more tables")
}

func lockHolder(l diagnosis.TableLock) string {
	if l.PID == 0 {
		return l.Prepared
	}
	return strconv.Itoa(int(l.PID))
}

// locksMore adds the tables of another kind that the same transaction has locked.
func (f *Finding) locksMore(l diagnosis.TableLock, s Severity) {
	f.Count += l.Tables
	if l.Kind == "" {
		return
	}
	if f.Kinds = append(f.AboutKinds(), l.Kind); len(f.Kinds) == 1 {
		f.Kind, f.Kinds = l.Kind, nil
	} else {
		f.Kind = ""
	}
	if s == Critical {
		f.Severity = s
	}
}

func (p *probe) lockFinding(l diagnosis.TableLock) Finding {
	f := Finding{
		Code: TableLocked, Severity: Warning, Kind: l.Kind, Count: l.Tables, Since: store.TimeOrNil(l.Since),
		Example: lockHolder(l),
	}
	if s := p.severity(l.Kind); l.Kind != "" && s == Critical {
		f.Severity = s
	}
	since := ""
	if !l.Since.IsZero() {
		since = " for " + phrase.Age(p.later().Sub(l.Since))
	}
	waits := ""
	if l.Waiting > 0 {
		waits = "; " + sessionsWait(l.Waiting)
	}
	if l.PID == 0 {
		f.Says = fmt.Sprintf("The prepared transaction %s has locked %s%s%s.", clip(l.Prepared, 80), lockedTables, since,
			waits)
		f.Todo = "Let its coordinator end it. If that cannot be: `ROLLBACK PREPARED '" +
			strings.ReplaceAll(l.Prepared, "'", "''") + "'`."
		return f
	}
	f.Says = fmt.Sprintf("Process %d%s has locked %s%s%s.", l.PID, whose(l.User, l.Application, l.State), lockedTables,
		since, waits)
	if l.Query != "" {
		f.Says += " Its last statement: " + clip(l.Query, 120) + "."
	}
	f.Todo = fmt.Sprintf("Let it end, or end it where it was begun. If that cannot be: `SELECT "+
		"pg_terminate_backend(%d)` rolls it back. Workers go on by themselves.", l.PID)
	return f
}
