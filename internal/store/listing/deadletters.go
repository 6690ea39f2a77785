package listing

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

const (
	// maxGroups is how many groups of dead letters of a kind are shown.
	maxGroups = 200
	// maxCounted is how far a group of dead letters is counted.
	maxCounted = 100_000
)

// DeadLetters is a group of dead letters: of one kind, one type and one error code.
type DeadLetters struct {
	// Kind is "accounting", "jobs" or "tasks".
	Kind string
	// Type is empty for accounting jobs. Code is empty for tasks, which have a Reason in words.
	Type   string
	Code   models.ErrorCode
	Reason string
	// Count is how many they are; AtLeast says that there are more, which were not counted.
	Count   int64
	AtLeast bool
	// First and Last are when the oldest and the newest of them failed. Of tasks, First and Last are
	// when they were to be done.
	First, Last time.Time
	// ID, OrgID, Document and Error are those of the newest.
	ID, OrgID, Document, Error string
}

// Groups are dead letters in groups, the largest first.
type Groups struct {
	Groups []DeadLetters
	// More says that a kind has more groups than are shown.
	More bool
	// Since is set when only the newest MaxScan dead letters of an organization were read: those that
	// failed since.
	Since *time.Time
}

// DeadLetters groups what failed and waits for a person, of an organization, or of all when org is
// empty; with tasks, the stuck tasks as well. However many dead letters there are, a bounded number
// of rows is read: the groups are found by stepping through an index, and each is counted up to
// 100,000. Of an organization the newest MaxScan dead letters are grouped.
func (l *Listing) DeadLetters(ctx context.Context, org string, tasks bool) (all Groups, err error) {
	err = store.ReadSnapshot(ctx, l.pool, func(tx pgx.Tx) error {
		// Each step goes through an index, also where the tables' statistics are old.
		if _, err := tx.Exec(ctx, byIndex); err != nil {
			return store.Wrap("plan the groups of dead letters", err)
		}
		all, err = l.deadLetters(ctx, tx, org, tasks)
		return err
	})
	return all, err
}

func (l *Listing) deadLetters(ctx context.Context, tx pgx.Tx, org string, tasks bool) (Groups, error) {
	var all Groups
	add := func(kind string, groups []DeadLetters, err error) error {
		if err != nil {
			return store.Wrap("group the dead letters of "+kind, err)
		}
		if len(groups) > maxGroups {
			groups, all.More = groups[:maxGroups], true
		}
		for _, g := range groups {
			g.Kind = kind
			if g.AtLeast = g.Count > maxCounted; g.AtLeast {
				g.Count = maxCounted
			}
			all.Groups = append(all.Groups, g)
		}
		return nil
	}
	groups, err := l.failedJobs(ctx, tx, org, &all)
	if err := add("jobs", groups, err); err != nil {
		return all, err
	}
	groups, err = failedAccounting(ctx, tx, org)
	if err := add("accounting", groups, err); err != nil {
		return all, err
	}
	if tasks {
		groups, err = l.stuckTasks(ctx, tx)
		if err := add("tasks", groups, err); err != nil {
			return all, err
		}
	}
	slices.SortStableFunc(all.Groups, func(a, b DeadLetters) int { return cmp.Compare(b.Count, a.Count) })
	return all, nil
}

func scanGroup(row pgx.CollectableRow) (g DeadLetters, err error) {
	err = row.Scan(&g.Type, &g.Code, &g.Reason, &g.Count, &g.First, &g.Last, &g.ID, &g.OrgID, &g.Document, &g.Error)
	return g, err
}

func (l *Listing) failedJobs(ctx context.Context, tx pgx.Tx, org string, all *Groups) ([]DeadLetters, error) {
	const step = `
WITH RECURSIVE causes AS (
    (SELECT j.last_error_code AS code, j.type FROM daybook.jobs j WHERE j.state = 'failed' ORDER BY j.last_error_code, j.type LIMIT 1)
    UNION ALL
    SELECT n.code, n.type
      FROM causes c
     CROSS JOIN LATERAL (SELECT j.last_error_code AS code, j.type FROM daybook.jobs j
                          WHERE j.state = 'failed' AND (j.last_error_code, j.type) > (c.code, c.type)
                          ORDER BY j.last_error_code, j.type LIMIT 1) n
)
SELECT c.type, c.code, '',
       (SELECT count(*) FROM (SELECT FROM daybook.jobs j WHERE j.state = 'failed' AND j.last_error_code = c.code AND j.type = c.type LIMIT @counted) x),
       (SELECT j.finished_at FROM daybook.jobs j WHERE j.state = 'failed' AND j.last_error_code = c.code AND j.type = c.type ORDER BY j.finished_at LIMIT 1),
       n.finished_at, n.id, n.org_id, '', n.last_error
  FROM (SELECT code, type FROM causes LIMIT @groups) c
 CROSS JOIN LATERAL (SELECT j.finished_at, j.id, j.org_id, j.last_error FROM daybook.jobs j
                      WHERE j.state = 'failed' AND j.last_error_code = c.code AND j.type = c.type ORDER BY j.finished_at DESC, j.id LIMIT 1) n`
	const ofOrg = `
SELECT g.type, g.code, '', g.count, g.first, n.finished_at, n.id, n.org_id, '', n.last_error
  FROM (SELECT j.type, j.last_error_code AS code, count(*) AS count, min(j.finished_at) AS first, (array_agg(j.id ORDER BY j.finished_at DESC, j.id))[1] AS newest
          FROM (SELECT j.id, j.type, j.last_error_code, j.finished_at FROM daybook.jobs j
                 WHERE j.state = 'failed' AND j.org_id = @org ORDER BY j.finished_at DESC, j.id LIMIT @scan) j
         GROUP BY j.type, j.last_error_code
         ORDER BY count(*) DESC, 1, 2
         LIMIT @groups) g
  JOIN daybook.jobs n ON n.id = g.newest`
	const last = `
SELECT j.finished_at FROM daybook.jobs j WHERE j.state = 'failed' AND j.org_id = $1 ORDER BY j.finished_at DESC, j.id OFFSET $2 LIMIT 1`
	if org == "" {
		return store.Collect(ctx, tx, scanGroup, step, store.Args{"counted": maxCounted + 1, "groups": maxGroups + 1})
	}
	times, err := store.Collect(ctx, tx, pgx.RowTo[time.Time], last, org, l.scan)
	if err != nil {
		return nil, err
	}
	if len(times) > 0 {
		all.Since = &times[0]
	}
	return store.Collect(ctx, tx, scanGroup, ofOrg, store.Args{"org": org, "scan": l.scan, "groups": maxGroups + 1})
}

func failedAccounting(ctx context.Context, tx pgx.Tx, org string) ([]DeadLetters, error) {
	const ofAll = `
WITH RECURSIVE causes AS (
    (SELECT q.last_error_code AS code FROM daybook.accounting_work_queue q WHERE q.state = 'failed' ORDER BY q.last_error_code LIMIT 1)
    UNION ALL
    SELECT n.code
      FROM causes c
     CROSS JOIN LATERAL (SELECT q.last_error_code AS code FROM daybook.accounting_work_queue q
                          WHERE q.state = 'failed' AND q.last_error_code > c.code ORDER BY q.last_error_code LIMIT 1) n
)
SELECT '', c.code, '',
       (SELECT count(*) FROM (SELECT FROM daybook.accounting_work_queue q WHERE q.state = 'failed' AND q.last_error_code = c.code LIMIT @counted) x),
       (SELECT q.updated_at FROM daybook.accounting_work_queue q WHERE q.state = 'failed' AND q.last_error_code = c.code ORDER BY q.updated_at LIMIT 1),
       n.updated_at, n.id, n.org_id, n.document_id, n.last_error
  FROM (SELECT code FROM causes LIMIT @groups) c
 CROSS JOIN LATERAL (SELECT q.updated_at, q.id, q.org_id, q.document_id, q.last_error FROM daybook.accounting_work_queue q
                      WHERE q.state = 'failed' AND q.last_error_code = c.code ORDER BY q.updated_at DESC, q.id LIMIT 1) n`
	const ofOrg = `
WITH RECURSIVE causes AS (
    (SELECT q.last_error_code AS code FROM daybook.accounting_work_queue q WHERE q.state = 'failed' AND q.org_id = @org ORDER BY q.last_error_code LIMIT 1)
    UNION ALL
    SELECT n.code
      FROM causes c
     CROSS JOIN LATERAL (SELECT q.last_error_code AS code FROM daybook.accounting_work_queue q
                          WHERE q.state = 'failed' AND q.org_id = @org AND q.last_error_code > c.code ORDER BY q.last_error_code LIMIT 1) n
)
SELECT '', c.code, '',
       (SELECT count(*) FROM (SELECT FROM daybook.accounting_work_queue q
                               WHERE q.state = 'failed' AND q.org_id = @org AND q.last_error_code = c.code LIMIT @counted) x),
       (SELECT q.updated_at FROM daybook.accounting_work_queue q
         WHERE q.state = 'failed' AND q.org_id = @org AND q.last_error_code = c.code ORDER BY q.updated_at LIMIT 1),
       n.updated_at, n.id, n.org_id, n.document_id, n.last_error
  FROM (SELECT code FROM causes LIMIT @groups) c
 CROSS JOIN LATERAL (SELECT q.updated_at, q.id, q.org_id, q.document_id, q.last_error FROM daybook.accounting_work_queue q
                      WHERE q.state = 'failed' AND q.org_id = @org AND q.last_error_code = c.code ORDER BY q.updated_at DESC, q.id LIMIT 1) n`
	args := store.Args{"counted": maxCounted + 1, "groups": maxGroups + 1}
	stmt := ofAll
	if org != "" {
		stmt, args["org"] = ofOrg, org
	}
	return store.Collect(ctx, tx, scanGroup, stmt, args)
}

// stuckTasks groups the stuck ones among the MaxScan oldest open tasks.
func (l *Listing) stuckTasks(ctx context.Context, tx pgx.Tx) ([]DeadLetters, error) {
	const stmt = `
SELECT g.task_type, '', g.reason, g.count, g.first, g.last, g.newest::text, '', '',
       coalesce((SELECT e.error_message FROM queues.error e WHERE e.task_id = g.newest ORDER BY e.error_id DESC LIMIT 1), '')
  FROM (SELECT s.task_type, s.reason, count(*) AS count, min(s.scheduled_at) AS first, max(s.scheduled_at) AS last, max(s.task_id) AS newest
          FROM queues.stuck_tasks s
         WHERE s.task_id <= coalesce((SELECT o.task_id FROM queues.open_task o ORDER BY o.task_id OFFSET $1 LIMIT 1), 9223372036854775807)
         GROUP BY s.task_type, s.reason
         ORDER BY count(*) DESC, 1, 2
         LIMIT $2) g`
	return store.Collect(ctx, tx, scanGroup, stmt, l.scan, maxGroups+1)
}
