package handlers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/moving/archive"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
)

// Cleanup is the payload of the type cleanup: it removes finished, old rows of the organization of
// the job. It removes nothing of the ledger, no dead letter, and no job that waits or runs. In each
// field 0 means the default, and -1 that nothing of the kind is removed.
type Cleanup struct {
	// JobsDays is the age in days from which completed and cancelled background jobs are removed,
	// with their links, attempts and receipts; default 30. After that, the same idempotency key makes
	// a new job.
	JobsDays int `json:"jobs_days,omitempty"`
	// ReceiptsDays is the age in days from which receipts of webhooks are removed although their job
	// is kept; default 90.
	ReceiptsDays int `json:"receipts_days,omitempty"`
	// AttemptsDays is the age in days from which attempts at completed and cancelled accounting jobs
	// are removed; default 90.
	AttemptsDays int `json:"attempts_days,omitempty"`
	// TasksDays is the age in days from which completed tasks are removed, with all their facts, into
	// the archive CleanupConfig.TasksArchive; default 90 where there is an archive. Tasks have no
	// organization: a number goes with AllOrganizations.
	TasksDays int `json:"tasks_days,omitempty"`
	// AllOrganizations removes these rows of all organizations, if the job belongs to
	// CleanupConfig.Organization.
	AllOrganizations bool `json:"all_organizations,omitempty"`
}

// JobType is "cleanup".
func (Cleanup) JobType() string { return "cleanup" }

// CleanupPolicy is the type's policy: 2 attempts, 5 minutes between them, each of up to 5 minutes.
// One runs at a time.
func CleanupPolicy() jobs.Policy {
	return jobs.Policy{
		MaxAttempts: 2, Timeout: 5 * time.Minute, Base: 5 * time.Minute, Factor: 3, Cap: 15 * time.Minute,
		Parallel: 1,
	}
}

// CleanupConfig bounds what a job may remove. The zero value of each field means its default.
type CleanupConfig struct {
	// MinDays is the least number of days that a payload may have; default 7.
	MinDays int `env:"CLEANUP_MIN_DAYS"`
	// Organization is the one whose jobs may remove rows of all organizations; empty: none.
	Organization string `env:"CLEANUP_ORG"`
	// Batch is how many rows a statement reads; default 1000.
	Batch int `env:"CLEANUP_BATCH"`
	// Archive is where jobs and attempts go that are removed: a directory, or the URL of a bucket.
	// Empty: they are removed for good.
	Archive string `env:"ARCHIVE"`
	// TasksArchive is where completed tasks go: a directory, or the URL of a bucket for
	// gocloud.dev/blob such as file:///var/lib/daybook/archive. Empty: tasks are not removed. For
	// another storage than files, the program has to import its driver.
	TasksArchive string `env:"CLEANUP_TASKS_ARCHIVE"`
}

// CleanupHandler works jobs of the type cleanup. It is safe for concurrent use.
type CleanupHandler struct {
	pool   *pgxpool.Pool
	config CleanupConfig
}

// NewCleanup returns a handler that removes from the pool's database, which stays the caller's to
// close.
func NewCleanup(pool *pgxpool.Pool, c CleanupConfig) (*CleanupHandler, error) {
	if pool == nil {
		return nil, errors.New("cleanup: a pool is required, for what it cleans up")
	}
	if c.MinDays < 0 || c.Batch < 0 || c.Batch > 100_000 {
		return nil, errors.New("cleanup: CLEANUP_MIN_DAYS must not be negative, and CLEANUP_BATCH must be at most 100000")
	}
	for name, address := range map[string]string{"CLEANUP_TASKS_ARCHIVE": c.TasksArchive, "ARCHIVE": c.Archive} {
		if address == "" {
			continue
		}
		a, err := archive.Open(context.Background(), address)
		if err == nil {
			err = a.Close()
		}
		if err != nil {
			return nil, fmt.Errorf("cleanup: %s: %w", name, err)
		}
	}
	c.MinDays, c.Batch = cmp.Or(c.MinDays, 7), cmp.Or(c.Batch, 1000)
	return &CleanupHandler{pool: pool, config: c}, nil
}

// Handle removes rows batch by batch, each in a transaction of its own, until nothing is left to
// remove or the attempt's time is nearly over. Then the result says that there is more, and the
// next job continues. It fails with HANDLER_ERROR, which is tried again, and finally with
// PAYLOAD_INVALID (too few days, or all organizations without permission).
func (h *CleanupHandler) Handle(ctx context.Context, job *jobs.Job[Cleanup]) error {
	return outcome(h.clean(ctx, callOf(job)))
}

// CleanupResult is the result of a job of the type cleanup, and its progress while it runs.
type CleanupResult struct {
	// Jobs, Attempts and Receipts count the rows that were removed, those of removed jobs included.
	Jobs     int64 `json:"jobs"`
	Attempts int64 `json:"attempts"`
	Receipts int64 `json:"receipts"`
	// Tasks counts the tasks that went to the archive.
	Tasks int64 `json:"tasks,omitempty"`
	// Files counts the files of the archive that jobs and attempts went to.
	Files int64 `json:"files,omitempty"`
	// More says that the attempt's time was over before all rows were read.
	More bool `json:"more"`
}

// cleanupReserve is how long before its end an attempt stops.
const cleanupReserve = 10 * time.Second

// cleanupStep is one kind of rows, and the age from which they are removed.
type cleanupStep struct {
	store.OldRows
	days int
}

// days are the ages that the payload has, by the name of the rows; 0: the default.
func (c *Cleanup) days(name string) int {
	return map[string]int{
		"jobs": c.JobsDays, "receipts": c.ReceiptsDays, "attempts": c.AttemptsDays,
		"tasks": c.TasksDays,
	}[name]
}

func (h *CleanupHandler) clean(ctx context.Context, c *call[Cleanup]) error {
	p := &c.payload
	org := c.orgID
	if p.AllOrganizations {
		if h.config.Organization == "" || h.config.Organization != c.orgID {
			return invalid("all_organizations is only for jobs of the organization that %sCLEANUP_ORG names",
				environmentPrefix)
		}
		org = ""
	}
	var steps []cleanupStep
	for _, old := range store.Old() {
		days := cmp.Or(p.days(old.Name), max(old.Days, h.config.MinDays))
		if days != -1 && (days < h.config.MinDays || days > maxDays) {
			return invalid("%s_days must be from %d to %d, or -1 to leave them alone", old.Name, h.config.MinDays, maxDays)
		}
		if old.Archived && (org != "" || h.config.TasksArchive == "") {
			if p.days(old.Name) > 0 {
				return invalid("%s_days removes %s of no organization into an archive: set all_organizations, and "+
					"%sCLEANUP_TASKS_ARCHIVE", old.Name, old.Name, environmentPrefix)
			}
			continue
		}
		steps = append(steps, cleanupStep{old, days})
	}
	// By the clock that the rows have their times from: a worker whose own clock is ahead would
	// remove what is to be kept.
	now, err := store.Now(ctx, h.pool)
	if err != nil {
		return store.Unavailable(ctx, err)
	}
	var total CleanupResult
	for _, s := range steps {
		if s.days == -1 {
			continue
		}
		r := store.Retention{OrgID: org, Before: now.AddDate(0, 0, -s.days), Keep: c.id, Batch: h.config.Batch}
		step := h.step
		switch {
		case s.Archived:
			step = h.archive
		case h.config.Archive != "" && (s.Name == string(archive.Jobs) || s.Name == string(archive.Attempts)):
			step = h.move
		}
		if err := step(ctx, c, s, r, &total); err != nil {
			return err
		}
	}
	c.result(total)
	return nil
}

// maxDays bounds an age: about a hundred years.
const maxDays = 36500

// step removes one kind of rows.
func (h *CleanupHandler) step(ctx context.Context, c *call[Cleanup], s cleanupStep, r store.Retention,
	total *CleanupResult,
) error {
	var cursor store.CleanupCursor
	for {
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < cleanupReserve {
			total.More = true
			return nil
		}
		var removed store.Cleaned
		var next store.CleanupCursor
		err := store.Begin(ctx, h.pool, func(tx pgx.Tx) error {
			var err error
			removed, next, err = s.Clean(ctx, tx, r, cursor)
			return err
		})
		if err != nil {
			return store.Unavailable(ctx, err)
		}
		cursor = next
		total.Jobs += removed.Jobs
		total.Attempts += removed.Attempts
		total.Receipts += removed.Receipts
		if removed.Done {
			return nil
		}
		if err := c.progress(ctx, total); err != nil {
			return err
		}
	}
}

// archive moves one kind of rows to the archive.
func (h *CleanupHandler) archive(ctx context.Context, c *call[Cleanup], _ cleanupStep, r store.Retention,
	total *CleanupResult,
) (err error) {
	a, err := archive.Open(ctx, h.config.TasksArchive)
	if err != nil {
		return fail(models.CodeNetworkError, "the archive cannot be opened: check %sCLEANUP_TASKS_ARCHIVE: %s",
			environmentPrefix, clip(err.Error()))
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	for {
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < cleanupReserve {
			total.More = true
			return nil
		}
		n, err := a.RemoveTasks(ctx, h.pool, r.Before, r.Batch)
		if refused, ok := errors.AsType[*archive.WriteError](err); ok {
			return fail(models.CodeNetworkError, "%s", clip(withoutSecrets(refused.Error())))
		}
		if err != nil {
			return store.Unavailable(ctx, err)
		}
		if n == 0 {
			return nil
		}
		total.Tasks += int64(n)
		if err := c.progress(ctx, total); err != nil {
			return err
		}
	}
}

func init() {
	builtins = append(builtins, builtin{name: "cleanup", register: func(r *jobs.Registry, s *environment) error {
		config, err := parse[CleanupConfig](s)
		if err != nil {
			return err
		}
		h, err := NewCleanup(s.Pool, config)
		if err != nil {
			return err
		}
		jobs.Register(r, s.policy(CleanupPolicy()), h.Handle)
		return nil
	}})
}
