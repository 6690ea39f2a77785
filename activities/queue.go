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

// FetchInput asks for the first jobs of a turn.
type FetchInput struct {
	TurnID string `json:"turnId"`
	Batch  int    `json:"batch"`
	// WaitSeconds is how long to wait for work when none is due; 0 does not wait.
	WaitSeconds int `json:"waitSeconds,omitempty"`
	// LeftBehind names earlier turns of the lane that still hold leases.
	LeftBehind []string `json:"leftBehind,omitempty"`
	// Silent names turns that fell silent and may hold leases; they are asked about and left alone.
	Silent []string `json:"silent,omitempty"`
}

// FetchOutput says what the turn holds.
type FetchOutput struct {
	Leased int `json:"leased"`
	// Full says that there may be more than was leased.
	Full   bool `json:"full,omitempty"`
	Lost   int  `json:"lost,omitempty"`
	Failed int  `json:"failed,omitempty"`
	// LeftBehind names the turns that still hold leases.
	LeftBehind []string `json:"leftBehind,omitempty"`
	// Worked counts the jobs that were worked at once when the wait ended with work; Leased includes
	// them.
	Worked *models.TurnReport `json:"worked,omitempty"`
	// Silent names those of the silent turns that still hold leases.
	Silent []string `json:"silent,omitempty"`
}

// FetchBatch leases the first jobs of a turn, and waits for some when none is due. Cancelled, it
// gives back what it leased and reports none.
func (a *Queue) FetchBatch(ctx context.Context, in FetchInput) (out FetchOutput, err error) {
	_, silent := resume(ctx, in.TurnID)
	ctx, p := startPulse(ctx, a.client, in.TurnID, false)
	defer func() { p.end(ctx, err) }()
	f, err := a.engine().Fetch(ctx, engine.FetchRequest{
		Turn:       a.turn(ctx, in.TurnID),
		Batch:      in.Batch,
		Wait:       time.Duration(in.WaitSeconds) * time.Second,
		LeftBehind: in.LeftBehind,
		Again:      activity.GetInfo(ctx).Attempt > 1,
		Crashed:    len(silent) > 0,
		Stop:       activity.GetWorkerStopChannel(ctx),
		Trouble:    p.meet,
	})
	if err != nil {
		return FetchOutput{}, translateError(ctx, err)
	}
	holding, err := a.engine().Holding(ctx, in.Silent)
	if err != nil {
		holding = in.Silent // asked about again by the next fetch
	}
	return FetchOutput{
		Leased: f.Leased, Full: f.Full, Lost: f.Lost, Failed: f.Failed, LeftBehind: f.LeftBehind,
		Worked: (*models.TurnReport)(f.Worked), Silent: holding,
	}, nil
}

// ProcessInput asks for one pass over the queue.
type ProcessInput struct {
	TurnID string `json:"turnId"`
	Batch  int    `json:"batch"`
	// TurnSeconds is how long the turn goes on refilling.
	TurnSeconds int `json:"turnSeconds"`
	// Linger lets the turn wait for new work until its time is up.
	Linger bool `json:"linger,omitempty"`
}

// ProcessBatch works a turn: what FetchBatch leased for it, and what it refills.
func (a *Queue) ProcessBatch(ctx context.Context, in ProcessInput) (out models.TurnReport, err error) {
	turn, silent := resume(ctx, in.TurnID)
	crashed := len(silent) > 0
	if crashed && a.engine().Resumes() {
		turn, silent = in.TurnID, nil
	}
	ctx, p := startPulse(ctx, a.client, turn, true)
	defer func() { p.end(ctx, err) }()
	report, err := a.engine().Process(ctx, engine.TurnRequest{
		Turn:     a.turn(ctx, turn),
		Batch:    in.Batch,
		Length:   time.Duration(in.TurnSeconds) * time.Second,
		Linger:   in.Linger,
		Crashed:  crashed,
		Stop:     activity.GetWorkerStopChannel(ctx),
		Alive:    p.alive,
		Progress: func(r engine.Report) { p.report(models.TurnReport(r)) },
		Trouble:  p.meet,
	})
	out = models.TurnReport(report)
	if err == nil {
		out.Silent, err = a.engine().Holding(ctx, silent)
	}
	return out, translateError(ctx, err)
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
