package health

import "slices"

// tellOthers ends what those are told who operate nothing themselves.
const tellOthers = "Those who operate Daybook see why: `daybook doctor`."

// stopping has what keeps all jobs of a kind from being worked, in words that name no server, session
// or worker and count nothing.
var stopping = map[Code]string{
	SplitBrain:          "The database's servers do not agree on one primary.",
	DatabaseUnavailable: "The database does not answer all that it is asked.",
	SchemaOld:           "The database's schema is not this program's.",
	SchemaNew:           "The database's schema is not this program's.",
	SchemaDifferent:     "The database's schema is not this program's.",
	SchemaIncomplete:    "The database's schema is not this program's.",
	StandbyMissing:      "Commits wait for a standby of the database.",
	TableLocked:         "A transaction has locked a table of Daybook's.",
	TemporalUnavailable: "Temporal cannot be asked.",
	WorkflowNotStarted:  "The workflow was never started.",
	WorkflowEnded:       "The workflow has ended.",
	WorkflowPaused:      "The workflow is paused.",
	NoWorker:            "No worker is there.",
	TurnsFailing:        "The turns of workers fail.",
}

// alone leaves what the readers of one organization may know: what was found of it, and that
// something keeps every organization's jobs from being worked. What is found in future is left out
// until it is on one of these lists.
func (p *probe) alone() {
	var kept []Finding
	for _, f := range p.findings {
		switch {
		case f.Kind == "tasks": // have no organization
		case stopping[f.Code] != "":
			kept = f.toldAlone(kept)
		case ofJobs[f.Code] && (f.OrgID == p.OrgID || f.ExampleOrg == p.OrgID):
			kept = append(kept, f)
		}
	}
	p.findings = kept
}

// toldAlone adds to others a finding of the whole installation, without what tells more of it than that
// it stops work: once, however many sessions or servers it is about.
func (f *Finding) toldAlone(others []Finding) []Finding {
	for i := range others {
		o := &others[i]
		if o.Code != f.Code || o.Kind != f.Kind || !slices.Equal(o.Kinds, f.Kinds) {
			continue
		}
		if o.Severity.rank() > f.Severity.rank() {
			o.Severity = f.Severity
		}
		o.stalled = o.stalled || f.stalled
		return others
	}
	says := stopping[f.Code]
	told := Finding{
		Code: f.Code, Severity: f.Severity, Kind: f.Kind, Kinds: f.Kinds, Since: f.Since, Runbook: f.Runbook, Says: says,
		Todo: tellOthers, stalled: f.stalled, follows: f.follows,
	}
	if f.Kind != "" {
		told.cause, told.about = "told alone", func([]string) (string, string) { return says, tellOthers }
	}
	return append(others, told)
}

// ofJobs are the codes of what is found of an organization's jobs.
var ofJobs = map[Code]bool{
	HandlerMissing: true, StaleLeases: true, OrganizationPaused: true, QueuePaused: true, QueueUnworked: true, CapReached: true,
	OldestDue: true, FailedJobs: true, AmountNotPosted: true, SequenceHeld: true, RetryingJobs: true,
}
