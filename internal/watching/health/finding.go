package health

import (
	"cmp"
	"slices"
	"time"
)

// Code is the stable name of what can be found. docs/doctor.md has a section for each.
type Code string

// The codes, in the order in which docs/doctor.md has them: what keeps everything from being worked
// comes first.
const (
	SplitBrain          Code = "SPLIT_BRAIN"
	DatabaseUnavailable Code = "DATABASE_UNAVAILABLE"
	SchemaOld           Code = "SCHEMA_OLD"
	SchemaNew           Code = "SCHEMA_NEW"
	SchemaDifferent     Code = "SCHEMA_DIFFERENT"
	SchemaIncomplete    Code = "SCHEMA_INCOMPLETE"
	RoleLacksRights     Code = "ROLE_LACKS_RIGHTS"
	DirectAddressNeeded Code = "DIRECT_ADDRESS_NEEDED"
	StandbyMissing      Code = "STANDBY_MISSING"
	SettingOverridden   Code = "SETTING_OVERRIDDEN"
	TableLocked         Code = "TABLE_LOCKED"
	TemporalUnavailable Code = "TEMPORAL_UNAVAILABLE"
	AnswersSlowly       Code = "ANSWERS_SLOWLY"
	WorkflowNotStarted  Code = "WORKFLOW_NOT_STARTED"
	WorkflowEnded       Code = "WORKFLOW_ENDED"
	WorkflowPaused      Code = "WORKFLOW_PAUSED"
	NoWorker            Code = "NO_WORKER"
	TurnsFailing        Code = "TURNS_FAILING"
	HandlerMissing      Code = "HANDLER_MISSING"
	StaleLeases         Code = "STALE_LEASES"
	OldSnapshot         Code = "OLD_SNAPSHOT"
	AutovacuumBehind    Code = "AUTOVACUUM_BEHIND"
	ClockSkew           Code = "CLOCK_SKEW"
	SourceMissing       Code = "SOURCE_MISSING"
	OrganizationPaused  Code = "ORGANIZATION_PAUSED"
	TypePaused          Code = "TYPE_PAUSED"
	QueuePaused         Code = "QUEUE_PAUSED"
	QueueUnworked       Code = "QUEUE_UNWORKED"
	CapReached          Code = "CAP_REACHED"
	OldestDue           Code = "OLDEST_DUE"
	BacklogGrows        Code = "BACKLOG_GROWS"
	TransactionUnshared Code = "TRANSACTION_UNSHARED"
	FailedJobs          Code = "FAILED_JOBS"
	AmountNotPosted     Code = "AMOUNT_NOT_POSTED"
	SequenceHeld        Code = "SEQUENCE_HELD"
	RetryingJobs        Code = "RETRYING_JOBS"
	ScheduleClocks      Code = "SCHEDULE_CLOCKS"
	NoToken             Code = "NO_TOKEN"
	SearchPathOpen      Code = "SEARCH_PATH_OPEN"
)

// Codes lists every code, in their order.
func Codes() []Code {
	return []Code{
		SplitBrain, DatabaseUnavailable, SchemaOld, SchemaNew, SchemaDifferent, SchemaIncomplete, RoleLacksRights,
		DirectAddressNeeded, StandbyMissing, SettingOverridden, TableLocked, TemporalUnavailable,
		AnswersSlowly, WorkflowNotStarted, WorkflowEnded, WorkflowPaused, NoWorker, TurnsFailing,
		HandlerMissing, StaleLeases, OldSnapshot, AutovacuumBehind, ClockSkew, SourceMissing, OrganizationPaused,
		TypePaused, QueuePaused, QueueUnworked, CapReached, OldestDue, BacklogGrows, TransactionUnshared, FailedJobs,
		AmountNotPosted, SequenceHeld, RetryingJobs, ScheduleClocks, NoToken, SearchPathOpen,
	}
}

// Severity says how bad a finding is.
type Severity string

// The severities. Critical: work that is due is not done. Warning: something needs a person, and
// other work goes on. Info: it was set so, or may be meant.
const (
	Critical Severity = "critical"
	Warning  Severity = "warning"
	Info     Severity = "info"
)

// rank orders severities, the worst first.
func (s Severity) rank() int { return slices.Index([]Severity{Critical, Warning, Info}, s) }

// Finding is one thing that was found.
type Finding struct {
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	// Kind is the kind of queue that it is about; empty: all, several, or none.
	Kind string `json:"kind,omitempty"`
	// Kinds are the kinds that it is about, when they are several and not all.
	Kinds []string `json:"kinds,omitempty"`
	// OrgID is the organization that it is about; empty: more than one, or none.
	OrgID string `json:"org_id,omitempty"`
	// Type is the type of the jobs or tasks; accounting jobs have none.
	Type string `json:"type,omitempty"`
	// Queue is the named queue that it is about; empty: none.
	Queue string `json:"queue,omitempty"`
	// Owner is who owns the type, as its handler's policy says; empty: not on record.
	Owner string `json:"owner,omitempty"`
	// ErrorCode is that of the jobs that failed or are tried again.
	ErrorCode string `json:"error_code,omitempty"`
	// Count is how many jobs, leases or rows it is about; 0: it is not about any. AtLeast says that
	// there may be more.
	Count   int64 `json:"count,omitempty"`
	AtLeast bool  `json:"at_least,omitempty"`
	// Since is since when it is so; nil: that is not known.
	Since *time.Time `json:"since,omitempty"`
	// Example names a job that it is about: the id of a job or task, or the document of an accounting
	// job, whose organization is ExampleOrg.
	Example    string `json:"example,omitempty"`
	ExampleOrg string `json:"example_org_id,omitempty"`
	// Says is what is wrong, in a sentence or two.
	Says string `json:"says"`
	// What to do, with the exact command.
	Todo string `json:"todo"`
	// Runbook is the anchor of the finding's section of docs/runbook.md and docs/doctor.md.
	Runbook string `json:"runbook"`

	// severities are those of the kinds, where it is about several: Severity is the worst of them.
	severities map[string]Severity
	// summed: it stands for all that are beyond those with a finding of their own.
	summed bool
	// stalled: jobs that are due are not worked because of it, whatever its code and severity.
	stalled bool
	// cause is the same of findings of several kinds that have one cause, and about says it of them
	// together.
	cause string
	about func(kinds []string) (says, todo string)
	// follows: it is there as well where nothing of its kind is worked, because of that.
	follows bool
}

// AboutKinds are the kinds of queues that it is about; none: all, or it is about none.
func (f Finding) AboutKinds() []string {
	if f.Kind != "" {
		return []string{f.Kind}
	}
	return slices.Clone(f.Kinds)
}

// SeverityOf is how bad it is for one of the kinds that it is about.
func (f Finding) SeverityOf(kind string) Severity { return cmp.Or(f.severities[kind], f.Severity) }

// covers reports whether it is about a kind.
func (f Finding) covers(kind string) bool {
	all := f.AboutKinds()
	return len(all) == 0 || slices.Contains(all, kind)
}

// stops reports whether the finding keeps all jobs of its kind from being worked.
func (f Finding) stops() bool {
	return f.stalled || stopping[f.Code] != "" && f.Severity == Critical
}

// sortFindings puts the worst first; of those that are as bad, what explains the others first, then
// the most; what sums others up is behind them.
func sortFindings(all []Finding) {
	codes := Codes()
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Severity.rank(), b.Severity.rank()),
			cmp.Compare(slices.Index(codes, a.Code), slices.Index(codes, b.Code)),
			last(a.summed)-last(b.summed), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Type, b.Type), cmp.Compare(a.OrgID, b.OrgID))
	})
}

func last(is bool) int {
	if is {
		return 1
	}
	return 0
}
