package listing

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// JobFilter says which background jobs are meant. The zero value of each field means any.
type JobFilter struct {
	OrgID string
	State models.JobState
	Type  string
	// Code is the last error's.
	Code models.ErrorCode
	// Since and Until bound when the job failed if State is JobFailed, and when it was enqueued
	// otherwise: from Since on, before Until.
	Since, Until time.Time
	// Link is something that the job is about; JobID is not looked at.
	Link models.JobLink
	// Key is the idempotency key.
	Key string
	// Queue is the named queue; "default" is the one without a row.
	Queue string
	// Waits is what the job waits for: WaitsForTurn, WaitsForJobs, WaitsForCallback or WaitsForLimit. Any other
	// value is ErrInvalid.
	Waits string
}

// bounded reports whether the filter says more than a state.
func (f *JobFilter) bounded() bool {
	rest := *f
	rest.State = ""
	return rest != JobFilter{}
}

// JobPage is a part of a list of background jobs.
type JobPage struct {
	// Jobs are without payload, result and edits, which may be large; Job reads them.
	Jobs []models.Job
	// Links are those of Jobs, by the job's id.
	Links map[string][]models.JobLink
	// Owners are who owns the types of Jobs, as workers put it on record.
	Owners map[string]string
	// Next is the cursor of the next part; empty: this is the last one.
	Next string
}

// JobDetail is a background job with all that is known of it.
type JobDetail struct {
	models.Job
	// Owner owns the type, as a worker put it on record; empty: none has said.
	Owner string
	Links []models.JobLink
	// WaitsFor is what the job waits for.
	WaitsFor []WaitsFor
	// Steps are those that attempts have kept, in the order in which they were begun.
	Steps []store.Step
	// Attempts are a page of the history, the newest first. AttemptRows counts all of its rows, each
	// of which may stand for several attempts; Older is the id before which the next page begins, 0:
	// this is the last one.
	Attempts    []models.JobAttempt
	AttemptRows int64
	Older       int64
}

// Jobs lists background jobs: dead letters (State is JobFailed) by when they failed, all others by
// when they were enqueued, the last one first. limit is DefaultLimit when it is 0. cursor is a
// page's Next, for the same filter; empty: from the beginning. A cursor that is not one is
// ErrInvalid.
func (l *Listing) Jobs(ctx context.Context, f JobFilter, limit int, cursor string) (JobPage, error) {
	return l.jobPage(ctx, l.jobs(ctx, f), f.State == models.JobFailed, limit, cursor)
}

// jobPage reads a page of the jobs of a query, in the order of dead letters or in that of the
// others.
func (l *Listing) jobPage(ctx context.Context, q *gorm.DB, byFailure bool, limit int, cursor string) (JobPage, error) {
	limit = cmp.Or(limit, store.DefaultLimit)
	page := JobPage{Jobs: []models.Job{}, Links: map[string][]models.JobLink{}}
	q, err := jobsAfter(q.Omit("payload", "result", "edits").Limit(limit+1), byFailure, cursor)
	if err != nil {
		return page, err
	}
	if err := q.Find(&page.Jobs).Error; err != nil {
		return page, store.Wrap("list jobs", err)
	}
	if len(page.Jobs) > limit {
		page.Jobs = page.Jobs[:limit]
		page.Next = writeCursor(page.Jobs[limit-1].ID, page.Jobs[limit-1].FinishedAt, byFailure)
	}
	ids := make([]string, len(page.Jobs))
	for i := range page.Jobs {
		ids[i] = page.Jobs[i].ID
	}
	if page.Owners, err = l.ownersOf(ctx, page.Jobs); err != nil {
		return page, err
	}
	links, err := l.jobLinks(ctx, ids...)
	for _, link := range links {
		page.Links[link.JobID] = append(page.Links[link.JobID], link)
	}
	return page, err
}

// jobsAfter puts a query into the order of its list, and has it begin after the place of a cursor.
func jobsAfter(q *gorm.DB, byFailure bool, cursor string) (*gorm.DB, error) {
	return after(q, byFailure, cursor, "finished_at DESC, id", "finished_at <= ? AND (finished_at < ? OR id > ?)")
}

// after is jobsAfter with the order of failed jobs by when they failed, and what comes behind one
// of them in it.
func after(q *gorm.DB, byFailure bool, cursor, failures, behind string) (*gorm.DB, error) {
	if byFailure {
		q = q.Order(failures)
	} else {
		q = q.Order("id DESC")
	}
	if cursor == "" {
		return q, nil
	}
	at, id, err := readCursor(cursor, byFailure)
	switch {
	case err != nil:
		return q, err
	case byFailure:
		return q.Where(behind, at, at, id), nil
	}
	return q.Where("id < ?", id), nil
}

// OrganizationOfJob returns whose a background job is: org, or any when org is empty;
// ErrJobNotFound when it has no such job.
func (l *Listing) OrganizationOfJob(ctx context.Context, org, id string) (string, error) {
	j, err := l.job(ctx, org, id, "org_id")
	return j.OrgID, err
}

// JobToEdit reads a job of an organization, or of any when org is empty, without its result and
// its edits; ErrJobNotFound when there is none.
func (l *Listing) JobToEdit(ctx context.Context, org, id string) (models.Job, error) {
	return l.job(ctx, org, id, "id", "org_id", "type", "state", "payload", "generation")
}

// job reads columns of a job.
func (l *Listing) job(ctx context.Context, org, id string, columns ...string) (models.Job, error) {
	return one[models.Job]("read the job",
		where(l.db.WithContext(ctx).Select(columns).Where("id = ?", id), "org_id = ?", org),
		store.NoJob(id))
}

// Job reads one background job of an organization, or of any when org is empty, with a page of its
// history; ErrJobNotFound when there is none.
func (l *Listing) Job(ctx context.Context, org, id string, p HistoryPage) (JobDetail, error) {
	var d JobDetail
	var err error
	if d.Job, err = l.job(ctx, org, id, "*"); err != nil {
		return d, err
	}
	if d.Links, err = l.jobLinks(ctx, id); err != nil {
		return d, err
	}
	if d.WaitsFor, err = l.waitsFor(ctx, &d.Job); err != nil {
		return d, err
	}
	if d.Steps, err = l.steps(ctx, &d.Job); err != nil {
		return d, err
	}
	owners, err := l.ownersOf(ctx, []models.Job{d.Job})
	if err != nil {
		return d, err
	}
	d.Owner = owners[d.Type]
	db := l.db.WithContext(ctx)
	if err := db.Model(&models.JobAttempt{}).Where("job_id = ?", id).Count(&d.AttemptRows).Error; err != nil {
		return d, store.Wrap("count attempts", err)
	}
	limit := cmp.Or(p.Limit, store.DefaultLimit)
	d.Attempts, err = find[models.JobAttempt]("list attempts",
		history(db, id, HistoryPage{Before: p.Before, Limit: limit + 1}))
	if len(d.Attempts) > limit {
		d.Attempts = d.Attempts[:limit]
		d.Older = d.Attempts[limit-1].ID
	}
	return d, err
}

// steps reads the steps that are kept of a job; only one whose changes are looked at has any.
func (l *Listing) steps(ctx context.Context, j *models.Job) ([]store.Step, error) {
	const stmt = `
SELECT name, position, attempt, result, done, times, started_at, kept_at
  FROM daybook.job_steps WHERE job_id = ? ORDER BY started_at, position`
	if !j.Awaited {
		return nil, nil
	}
	return find[store.Step]("read the job's steps", l.db.WithContext(ctx).Raw(stmt, j.ID))
}

// JobStat counts the background jobs of a type and state.
type JobStat struct {
	Type  string
	State models.JobState
	Count int64
	// Oldest and Newest are when they were enqueued.
	Oldest          time.Time
	Newest          time.Time
	AverageAttempts float64
	// Estimated says that all of this is known from a sample of the table, which is large.
	Estimated bool
}

// JobStats counts the background jobs of an organization, or of all when org is empty, in the order
// of types and states: what daybook.job_status shows. Jobs that completed or were cancelled are
// estimated as store.Status does it, for all organizations: of a large table a type with few of
// them may be left out.
func (l *Listing) JobStats(ctx context.Context, org string) (stats []JobStat, err error) {
	const stmt = `
SELECT type, state, sum(weight)::bigint, min(created_at), max(created_at), avg(run_count)::float8, bool_or(weight > 1)
  FROM (SELECT type, state, created_at, run_count, 1 AS weight FROM daybook.jobs WHERE num_nulls(nullif(state, 'pending')) = 1 AND ($1 = '' OR org_id = $1)
        UNION ALL
        SELECT type, state, created_at, run_count, 1 FROM daybook.jobs WHERE state = 'leased' AND ($1 = '' OR org_id = $1)
        UNION ALL
        SELECT type, state, created_at, run_count, 1 FROM daybook.jobs WHERE state = 'failed' AND ($1 = '' OR org_id = $1)
        UNION ALL
        SELECT type, state, created_at, run_count, 1 / share
          FROM (SELECT CASE $1 WHEN '' THEN least(1, 4096 * current_setting('block_size')::float8 / greatest(pg_relation_size('daybook.jobs'), 1)) ELSE 1 END AS share) s
         CROSS JOIN LATERAL (SELECT * FROM daybook.jobs TABLESAMPLE SYSTEM (100 * share) REPEATABLE (0) WHERE state IN ('completed', 'cancelled') AND ($1 = '' OR org_id = $1)) ended) j
 GROUP BY type, state
 ORDER BY type, state`
	err = store.ReadSnapshot(ctx, l.pool, func(tx pgx.Tx) error {
		stats, err = store.Collect(ctx, tx, pgx.RowToStructByPos[JobStat], stmt, org)
		return err
	})
	return stats, store.Wrap("count jobs by type and state", err)
}

func (l *Listing) jobLinks(ctx context.Context, ids ...string) ([]models.JobLink, error) {
	if len(ids) == 0 {
		return []models.JobLink{}, nil
	}
	return find[models.JobLink]("read the jobs' links",
		l.db.WithContext(ctx).Where("job_id IN ?", ids).Order("job_id, kind, id"))
}

// jobsOfLinkedID finds jobs by what they are linked to when its kind is not known. The index begins
// with the kind, and there are few kinds: each is probed.
const jobsOfLinkedID = `
WITH RECURSIVE kinds AS (
    SELECT min(l.kind) AS kind FROM daybook.job_links l
    UNION ALL
    SELECT (SELECT min(l.kind) FROM daybook.job_links l WHERE l.kind > k.kind) FROM kinds k WHERE k.kind IS NOT NULL
)
SELECT l.job_id FROM kinds k JOIN daybook.job_links l ON l.kind = k.kind AND l.id = ?`

// jobs begins a query of the jobs that the filter means.
func (l *Listing) jobs(ctx context.Context, f JobFilter) *gorm.DB {
	q := where(l.db.WithContext(ctx).Model(&models.Job{}), "org_id = ?", f.OrgID)
	q = where(q, "state = ?", f.State)
	q = where(q, "type = ?", f.Type)
	q = where(q, "last_error_code = ?", f.Code)
	q = where(q, "idempotency_key = ?", f.Key)
	q = whereWaits(whereQueue(q, f.Queue), f.Waits)
	switch {
	case f.Link.Kind != "":
		q = q.Where("id IN (SELECT l.job_id FROM daybook.job_links l WHERE l.kind = ? AND (? = '' OR l.id = ?))",
			f.Link.Kind, f.Link.ID, f.Link.ID)
	case f.Link.ID != "":
		q = q.Where("id IN ("+jobsOfLinkedID+")", f.Link.ID)
	}
	if f.State == models.JobFailed {
		if !f.Since.IsZero() {
			q = q.Where("finished_at >= ?", f.Since)
		}
		if !f.Until.IsZero() {
			q = q.Where("finished_at < ?", f.Until)
		}
		return q
	}
	// Ids begin with the time of their creation, and are indexed.
	if !f.Since.IsZero() {
		q = q.Where("created_at >= ? AND id >= ?", f.Since, idPrefix(f.Since.Add(-time.Minute)))
	}
	if !f.Until.IsZero() {
		q = q.Where("created_at < ? AND id < ?", f.Until, idPrefix(f.Until.Add(time.Minute)))
	}
	return q
}

// idPrefix is what ids that are made at t begin with (daybook.new_id).
func idPrefix(t time.Time) string {
	hex := fmt.Sprintf("%012x", max(t.UnixMilli(), 0))
	return hex[:8] + "-" + hex[8:]
}

// writeCursor says where a list goes on after a job. failed is when it failed, for lists in that
// order.
func writeCursor(id string, failed *time.Time, byFailure bool) string {
	place := "c " + id
	if byFailure && failed != nil {
		place = fmt.Sprintf("f %d %s", failed.UnixMicro(), id)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(place))
}

func readCursor(cursor string, byFailure bool) (at time.Time, id string, err error) {
	refused := store.Invalid("the cursor is not one of this list: leave it out to begin anew")
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return at, "", refused
	}
	parts := strings.SplitN(string(raw), " ", 3)
	switch {
	case !byFailure && len(parts) == 2 && parts[0] == "c":
		return at, parts[1], nil
	case byFailure && len(parts) == 3 && parts[0] == "f":
		micro, err := strconv.ParseInt(parts[1], 10, 64)
		if err != nil {
			return at, "", refused
		}
		return time.UnixMicro(micro), parts[2], nil
	}
	return at, "", refused
}
