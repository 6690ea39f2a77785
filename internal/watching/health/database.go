package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/diagnosis"
	"github.com/daybook-dev/daybook/internal/store/direct"
	"github.com/daybook-dev/daybook/internal/store/figures"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/migrations"
)

// The names of the checks of the database, in their order.
const (
	checkHosts    = "servers"
	checkDatabase = "database"
	checkSchema   = "migrations"
	checkTimeline = "failovers"
	checkClock    = "clock"
	checkDue      = "due jobs"
	checkFailed   = "failed jobs"
	checkRetrying = "jobs that are tried again"
	checkLeases   = "stale leases"
	checkAhead    = "clock set back"
	checkDone     = "completions"
	checkSnapshot = "old snapshots"
	checkVacuum   = "autovacuum"
	checkRights   = "roles"
	checkPaths    = "search paths"
	checkPooler   = "pooler"
	checkStandby  = "synchronous standbys"
	checkLocks    = "locked tables"
	checkToken    = "tokens"
	checkBacklog  = "backlog"
	checkUnshared = "shared transactions"
	checkHeld     = "sequences"
	checkAmounts  = "amounts that are not posted"
	checkOwners   = "owners"
)

// serverChecks need no schema of this program's, jobChecks do.
var (
	serverChecks = []string{checkSnapshot, checkVacuum, checkStandby, checkLocks}
	jobChecks    = []string{
		checkTimeline, checkRights, checkPaths, checkDue, checkFailed, checkRetrying, checkLeases, checkAhead,
		checkHeld, checkAmounts, checkBacklog, checkUnshared, checkDone, checkToken, checkOwners,
	}
)

// database makes the checks of the database, one after another on one connection, because a pool
// may have few, and in one transaction, each behind a savepoint: workers check every quarter of a
// minute, and an idle one is to cost next to nothing. What is left when that transaction is lost is
// checked in transactions of its own. then goes on in it; the error is that of the transaction.
func (p *probe) database(ctx context.Context, begin beginning, then func(tx pgx.Tx) error) (err error) {
	p.completed = -1
	begun := false
	if p.Pool != nil {
		reading, cancel := context.WithCancel(ctx)
		defer cancel()
		late := time.AfterFunc(2*p.Timeout, cancel) // each check has its own time
		err = begin(reading, p.Pool, func(tx pgx.Tx) error {
			err := diagnosis.Within(reading, tx, func(tx pgx.Tx) {
				late.Stop()
				p.tx, begun = tx, true
				p.checks(ctx, nil)
			})
			p.tx = nil
			if err == nil {
				err = then(tx)
			}
			late.Reset(2 * p.Timeout)
			return err
		})
		if late.Stop(); !begun && reading.Err() != nil {
			err = cmp.Or(ctx.Err(), context.DeadlineExceeded)
		}
	}
	if !begun {
		p.checks(ctx, err)
	}
	return err
}

// checks makes the checks. failed is why their transaction could not begin.
func (p *probe) checks(ctx context.Context, failed error) {
	reached := false
	p.check(checkDatabase, func() (found []Finding, err error) {
		found, reached = p.reach(ctx, failed)
		return found, nil
	})
	if !reached {
		p.skip(checkClock, checkSchema)
		p.skip(serverChecks...)
		p.skip(jobChecks...)
		return
	}
	p.check(checkClock, func() ([]Finding, error) { return p.compareClocks(), nil })
	fits := false
	p.check(checkSchema, func() ([]Finding, error) {
		found, readable, err := p.schema(ctx)
		fits = readable
		return found, err
	})
	p.check(checkSnapshot, func() (found []Finding, err error) {
		var note string
		found, note, err = p.snapshots(ctx)
		p.note = note
		return found, err
	})
	if p.Sessions != nil {
		p.check(checkPooler, func() ([]Finding, error) { return p.sessions(ctx) })
	}
	p.once(ctx, checkVacuum, p.vacuum)
	p.once(ctx, checkStandby, p.standby)
	if fits {
		p.jobs(ctx)
	} else {
		p.skip(jobChecks...)
	}
	// Behind the others: a lock that they waited for in vain has lasted by now.
	p.once(ctx, checkLocks, p.locks)
}

// jobs makes the checks that read Daybook's own tables.
func (p *probe) jobs(ctx context.Context) {
	p.check(checkTimeline, func() ([]Finding, error) { return nil, p.failover(ctx) })
	p.once(ctx, checkRights, p.rights)
	p.once(ctx, checkPaths, p.paths)
	p.each(ctx, checkDue, p.due)
	p.each(ctx, checkFailed, p.failed)
	p.each(ctx, checkRetrying, p.retrying)
	p.each(ctx, checkLeases, p.stale)
	p.each(ctx, checkAhead, p.ahead)
	p.once(ctx, checkHeld, p.heldSequences)
	p.once(ctx, checkAmounts, p.notPosted)
	p.growth(ctx)
	p.once(ctx, checkUnshared, p.unshared)
	p.once(ctx, checkDone, p.done)
	p.once(ctx, checkToken, p.token)
	// The last one: it adds to what these found.
	p.once(ctx, checkOwners, p.own)
}

// done counts what was completed in the last minute. Where that is more than is looked at, the
// history has the last whole minute, of all organizations.
func (p *probe) done(ctx context.Context, tx pgx.Tx) ([]Finding, error) {
	all, err := diagnosis.CompletedLately(ctx, tx, p.OrgID)
	if err != nil {
		return nil, err
	}
	n, more := int64(0), false
	for _, c := range all {
		n, more = n+c.Count, more || c.More
		p.lastDone[c.Kind] = store.Value(c.Last)
		if c.Count == 0 && !c.More && p.OrgID == "" {
			if err := p.stall(ctx, tx, c.Kind); err != nil {
				return nil, err
			}
		}
	}
	p.completed, p.completedMore = n, more
	if !more || p.OrgID != "" {
		return nil, nil
	}
	minute := p.clock().Truncate(time.Minute)
	bars, err := figures.History(ctx, tx,
		figures.Filter{Since: minute.Add(-time.Minute), Until: minute, Step: time.Minute, Outcome: "completed"})
	var whole int64
	for _, b := range bars {
		whole += b.Count
	}
	if whole >= n {
		p.completed, p.completedMore = whole, false
	}
	return nil, err
}

// stall makes critical what was found of a kind's oldest due jobs, because none of the kind was
// completed in the last minute, and no worker holds one that may take longer.
func (p *probe) stall(ctx context.Context, tx pgx.Tx, kind string) error {
	overdue := func(f Finding) bool { return f.Code == OldestDue && f.Kind == kind }
	if !slices.ContainsFunc(p.findings, overdue) {
		return nil
	}
	live, err := diagnosis.LiveLeases(ctx, tx, kind)
	if err != nil || live {
		return err
	}
	for i := range p.findings {
		if f := &p.findings[i]; overdue(*f) {
			f.Severity, f.stalled = Critical, true
			if f.summed {
				continue
			}
			f.Says = strings.TrimSuffix(f.Says, ".") +
				fmt.Sprintf("; no %s was completed in the last minute, and no worker holds one.", jobWords(*f)[0])
			f.Todo = "Look at the worker's log: what does it wait for? Also at " + showCommand(*f) +
				": another transaction may hold the row."
		}
	}
	return nil
}

// once makes a check that is not about one kind.
func (p *probe) once(ctx context.Context, name string, f func(ctx context.Context, tx pgx.Tx) ([]Finding, error)) {
	p.check(name, func() (found []Finding, err error) {
		err = p.read(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
			found, err = f(ctx, tx)
			return err
		})
		return found, err
	})
}

// unmade makes a finding of the checks that could not be made: a table that another transaction has
// locked keeps workers waiting as well.
func (p *probe) unmade() {
	var names []string
	var failed string
	for _, c := range p.checked {
		if c.Error != "" {
			names, failed = append(names, c.Name), c.Error
		}
	}
	if len(names) == 0 {
		return
	}
	f := Finding{Code: DatabaseUnavailable, Severity: Warning, Count: int64(len(names))}
	f.Says = fmt.Sprintf("The database answers, but not what was asked of %s: %s", phrase.And(names),
		ended(clip(failed, 300)))
	f.Todo = "Look for a transaction that has locked a table: `SELECT pid, state, xact_start, query FROM " +
		"pg_stat_activity WHERE pid IN (SELECT pid FROM pg_locks WHERE mode = 'AccessExclusiveLock')`; else for a server " +
		"that is too busy."
	if diskFull(failed) { // a question that wants a temporary file
		f.Severity, f.Todo = Critical, store.DiskAdvice
	}
	if strings.Contains(failed, "(SQLSTATE 42501)") {
		f.Code, f.Severity = RoleLacksRights, Info
		f.Says = fmt.Sprintf("This role may not read what tells of %s: %s", phrase.And(names), ended(clip(failed, 300)))
		f.Todo = "Ask with a role that may read Daybook's tables, such as daybook_reader."
	}
	p.add(f)
}

// diskFull reports whether what an error says is that the database has no room on its disk.
func diskFull(says string) bool { return strings.Contains(says, "(SQLSTATE 53100)") }

// read runs f in a transaction that only reads and ends in time.
func (p *probe) read(ctx context.Context, f func(ctx context.Context, tx pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*p.Timeout)
	defer cancel()
	if tx := p.tx; tx != nil && !tx.Conn().IsClosed() {
		return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return f(ctx, tx) })
	}
	return diagnosis.Read(ctx, p.Pool, func(tx pgx.Tx) error { return f(ctx, tx) })
}

// each makes a check of every kind. What one kind's tables do not answer keeps no other from being
// looked at.
func (p *probe) each(ctx context.Context, name string,
	f func(ctx context.Context, tx pgx.Tx, kind string) ([]Finding, error),
) {
	p.check(name, func() (all []Finding, err error) {
		for _, kind := range kinds() {
			var found []Finding
			failed := p.read(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
				found, err = f(ctx, tx, kind)
				return err
			})
			if failed != nil {
				err = errors.Join(err, fmt.Errorf("%s: %w", kind, failed))
				continue
			}
			all = append(all, found...)
		}
		return all, err
	})
}

// reach looks whether the database answers and can be written. err is why no transaction could
// begin.
func (p *probe) reach(ctx context.Context, err error) (found []Finding, reached bool) {
	f := Finding{
		Code: DatabaseUnavailable, Severity: Critical,
		Todo: "Check that PostgreSQL runs and that DAYBOOK_DATABASE_URL names it.",
	}
	if p.Pool == nil {
		if p.PoolError == nil {
			return nil, false
		}
		f.Says = "The database is not asked: " + sentence(p.PoolError) + "."
		return []Finding{f}, false
	}
	const stmt = `SELECT clock_timestamp(), pg_is_in_recovery(), current_setting('default_transaction_read_only') = 'on', quote_ident(current_database())`
	var standby, readOnly bool
	var name string
	if err == nil {
		asking, cancel := context.WithTimeout(ctx, 2*p.Timeout)
		defer cancel()
		p.asked = p.Now()
		err = p.tx.QueryRow(asking, stmt).Scan(&p.at, &standby, &readOnly, &name)
		p.answered = p.Now()
	}
	switch {
	case store.RefusesConnection(err):
		f.Says, f.Todo = "The database refuses the connection: "+sentence(err)+".", store.RefusalAdvice(err)
	case store.LacksConnections(err):
		f.Says, f.Todo = "The database has no connection left for this role: "+sentence(err)+".", store.ConnectionsAdvice
	case store.LacksDisk(err):
		f.Says, f.Todo = "The database has no room on its disk: "+sentence(err)+".", store.DiskAdvice
	case err != nil:
		f.Says = "The database does not answer: " + sentence(err) + "."
	case standby:
		f.Says = "The database is a standby: it can be read and not written, so nothing can be worked."
		f.Todo = "Name the primary in DAYBOOK_DATABASE_URL, or promote this server."
	case readOnly:
		f.Says = "The database's sessions only read (default_transaction_read_only is on), so nothing can be worked."
		f.Todo = "Look why it was set, and reset it: `SET default_transaction_read_only = off; ALTER DATABASE " + name +
			" RESET default_transaction_read_only`. " +
			"It may be set for the role instead (`SELECT setdatabase, setrole, setconfig FROM pg_db_role_setting` shows " +
			"it), or for the server."
	default:
		return nil, true
	}
	return []Finding{f}, err == nil
}

// skewAllowed is how far the database's clock and this machine's may be apart: signatures of
// webhooks and Temporal's timers tolerate minutes, people who compare log lines do not.
const skewAllowed = 5 * time.Second

// compareClocks looks whether the database's clock, by what reach was answered, and this machine's
// are alike.
func (p *probe) compareClocks() []Finding {
	// The answer was made at some moment between the two.
	apart := max(p.asked.Sub(p.at), p.at.Sub(p.answered))
	if apart <= skewAllowed {
		return nil
	}
	direction := "behind"
	if p.at.After(p.answered) {
		direction = "ahead of"
	}
	return []Finding{{
		Code: ClockSkew, Severity: Warning,
		Says: fmt.Sprintf("The database's clock is %s %s this machine's. Jobs fall due by the database's clock; webhooks "+
			"are signed by the worker's.", phrase.Age(apart), direction),
		Todo: "Synchronise both machines' clocks (NTP): compare `date -u` here with `SELECT clock_timestamp()`.",
	}}
}

// schema looks whether the schema is this program's. It is readable when it is, or lacks only
// constraints, indexes or triggers.
func (p *probe) schema(ctx context.Context) (found []Finding, readable bool, err error) {
	err = p.read(ctx, func(ctx context.Context, tx pgx.Tx) error { return migrations.Verify(ctx, tx) })
	f := Finding{Severity: Critical}
	switch {
	case err == nil:
		return nil, true, nil
	case errors.Is(err, migrations.ErrPending):
		f.Code, f.Todo = SchemaOld, "Run `daybook migrate up` as the schema's owner; running workers go on by themselves."
	case errors.Is(err, migrations.ErrNewer):
		f.Code, f.Todo = SchemaNew, "Use the program of the release that migrated the database."
	case errors.Is(err, migrations.ErrDifferent):
		f.Code, f.Todo = SchemaDifferent, "Use the program that made the database, or make the database anew."
	case errors.Is(err, migrations.ErrIncomplete):
		f.Code, f.Todo = SchemaIncomplete, "Wait until a restore that is under way has ended; else make what is missing "+
			"as migrations/schema.sql has it, and run `daybook doctor` again."
		readable = true
	default:
		return nil, false, err
	}
	f.Says = upperFirst(sentence(err)) + "."
	return []Finding{f}, readable, nil
}

// sessions looks whether workers have sessions of their own.
func (p *probe) sessions(ctx context.Context) ([]Finding, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*p.Timeout)
	defer cancel()
	err := p.Sessions(ctx)
	if !errors.Is(err, direct.ErrNeeded) && !errors.Is(err, store.ErrSession) {
		return nil, err
	}
	return []Finding{{
		Code: DirectAddressNeeded, Severity: Warning, Says: upperFirst(sentence(err)) + ".",
		Todo: "Give migrations and workers an address of PostgreSQL itself, by " + direct.EnvURL +
			"; all else may go through the pooler.",
	}}, nil
}
