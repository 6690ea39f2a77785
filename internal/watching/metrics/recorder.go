package metrics

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/daybook-dev/daybook/internal/store/figures"
	"github.com/daybook-dev/daybook/internal/telemetry/events"
)

// recorder adds up what workers tell. It is an events.TurnSink. One lock protects all of it: a
// batch takes it once.
type recorder struct {
	// organizations: they are kept apart.
	organizations bool

	mu    sync.Mutex
	types map[string]bounded
	codes bounded
	orgs  bounded

	outcomes map[outcome]uint64
	jobs     map[jobType]*jobTimes
	reclaims map[string]uint64
	ofOrgs   map[orgOutcome]uint64
	turns    map[string]*histogram
	wakeups  map[wakeup]uint64
	lanes    map[string][2]int
	requests map[request]uint64
	// pending is what is to be added to the history.
	pending map[figures.Outcome]*figures.Attempts

	rules *ruleTimes
}

type (
	jobType    struct{ kind, name string }
	outcome    struct{ kind, jobType, outcome, code string }
	orgOutcome struct{ kind, org, outcome string }
	wakeup     struct{ kind, cause string }
	request    struct {
		route, method string
		status        int
	}
	// jobTimes are the histograms of a type.
	jobTimes struct{ latency, duration, attempts *histogram }
	// ruleTimes has a lock of its own, because rules are evaluated more often than anything else is
	// told.
	ruleTimes struct {
		mu sync.Mutex
		*histogram
	}
)

var _ events.TurnSink = (*recorder)(nil)

func newRecorder(organizations bool) *recorder {
	return &recorder{
		organizations: organizations,
		types:         map[string]bounded{}, codes: bounded{}, orgs: bounded{},
		outcomes: map[outcome]uint64{}, jobs: map[jobType]*jobTimes{}, reclaims: map[string]uint64{},
		ofOrgs: map[orgOutcome]uint64{},
		turns:  map[string]*histogram{}, wakeups: map[wakeup]uint64{}, lanes: map[string][2]int{},
		requests: map[request]uint64{},
		pending:  map[figures.Outcome]*figures.Attempts{}, rules: &ruleTimes{histogram: newHistogram(ruleBounds)},
	}
}

// Observe implements events.Sink.
func (r *recorder) Observe(batch []events.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Most events of a batch are alike: what they are counted under is looked up once.
	var last events.Event
	var attempts *figures.Attempts
	var times *jobTimes
	var key outcome
	for i := range batch {
		e := &batch[i]
		if !e.Name.Ends() && e.Name != events.Reclaimed {
			continue
		}
		if attempts == nil || e.Kind != last.Kind || e.Type != last.Type || e.Name != last.Name || e.Code != last.Code ||
			e.OrgID != last.OrgID {
			key = outcome{e.Kind, r.typeOf(e.Kind, e.Type), string(e.Name), r.codes.value(e.Code)}
			attempts, times, last = r.attempts(key, e.OrgID), r.timesOf(key), *e
		}
		attempts.Count++
		attempts.Waited.Observe(e.Waited)
		attempts.Took.Observe(e.Took)
		if e.Name == events.Reclaimed {
			r.reclaims[e.Kind]++
			continue
		}
		r.outcomes[key]++
		if r.organizations && e.OrgID != "" {
			r.ofOrgs[orgOutcome{e.Kind, attempts.OrgID, key.outcome}]++
		}
		times.add(e)
	}
}

// add adds the end of an attempt.
func (t *jobTimes) add(e *events.Event) {
	if e.Took > 0 {
		t.duration.observe(e.Took.Seconds())
	}
	switch e.Name {
	case events.Completed:
		if e.Waited > 0 {
			t.latency.observe(e.Waited.Seconds())
		}
		t.attempts.observe(float64(e.Attempt))
	case events.Failed, events.Cancelled:
		t.attempts.observe(float64(e.Attempt))
	default:
	}
}

func (r *recorder) typeOf(kind, name string) string {
	b := r.types[kind]
	if b == nil {
		b = bounded{}
		r.types[kind] = b
	}
	return b.value(name)
}

func (r *recorder) timesOf(key outcome) *jobTimes {
	of := jobType{key.kind, key.jobType}
	t := r.jobs[of]
	if t == nil {
		t = &jobTimes{newHistogram(figures.Bounds()), newHistogram(figures.Bounds()), newHistogram(attemptBounds)}
		r.jobs[of] = t
	}
	return t
}

func (r *recorder) attempts(key outcome, org string) *figures.Attempts {
	of := figures.Outcome{Kind: key.kind, Type: key.jobType, Outcome: key.outcome, Code: key.code}
	if r.organizations {
		of.OrgID = r.orgs.value(org)
	}
	a := r.pending[of]
	if a == nil {
		a = &figures.Attempts{Outcome: of}
		r.pending[of] = a
	}
	return a
}

// ObserveTurn implements events.TurnSink.
func (r *recorder) ObserveTurn(t events.Turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.turns[t.Kind]
	if h == nil {
		h = newHistogram(turnBounds)
		r.turns[t.Kind] = h
	}
	h.observe(float64(t.Jobs))
}

// ObserveWakeup implements events.TurnSink.
func (r *recorder) ObserveWakeup(kind string, cause events.Cause) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wakeups[wakeup{kind, string(cause)}]++
}

// ObserveLanes implements events.TurnSink.
func (r *recorder) ObserveLanes(kind string, active, idle int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lanes[kind] = [2]int{active, idle}
}

// observeRequest counts a request. Methods that are none are told apart no further: the caller
// chooses them.
func (r *recorder) observeRequest(route, method string, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests[request{route, method, status}]++
}

// observeRules adds how long the rules of a document took.
func (r *recorder) observeRules(took time.Duration) {
	r.rules.mu.Lock()
	defer r.rules.mu.Unlock()
	r.rules.observe(took.Seconds())
}

// take returns what is to be added to the history, and begins anew.
func (r *recorder) take() []figures.Attempts {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]figures.Attempts, 0, len(r.pending))
	for _, a := range r.pending {
		all = append(all, *a)
	}
	clear(r.pending)
	return all
}

// giveBack puts what could not be added to the history to what is to be added.
func (r *recorder) giveBack(all []figures.Attempts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range all {
		p := r.pending[a.Outcome]
		if p == nil {
			r.pending[a.Outcome] = &a
			continue
		}
		p.Count += a.Count
		p.Waited.Add(a.Waited)
		p.Took.Add(a.Took)
	}
}

// write writes what was told.
func (r *recorder) write(p *points) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, n := range r.outcomes {
		p.count(jobOutcomes, n, k.kind, k.jobType, k.outcome, k.code)
	}
	for k, t := range r.jobs {
		p.distribution(jobLatency, t.latency, k.kind, k.name)
		p.distribution(jobDuration, t.duration, k.kind, k.name)
		p.distribution(jobAttempts, t.attempts, k.kind, k.name)
	}
	for kind, n := range r.reclaims {
		p.count(reclaims, n, kind)
	}
	for k, n := range r.ofOrgs {
		p.count(organizationEnds, n, k.kind, k.org, k.outcome)
	}
	for kind, h := range r.turns {
		p.distribution(turnJobs, h, kind)
	}
	for k, n := range r.wakeups {
		p.count(wakeups, n, k.kind, k.cause)
	}
	for _, kind := range slices.Sorted(maps.Keys(r.lanes)) {
		p.gauge(lanes, float64(r.lanes[kind][0]), kind, "active")
		p.gauge(lanes, float64(r.lanes[kind][1]), kind, "idle")
	}
	for k, n := range r.requests {
		p.count(httpRequests, n, k.route, k.method, strconv.Itoa(k.status))
	}
	r.rules.mu.Lock()
	defer r.rules.mu.Unlock()
	if r.rules.count > 0 {
		p.distribution(ruleEvaluation, r.rules.histogram)
	}
}
