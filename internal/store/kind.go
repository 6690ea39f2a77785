package store

import (
	"strings"
	"sync"
)

// Kind is one kind of queue. The statements of leases are written once, with braces where kinds differ; all kinds have the
// columns of a lease, and lose, retry and settle jobs by the same rules.
type Kind struct {
	// Name is the kind's in attempts.
	Name string
	// words replace what stands in braces.
	words *strings.Replacer
	// fields are the destinations of {columns}.
	fields func(j *Job) []any
	// channel and key are what the kind's wake function notifies and locks.
	channel string
	key     int
	// abilities are those of the worker, for the accounting kind; nil: the kind's jobs need none.
	abilities *Abilities
	// counts: leases say whether they count towards a limit of their type.
	counts bool

	statements sync.Map
}

// sql returns a statement in the words of the kind.
func (k *Kind) sql(stmt string) string {
	if s, ok := k.statements.Load(stmt); ok {
		return s.(string)
	}
	s, _ := k.statements.LoadOrStore(stmt, k.words.Replace(stmt))
	return s.(string)
}

// Accounting is the queue of documents to be posted, for a worker that reads daybook.documents and has no hooks.
var Accounting = accounting(Abilities{Sources: []string{SourceDaybook}})

func accounting(can Abilities) *Kind {
	return &Kind{
		Name: "accounting", fields: leaseFields, channel: "daybook_accounting", key: 1, abilities: &can,
		words: accountingWords(can),
	}
}

func accountingWords(can Abilities) *strings.Replacer {
	return strings.NewReplacer(
		// {workable} is where o is the organization's row or null: this worker may work its jobs now. {covered} leaves a pause out.
		"{workable}", "o.paused_at IS NULL AND "+can.covers(),
		"{covered}", can.covers(),
		"{queue}", "daybook.accounting_work_queue",
		"{state}", "daybook.job_state",
		"{order}", "org_id, document_id",
		"{type}", "''::text",
		"{of type}", "s.type IS NOT NULL",
		"{leased}", "",
		"{places}", "q.priority, q.org_id",
		"{behind}", "(q.priority, q.org_id) > ($1::smallint, $2::text) AND $3::text IS NOT NULL",
		"{behind place}", "(q.priority, q.org_id) > (place.priority, place.org_id)",
		"{columns}", leaseColumns("q.run_count", "q.attempt_started_at"),
		"{picked columns}", leaseColumns("q.run_count + 1", "clock_timestamp()"),
		"{locked columns}", leaseColumns("q.run_count", "q.attempt_started_at"),
		// What is taken over is worked later; what is worked alone is marked then.
		"{working}", "false",
		"{taken over}", "1",
		"{wake}", "daybook.wake_accounting_queue",
		"{max attempts}", "$3",
		"{lost code}", "WORKER_LOST",
		"{given back}", `
       not_ready_count = CASE WHEN q.generation <> q.leased_generation THEN 0 ELSE q.not_ready_count END,`,
		"{readable}", "\n       not_ready_count = 0,",
		"{settled}", `
           version_hint = CASE WHEN v.version IS NULL OR q.generation <> q.leased_generation THEN q.version_hint ELSE v.version END,
           not_ready_count = CASE WHEN v.code IS DISTINCT FROM 'DOCUMENT_NOT_READY' OR q.generation <> q.leased_generation THEN 0 ELSE least(q.not_ready_count, 999999) + 1 END,`,
		"{log columns}", "document_id, version",
		"{lost log}", "q.document_id, q.version_hint",
		"{settled log}", "q.document_id AS log_1, v.old_version AS log_2",
		"{log version}", "version",
	)
}

func leaseColumns(attempt, startedAt string) string {
	return "q.id, q.org_id, q.document_id, q.version_hint, " + attempt + ", " + startedAt + ", q.takeovers, q.not_ready_count, q.cancel_requested, q.epoch"
}

// leaseFields are the destinations of what every kind knows of a lease.
func leaseFields(j *Job) []any {
	return []any{&j.ID, &j.OrgID, &j.DocumentID, &j.Version, &j.Attempt, &j.StartedAt, &j.Takeovers, &j.NotReady, &j.CancelRequested, &j.Epoch}
}

// Jobs is the queue of background jobs.
var Jobs = &Kind{
	Name: "jobs", channel: "daybook_jobs", key: 2, counts: true,
	fields: func(j *Job) []any {
		return append(leaseFields(j), &j.Type, &j.Payload, &j.MaxAttempts, &j.Key, &j.EnqueuedAt)
	},
	words: strings.NewReplacer(
		"{queue}", "daybook.jobs",
		"{workable}", "o.paused_at IS NULL",
		"{covered}", "true",
		"{state}", "daybook.job_state",
		"{order}", "org_id, id",
		"{type}", "q.type",
		"{of type}", "q.type = s.type",
		"{leased}", ", counted = q.type = ANY ($13::text[])",
		"{places}", "q.priority, q.org_id, q.type",
		"{behind}", "(q.priority, q.org_id, q.type) > ($1::smallint, $2::text, $3::text)",
		"{behind place}", "(q.priority, q.org_id, q.type) > (place.priority, place.org_id, place.type)",
		"{columns}", jobColumns("q.run_count", "q.attempt_started_at")+contentColumns,
		"{picked columns}", jobColumns("q.run_count + 1", "clock_timestamp()")+contentColumns,
		"{locked columns}", jobColumns("q.run_count", "q.attempt_started_at"),
		// What is taken over is begun at once.
		"{working}", "true",
		// Only what was begun can have ended its worker.
		"{taken over}", "CASE WHEN held.charged THEN 1 ELSE 0 END",
		"{wake}", "daybook.wake_job_queue",
		// Without a number of its own the policy of its type decides, when it is begun.
		"{max attempts}", "coalesce(q.max_attempts, greatest($3::integer, 1000))",
		"{lost code}", "JOB_LOCK_TIMEOUT_RECLAIMED",
		"{given back}", "",
		"{readable}", "",
		"{settled}", `
           result = CASE WHEN v.outcome = 'completed' THEN v.result::jsonb ELSE q.result END,`,
		"{log columns}", "kind, type",
		"{lost log}", "'jobs', q.type",
		"{settled log}", "'jobs' AS log_1, q.type AS log_2",
		"{log version}", "type",
	),
}

func jobColumns(attempt, startedAt string) string {
	return "q.id, q.org_id, '', 0::bigint, " + attempt + ", " + startedAt + ", q.takeovers, 0, q.cancel_requested, 0"
}

const contentColumns = ", q.type, q.payload, coalesce(q.max_attempts, 0), coalesce(q.idempotency_key, ''), q.created_at"
