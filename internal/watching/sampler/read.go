package sampler

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store/figures"
	"github.com/daybook-dev/daybook/internal/watching/health"
)

// read reads what the database alone knows. A kind that takes too long to count has what the
// indexes' statistics say.
func (s *Sampler) read(ctx context.Context, tx pgx.Tx, before figures.Gauges) (g figures.Gauges, err error) {
	if g.Kinds, err = figures.CountKinds(ctx, tx, before, s.options.Organizations); err != nil {
		return g, err
	}
	g.Database.Standby = s.options.Standby
	if g.Database.OldestSnapshot, err = figures.OldestSnapshot(ctx, tx, before.Database.OldestSnapshot); err != nil {
		return g, err
	}
	if g.Database.Tables, err = figures.ReadTables(ctx, tx); err != nil {
		return g, err
	}
	g.Database.PausedOrganizations, err = figures.CountPausedOrganizations(ctx, tx)
	return g, err
}

// addReport adds what a check of health found: what is held back, what has no handler, and the
// state of the workflows.
func (s *Sampler) addReport(g *figures.Gauges, before figures.Gauges, r health.Report) {
	figures.Aged(g.Kinds, r.At)
	g.Database.Timeline, g.Database.PromotedAt = r.Timeline, r.PromotedAt
	counts := map[figures.Finding]int64{}
	for _, f := range r.Findings {
		about := f.AboutKinds()
		if len(about) == 0 {
			about = []string{""}
		}
		for _, kind := range about {
			counts[figures.Finding{Code: string(f.Code), Severity: string(f.SeverityOf(kind)), Kind: kind}]++
		}
	}
	for _, f := range slices.Concat(r.Findings, r.Consequences) {
		i := slices.IndexFunc(g.Kinds, func(k figures.Kind) bool { return k.Kind == f.Kind })
		if i >= 0 {
			addFinding(&g.Kinds[i], f)
		}
	}
	for i := range g.Kinds {
		k := &g.Kinds[i]
		slices.SortFunc(k.HeldQueues, func(a, b figures.HeldQueue) int {
			return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), strings.Compare(a.Queue, b.Queue), strings.Compare(a.Reason, b.Reason))
		})
		k.HeldQueues = k.HeldQueues[:min(len(k.HeldQueues), figures.MaxHeldQueues)]
	}
	for f, n := range counts {
		f.Count = n
		g.Database.Findings = append(g.Database.Findings, f)
	}
	slices.SortFunc(g.Database.Findings, func(a, b figures.Finding) int {
		return slices.Compare([]string{a.Severity, a.Code, a.Kind}, []string{b.Severity, b.Code, b.Kind})
	})
	if s.options.Temporal == nil {
		return
	}
	up := !slices.ContainsFunc(r.Findings, func(f health.Finding) bool { return f.Code == health.TemporalUnavailable })
	g.Database.TemporalUp = &up
	for _, w := range r.Workflows {
		if i := slices.IndexFunc(g.Kinds, func(k figures.Kind) bool { return k.Kind == w.Kind }); i >= 0 && up {
			g.Kinds[i].Workflow = workflowOf(w, before.Kind(w.Kind).Workflow, r.At)
		}
	}
}

// heldReasons are why named queues hold jobs back, by the finding.
var heldReasons = map[health.Code]string{
	health.QueuePaused: figures.HeldPaused, health.QueueUnworked: figures.HeldUnworked,
	health.CapReached: figures.HeldCapped,
}

// addFinding adds the jobs that a finding is about.
func addFinding(k *figures.Kind, f health.Finding) {
	if reason := heldReasons[f.Code]; f.Queue != "" && reason != "" {
		i := slices.IndexFunc(k.HeldQueues,
			func(q figures.HeldQueue) bool { return q.Queue == f.Queue && q.Reason == reason })
		if i < 0 {
			i = len(k.HeldQueues)
			k.HeldQueues = append(k.HeldQueues, figures.HeldQueue{Queue: f.Queue, Reason: reason})
		}
		k.HeldQueues[i].Jobs += f.Count
	}
	switch f.Code {
	case health.SequenceHeld:
		if f.Example != "" {
			k.HeldSequences++ // each by itself
		} else {
			k.HeldSequences += f.Count // what is left over, together
		}
	case health.OrganizationPaused, health.TypePaused, health.QueuePaused:
		k.HeldBack.Paused += f.Count
	case health.CapReached:
		k.HeldBack.Capped += f.Count
	case health.SourceMissing:
		k.HeldBack.Source += f.Count
	case health.HandlerMissing:
		k.Unhandled += f.Count
		i := slices.IndexFunc(k.Types, func(t figures.Type) bool { return t.Type == f.Type })
		if i >= 0 {
			k.Types[i].Unhandled += f.Count
		}
	default: // it is about no jobs that wait
	}
}

// workflowOf says how a workflow stands, and since when it is paused: since it was first seen to
// be.
func workflowOf(w health.WorkflowState, before *figures.Workflow, now time.Time) *figures.Workflow {
	f := &figures.Workflow{ID: w.ID, Running: w.State == health.Running, Workers: w.Live(now)}
	switch {
	case w.Status != nil:
		f.Paused = w.Status.Paused
	case f.Running && before != nil:
		// No worker answers for it: it is as it was.
		f.Paused = before.Paused
	}
	if f.Paused {
		f.PausedSince = &now
		if before != nil && before.PausedSince != nil {
			f.PausedSince = before.PausedSince
		}
	}
	return f
}
