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

const (
	// snapshotWarns is after what age a snapshot is a warning.
	snapshotWarns = 10 * time.Minute
	// deadWarns is from how many dead rows on a table is looked at, and lateFactor how many times as
	// many as autovacuum would begin at are a warning.
	deadWarns  = 100_000
	lateFactor = 3
	// ageWarns and ageCritical are the ages, in transactions, of rows that are not frozen: PostgreSQL
	// stops writing at 2^31.
	ageWarns    = 1_000_000_000
	ageCritical = 1_800_000_000
)

// snapshots looks for transactions that keep dead rows from being removed.
func (p *probe) snapshots(ctx context.Context) (found []Finding, note string, err error) {
	var list []diagnosis.Snapshot
	var dead int64
	whole := true
	err = p.read(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		if list, whole, err = diagnosis.Snapshots(ctx, tx, p.SnapshotAge); err != nil || len(list) == 0 {
			return err
		}
		v, err := diagnosis.ReadVacuum(ctx, tx)
		dead = v.Dead()
		return err
	})
	if !whole {
		note = "this role sees its own sessions alone; to see all: GRANT pg_read_all_stats TO it"
	}
	for _, s := range list {
		found = append(found, p.snapshotFinding(s, dead))
	}
	return found, note, err
}

func (p *probe) snapshotFinding(s diagnosis.Snapshot, dead int64) Finding {
	f := Finding{Code: OldSnapshot, Severity: Info, Since: store.TimeOrNil(s.Since), Count: dead, Example: s.Name}
	age := p.clock().Sub(s.Since)
	if s.Since.IsZero() || age > snapshotWarns {
		f.Severity = Warning
	}
	holds := fmt.Sprintf(" No row that died since can be removed: about %s dead rows in Daybook's tables.",
		phrase.Count(dead))
	switch s.What {
	case diagnosis.Session:
		query := ""
		if s.Query != "" {
			query = " Its last statement: " + clip(s.Query, 120) + "."
		}
		f.Says = fmt.Sprintf("A transaction is open for %s: process %s%s.%s%s", phrase.Age(age), s.Name,
			whose(s.User, s.Application, s.State), query, holds)
		f.Todo = "End it where it was begun. If that cannot be: `SELECT pg_terminate_backend(" + s.Name +
			")` rolls it back."
	case diagnosis.Prepared:
		f.Says = fmt.Sprintf("The prepared transaction %s of %s is open for %s.%s", clip(s.Name, 80), clip(s.User, 60),
			phrase.Age(age), holds)
		f.Todo = "Let its coordinator end it, or: `ROLLBACK PREPARED '" + s.Name +
			"'`, or COMMIT PREPARED, if that is what it was meant to be."
	default:
		f.Says = fmt.Sprintf("The replication slot %s (%s) is not used, and is %s transactions behind.%s It keeps the "+
			"write-ahead log as well, until the disk is full.",
			clip(s.Name, 80), s.Application, phrase.Count(s.Transactions), holds)
		f.Todo = "Start its consumer, or, if there is none any more: `SELECT pg_drop_replication_slot('" + s.Name + "')`."
	}
	return f
}

// vacuum looks whether autovacuum is on, and keeps up.
func (p *probe) vacuum(ctx context.Context, tx pgx.Tx) (found []Finding, err error) {
	v, err := diagnosis.ReadVacuum(ctx, tx)
	if err != nil {
		return nil, err
	}
	if !v.Enabled {
		found = append(found, Finding{
			Code: AutovacuumBehind, Severity: Warning, Count: v.Dead(),
			Says: "Autovacuum is off for the whole server (autovacuum or track_counts): dead rows stay, and every lease " +
				"reads more of them.",
			Todo: "Turn it on: `ALTER SYSTEM SET autovacuum = on`, the same of track_counts, then `SELECT pg_reload_conf()`.",
		})
	}
	for _, t := range v.Tables {
		if f, wrong := p.tableFinding(t); wrong {
			found = append(found, f)
		}
	}
	return found, nil
}

func (p *probe) tableFinding(t diagnosis.Table) (f Finding, wrong bool) {
	f = Finding{Code: AutovacuumBehind, Severity: Warning, Count: t.Dead, Since: t.Vacuumed, Example: t.Name}
	last := "it was never vacuumed"
	if t.Vacuumed != nil {
		last = "it was last vacuumed " + phrase.Age(p.clock().Sub(*t.Vacuumed)) + " ago"
	}
	f.Todo = "Run `VACUUM (ANALYZE) " + t.Name + "` as its owner. If an old snapshot was found, end that first. Give " +
		"autovacuum more room (autovacuum_max_workers, autovacuum_vacuum_cost_limit)."
	switch {
	case t.Age > ageWarns:
		if t.Age > ageCritical {
			f.Severity = Critical
		}
		f.Says = fmt.Sprintf("Table %s has rows that are %s transactions old and not frozen; PostgreSQL stops writing at "+
			"2,147,483,648.", t.Name, phrase.Count(t.Age))
		f.Todo = "Run `VACUUM (FREEZE) " + t.Name + "` as its owner, once no old snapshot holds it back."
	case t.Disabled:
		f.Says = fmt.Sprintf("Autovacuum is off for table %s: %s dead rows, %s.", t.Name, phrase.Count(t.Dead), last)
		f.Todo = "Turn it on: `ALTER TABLE " + t.Name + " RESET (autovacuum_enabled)`."
	case t.Dead > deadWarns && float64(t.Dead) > lateFactor*t.Due && t.Dead > t.Live:
		f.Says = fmt.Sprintf("Table %s has %s dead rows beside %s live ones; autovacuum would begin at %s; %s.", t.Name,
			phrase.Count(t.Dead), phrase.Count(t.Live), phrase.Count(int64(t.Due)), last)
	default:
		return f, false
	}
	return f, true
}
