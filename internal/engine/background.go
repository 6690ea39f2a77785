package engine

import (
	"context"
	"errors"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// sleptFor is the delay of a check from which the process counts as having been suspended.
const sleptFor = 5 * time.Second

// busyPause is the longest pause between two checks while handlers run in this process.
const busyPause = 2500 * time.Millisecond

// StartReclaiming makes the engine look for leases that are not renewed. It also has the engine
// release jobs that wait for nothing any more, and failed jobs whose error has no cause any more. A
// turn begins that as well; it ends with Close.
func (e *Engine) StartReclaiming() {
	e.reclaiming.Do(func() {
		e.background.Go(e.reclaim)
		e.background.Go(e.checkWaits)
	})
}

// reclaim ends leases that their holders do not renew, for as long as the engine lives: also while
// its turns wait.
func (e *Engine) reclaim() {
	log := e.options.Log
	reclaimer := e.kind.NewReclaimer()
	failing := false
	for {
		got, pause, err := reclaimer.Check(e.life)
		switch {
		case e.life.Err() != nil:
			return
		case err != nil && !failing:
			log.Debug("expired leases cannot be looked for", "error", store.Explain(err))
		case got.Jobs > 0:
			log.Warn("leases that were not renewed have been reclaimed",
				"queue", e.kind.Name(), "jobs", got.Jobs, "lost", got.Lost, "failed", got.Failed)
			e.late.note(func(r *Report) { r.Lost, r.Failed = r.Lost+got.Lost, r.Failed+got.Failed })
			e.waker.Remind()
		}
		failing = err != nil
		late, ended := e.restToCheck(pause)
		if ended {
			return
		}
		if late >= sleptFor {
			go e.saySlept(late+min(pause, busyPause), e.lost.Load())
		}
	}
}

// restToCheck waits until the next check is due: after busyPause already where this process is at
// work, because others may have begun to hold leases then as well. It returns by how much it was
// late, and whether the engine has ended.
func (e *Engine) restToCheck(pause time.Duration) (late time.Duration, ended bool) {
	for ; pause > 0; pause -= busyPause {
		step := min(pause, busyPause)
		planned := time.Now().Add(step)
		select {
		case <-e.life.Done():
			return 0, true
		case <-time.After(step):
		}
		if late = time.Since(planned); late >= sleptFor || e.Handling() > 0 {
			break
		}
	}
	return late, false
}

// saySlept says for how long the process did not run, and what that has cost it, as soon as its
// turns have renewed what they still hold.
func (e *Engine) saySlept(slept time.Duration, before int64) {
	rest(e.life, e.options.RenewEvery+time.Second)
	e.options.Log.Warn("this worker was not running for a while: it slept, or had no processor time",
		"for", slept.Round(time.Second).String(), "turns_reclaimed", e.lost.Load()-before)
}

const (
	// checkWaitsEvery is for how long nothing is asked about jobs that wait, for when an
	// announcement was missed. Work that is announced ends it, so an idle process asks hardly
	// anything. A poll asks as well: with the default interval nothing else asks between two of
	// them.
	checkWaitsEvery = 11 * time.Second
	// checkWaitsAgain is the pause after which a locked row is tried again, and the shortest one
	// between two calls.
	checkWaitsAgain = 50 * time.Millisecond
)

// waits says when it is worth while to look for jobs that wait for nothing any more.
type waits struct {
	// looks has a token when something may have been put on record about jobs that wait, looked when
	// a poll has seen that there is nothing.
	looks, looked chan struct{}
}

// look says that something may have been put on record about jobs that wait.
func (w *waits) look() { signal(w.looks) }

// notePoll takes in whether a poll has seen something on record about jobs that wait.
func (w *waits) notePoll(p store.Polled) {
	switch {
	case p.Waits:
		w.look()
	case p.Looked:
		signal(w.looked)
	}
}

// checkWaits releases jobs that wait for nothing any more, for as long as the engine lives.
func (e *Engine) checkWaits() {
	failing := false
	for e.life.Err() == nil {
		checked, err := e.kind.CheckWaits(e.life)
		if errors.Is(err, errors.ErrUnsupported) {
			return // the kind's jobs wait for nothing
		}
		if err != nil && !failing && e.life.Err() == nil {
			e.options.Log.Debug("jobs that wait for others cannot be released", "error", store.Explain(err))
		}
		failing = err != nil
		if checked.Decided > 0 {
			e.waker.Remind()
			continue
		}
		rest(e.life, checkWaitsAgain)
		if checked.Again > 0 {
			continue
		}
		e.waits.await(e.life, checked.Next)
	}
}

// await waits until it is worth while to look: next is in how long, if that is known.
func (w *waits) await(life context.Context, next time.Duration) {
	known := next > 0 && next < checkWaitsEvery
	if !known {
		next = checkWaitsEvery
	}
	due := time.After(next)
	for {
		select {
		case <-w.looked: // the pause begins anew
			if !known {
				due = time.After(checkWaitsEvery)
			}
			continue
		case <-life.Done():
		case <-w.looks:
		case <-due:
		}
		return
	}
}
