package listing

import (
	"cmp"
	"context"
	"database/sql"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// MaxScan is how many rows FindJobs and FindAccountingJobs read at most for a page when no index
// answers the filter.
const MaxScan = 50_000

// FoundJobs is a page of a search.
type FoundJobs struct {
	JobPage
	// Searched is set when the search stopped before its page was full, because it had read MaxScan
	// rows: it has looked at everything that was enqueued since, or failed since in a list of dead
	// letters. Next goes on behind it.
	Searched *time.Time
}

// FindJobs is Jobs for a person who waits: it reads a bounded number of rows, however many jobs
// there are and however few match. A key, a link with an id, and an organization's dead letters are
// found by an index. Open jobs are, too, as long as there are MaxScan at most. Every other filter
// is looked for among MaxScan jobs in the order of the list, and the page says how far back it has
// looked.
func (l *Listing) FindJobs(ctx context.Context, f JobFilter, limit int, cursor string) (found FoundJobs, err error) {
	err = l.bounded(ctx, func(l *Listing) error {
		found, err = l.findJobs(ctx, f, limit, cursor)
		return err
	})
	return found, err
}

func (l *Listing) findJobs(ctx context.Context, f JobFilter, limit int, cursor string) (FoundJobs, error) {
	byFailure := f.State == models.JobFailed
	limit = cmp.Or(limit, store.DefaultLimit)
	q, kind := l.jobs(ctx, f), ""
	if f.Link.Kind != "" && f.Link.ID == "" {
		// All jobs with a link of a kind may be very many: each row that is read is probed.
		kind, f.Link.Kind = f.Link.Kind, ""
		q = l.jobs(ctx, f).Where("(SELECT true FROM daybook.job_links l WHERE l.job_id = daybook.jobs.id AND l.kind = ? "+
			"LIMIT 1)", kind)
	}
	var floor *models.Job
	switch open, err := l.fewOpen(ctx, f.State, countOpenJobs); {
	case err != nil:
		return FoundJobs{}, err
	case open:
		q = q.Where("id IN (WITH open AS MATERIALIZED (SELECT o.id FROM daybook.jobs o WHERE o.state = ?) SELECT id FROM "+
			"open)", string(f.State))
	case f.Key != "" || f.Link.ID != "" || kind == "" && f.Type == "" && f.Code == "" && f.Queue == "" && f.Waits == "" &&
		(byFailure || f.OrgID == "" && f.State == ""):
	default:
		floor, err = l.jobsFloor(ctx, f, cursor)
		if err != nil {
			return FoundJobs{}, err
		}
	}
	if floor != nil && byFailure {
		q = q.Where("finished_at >= ? AND (finished_at > ? OR id <= ?)", floor.FinishedAt, floor.FinishedAt, floor.ID)
	} else if floor != nil {
		q = q.Where("id >= ?", floor.ID)
	}
	page, err := l.jobPage(ctx, q, byFailure, limit, cursor)
	found := FoundJobs{JobPage: page}
	if err == nil && page.Next == "" && floor != nil {
		found.Next, found.Searched = writeCursor(floor.ID, floor.FinishedAt, byFailure), floor.FinishedAt
		if !byFailure {
			found.Searched = new(idTime(floor.ID))
		}
	}
	return found, err
}

// byIndex has a transaction's statements go through indexes.
const byIndex = `SELECT set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)`

// bounded reads by f in one snapshot, with plans that go through indexes: a table whose statistics
// are old, or that is small, would be read whole.
func (l *Listing) bounded(ctx context.Context, f func(l *Listing) error) error {
	return l.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := tx.Exec(byIndex).Error; err != nil {
			return store.Wrap("plan a search", err)
		}
		inside := *l
		inside.db = tx
		return f(&inside)
	}, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
}

var countOpenJobs = map[models.JobState]string{
	models.JobPending: `SELECT count(*) FROM (SELECT FROM daybook.jobs WHERE state = 'pending' LIMIT ?) o`,
	models.JobLeased:  `SELECT count(*) FROM (SELECT FROM daybook.jobs WHERE state = 'leased' LIMIT ?) o`,
}

// fewOpen reports whether the state is that of open jobs, of which there are so few that all can be
// read: count has the statements that count them.
func (l *Listing) fewOpen(ctx context.Context, state models.JobState, count map[models.JobState]string) (bool, error) {
	stmt, open := count[state]
	if !open {
		return false, nil
	}
	var n int
	err := l.db.WithContext(ctx).Raw(stmt, l.scan+1).Row().Scan(&n)
	return n <= l.scan, store.Wrap("count open jobs", err)
}

// jobsFloor returns the last job that a search looks at: the one that is MaxScan places behind the
// cursor in the order of the list. Nil: there are fewer.
func (l *Listing) jobsFloor(ctx context.Context, f JobFilter, cursor string) (*models.Job, error) {
	byFailure := f.State == models.JobFailed
	var q *gorm.DB
	if byFailure {
		q = l.jobs(ctx, JobFilter{OrgID: f.OrgID, State: f.State, Since: f.Since, Until: f.Until}).Select("id, finished_at")
	} else {
		q = l.db.WithContext(ctx).Model(&models.Job{}).Select("id")
		if !f.Since.IsZero() {
			q = q.Where("id >= ?", idPrefix(f.Since.Add(-time.Minute)))
		}
		if !f.Until.IsZero() {
			q = q.Where("id < ?", idPrefix(f.Until.Add(time.Minute)))
		}
	}
	q, err := jobsAfter(q, byFailure, cursor)
	if err != nil {
		return nil, err
	}
	floor, err := atMostOne[models.Job](q.Offset(l.scan - 1))
	return floor, store.Wrap("look how far a search goes", err)
}

// idTime is when an id was made (daybook.new_id).
func idTime(id string) time.Time {
	hex := strings.ReplaceAll(id, "-", "")
	ms, err := strconv.ParseInt(hex[:min(len(hex), 12)], 16, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
