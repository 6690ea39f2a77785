package engine

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// unlocked completes those that are still the turn's and that no other transaction holds locked; what is to be cancelled is cancelled. Of a job
// that the turn has leased anew since, for another attempt, nothing is completed.
func (c completing) unlocked(ctx context.Context, all []ended) (done map[string]bool, err error) {
	kind := c.engine.kind
	byID := make(map[string]ended, len(all))
	ids := make([]string, len(all))
	for i, e := range all {
		byID[e.job.ID], ids[i] = e, e.job.ID
	}
	done = make(map[string]bool, len(all))
	by := c.leases.heldBy()
	var completions []store.Completion
	var completed store.Completed
	err = c.engine.kind.InTx(ctx, func(tx pgx.Tx) error {
		locked, err := kind.LockChunk(ctx, tx, by, ids)
		if err != nil || len(locked) == 0 {
			return err
		}
		for _, l := range locked {
			done[l.ID] = true
			e := byID[l.ID]
			switch {
			case !sameAttempt(l, e.job):
			case l.CancelRequested:
				completions = append(completions, store.Completion{Job: e.job, Outcome: models.OutcomeCancelled, Took: e.attempt.took})
			case e.onlyCancelled:
				return errStillHeld
			default:
				completions = append(completions, e.attempt.completion(e.job))
			}
		}
		if len(completions) > 0 {
			completed, err = kind.Complete(ctx, tx, by, completions, store.Access{})
		}
		return err
	})
	if err == nil {
		c.committed(by, completions, completed, 0)
	}
	return done, err
}

// close completes a job that could not be completed because it is to be cancelled, or is no longer the turn's. It returns errStillHeld when it is the
// turn's, and is not to be cancelled.
func (c completing) close(ctx context.Context, j store.Job) error {
	pause := firstSkip
	for began := time.Now(); ; pause = min(2*pause, skippedPause) {
		done, err := c.unlocked(ctx, []ended{{job: j, onlyCancelled: true}})
		if err != nil || done[j.ID] {
			return err
		}
		left, err := c.leftOver(ctx, []ended{{job: j, since: began}}, nil)
		if err != nil || len(left) == 0 {
			return err
		}
		if time.Since(began) > lockPatience || ctx.Err() != nil {
			return store.ErrRowHeld
		}
		time.Sleep(pause)
	}
}
