package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/daybook-dev/daybook/internal/health"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/figures"
	"github.com/daybook-dev/daybook/internal/store/tokens"
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
	// Lanes are how many lanes work on a turn, and how many there are.
	Lanes, AllLanes int
}

// workers adds the page of workflows, workers and leases, and what can be done to them.
func (c *console) workers() {
	c.addToMenu(menuEntry{Group: "Operate", Name: "Workers", Path: "workers"})
	c.page("GET "+Root+"workers", tokens.ScopeRead, c.workersPage)
	c.action(Root+"workers/{kind}/pause", tokens.ScopeOperate, "workflow.pause", c.signalRun(workflows.SignalPause, "Paused: no new turn begins. What is leased is finished."))
	c.action(Root+"workers/{kind}/resume", tokens.ScopeOperate, "workflow.resume", c.signalRun(workflows.SignalResume, "Resumed."))
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
	var states []health.WorkflowState
	err = c.withTemporal(ctx, func(ctx context.Context) (err error) {
		states, err = health.Workflows(ctx, c.Temporal, health.Documented(), healthTimeout)
		return err
	})
	switch {
	case errors.Is(err, errNoTemporal):
		data["Missing"] = true
	case err != nil:
		data["Down"] = err.Error()
	}
	if err == nil {
		data["Runs"] = c.runLines(r, states)
	}
	return &view{
		Title: "Workers and lanes", Template: "workers", Nav: "workers", Live: true, Data: data,
		Lead: "Each kind of queue has a workflow, which hands its lanes' turns to the workers that poll.",
	}, nil
}

func (c *console) runLines(r *request, states []health.WorkflowState) []runLine {
	lines := make([]runLine, len(states))
	for i, s := range states {
		l := runLine{WorkflowState: s, Words: "running"}
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
				Action: action + "pause", Label: "Pause", Tone: "quiet", Next: r.here(), Confirm: "No new job of " + s.Kind + " is leased until it is resumed. What is leased is finished.",
			})
		}
		if s.Status != nil {
			l.Lanes, l.AllLanes = s.Status.Lanes, s.Status.Settings.Concurrency
			set := s.Status.Settings
			l.Buttons = append(l.Buttons, button{
				Action: action + "configure", Label: "Change settings", Tone: "quiet", Next: r.here(), Confirm: "From the next turn on. They stay until they are changed again.",
				Fields: []field{
					{Name: "batchSize", ID: s.Kind + "-batch", Label: "Jobs a batch", Type: "number", Value: strconv.Itoa(set.BatchSize)},
					{Name: "pollIntervalSeconds", ID: s.Kind + "-poll", Label: "Poll interval, seconds", Type: "number", Value: strconv.Itoa(set.PollIntervalSeconds)},
					{Name: "concurrency", ID: s.Kind + "-lanes", Label: "Lanes", Type: "number", Value: strconv.Itoa(set.Concurrency)},
				},
			})
		}
		if c.TemporalUI != "" && s.State != health.NeverStarted {
			l.Address = c.TemporalUI + "/namespaces/" + c.namespace() + "/workflows/" + s.ID
		}
		lines[i] = l
	}
	return lines
}

// runOf is the workflow of the kind that the address names.
func runOf(r *request) (health.Workflow, error) {
	for _, w := range health.Documented() {
		if w.Kind == r.PathValue("kind") {
			return w, wholeInstance(r)
		}
	}
	return health.Workflow{}, errNoPage
}

// signalRun sends a signal to a kind's workflow.
func (c *console) signalRun(signal, text string) func(ctx context.Context, r *request) (done, error) {
	return func(ctx context.Context, r *request) (done, error) {
		w, err := runOf(r)
		d := done{Subject: w.ID, Text: text}
		if err != nil {
			return d, err
		}
		err = c.withTemporal(ctx, func(ctx context.Context) error { return c.Temporal.SignalWorkflow(ctx, w.ID, "", signal, nil) })
		c.health.forget()
		return d, err
	}
}

func (c *console) configureRun(ctx context.Context, r *request) (done, error) {
	w, err := runOf(r)
	d := done{Subject: w.ID, Text: "The settings hold from the next turn on.", Details: map[string]any{}}
	if err != nil {
		return d, err
	}
	var in workflows.ConfigureInput
	for name, into := range map[string]**int{"batchSize": &in.BatchSize, "pollIntervalSeconds": &in.PollIntervalSeconds, "concurrency": &in.Concurrency} {
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
	return d, c.withTemporal(ctx, func(ctx context.Context) error {
		handle, err := c.Temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			WorkflowID: w.ID, UpdateName: workflows.UpdateConfigure, Args: []any{in}, WaitForStage: client.WorkflowUpdateStageCompleted,
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
