package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/engine/carried"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// Queue has the activities of one queue, of any kind. Package workers makes it, and registers its
// methods under their names.
type Queue struct {
	worked
	client   client.Client
	settings Settings
	worker   string
}

// worked has the activities carry the engine that works their turns, which package workers gives
// them.
type worked = carried.Value[*engine.Engine]

// NewQueue returns the activities of a queue, for package workers. settings are those of the
// environment; worker names the process in leases and attempts.
func NewQueue(c client.Client, settings Settings, worker string) *Queue {
	return &Queue{client: c, settings: settings, worker: worker}
}

func (a *Queue) engine() *engine.Engine { return carried.Get[*engine.Engine](&a.worked) }

// ReadSettings returns the settings of the worker's environment.
func (a *Queue) ReadSettings(context.Context) (Settings, error) { return a.settings, nil }

// ProcessInput asks for one turn: a pass over the queue.
type ProcessInput struct {
	TurnID string `json:"turnId"`
	Batch  int    `json:"batch"`
	// WaitSeconds is how long the turn waits for its first job; 0: it ends when nothing is due.
	WaitSeconds int `json:"waitSeconds,omitempty"`
	// TurnSeconds is how long the turn goes on refilling once it has found a job.
	TurnSeconds int `json:"turnSeconds"`
	// Linger lets a turn that has found jobs wait for more until its time is up.
	Linger bool `json:"linger,omitempty"`
	// LeftBehind names earlier turns that still hold leases, which the turn reclaims.
	LeftBehind []string `json:"leftBehind,omitempty"`
	// Silent names turns that fell silent and may hold leases; they are asked about and left alone.
	Silent []string `json:"silent,omitempty"`
	// Alone says that no other activity leases for the turn: nothing is to be reclaimed at first.
	// The turn tells the workflow by the signal models.SignalFound that it has found work.
	Alone bool `json:"alone,omitempty"`
}

// ProcessBatch works a turn: it waits for work, leases or picks jobs, works them, and gets more
// until its time is up. Cancelled, a turn that waits ends, and one that works begins nothing more;
// one that does not linger ends its running calls first, as it does when its worker stops.
func (a *Queue) ProcessBatch(ctx context.Context, in ProcessInput) (out models.TurnReport, err error) {
	turn, silent := resume(ctx, in.TurnID)
	crashed := len(silent) > 0
	if crashed && a.engine().Resumes() {
		turn, silent = in.TurnID, nil
	}
	ctx, p := startPulse(ctx, a.client, turn)
	defer func() { p.end(ctx, err) }()
	q := engine.TurnRequest{
		Turn:       a.turn(ctx, turn),
		Batch:      in.Batch,
		Wait:       time.Duration(in.WaitSeconds) * time.Second,
		Length:     time.Duration(in.TurnSeconds) * time.Second,
		Linger:     in.Linger,
		LeftBehind: in.LeftBehind,
		Fresh:      in.Alone && activity.GetInfo(ctx).Attempt == 1,
		Crashed:    crashed,
		Stop:       activity.GetWorkerStopChannel(ctx),
		Alive:      p.alive,
		Progress:   func(r engine.Report) { p.report(models.TurnReport(r)) },
		Trouble:    p.meet,
	}
	if in.Alone {
		q.Found, q.Gently = a.sayFound(ctx, in), in.Linger
	}
	report, err := a.engine().Process(ctx, q)
	out = models.TurnReport(report)
	if err == nil {
		out.Silent, err = a.engine().Holding(ctx, append(silent, in.Silent...))
	}
	return out, translateError(ctx, err)
}

// foundLimit bounds the signal that a turn has found work. Without it other lanes begin when the
// turn ends.
const foundLimit = 10 * time.Second

// sayFound returns what tells the workflow that the turn has found work, beside the turn. A turn
// that has not waited says only that there is more.
func (a *Queue) sayFound(ctx context.Context, in ProcessInput) func(full bool) {
	run := activity.GetInfo(ctx).WorkflowExecution
	return func(full bool) {
		if in.WaitSeconds == 0 && !full {
			return
		}
		go func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), foundLimit)
			defer cancel()
			found := models.FoundWork{TurnID: in.TurnID, Full: full}
			if err := a.client.SignalWorkflow(ctx, run.ID, run.RunID, models.SignalFound, found); err != nil {
				activity.GetLogger(ctx).Debug("the workflow was not told that a turn has found work", "error", err)
			}
		}()
	}
}

// ReleaseInput names turns that will not be processed.
type ReleaseInput struct {
	TurnIDs []string `json:"turnIds"`
}

// ReleaseTurns gives back the leases of turns that were fetched and will not be processed.
func (a *Queue) ReleaseTurns(ctx context.Context, in ReleaseInput) (int, error) {
	total := 0
	for _, id := range in.TurnIDs {
		n, err := a.engine().ReleaseTurn(ctx, a.turn(ctx, id))
		if err != nil {
			return total, translateError(ctx, err)
		}
		total += n
	}
	return total, nil
}

func (a *Queue) turn(ctx context.Context, id string) store.Turn {
	return store.Turn{ID: id, Worker: a.worker, WorkflowRunID: activity.GetInfo(ctx).WorkflowExecution.RunID}
}
