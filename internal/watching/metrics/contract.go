package metrics

// Type is what kind of instrument a metric is.
type Type string

// The types of metrics.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Source says which processes expose a metric.
type Source string

// The sources. Sampler: the one process of all workers and servers that samples. Worker: each
// process that works jobs. Server: each `daybook serve`. Process: both.
const (
	Sampler Source = "sampler"
	Worker  Source = "worker"
	Server  Source = "server"
	Process Source = "process"
)

// Definition is one metric of the contract.
type Definition struct {
	Name   string
	Type   Type
	Unit   string
	Source Source
	Labels []string
	// Help is what Prometheus shows.
	Help string
	// OptIn: it is exposed only while organizations are kept apart.
	OptIn bool
}

// The names of the metrics.
const (
	queueJobs        = "daybook_queue_jobs"
	oldestDue        = "daybook_queue_oldest_due_age_seconds"
	staleLeases      = "daybook_queue_stale_leases"
	unhandledJobs    = "daybook_queue_unhandled_jobs"
	heldBackJobs     = "daybook_queue_held_back_jobs"
	heldQueueJobs    = "daybook_named_queue_held_back_jobs"
	heldSequences    = "daybook_held_sequences"
	workflowRunning  = "daybook_workflow_running"
	workflowPaused   = "daybook_workflow_paused"
	pausedSeconds    = "daybook_workflow_paused_seconds"
	pollers          = "daybook_workers"
	temporalUp       = "daybook_temporal_up"
	oldestSnapshot   = "daybook_oldest_snapshot_age_seconds"
	tableDeadRows    = "daybook_table_dead_rows"
	tableRows        = "daybook_table_rows"
	pausedOrgs       = "daybook_paused_organizations"
	findings         = "daybook_finding"
	typeInfo         = "daybook_type_info"
	sampledAt        = "daybook_sampled_timestamp_seconds"
	organizationDue  = "daybook_organization_due_jobs"
	jobOutcomes      = "daybook_job_outcomes_total"
	jobLatency       = "daybook_job_latency_seconds"
	jobDuration      = "daybook_job_duration_seconds"
	jobAttempts      = "daybook_job_attempts"
	reclaims         = "daybook_reclaims_total"
	turnJobs         = "daybook_turn_jobs"
	wakeups          = "daybook_wakeups_total"
	lanes            = "daybook_lanes"
	ruleEvaluation   = "daybook_rule_evaluation_seconds"
	organizationEnds = "daybook_organization_outcomes_total"
	poolConnections  = "daybook_pool_connections"
	httpRequests     = "daybook_http_requests_total"
)

// definitions are in the order of docs/metrics.md.
var definitions = []Definition{
	{
		queueJobs, Gauge, "", Sampler,
		[]string{"kind", "type", "state"},
		"Jobs that are open or failed; state is due, waiting (due later), leased or failed", false,
	},
	{
		oldestDue, Gauge, "s", Sampler,
		[]string{"kind", "type"},
		"For how long the oldest due job has been due, paused ones left out; 0: none is due", false,
	},
	{
		staleLeases, Gauge, "", Sampler,
		[]string{"kind"},
		"Leases that have expired and that no worker has reclaimed",
		false,
	},
	{
		unhandledJobs, Gauge, "", Sampler,
		[]string{"kind", "type"},
		"Jobs, dead letters included, for whose type no worker has a handler", false,
	},
	{
		heldBackJobs, Gauge, "", Sampler,
		[]string{"kind", "reason"},
		"Due jobs that no worker may take; reason is paused, capped or source", false,
	},
	{
		heldQueueJobs, Gauge, "", Sampler,
		[]string{"kind", "queue", "reason"},
		"Due jobs that a named queue holds back, of 100 queues; reason is paused, unworked or capped", false,
	},
	{
		heldSequences, Gauge, "", Sampler,
		[]string{"kind"},
		"Sequences whose turn a dead letter has, or a job that is due only in more than a day, while others wait for it",
		false,
	},
	{workflowRunning, Gauge, "", Sampler, []string{"kind"}, "Whether the kind's workflow runs", false},
	{workflowPaused, Gauge, "", Sampler, []string{"kind"}, "Whether the kind's workflow is paused", false},
	{
		pausedSeconds, Gauge, "s", Sampler,
		[]string{"kind"},
		"For how long the kind's workflow has been paused; 0: it is not", false,
	},
	{pollers, Gauge, "", Sampler, []string{"kind"}, "Processes that poll Temporal for the kind's activities", false},
	{temporalUp, Gauge, "", Sampler, nil, "Whether Temporal answers", false},
	{
		oldestSnapshot, Gauge, "s", Sampler, nil,
		"For how long the oldest snapshot has kept dead rows from being removed; 0: none does", false,
	},
	{tableDeadRows, Gauge, "", Sampler, []string{"table"}, "Dead rows of a table, by the server's statistics", false},
	{tableRows, Gauge, "", Sampler, []string{"table"}, "Rows of a table, by the server's statistics", false},
	{pausedOrgs, Gauge, "", Sampler, nil, "Organizations that are paused, 1000 at most", false},
	{
		findings, Gauge, "", Sampler,
		[]string{"code", "severity", "kind"},
		"What `daybook doctor` finds, counted; 0: it was found before and is gone", false,
	},
	{typeInfo, Gauge, "", Sampler, []string{"kind", "type", "owner"}, "1 for each type, with who answers for it", false},
	{sampledAt, Gauge, "s", Sampler, nil, "When the queues were last sampled, in seconds since 1970", false},
	{
		organizationDue, Gauge, "", Sampler,
		[]string{"kind", "org"},
		"Due jobs of the 20 organizations that have most",
		true,
	},
	{
		jobOutcomes, Counter, "", Worker,
		[]string{"kind", "type", "outcome", "code"},
		"Attempts that ended; outcome is completed, retried, rescheduled, failed or cancelled", false,
	},
	{jobLatency, Histogram, "s", Worker, []string{"kind", "type"}, "From when a job was ready to its completion", false},
	{jobDuration, Histogram, "s", Worker, []string{"kind", "type"}, "How long attempts took", false},
	{
		jobAttempts, Histogram, "", Worker,
		[]string{"kind", "type"},
		"How many attempts a job took until it was completed, failed or cancelled", false,
	},
	{reclaims, Counter, "", Worker, []string{"kind"}, "Leases that were reclaimed from workers that are gone", false},
	{turnJobs, Histogram, "", Worker, []string{"kind"}, "How many jobs a turn worked", false},
	{
		wakeups, Counter, "", Worker,
		[]string{"kind", "cause"},
		"How often a waiting lane looked for work; cause is notification, scan or poll", false,
	},
	{lanes, Gauge, "", Worker, []string{"kind", "state"}, "Lanes of this process; state is active or idle", false},
	{ruleEvaluation, Histogram, "s", Worker, nil, "How long the rules of one document took", false},
	{
		organizationEnds, Counter, "", Worker,
		[]string{"kind", "org", "outcome"},
		"Attempts that ended, by organization; other: beyond the hundredth", true,
	},
	{
		poolConnections, Gauge, "", Process,
		[]string{"state"},
		"Connections of the process to the database; state is used, idle or max, which is how many there may be", false,
	},
	{httpRequests, Counter, "", Server, []string{"route", "method", "status"}, "Requests that were answered", false},
}

// Definitions are all metrics of Daybook's own.
func Definitions() []Definition { return definitions }

// attemptBounds, turnBounds and ruleBounds are the upper bounds of the buckets of histograms that
// are not of figures.Bounds.
var (
	attemptBounds = []float64{1, 2, 3, 5, 10, 20, 50}
	turnBounds    = []float64{0, 1, 10, 50, 100, 500, 1000, 5000, 10000, 50000}
	ruleBounds    = []float64{0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.01, 0.1}
)
