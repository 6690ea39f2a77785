package console

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/figures"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/internal/watching/health"
)

const (
	// healthTimeout is how long a question of the check of health may take, healthWait how long the
	// page waits for a first answer.
	healthTimeout = time.Second
	healthWait    = 3 * time.Second
)

// span of time that the overview shows.
type period struct {
	Name, Label string
	length      time.Duration
	step        time.Duration
	// Address is the overview's with this period; Chosen: it is the one that is shown.
	Address string
	Chosen  bool
}

var periods = []period{
	{Name: "hour", Label: "Last hour", length: time.Hour, step: time.Minute},
	{Name: "day", Label: "Last day", length: 24 * time.Hour, step: 30 * time.Minute},
	{Name: "week", Label: "Last week", length: 7 * 24 * time.Hour, step: 4 * time.Hour},
}

// overviewData is what the overview shows.
type overviewData struct {
	// Known says that the check of health has answered.
	Known    bool
	Health   health.Report
	Findings []findingLine
	Periods  []period
	Period   period
	Queues   []queueCard
	Failures []failureLine
	// Sampled is when the gauges were sampled; Stale says that they are too old to stand for now.
	Sampled time.Time
	Stale   bool
	// OneOrg says that the page is about one organization, of which there are only the figures that
	// workers are told to keep apart.
	OneOrg, Apart bool
}

// overview adds the first page: whether work gets done.
func (c *console) overview() {
	c.addToMenu(menuEntry{Group: "", Name: "Overview", Path: ""})
	c.page("GET "+Root+"{$}", tokens.ScopeRead, func(ctx context.Context, r *request) (*view, error) {
		org, err := r.org()
		if err != nil {
			return nil, err
		}
		d, err := c.overviewOf(ctx, r, org)
		if err != nil {
			return nil, err
		}
		return &view{Title: "Overview", Template: "overview", Live: true, Data: d}, nil
	})
}

// overviewOf reads what the overview shows: the gauges, the history and the depths, whose cost does
// not depend on how many jobs there are, and the remembered answer of the check of health.
func (c *console) overviewOf(ctx context.Context, r *request, org string) (*overviewData, error) {
	d := &overviewData{OneOrg: org != ""}
	for _, p := range periods {
		p.Address = r.here("range", p.Name)
		if p.Chosen = p.Name == r.FormValue("range"); p.Chosen {
			d.Period = p
		}
		d.Periods = append(d.Periods, p)
	}
	if d.Period.Name == "" {
		d.Periods[0].Chosen, d.Period = true, d.Periods[0]
	}
	gauges, err := c.readHealth(ctx, r, org, d)
	if err != nil {
		return nil, err
	}
	steps := axis{since: c.now().Add(-d.Period.length).Truncate(d.Period.step), step: d.Period.step}
	steps.n = int(d.Period.length/d.Period.step) + 1
	filter := figures.Filter{Since: steps.since, Step: steps.step, OrgID: org, ByType: true, ByCode: true}
	bars, err := figures.History(ctx, c.Pool, filter)
	if err != nil {
		return nil, err
	}
	var depths []figures.Depth
	if org == "" {
		d.Sampled, d.Stale = gauges.SampledAt, !gauges.Fresh()
		if depths, err = figures.Depths(ctx, c.Pool, filter); err != nil {
			return nil, err
		}
	}
	d.Apart = len(bars) > 0
	for _, q := range store.Queues() {
		if org != "" && !q.Organizations() {
			continue
		}
		d.Queues = append(d.Queues,
			newQueueCard(steps, gauges.Kind(q.Name), bars, depths, org == "" && !gauges.SampledAt.IsZero()))
	}
	d.Failures = failureLines(r, gauges, bars, org == "")
	return d, nil
}

// checked is an answer of the check of health, with the depths of the queues that it saw.
type checked struct {
	health.Report
	gauges figures.Gauges
}

// readHealth asks whether work gets done, or takes the answer of a moment ago, and returns how the
// queues stand: what was counted in the same snapshot of the database, so that the page does not
// contradict itself. Until there is an answer, and where it could not be counted, it is what a
// process sampled last.
func (c *console) readHealth(ctx context.Context, r *request, org string, d *overviewData) (figures.Gauges, error) {
	waiting, cancel := context.WithTimeout(ctx, healthWait)
	defer cancel()
	var answer checked
	alone, key := r.Token.OrgID != nil, org
	if alone {
		key = "alone/" + org
	}
	answer, _, d.Known = c.health.get(waiting, key, c.now, func(ctx context.Context) checked { return c.check(ctx, org, alone) })
	d.Health = answer.Report
	for _, f := range d.Health.Findings {
		d.Findings = append(d.Findings, newFindingLine(r, f))
	}
	if !answer.gauges.SampledAt.IsZero() {
		return answer.gauges, nil
	}
	return figures.ReadGauges(ctx, c.Pool)
}

// check asks whether work gets done, and counts the jobs of all organizations in the same snapshot.
// alone: the reader may see one organization, and of the installation what stops its work.
func (c *console) check(ctx context.Context, org string, alone bool) checked {
	var gauges figures.Gauges
	o := health.Options{
		Pool: c.Pool, Temporal: c.Temporal, TemporalError: c.TemporalError, TemporalAddress: c.TemporalAddress, OrgID: org,
		Alone: alone, Timeout: healthTimeout,
	}
	r, err := health.CheckAndRead(ctx, o, func(ctx context.Context, tx pgx.Tx, r health.Report) (err error) {
		if org != "" {
			return nil
		}
		gauges.Kinds, err = figures.CountKinds(ctx, tx, gauges, false)
		return err
	})
	if err == nil && org == "" {
		gauges.SampledAt = r.At
		figures.Aged(gauges.Kinds, r.At)
	}
	return checked{r, gauges}
}
