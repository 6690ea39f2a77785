package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/figures"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/internal/watching/health"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workflows"
)

// runLine is a kind's workflow as the page shows it.
type runLine struct {
	health.WorkflowState
	// Words says how it stands, in one word for the tag.
	Words string
	// Address is that of Temporal's own page; empty: not known.
	Address string
	// Buttons pause or resume it, and change its settings.
	Buttons []button
	// Fleet is whose workflow it is; empty: that of the fleet without a name.
	Fleet string
	// Lanes are how many lanes work on a turn, and how many there are.
	Lanes, AllLanes int
}

// fleetsShown is how many fleets' workflows the page shows side by side; those of the others are a
// link away.
const fleetsShown = 6

// workers adds the page of workflows, workers and leases, and what can be done to them.
func (c *console) workers() {
	c.addToMenu(menuEntry{Group: "Operate", Name: "Workers", Path: "workers"})
	c.page("GET "+Root+"workers", tokens.ScopeRead, c.workersPage)
	c.action(Root+"workers/{kind}/pause", tokens.ScopeOperate, "workflow.pause",
		c.signalRun(models.SignalPause, "Paused: no new turn begins. What is leased is finished."))
	c.action(Root+"workers/{kind}/resume", tokens.ScopeOperate, "workflow.resume",
		c.signalRun(models.SignalResume, "Resumed."))
	c.action(Root+"workers/{kind}/configure", tokens.ScopeOperate, "workflow.configure", c.configureRun)
	c.action(Root+"leases/release", tokens.ScopeOperate, "leases.release", c.releaseLeases)
}

func (c *console) workersPage(ctx context.Context, r *request) (*view, error) {
	if err := wholeInstance(r); err != nil {
		return nil, err
	}
	leases, err := store.Leases(ctx, c.Pool)
	if err != nil {
		return nil, err
	}
	gauges, err := figures.ReadGauges(ctx, c.Pool)
	if err != nil {
		return nil, err
	}
	data := map[string]any{"Leases": leases, "Gauges": gauges}
	data["Expired"] = slices.ContainsFunc(leases, func(g store.LeaseGroup) bool { return g.Expired > 0 })
	fleets, err := store.FleetNames(ctx, c.Pool)
	if err != nil {
		return nil, err
	}
	shown := fleets[:min(len(fleets), fleetsShown)]
	if fleet := value(r, "fleet"); fleet != "" {
		if !slices.Contains(fleets, fleet) {
			return nil, errNoPage
		}
		shown = []string{fleet}
	}
	if len(fleets) > 1 {
		data["Fleets"] = fleets[1:]
	}
	var lines []runLine
	err = c.withTemporal(ctx, func(ctx context.Context) error {
		var all []health.Workflow
		var of []string
		for _, fleet := range shown {
			for _, w := range health.OfFleet(fleet) {
				all, of = append(all, w), append(of, fleet)
			}
		}
		states, err := health.Workflows(ctx, c.Temporal, all, healthTimeout)
		lines = c.runLines(r, states, of)
		return err
	})
	switch {
	case errors.Is(err, errNoTemporal):
		data["Missing"] = true
	case err != nil:
		data["Down"] = err.Error()
	}
	if err == nil {
		data["Runs"] = lines
	}
	return &view{
		Title: "Workers and lanes", Template: "workers", Nav: "workers", Live: true, Data: data,
		Lead: "Each kind of queue has a workflow, which hands its lanes' turns to the workers that poll.",
	}, nil
}

// runLines are the workflows as the page shows them; fleets are whose they are. Of a fleet with a
// name, those of documents and tasks are shown where they are used: it is there for its queues of
// background jobs.
func (c *console) runLines(r *request, states []health.WorkflowState, fleets []string) []runLine {
	lines := make([]runLine, 0, len(states))
	for i, s := range states {
		l := runLine{WorkflowState: s, Words: "running", Fleet: fleets[i]}
		if l.Fleet != "" && s.Kind != store.Jobs.Name && s.State == health.NeverStarted && len(s.Workers) == 0 {
			continue
		}
		ids := strings.Trim(s.Kind+"-"+l.Fleet, "-")
		action := Root + "workers/" + s.Kind + "/"
		switch {
		case s.State == health.NeverStarted:
			l.Words = "not started"
		case s.State == health.Ended:
			l.Words = s.Ended
		case s.Status != nil && s.Status.Paused:
			l.Words = "paused"
			l.Buttons = append(l.Buttons, button{Action: action + "resume", Label: "Resume", Next: r.here()})
		default:
			l.Buttons = append(l.Buttons, button{
				Action: action + "pause", Label: "Pause", Tone: "quiet", Next: r.here(),
				Confirm: "No new job of " + s.Kind + " is leased until it is resumed. What is leased is finished.",
			})
		}
		if s.Status != nil {
			l.Lanes, l.AllLanes = s.Status.Lanes, s.Status.Settings.Concurrency
			set := s.Status.Settings
			l.Buttons = append(l.Buttons, button{
				Action: action + "configure", Label: "Change settings", Tone: "quiet", Next: r.here(),
				Confirm: "From the next turn on. They stay until they are changed again.",
				Fields: []field{
					{
						Name: "batchSize", ID: ids + "-batch", Label: "Jobs a batch", Type: "number",
						Value: strconv.Itoa(set.BatchSize),
					},
					{
						Name: "pollIntervalSeconds", ID: ids + "-poll", Label: "Poll interval, seconds", Type: "number",
						Value: strconv.Itoa(set.PollIntervalSeconds),
					},
					{
						Name: "concurrency", ID: ids + "-lanes", Label: "Lanes", Type: "number",
						Value: strconv.Itoa(set.Concurrency),
					},
				},
			})
		}
		if c.TemporalUI != "" && s.State != health.NeverStarted {
			l.Address = c.TemporalUI + "/namespaces/" + c.namespace() + "/workflows/" + s.ID
		}
		for b := range l.Buttons {
			l.Buttons[b].Hidden = []field{{Name: "fleet", Value: l.Fleet}}
		}
		lines = append(lines, l)
	}
	return lines
}

// runOf is the workflow of the kind that the address names, of the fleet that the form names.
func (c *console) runOf(ctx context.Context, r *request) (health.Workflow, error) {
	fleet := r.PostFormValue("fleet")
	fleets, err := store.FleetNames(ctx, c.Pool)
	if err != nil {
		return health.Workflow{}, err
	}
	if slices.Contains(fleets, fleet) {
		for _, w := range health.OfFleet(fleet) {
			if w.Kind == r.PathValue("kind") {
				return w, wholeInstance(r)
			}
		}
	}
	return health.Workflow{}, errNoPage
}

// signalRun sends a signal to a kind's workflow.
func (c *console) signalRun(signal, text string) func(ctx context.Context, r *request) (done, error) {
	return func(ctx context.Context, r *request) (done, error) {
		w, err := c.runOf(ctx, r)
		d := done{Subject: w.ID, Text: text}
		if err != nil {
			return d, err
		}
		err = c.eachRun(ctx, w, func(ctx context.Context,
			id string,
		) error {
			return c.Temporal.SignalWorkflow(ctx, id, "", signal, nil)
		})
		c.health.forget()
		return d, err
	}
}

// eachRun calls f for each workflow of the kind that runs, under whatever id; without any for the
// documented one, of which Temporal then says how it stands.
func (c *console) eachRun(ctx context.Context, w health.Workflow, f func(ctx context.Context, id string) error) error {
	return c.withTemporal(ctx, func(ctx context.Context) error {
		ids, err := health.RunsOf(ctx, c.Temporal, w, healthTimeout)
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			ids = []string{w.ID}
		}
		for _, id := range ids {
			err = errors.Join(err, f(ctx, id))
		}
		return err
	})
}

func (c *console) configureRun(ctx context.Context, r *request) (done, error) {
	w, err := c.runOf(ctx, r)
	d := done{Subject: w.ID, Text: "The settings hold from the next turn on.", Details: map[string]any{}}
	if err != nil {
		return d, err
	}
	var in workflows.ConfigureInput
	for name, into := range map[string]**int{
		"batchSize": &in.BatchSize, "pollIntervalSeconds": &in.PollIntervalSeconds,
		"concurrency": &in.Concurrency,
	} {
		text := r.PostFormValue(name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return d, fmt.Errorf("%w: %s is %q: want a number", errRefusedByRun, name, text)
		}
		*into, d.Details[name] = &n, n
	}
	return d, c.eachRun(ctx, w, func(ctx context.Context, id string) error {
		handle, err := c.Temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			WorkflowID: id, UpdateName: models.UpdateConfigure, Args: []any{in},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		if err == nil {
			err = handle.Get(ctx, nil)
		}
		if refused, ok := errors.AsType[*temporal.ApplicationError](err); ok {
			return fmt.Errorf("%w: %s", errRefusedByRun, refused.Message())
		}
		return err
	})
}

func (c *console) releaseLeases(ctx context.Context, r *request) (done, error) {
	if err := wholeInstance(r); err != nil {
		return done{}, err
	}
	all, err := store.ReclaimExpired(ctx, c.Pool)
	n := 0
	for _, q := range all {
		n += q.Jobs
	}
	return done{Text: fmt.Sprintf("Leases released: %d.", n), Details: map[string]any{"released": n}}, err
}

func (c *console) namespace() string { return cmp.Or(c.TemporalNamespace, client.DefaultNamespace) }
