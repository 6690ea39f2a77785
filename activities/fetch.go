package activities

import (
	"context"
	"time"

	"github.com/daybook-dev/daybook/models"
)

// fetchedFor is how long FetchBatch goes on with what it has found.
const fetchedFor = 4 * time.Second

// FetchInput asks for the first jobs of a turn. Runs of the workflow's versions 1 to 3 do.
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

// FetchOutput says what the turn has found.
type FetchOutput struct {
	Leased int `json:"leased"`
	// Full says that there may be more than was leased.
	Full bool `json:"full,omitempty"`
	// Lost and Failed are in Worked; an earlier version of the code counted them here.
	Lost   int `json:"lost,omitempty"`
	Failed int `json:"failed,omitempty"`
	// LeftBehind names the turns that still hold leases.
	LeftBehind []string `json:"leftBehind,omitempty"`
	// Worked counts what became of the jobs; Leased includes them.
	Worked *models.TurnReport `json:"worked,omitempty"`
	// Silent names those of the silent turns that still hold leases.
	Silent []string `json:"silent,omitempty"`
}

// FetchBatch is the first activity of a turn in runs of the workflow's versions 1 to 3, after which
// ProcessBatch goes on: it works a turn, too.
func (a *Queue) FetchBatch(ctx context.Context, in FetchInput) (FetchOutput, error) {
	r, err := a.ProcessBatch(ctx, ProcessInput{
		TurnID: in.TurnID, Batch: in.Batch, WaitSeconds: in.WaitSeconds, TurnSeconds: int(fetchedFor / time.Second),
		Linger: in.WaitSeconds > 0, LeftBehind: in.LeftBehind, Silent: in.Silent,
	})
	return FetchOutput{Leased: r.Leased, Full: r.More, LeftBehind: r.LeftBehind, Worked: &r, Silent: r.Silent}, err
}
