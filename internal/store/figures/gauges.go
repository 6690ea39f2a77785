package figures

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// SampleEvery is the pause between two samples of the gauges.
const SampleEvery = 15 * time.Second

// FreshFor is for how long gauges are taken for the present state: a sample may be late, or its
// process may have ended and another one have to begin.
const FreshFor = 4 * SampleEvery

// Gauges are how all queues stood at the last sample.
type Gauges struct {
	// SampledAt is when, by the database's clock; zero: there was no sample yet, and nothing else is
	// set.
	SampledAt time.Time `json:"sampled_at"`
	// Age is how old the sample was when it was read.
	Age time.Duration `json:"-"`
	// Holder names the process that samples.
	Holder string `json:"holder"`
	// Kinds are in the order of store.Queues.
	Kinds    []Kind   `json:"kinds"`
	Database Database `json:"database"`
}

// Fresh reports whether there is a sample and it is young enough to stand for the present.
func (g Gauges) Fresh() bool { return !g.SampledAt.IsZero() && g.Age <= FreshFor }

// Kind returns the gauges of a kind; zero but for its name when there are none.
func (g Gauges) Kind(name string) Kind {
	if i := slices.IndexFunc(g.Kinds, func(k Kind) bool { return k.Kind == name }); i >= 0 {
		return g.Kinds[i]
	}
	return Kind{Kind: name}
}

// States of jobs that are counted. Pending jobs are due or waiting.
const (
	Due     = "due"
	Waiting = "waiting"
	Leased  = "leased"
	Failed  = "failed"
)

// States lists them in the order of a job's life.
func States() []string { return []string{Due, Waiting, Leased, Failed} }

// Counts are jobs by state.
type Counts struct {
	// Due jobs are pending and their time has come; the time of Waiting ones lies ahead, or they wait
	// for other jobs; Failed ones are dead letters.
	Due     int64 `json:"due"`
	Waiting int64 `json:"waiting"`
	Leased  int64 `json:"leased"`
	Failed  int64 `json:"failed"`
}

// Of returns the count of a state.
func (c Counts) Of(state string) int64 { return *c.of(state) }

func (c *Counts) of(state string) *int64 {
	switch state {
	case Due:
		return &c.Due
	case Waiting:
		return &c.Waiting
	case Leased:
		return &c.Leased
	default:
		return &c.Failed
	}
}

// Add adds n to the count of a state.
func (c *Counts) Add(state string, n int64) { *c.of(state) += n }

// Kind is how the queue of a kind stood.
type Kind struct {
	Kind string `json:"kind"`
	Counts
	// Estimated names the states whose counts are estimates: there were more jobs than are counted.
	Estimated []string `json:"estimated"`
	// OldestDueAt is since when the oldest due job is due, paused ones left out; nil: none is due.
	OldestDueAt *time.Time `json:"oldest_due_at"`
	// OldestDueAge is its age at the sample; 0: none is due.
	OldestDueAge time.Duration `json:"-"`
	// StaleLeases were neither completed nor renewed in time: their worker is gone, and no other one
	// has reclaimed them.
	StaleLeases int64 `json:"stale_leases"`
	// Unhandled jobs are of types that no worker has a handler for.
	Unhandled int64 `json:"unhandled"`
	Figures
}

// HeldBackJobs counts the due jobs that are held back, whatever the reason.
func (k Kind) HeldBackJobs() int64 { return k.HeldBack.Paused + k.HeldBack.Capped + k.HeldBack.Source }

// Figures are what the column of that name keeps of a kind.
type Figures struct {
	// Types are those that have open or failed jobs, or a worker, 100 at most, the busiest first. Of
	// accounting there is one, the empty one.
	Types []Type `json:"types,omitempty"`
	// DeadLetters are counted by type and error code, the most frequent first, 100 at most.
	DeadLetters []DeadLetters `json:"dead_letters,omitempty"`
	HeldBack    HeldBack      `json:"held_back"`
	// HeldQueues are named queues that hold due jobs back, 100 at most, those with the most jobs
	// first.
	HeldQueues []HeldQueue `json:"held_queues,omitempty"`
	// HeldSequences counts the sequences whose turn a dead letter has, or a job that is due only in
	// more than a day.
	HeldSequences int64 `json:"held_sequences,omitempty"`
	// Organizations are the organizations with the most due jobs, 20 at most; empty unless the
	// sampler is told to keep them apart.
	Organizations []Organization `json:"organizations,omitempty"`
	// Workflow is what Temporal says; nil: it was not asked, or did not answer.
	Workflow *Workflow `json:"workflow,omitempty"`
}

// Type is how the jobs of a type stood. When a count of the kind is an estimate, that of its types
// is one as well.
type Type struct {
	Type string `json:"type"`
	Counts
	OldestDueAt *time.Time `json:"oldest_due_at,omitempty"`
	// Unhandled jobs are due, or dead letters for this reason, and no worker has a handler for them.
	Unhandled int64 `json:"unhandled,omitempty"`
	// Owner is who answers for the type; empty: not on record.
	Owner string `json:"owner,omitempty"`
}

// DeadLetters counts the dead letters of a type with an error code.
type DeadLetters struct {
	Type  string `json:"type"`
	Code  string `json:"code"`
	Count int64  `json:"count"`
}

// HeldBack counts due jobs that no worker may take, by the reason.
type HeldBack struct {
	// Paused: their organization, type or named queue is paused.
	Paused int64 `json:"paused"`
	// Capped: their organization, type or named queue has as many jobs leased as its cap allows, or
	// the queue is at its rate.
	Capped int64 `json:"capped"`
	// Source: their organization's source or hooks are not Daybook's own, so that not every worker
	// can work them.
	Source int64 `json:"source"`
}

// HeldQueue counts the due jobs that a named queue holds back.
type HeldQueue struct {
	Queue string `json:"queue"`
	// Reason is HeldPaused, HeldUnworked or HeldCapped.
	Reason string `json:"reason"`
	Jobs   int64  `json:"jobs"`
}

// The reasons for which a named queue holds jobs back: it is paused, no worker of its fleet runs,
// or it is at its limit or rate.
const (
	HeldPaused   = "paused"
	HeldUnworked = "unworked"
	HeldCapped   = "capped"
)

// MaxHeldQueues is how many named queues the gauges keep apart.
const MaxHeldQueues = 100

// Organization is how many jobs of an organization are due.
type Organization struct {
	OrgID       string     `json:"org_id"`
	Due         int64      `json:"due"`
	OldestDueAt *time.Time `json:"oldest_due_at,omitempty"`
}

// Workflow is the workflow of a kind, as Temporal knows it.
type Workflow struct {
	// ID is that of the run; empty: none runs.
	ID string `json:"id,omitempty"`
	// Running says that a run is open; several are counted once.
	Running bool `json:"running"`
	// Paused says that it leases nothing until it is resumed. It is known only while a worker answers
	// for the workflow.
	Paused bool `json:"paused"`
	// PausedSince is when the pause was first seen; nil: it is not paused.
	PausedSince *time.Time `json:"paused_since,omitempty"`
	// Workers are the processes that poll the task queue for activities.
	Workers int `json:"workers"`
}

// Database is what all kinds share.
type Database struct {
	// OldestSnapshot is the transaction that keeps dead rows from being removed; nil: none does.
	OldestSnapshot *Snapshot `json:"oldest_snapshot,omitempty"`
	// Tables are those of the queues.
	Tables []Table `json:"tables,omitempty"`
	// PausedOrganizations counts them, 1000 at most.
	PausedOrganizations int64 `json:"paused_organizations"`
	// TemporalUp says whether Temporal answered; nil: it was not asked.
	TemporalUp *bool `json:"temporal_up,omitempty"`
	// Findings are what a check of health found.
	Findings []Finding `json:"findings,omitempty"`
	// Timeline is the server's, which each promotion counts; 0: it does not say. PromotedAt is when a
	// sample first saw it; nil: it is as old as the first sample.
	Timeline   int64      `json:"timeline,omitempty"`
	PromotedAt *time.Time `json:"promoted_at,omitempty"`
	// TookSeconds is how long the sample took, without the time in which Temporal was waited for.
	TookSeconds float64 `json:"took_seconds"`
	// Standby says that the process which samples leaves it to others as soon as there are any.
	Standby bool `json:"standby,omitempty"`
	// Sessions are the process ids of PostgreSQL's on which the process that samples shows that it
	// lives; empty: it does not.
	Sessions []int32 `json:"sessions,omitempty"`
}

// Snapshot is a transaction that sees an old state of the database, so that rows which were changed
// since are kept.
type Snapshot struct {
	// Since is when it began or, where the server does not say, when it was first seen.
	Since time.Time `json:"since"`
	// Xmin is the first transaction whose changes it may not see.
	Xmin string `json:"xmin"`
	// Holder names it: a session with its process id, a prepared transaction or a replication slot.
	Holder string `json:"holder"`
}

// Table is a table of a queue, as the server's statistics have it: both counts are estimates.
type Table struct {
	Name string `json:"name"`
	Rows int64  `json:"rows"`
	Dead int64  `json:"dead"`
	// VacuumedAt is when it was last vacuumed; nil: not since the statistics were reset.
	VacuumedAt *time.Time `json:"vacuumed_at,omitempty"`
}

// Finding is something that is wrong.
type Finding struct {
	Code     string `json:"code"`
	Severity string `json:"severity"`
	Kind     string `json:"kind,omitempty"`
	Count    int64  `json:"count,omitempty"`
}

// database is the name of the row that all kinds share.
const database = "database"

// ReadGauges reads the last sample. Without one it returns zero Gauges and no error.
func ReadGauges(ctx context.Context, q store.Querier) (Gauges, error) {
	const stmt = `
SELECT kind, sampled_at, extract(epoch FROM clock_timestamp() - sampled_at)::float8, holder, due, waiting, leased, failed, estimated, oldest_due_at, stale_leases, unhandled, figures
  FROM daybook.gauges`
	var g Gauges
	rows := map[string]Kind{}
	_, err := store.Collect(ctx, q, func(row pgx.CollectableRow) (struct{}, error) {
		var k Kind
		var at time.Time
		var age float64
		var text []byte
		err := row.Scan(&k.Kind, &at, &age, &g.Holder, &k.Due, &k.Waiting, &k.Leased, &k.Failed, &k.Estimated,
			&k.OldestDueAt, &k.StaleLeases, &k.Unhandled, &text)
		if err != nil {
			return struct{}{}, err
		}
		if k.Kind == database {
			g.SampledAt, g.Age = at, time.Duration(age*float64(time.Second)).Abs()
			return struct{}{}, json.Unmarshal(text, &g.Database)
		}
		if k.OldestDueAt != nil {
			k.OldestDueAge = max(0, at.Sub(*k.OldestDueAt))
		}
		err = json.Unmarshal(text, &k.Figures)
		rows[k.Kind] = k
		return struct{}{}, err
	}, stmt)
	if err != nil {
		return Gauges{}, store.Wrap("read the gauges", err)
	}
	for _, queue := range store.Queues() {
		if k, ok := rows[queue.Name]; ok {
			g.Kinds = append(g.Kinds, k)
		}
	}
	return g, nil
}

// WriteGauges replaces the sample, and adds it to the depths. The time is the database's. Only the
// process that samples may call it.
func WriteGauges(ctx context.Context, db store.DB, g Gauges) error {
	const write = `
INSERT INTO daybook.gauges AS g (kind, holder, due, waiting, leased, failed, estimated, oldest_due_at, stale_leases, unhandled, held_back, figures)
SELECT r.kind, $2, r.due, r.waiting, r.leased, r.failed, coalesce(r.estimated, '{}'), r.oldest_due_at, r.stale_leases, r.unhandled, r.held_back, r.figures
  FROM jsonb_to_recordset($1) AS r (kind text, due bigint, waiting bigint, leased bigint, failed bigint, estimated text[], oldest_due_at timestamptz,
                                    stale_leases bigint, unhandled bigint, held_back bigint, figures jsonb)
 ORDER BY r.kind
ON CONFLICT (kind) DO UPDATE
   SET sampled_at = excluded.sampled_at, holder = excluded.holder, due = excluded.due, waiting = excluded.waiting, leased = excluded.leased,
       failed = excluded.failed, estimated = excluded.estimated, oldest_due_at = excluded.oldest_due_at, stale_leases = excluded.stale_leases,
       unhandled = excluded.unhandled, held_back = excluded.held_back, figures = excluded.figures`
	type row struct {
		Kind string `json:"kind"`
		Counts
		Estimated   []string   `json:"estimated"`
		OldestDueAt *time.Time `json:"oldest_due_at"`
		StaleLeases int64      `json:"stale_leases"`
		Unhandled   int64      `json:"unhandled"`
		HeldBack    int64      `json:"held_back"`
		Figures     any        `json:"figures"`
	}
	rows := []row{{Kind: database, Figures: g.Database}}
	for _, k := range g.Kinds {
		rows = append(rows, row{
			k.Kind, k.Counts, k.Estimated, k.OldestDueAt, k.StaleLeases, k.Unhandled, k.HeldBackJobs(),
			k.Figures,
		})
	}
	text, err := json.Marshal(rows)
	if err != nil {
		return fmt.Errorf("write the gauges: %w", err)
	}
	if _, err := db.Exec(ctx, write, string(text), g.Holder); err != nil {
		return store.Wrap("write the gauges", err)
	}
	return addDepths(ctx, db, g.Kinds)
}

// Leave notes that the process which samples has ended, so that another one begins at once.
func Leave(ctx context.Context, db store.DB, holder string) error {
	_, err := db.Exec(ctx, `UPDATE daybook.gauges SET holder = '' WHERE holder = $1`, holder)
	return store.Wrap("leave sampling to another process", err)
}
