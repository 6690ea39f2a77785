package top

import (
	"cmp"
	"slices"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/figures"
	"github.com/daybook-dev/daybook/internal/watching/health"
	"github.com/daybook-dev/daybook/models"
)

const (
	// recent is the span of rates and times, lately that of failures, and of the line that shows how
	// completions went.
	recent = 5 * time.Minute
	lately = time.Hour
)

// Picture is what is shown: how everything stood at one moment.
type Picture struct {
	At time.Time `json:"at"`
	// Summary says in a line whether work gets done; Working is false when it does not.
	Summary  string           `json:"summary"`
	Working  bool             `json:"working"`
	Findings []health.Finding `json:"findings"`
	// SampledAt is when all but rates, times and failures was read, in one snapshot of the database.
	SampledAt time.Time `json:"sampled_at"`

	Queues        []Row                  `json:"queues"`
	Types         []Row                  `json:"types"`
	Failures      []Failure              `json:"failures"`
	Organizations []Organization         `json:"organizations"`
	Leases        []store.LeaseGroup     `json:"leases"`
	Workflows     []health.WorkflowState `json:"workflows"`
}

// Row is how the jobs of a kind, or of one of its types, stand.
type Row struct {
	Kind string `json:"kind"`
	// Type is empty in the row of a kind.
	Type  string `json:"type,omitempty"`
	Owner string `json:"owner,omitempty"`
	figures.Counts
	// Estimated says that some of the counts are estimates.
	Estimated bool `json:"estimated,omitempty"`
	// OldestDueSeconds is how long the job has been due that has waited longest; 0: none is due.
	OldestDueSeconds float64 `json:"oldest_due_seconds"`
	// CompletedPerSecond and FailedPerMinute are those of the last five minutes; FailedPerMinute
	// counts attempts that are tried again as well.
	CompletedPerSecond float64 `json:"completed_per_second"`
	FailedPerMinute    float64 `json:"failed_per_minute"`
	// LatencyP50 and LatencyP95 are times from when a job was due until it was completed, in the last
	// five minutes, in seconds.
	LatencyP50 float64 `json:"latency_p50_seconds"`
	LatencyP95 float64 `json:"latency_p95_seconds"`
	// Completed are how many were completed in each of the last 60 minutes, the present one last.
	Completed []int64 `json:"completed_by_minute,omitempty"`
}

// Failure is what attempts of a type failed with in the last hour.
type Failure struct {
	Kind string `json:"kind"`
	Type string `json:"type,omitempty"`
	Code string `json:"code"`
	// Failed are dead letters, Retried are tried again.
	Failed  int64 `json:"failed"`
	Retried int64 `json:"retried"`
	// Waiting counts the dead letters that are there now.
	Waiting int64  `json:"dead_letters"`
	Owner   string `json:"owner,omitempty"`
}

// Organization is how much an organization has to be done, over all kinds.
type Organization struct {
	OrgID   string `json:"org_id"`
	Kind    string `json:"kind"`
	Pending int64  `json:"pending"`
	Leased  int64  `json:"leased"`
	Failed  int64  `json:"failed"`
	Paused  bool   `json:"paused"`
	Cap     *int   `json:"cap,omitempty"`
	// Rated: it has a rate.
	Rated bool `json:"rated,omitempty"`
}

type rowKey struct{ kind, kindType string }

// rowsOf makes the rows of kinds and types of a sample and of what attempts came to since an hour
// before now.
func rowsOf(g figures.Gauges, bars []figures.Bar, now time.Time) (queues, types []Row) {
	rows := map[rowKey]*Row{}
	order := []rowKey{}
	row := func(kind, kindType string) *Row {
		k := rowKey{kind, kindType}
		if rows[k] == nil {
			rows[k] = &Row{Kind: kind, Type: kindType, Completed: make([]int64, int(lately/time.Minute)+1)}
			order = append(order, k)
		}
		return rows[k]
	}
	for _, q := range store.Queues() {
		k := g.Kind(q.Name)
		r := row(q.Name, "")
		r.Counts, r.Estimated, r.OldestDueSeconds = k.Counts, len(k.Estimated) > 0, since(k.OldestDueAt, now)
		for _, t := range k.Types {
			if t.Type != "" {
				r := row(q.Name, t.Type)
				r.Counts, r.Owner, r.OldestDueSeconds = t.Counts, t.Owner, since(t.OldestDueAt, now)
			}
		}
	}
	latency := map[rowKey]*figures.Distribution{}
	for _, b := range bars {
		for _, name := range names(b) {
			add(row(b.Kind, name), b, now)
			k := rowKey{b.Kind, name}
			if b.Outcome.Outcome == string(models.OutcomeCompleted) && b.At.After(now.Add(-recent)) {
				if latency[k] == nil {
					latency[k] = &figures.Distribution{}
				}
				latency[k].Add(b.Waited)
			}
		}
	}
	for _, k := range order {
		r := rows[k]
		if d := latency[k]; d != nil {
			r.LatencyP50, r.LatencyP95 = d.Quantile(0.5).Seconds(), d.Quantile(0.95).Seconds()
		}
		if k.kindType == "" {
			queues = append(queues, *r)
			continue
		}
		types = append(types, *r)
	}
	slices.SortStableFunc(types, func(x, y Row) int {
		return cmp.Or(cmp.Compare(y.CompletedPerSecond, x.CompletedPerSecond), cmp.Compare(y.Due, x.Due),
			cmp.Compare(y.Failed, x.Failed), cmp.Compare(x.Type, y.Type))
	})
	return queues, types
}

// names are the rows that a bar counts in: that of its kind, and that of its type.
func names(b figures.Bar) []string {
	if b.Type == "" {
		return []string{""}
	}
	return []string{"", b.Type}
}

func add(r *Row, b figures.Bar, now time.Time) {
	age := now.Truncate(time.Minute).Sub(b.At)
	fresh := b.At.After(now.Add(-recent))
	switch b.Outcome.Outcome {
	case string(models.OutcomeCompleted):
		if i := len(r.Completed) - 1 - int(age/time.Minute); i >= 0 && i < len(r.Completed) {
			r.Completed[i] += b.Count
		}
		if fresh {
			r.CompletedPerSecond += float64(b.Count) / span(now).Seconds()
		}
	case string(models.OutcomeFailed), string(models.OutcomeRetried):
		if fresh {
			r.FailedPerMinute += float64(b.Count) / span(now).Minutes()
		}
	}
}

// span is how long the whole minutes that begin within the last five, and the present one, are
// together: a bar is counted whole or not at all.
func span(now time.Time) time.Duration {
	first := now.Add(-recent).Truncate(time.Minute).Add(time.Minute)
	return now.Sub(first)
}

// failuresOf groups what failed in the last hour, and the dead letters that are there, the most
// frequent first.
func failuresOf(g figures.Gauges, bars []figures.Bar) []Failure {
	list := []Failure{}
	for _, f := range figures.FailuresOf(g, bars) {
		if f.Failed+f.Retried+f.Dead > 0 {
			list = append(list, Failure{
				Kind: f.Kind, Type: f.Type, Code: f.Code, Failed: f.Failed, Retried: f.Retried,
				Waiting: f.Dead, Owner: f.Owner,
			})
		}
	}
	slices.SortFunc(list, func(x, y Failure) int {
		return cmp.Or(cmp.Compare(y.Failed+y.Retried, x.Failed+x.Retried), cmp.Compare(y.Waiting, x.Waiting),
			cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Type, y.Type), cmp.Compare(x.Code, y.Code))
	})
	return list
}

// organizationsOf are those with something to do, by kind, the busiest first.
func organizationsOf(all []store.OrganizationSummary) []Organization {
	var list []Organization
	for _, o := range all {
		for _, q := range o.Queues {
			if q.Pending+q.Leased+q.Failed == 0 {
				continue
			}
			list = append(list, Organization{
				OrgID: o.OrgID, Kind: q.Kind, Pending: q.Pending, Leased: q.Leased, Failed: q.Failed, Paused: o.PausedAt != nil,
				Cap: o.MaxInFlight, Rated: o.Rate != nil && q.Kind == "jobs",
			})
		}
	}
	slices.SortStableFunc(list, func(x, y Organization) int {
		return cmp.Or(cmp.Compare(y.Pending+y.Leased, x.Pending+x.Leased), cmp.Compare(y.Failed, x.Failed),
			cmp.Compare(x.OrgID, y.OrgID))
	})
	return list
}

func since(t *time.Time, now time.Time) float64 {
	if t == nil {
		return 0
	}
	return max(now.Sub(*t).Seconds(), 0)
}
