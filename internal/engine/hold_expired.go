package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// sleptFor is the delay of a check from which the process counts as having been suspended.
const sleptFor = 5 * time.Second

// busyPause is the longest pause between two checks while handlers run in this process.
const busyPause = 2500 * time.Millisecond

// reclaims ends leases that their holders do not renew, for as long as the engine lives: also while
// its turns wait.
type reclaims struct {
	begin   sync.Once
	running sync.WaitGroup

	mu sync.Mutex
	// late is what was reclaimed and not reported yet.
	late store.Reclaimed
	// lost counts the turns, since the engine was made, that found leases of theirs taken.
	lost atomic.Int64
}

// StartReclaiming makes the engine look for leases that are not renewed. It also has the engine
// release jobs that wait for nothing any more, and failed jobs whose error has no cause any more. A
// turn begins that as well; it ends with Close.
func (e *Engine) StartReclaiming() {
	e.reclaims.begin.Do(func() {
		e.reclaims.running.Go(e.reclaim)
		e.reclaims.running.Go(e.checkWaits)
	})
}

// stopReclaiming waits until the engine, whose life has ended, reclaims and releases no more.
func (e *Engine) stopReclaiming() {
	e.reclaims.begin.Do(func() {})
	e.reclaims.running.Wait()
}

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
			e.reclaims.note(got)
			e.waker.Remind()
		}
		failing = err != nil
		late, ended := e.restToCheck(pause)
		if ended {
			return
		}
		if late >= sleptFor {
			go e.saySlept(late+min(pause, busyPause), e.reclaims.lost.Load())
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
		"for", slept.Round(time.Second).String(), "turns_reclaimed", e.reclaims.lost.Load()-before)
}

func (r *reclaims) note(got store.Reclaimed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.late.Add(got)
}

// take returns what was reclaimed since it was last called: the next turn that ends reports it.
func (r *reclaims) take() store.Reclaimed {
	r.mu.Lock()
	defer r.mu.Unlock()
	late := r.late
	r.late = store.Reclaimed{}
	return late
}
