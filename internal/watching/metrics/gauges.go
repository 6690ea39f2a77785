package metrics

import (
	"slices"
	"strings"
	"sync"

	"github.com/daybook-dev/daybook/internal/store/figures"
)

// published are the gauges that this process has published since it samples. What was seen once
// falls back to zero, so that an alert ends and a graph does not break off. When another process
// samples, nothing of it is published any more.
type published struct {
	mu   sync.Mutex
	seen map[string]map[string]struct{}
}

// separator stands between the values of labels in a key.
const separator = "\x00"

// fallsBack says which gauges a value of a label may vanish from.
var fallsBack = []string{
	queueJobs, oldestDue, unhandledJobs, heldQueueJobs, findings, organizationDue, tableRows,
	tableDeadRows,
}

// write writes a sample, and zero for what earlier samples had.
func (s *published) write(p *points, g figures.Gauges, publishes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !publishes {
		s.seen = nil
		return
	}
	w := sampleWriter{points: p, gauges: g, now: map[string]map[string]struct{}{}}
	w.write()
	if s.seen == nil {
		s.seen = map[string]map[string]struct{}{}
	}
	for _, name := range fallsBack {
		if s.seen[name] == nil {
			s.seen[name] = map[string]struct{}{}
		}
		for key := range s.seen[name] {
			if _, there := w.now[name][key]; !there {
				p.gauge(name, 0, strings.Split(key, separator)...)
			}
		}
		for key := range w.now[name] {
			// A bound for what may come and go for as long as the process lives.
			if len(s.seen[name]) < 10*maxValues {
				s.seen[name][key] = struct{}{}
			}
		}
	}
}

// sampleWriter writes one sample, and notes the values of labels that it has.
type sampleWriter struct {
	points *points
	gauges figures.Gauges
	now    map[string]map[string]struct{}
}

func (w sampleWriter) gauge(name string, v float64, values ...string) {
	if w.now[name] == nil {
		w.now[name] = map[string]struct{}{}
	}
	key := strings.Join(values, separator)
	if _, twice := w.now[name][key]; twice {
		return
	}
	w.now[name][key] = struct{}{}
	w.points.gauge(name, v, values...)
}

func (w sampleWriter) write() {
	w.gauge(sampledAt, float64(w.gauges.SampledAt.UnixMilli())/1000)
	for _, k := range w.gauges.Kinds {
		w.kind(k)
		w.types(k)
	}
	d := w.gauges.Database
	snapshot := 0.0
	if d.OldestSnapshot != nil {
		snapshot = max(0, w.gauges.SampledAt.Sub(d.OldestSnapshot.Since).Seconds())
	}
	w.gauge(oldestSnapshot, snapshot)
	w.gauge(pausedOrgs, float64(d.PausedOrganizations))
	if d.TemporalUp != nil {
		w.gauge(temporalUp, number(*d.TemporalUp))
	}
	for _, t := range d.Tables {
		w.gauge(tableRows, float64(t.Rows), t.Name)
		w.gauge(tableDeadRows, float64(t.Dead), t.Name)
	}
	for _, f := range d.Findings {
		w.gauge(findings, float64(f.Count), f.Code, f.Severity, f.Kind)
	}
}

// kind writes what is not told apart by type.
func (w sampleWriter) kind(k figures.Kind) {
	w.gauge(staleLeases, float64(k.StaleLeases), k.Kind)
	w.gauge(heldBackJobs, float64(k.HeldBack.Paused), k.Kind, "paused")
	w.gauge(heldBackJobs, float64(k.HeldBack.Capped), k.Kind, "capped")
	w.gauge(heldBackJobs, float64(k.HeldBack.Source), k.Kind, "source")
	for _, q := range k.HeldQueues {
		w.gauge(heldQueueJobs, float64(q.Jobs), k.Kind, q.Queue, q.Reason)
	}
	w.gauge(heldSequences, float64(k.HeldSequences), k.Kind)
	if f := k.Workflow; f != nil {
		w.gauge(workflowRunning, number(f.Running), k.Kind)
		w.gauge(workflowPaused, number(f.Paused), k.Kind)
		since := 0.0
		if f.PausedSince != nil {
			since = max(0, w.gauges.SampledAt.Sub(*f.PausedSince).Seconds())
		}
		w.gauge(pausedSeconds, since, k.Kind)
		w.gauge(pollers, float64(f.Workers), k.Kind)
	}
	for _, o := range k.Organizations {
		w.gauge(organizationDue, float64(o.Due), k.Kind, o.OrgID)
	}
}

// types writes what is told apart by type. What the types leave over has the type other; a kind
// without types has zeros, so that there is always something to compare with.
func (w sampleWriter) types(k figures.Kind) {
	types := k.Types
	if rest, some := restOf(k); some {
		types = append(slices.Clip(types), rest)
	}
	if len(types) == 0 {
		types = []figures.Type{{}}
	}
	for _, t := range types {
		for _, state := range figures.States() {
			w.gauge(queueJobs, float64(max(t.Of(state), 0)), k.Kind, t.Type, state)
		}
		age := 0.0
		if t.OldestDueAt != nil {
			age = max(0, w.gauges.SampledAt.Sub(*t.OldestDueAt).Seconds())
		}
		w.gauge(oldestDue, age, k.Kind, t.Type)
		w.gauge(unhandledJobs, float64(max(t.Unhandled, 0)), k.Kind, t.Type)
		w.gauge(typeInfo, 1, k.Kind, t.Type, t.Owner)
	}
}

// restOf is what the types of a kind leave over, if they do.
func restOf(k figures.Kind) (rest figures.Type, some bool) {
	rest = figures.Type{Type: other, Unhandled: k.Unhandled, OldestDueAt: k.OldestDueAt}
	for _, state := range figures.States() {
		rest.Add(state, k.Of(state))
	}
	for _, t := range k.Types {
		for _, state := range figures.States() {
			rest.Add(state, -t.Of(state))
		}
		rest.Unhandled -= t.Unhandled
		if k.OldestDueAt != nil && t.OldestDueAt != nil && !t.OldestDueAt.After(*k.OldestDueAt) {
			rest.OldestDueAt = nil
		}
	}
	// What estimates differ by is no rest.
	for _, state := range k.Estimated {
		if len(k.Types) > 0 && len(k.Types) < maxValues {
			rest.Add(state, -rest.Of(state))
		}
	}
	return rest, rest.Due > 0 || rest.Waiting > 0 || rest.Leased > 0 || rest.Failed > 0 || rest.Unhandled > 0 ||
		rest.OldestDueAt != nil
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
