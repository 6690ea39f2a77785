package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// givenBack are jobs that are to be pending again after a delay.
type givenBack struct {
	jobs  []store.Job
	delay time.Duration
}

// giveBackAfter leaves jobs to the next giveAllBack that succeeds, which has them pending again
// after a delay. They are not worked any more, because another turn may have them once that was
// tried.
func (h *holder) giveBackAfter(jobs []store.Job, delay time.Duration) {
	if len(jobs) > 0 {
		h.engine.room.leave(jobs)
		h.back = append(h.back, givenBack{jobs, delay})
	}
}

// giveBackQueue leaves what has not begun to the next giveAllBack.
func (h *holder) giveBackQueue() {
	h.giveBackAfter(h.takeQueue(), 0)
	h.giveBackAfter(h.locked, 0)
	h.locked = nil
}

func (h *holder) giveAllBack(work context.Context) error {
	for len(h.back) > 0 {
		n, err := h.leases.giveBack(work, h.back[0].jobs, h.back[0].delay)
		if err != nil {
			return err
		}
		if n < len(h.back[0].jobs) {
			// The turn may go on for long, and renews what it could not give back.
			h.loseTrack(skippedPause)
		}
		h.back = h.back[1:]
		h.recovered(&h.db)
	}
	return nil
}

// releaseLimit bounds a try at giving back what a turn holds.
const releaseLimit = 5 * time.Second

// giveBackAll gives back all that the turn as holds, under a context of its own, and says what it
// could not give back. It is not called after an error: the rows stay with the turn, and its next
// activity reclaims them.
func (l *leases) giveBackAll(ctx context.Context, stop <-chan struct{}, as store.Turn) error {
	return l.engine.persist(ctx, stop, "end a turn", func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
		defer cancel()
		n, err := l.engine.kind.GiveBack(ctx, as, nil, 0)
		if err != nil {
			return err
		}
		if n > 0 {
			l.engine.waker.Remind() // a turn that waits has not seen them
		}
		left, err := l.engine.kind.TurnsWithLeases(ctx, []string{as.ID})
		l.tally.note(func(r *Report) {
			r.Released += n
			r.LeftBehind = left
		})
		if len(left) > 0 {
			// Nothing renews them, and the lane's next turn may come late for what another
			// transaction had locked for a moment.
			l.engine.reclaimLater(as)
		}
		return err
	})
}

// reclaimLater gives back what a turn that has ended may still lease: the statement of a lease that
// broke off may yet be committed, and another transaction may have rows locked for long.
func (e *Engine) reclaimLater(turn store.Turn) {
	if e.life.Err() != nil {
		return
	}
	e.background.Go(func() {
		until := time.Now().Add(store.LeaseLimit + reconcileEvery)
		for holds := true; (holds || time.Now().Before(until)) && e.life.Err() == nil; {
			rest(e.life, reconcileEvery)
			holds = e.reclaimNow(turn)
		}
	})
}

// reclaimNow gives back what a turn that has ended leases, and reports whether it is known to hold
// something still.
func (e *Engine) reclaimNow(turn store.Turn) (holds bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.life), releaseLimit)
	defer cancel()
	n, err := e.kind.GiveBack(ctx, turn, nil, 0)
	if n > 0 || err != nil {
		e.waker.Remind()
	}
	switch {
	case err != nil: // in an outage that is so again and again, for each turn
		e.options.Log.Debug("what an ended turn may have left cannot be given back; trying again",
			"turn", turn.ID, "error", err)
	case n > 0:
		e.options.Log.Info("gave back what an ended turn had left", "turn", turn.ID, "jobs", n)
	}
	held, err := e.kind.Held(ctx, turn)
	return err == nil && len(held) > 0
}

// releasePatience is how long ReleaseTurn waits for rows that another transaction holds locked.
const releasePatience = 10 * time.Second

// Holding returns those of the named turns that still hold leases.
func (e *Engine) Holding(ctx context.Context, turns []string) ([]string, error) {
	if len(turns) == 0 {
		return nil, nil
	}
	return e.kind.TurnsWithLeases(ctx, turns)
}

// ErrStillLocked: another transaction holds rows locked that were to be given back; try again.
var ErrStillLocked = errors.New("another transaction holds rows locked that are to be given back")

// ReleaseTurn gives back everything that a turn holds, uncounted, whatever its fence. It waits a
// while for rows that another transaction holds locked, and then returns ErrStillLocked.
func (e *Engine) ReleaseTurn(ctx context.Context, turn store.Turn) (int, error) {
	var err error
	if turn.Fence, err = e.kind.NextFence(ctx); err != nil {
		return 0, err
	}
	total := 0
	for deadline := time.Now().Add(releasePatience); ; {
		n, err := e.kind.GiveBack(ctx, turn, nil, 0)
		if err != nil {
			return total, err
		}
		if n > 0 {
			e.waker.Remind()
		}
		total += n
		left, err := e.kind.TurnsWithLeases(ctx, []string{turn.ID})
		if err != nil || len(left) == 0 {
			return total, err
		}
		if time.Now().After(deadline) {
			return total, fmt.Errorf("turn %s: %w", turn.ID, ErrStillLocked)
		}
		if rest(ctx, skippedPause); ctx.Err() != nil {
			return total, ctx.Err()
		}
	}
}
