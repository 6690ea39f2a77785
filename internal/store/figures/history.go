package figures

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// Outcome is what attempts are counted under.
type Outcome struct {
	Kind, Type string
	// Outcome is completed, retried, rescheduled, failed, cancelled or reclaimed.
	Outcome string
	// Code is the error code; empty: no error.
	Code string
	// OrgID is the organization; empty: organizations are not kept apart.
	OrgID string
}

// Attempts are what attempts with one Outcome came to.
type Attempts struct {
	Outcome
	Count int64
	// Waited is from when the jobs were first due until the attempts ended, Took how long the
	// attempts took.
	Waited, Took Distribution
}

// UnknownError is the error of an addition to the history whose commit was not answered: it is
// there or not, which Added says later.
type UnknownError struct {
	// Transaction is its id.
	Transaction string
	cause       error
}

// Error implements error.
func (e *UnknownError) Error() string {
	return "it is not known whether figures were added to the history: " + e.cause.Error()
}

// Unwrap returns why.
func (e *UnknownError) Unwrap() error { return e.cause }

// stateInvalidParameter is the SQLSTATE for a transaction that lies in the future: the database is
// on another server now, which never had it.
const stateInvalidParameter = "22023"

// Added reports whether the transaction of an UnknownError was committed; ended is false while it
// goes on.
func Added(ctx context.Context, q store.Querier, transaction string) (added, ended bool, err error) {
	var status *string
	err = q.QueryRow(ctx, `SELECT pg_catalog.pg_xact_status($1::text::xid8)`, transaction).Scan(&status)
	if store.SQLState(err) == stateInvalidParameter {
		return false, true, nil
	}
	s := store.Value(status)
	return s == "committed", s != "in progress", store.Wrap("ask what became of figures for the history", err)
}

// AddHistory adds what attempts came to, at the database's time, to the history. Each Outcome may
// be there once. Several processes add at the same time. After an error nothing is added, unless it
// is an UnknownError.
func AddHistory(ctx context.Context, db store.Beginner, all []Attempts) error {
	const stmt = `
INSERT INTO daybook.history AS h (seconds, at, kind, type, outcome, code, org_id, count, waited_seconds, took_seconds, waited, took)
SELECT s.seconds, date_bin(make_interval(secs => s.seconds), statement_timestamp(), '2000-01-01 00:00:00+00'), r.kind, r.type, r.outcome, r.code, r.org_id,
       r.count, r.waited_seconds, r.took_seconds, r.waited::bigint[], r.took::bigint[]
  FROM unnest(@kinds::text[], @types::text[], @outcomes::text[], @codes::text[], @orgs::text[], @counts::bigint[],
              @waited_seconds::float8[], @took_seconds::float8[], @waited::text[], @took::text[])
       AS r (kind, type, outcome, code, org_id, count, waited_seconds, took_seconds, waited, took)
 CROSS JOIN (VALUES (60), (600), (3600)) AS s (seconds)
 ORDER BY s.seconds, r.kind COLLATE "C", r.type COLLATE "C", r.outcome COLLATE "C", r.code COLLATE "C", r.org_id COLLATE "C"
ON CONFLICT (seconds, at, kind, type, outcome, code, org_id) DO UPDATE
   SET count = h.count + excluded.count, waited_seconds = h.waited_seconds + excluded.waited_seconds, took_seconds = h.took_seconds + excluded.took_seconds,
       waited = ARRAY(SELECT x.a + x.b FROM unnest(h.waited, excluded.waited) WITH ORDINALITY AS x (a, b, n) ORDER BY x.n),
       took = ARRAY(SELECT x.a + x.b FROM unnest(h.took, excluded.took) WITH ORDINALITY AS x (a, b, n) ORDER BY x.n)`
	if len(all) == 0 {
		return nil
	}
	n := len(all)
	kinds, types, outcomes, codes, orgs := make([]string, n), make([]string, n), make([]string, n), make([]string, n),
		make([]string, n)
	counts, waitedSeconds, tookSeconds := make([]int64, n), make([]float64, n), make([]float64, n)
	waited, took := make([]string, n), make([]string, n)
	for i, a := range all {
		kinds[i], types[i], outcomes[i], codes[i], orgs[i] = a.Kind, a.Type, a.Outcome.Outcome, a.Code, a.OrgID
		counts[i], waitedSeconds[i], tookSeconds[i] = a.Count, a.Waited.Seconds, a.Took.Seconds
		waited[i], took[i] = bucketsText(a.Waited), bucketsText(a.Took)
	}
	values := store.Args{
		"kinds": kinds, "types": types, "outcomes": outcomes, "codes": codes, "orgs": orgs, "counts": counts,
		"waited_seconds": waitedSeconds, "took_seconds": tookSeconds, "waited": waited, "took": took,
	}
	transaction := ""
	err := store.Begin(ctx, db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, stmt, values); err != nil {
			return err
		}
		var id string
		if err := tx.QueryRow(ctx, `SELECT pg_catalog.pg_current_xact_id()::text`).Scan(&id); err != nil {
			return err
		}
		transaction = id // from now on all that can fail is the commit
		return nil
	})
	if err != nil && transaction != "" { // also an error that the server names: it may have been stopped after the commit
		err = &UnknownError{transaction, err}
	}
	return store.Wrap("add to the history", err)
}

// bucketsText is a distribution as PostgreSQL writes an array, with every bucket, because buckets
// are added to those that are there.
func bucketsText(d Distribution) string {
	counts := make([]string, len(bounds)+1)
	for i := range counts {
		counts[i] = "0"
		if i < len(d.Buckets) {
			counts[i] = strconv.FormatInt(d.Buckets[i], 10)
		}
	}
	return "{" + strings.Join(counts, ",") + "}"
}

// Bar is what attempts of one step of time came to.
type Bar struct {
	// At is when the step begins.
	At time.Time
	Attempts
}

// Filter says what of the history is read. The zero value of each field but Since leaves nothing
// out.
type Filter struct {
	// Since is rounded down to a step.
	Since time.Time
	// Until is now when it is zero.
	Until time.Time
	// Step is the length of a bar, whole minutes; 0: all is one bar. A step that is shorter than the
	// rows that are still kept is as long as they are: ten minutes after two days, an hour after
	// eight.
	Step                time.Duration
	Kind, Type, Outcome string
	// OrgID is an organization; there is only a history of one while workers are told to keep
	// organizations apart.
	OrgID string
	// ByType and ByCode tell bars of different types and error codes apart; else these fields are
	// empty.
	ByType, ByCode bool
}

// retained says how long rows of a length are kept.
var retained = []struct {
	seconds int
	keep    time.Duration
}{{3600, 31 * 24 * time.Hour}, {600, 8 * 24 * time.Hour}, {60, 48 * time.Hour}}

type span struct {
	since, until time.Time
	step         time.Duration
	// grain is the length of the rows that are read.
	grain int
}

// span chooses the longest rows that make up the steps, among those that are still kept.
func (f Filter) span() (span, error) {
	s := span{since: f.Since.UTC(), until: f.Until.UTC(), step: f.Step}
	if f.Until.IsZero() {
		s.until = time.Now().UTC().Add(time.Hour) // clocks differ, and nothing is later than now
	}
	if s.step < 0 || s.step%time.Minute != 0 || f.Since.IsZero() || !s.until.After(s.since) {
		return s, store.Invalid("a history has a beginning, ends after it, and its step is whole minutes, not %s", f.Step)
	}
	finest := s.step
	if finest == 0 {
		finest = s.until.Sub(s.since) / 18 // so that an error of one row at the beginning is small
	}
	age := time.Since(s.since)
	for _, r := range retained {
		length := time.Duration(r.seconds) * time.Second
		if s.grain == 0 || age <= r.keep && s.step%length == 0 {
			s.grain = r.seconds
		}
		if length <= finest {
			break
		}
	}
	length := time.Duration(s.grain) * time.Second
	if s.step == 0 {
		s.since = s.since.Truncate(length)
		s.step = s.until.Sub(s.since).Truncate(time.Second) + time.Second
		return s, nil
	}
	s.step = max(s.step, length)
	s.since = s.since.Truncate(s.step)
	return s, nil
}

// History reads what attempts came to, step by step, the earliest first. A step in which nothing
// ended has no bar.
func History(ctx context.Context, q store.Querier, f Filter) ([]Bar, error) {
	const stmt = `
SELECT date_bin(make_interval(secs => @step), at, @since) AS begins, kind, CASE WHEN @by_type THEN type ELSE '' END, outcome, CASE WHEN @by_code THEN code ELSE '' END,
       count, waited_seconds, took_seconds, waited, took
  FROM daybook.history
 WHERE seconds = @grain AND at >= @since AND at < @until AND (@kind = '' OR kind = @kind) AND (@type = '' OR type = @type)
   AND (@outcome = '' OR outcome = @outcome) AND (@org = '' OR org_id = @org)`
	s, err := f.span()
	if err != nil {
		return nil, err
	}
	// The rows are many: they are brought together as they come, and only what they make is sorted.
	type place struct {
		at int64
		Outcome
	}
	made := map[place]int{}
	var bars []Bar
	_, err = store.Collect(ctx, q, func(row pgx.CollectableRow) (struct{}, error) {
		var b Bar
		err := row.Scan(&b.At, &b.Kind, &b.Type, &b.Outcome.Outcome, &b.Code, &b.Count, &b.Waited.Seconds, &b.Took.Seconds,
			&b.Waited.Buckets, &b.Took.Buckets)
		at := place{b.At.UnixMicro(), b.Outcome}
		if n, known := made[at]; known {
			bars[n].Count += b.Count
			bars[n].Waited.Add(b.Waited)
			bars[n].Took.Add(b.Took)
		} else {
			made[at], bars = len(bars), append(bars, b)
		}
		return struct{}{}, err
	}, stmt, store.Args{
		"step": s.step.Seconds(), "since": s.since, "until": s.until, "grain": s.grain, "by_type": f.ByType,
		"by_code": f.ByCode,
		"kind":    f.Kind, "type": f.Type, "outcome": f.Outcome, "org": f.OrgID,
	})
	if err != nil {
		return nil, store.Wrap("read the history", err)
	}
	slices.SortFunc(bars, func(a, b Bar) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Type, b.Type),
			cmp.Compare(a.Outcome.Outcome, b.Outcome.Outcome), cmp.Compare(a.Code, b.Code))
	})
	return bars, nil
}

// Prune removes what is older than it is kept, and returns how many rows went. A longer row has
// what the shorter ones had.
func Prune(ctx context.Context, db store.DB) (int64, error) {
	var n int64
	for _, r := range retained {
		for _, stmt := range []string{
			`DELETE FROM daybook.history WHERE seconds = $1 AND at < statement_timestamp() - make_interval(secs => $2)`,
			`DELETE FROM daybook.depths WHERE seconds = $1 AND at < statement_timestamp() - make_interval(secs => $2)`,
		} {
			tag, err := db.Exec(ctx, stmt, r.seconds, r.keep.Seconds())
			if err != nil {
				return n, store.Wrap("remove old figures", err)
			}
			n += tag.RowsAffected()
		}
	}
	return n, nil
}
