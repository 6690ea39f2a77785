package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/daybook-dev/daybook/models"
)

// handleMessages registers signals, the query and the update.
func (a *run) handleMessages(ctx workflow.Context) error {
	err := workflow.SetQueryHandler(ctx, models.QueryStatus, func() (models.RunStatus, error) {
		return models.RunStatus{RunState: a.state, Lanes: a.count((*lane).isProcessing), Draining: a.draining}, nil
	})
	if err != nil {
		return err
	}
	err = workflow.SetUpdateHandlerWithOptions(ctx, models.UpdateConfigure,
		func(ctx workflow.Context, in ConfigureInput) (models.RunSettings, error) {
			if err := workflow.Await(ctx, func() bool { return a.configured }); err != nil {
				return models.RunSettings{}, err
			}
			setSettings(&a.state.Settings, in.BatchSize, in.PollIntervalSeconds, in.Concurrency)
			a.interruptWaiting()
			a.describe()
			a.remember()
			return a.state.Settings, nil
		},
		workflow.UpdateHandlerOptions{
			Description: "changes batchSize, pollIntervalSeconds or concurrency from the next turn on",
			Validator: func(_ workflow.Context, in ConfigureInput) error {
				if err := refuseUnknown(in.unknown); err != nil {
					return err
				}
				if in == (ConfigureInput{}) {
					return temporal.NewNonRetryableApplicationError(
						"nothing to configure: give batchSize, pollIntervalSeconds or concurrency", ErrTypeInvalidInput, nil)
				}
				return checkRanges(in.BatchSize, in.PollIntervalSeconds, in.Concurrency)
			},
		})
	if err != nil {
		return err
	}
	a.onSignal(ctx, models.SignalPause)
	a.onSignal(ctx, models.SignalResume)
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			var f models.FoundWork
			workflow.GetSignalChannel(ctx, models.SignalFound).Receive(ctx, &f)
			a.found(f)
		}
	})
	return nil
}

// onSignal sets paused whenever the signal comes. The last signal counts, also when both come at
// once.
func (a *run) onSignal(ctx workflow.Context, name string) {
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			workflow.GetSignalChannel(ctx, name).Receive(ctx, nil)
			a.setPaused(ctx, pauseAsked(ctx, name))
		}
	})
}

func (a *run) setPaused(ctx workflow.Context, paused bool) {
	switch {
	case !paused:
		a.state.PausedSince = nil
	case !a.state.Paused:
		now := workflow.Now(ctx)
		a.state.PausedSince = &now
	}
	a.state.Paused = paused
	if paused {
		a.interruptWaiting()
	}
	a.describe()
	a.remember()
}

// drainSignals takes in what came while the run was ending, so that continue-as-new loses no
// message. Turns that have found work have ended by now.
func (a *run) drainSignals(ctx workflow.Context) {
	for workflow.GetSignalChannel(ctx, models.SignalFound).ReceiveAsync(nil) {
		continue
	}
	for _, name := range []string{models.SignalResume, models.SignalPause} {
		for workflow.GetSignalChannel(ctx, name).ReceiveAsync(nil) {
			a.setPaused(ctx, pauseAsked(ctx, name))
		}
	}
}
