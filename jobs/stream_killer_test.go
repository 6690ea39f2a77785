package jobs_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// life is a turn that may die: then it leases and begins nothing any more, but what its handlers do
// goes on.
type life struct {
	dead atomic.Bool
	// known is closed when the turn has taken note of its death.
	known chan struct{}
	done  chan engine.Report
	at    crowd
}

// lives works one turn by one life after the other, until one ends by itself, and returns how many
// died. A handler says so by sending on die, and does not return before the test ends.
type lives struct {
	*bundle
	turn store.Turn
	all  []*life
	now  atomic.Pointer[life]
	die  chan func()
	hang chan struct{}
}

func (b *bundle) lives() *lives {
	return &lives{bundle: b, turn: b.turn(), die: make(chan func()), hang: make(chan struct{})}
}

// killed is called by the handler of a job that kills its worker; last is what its death leads to
// elsewhere.
func (l *lives) killed(last func()) {
	l.die <- last
	<-l.hang
	runtime.Goexit()
}

// next lives until death, which it reports, or until the turn ends.
func (l *lives) next() (died bool) {
	l.t.Helper()
	one := &life{known: make(chan struct{}), done: make(chan engine.Report, 1)}
	know := sync.OnceFunc(func() { close(one.known) })
	l.now.Store(one)
	crashed := len(l.all) > 0
	l.all = append(l.all, one)
	alive := func() bool {
		if one.dead.Load() {
			know()
			return false
		}
		return true
	}
	// Each life is a process of its own, and what the dead one had in hand takes no room of the next.
	e := engine.NewJobs(l.store, l.registry, engine.Options{Log: slog.New(slog.DiscardHandler)})
	l.t.Cleanup(e.Close)
	go func() {
		r, err := e.Process(context.Background(),
			engine.TurnRequest{Turn: l.turn, Batch: 100, Length: time.Hour, Crashed: crashed, Alive: alive})
		assert.NoError(l.t, err)
		one.done <- r
	}()
	select {
	case last := <-l.die:
		one.dead.Store(true)
		receive(l.t, one.known)
		last()
		return true
	case <-one.done:
		return false
	case <-time.After(long):
		require.FailNow(l.t, "the turn neither died nor ended")
		return false
	}
}

// revive lets the dead go on, and waits for them.
func (l *lives) revive() {
	close(l.hang)
	for _, one := range l.all[:len(l.all)-1] {
		receive(l.t, one.done)
	}
}

// TestKillerInABulkEndsAlone lets one job of many kill its worker again and again.
func TestKillerInABulkEndsAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := b.lives()
	var mu sync.Mutex
	var deadly []int
	b.greetAll(jobs.Policy{Timeout: time.Hour, MaxAttempts: 4}, func(ctx context.Context, c call) error {
		if !c.greets("killer") {
			return nil
		}
		mu.Lock()
		deadly = append(deadly, len(c.jobs))
		mu.Unlock()
		pid := c.tx.Conn().PgConn().PID()
		l.killed(func() { assert.NoError(t, b.terminate(context.Background(), pid)) })
		return nil
	})
	b.enqueueMany(50, "early ")
	killer := b.enqueue(greet{Name: "killer"}, queue.JobOptions{})
	b.enqueueMany(49, "late ")
	deaths := 0
	for l.next() {
		deaths++
		require.LessOrEqual(t, deaths, 4, "it must end")
	}
	assert.Equal(t, 4, deaths)
	b.assertOnlyKillerDied(killer, 4, 99)
	assert.Equal(t, 100, deadly[0])
	assert.LessOrEqual(t, deadly[1], 50, "after one reclaim, a part")
	assert.Equal(t, []int{1, 1}, deadly[2:], "after two, one by one")
	l.revive()
	b.assertOnlyKillerDied(killer, 4, 99)
	assert.Equal(t, 99, b.count(`SELECT count(*) FROM greeted`))
}

// assertOnlyKillerDied asserts that one job is a dead letter after so many lost attempts, and that
// all others are completed, of which none has lost more than the two that they were beside it.
func (b *bundle) assertOnlyKillerDied(killer string, attempts, others int) {
	b.t.Helper()
	j := b.row(killer)
	assert.Equal(b.t, models.JobFailed, j.State)
	assert.Equal(b.t, string(models.CodeReclaimed), j.Code)
	assert.Equal(b.t, attempts,
		b.count(`SELECT count(*) FROM daybook.attempts WHERE job_id = $1 AND outcome = 'lost'`, killer))
	assert.Equal(b.t, others, b.count(completed))
	assert.Equal(b.t, others, b.count(`SELECT count(*) FROM daybook.attempts WHERE outcome = 'completed'`))
	assert.Zero(b.t, b.count(`SELECT count(*) FROM (
  SELECT job_id FROM daybook.attempts WHERE outcome = 'lost' AND job_id <> $1 GROUP BY job_id HAVING count(*) > 2) s`,
		killer))
}

// TestKillerEndsAlone: of jobs that were worked side by side when their worker died twice, each is
// worked with nothing beside it.
func TestKillerEndsAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := b.lives()
	const beside = 10
	reached := make(chan struct{}, beside)
	var disturbed atomic.Bool
	jobs.Register(b.registry, jobs.Policy{Timeout: time.Hour, MaxAttempts: 4, Parallel: beside},
		func(_ context.Context, job *jobs.Job[greet]) error {
			life, killer := l.now.Load(), job.Payload.Name == "killer"
			life.at.enter()
			defer life.at.leave()
			switch {
			case strings.HasPrefix(job.Payload.Name, "fresh"):
				return nil
			case job.Attempt <= 2:
				// All are in hand when the worker dies.
				reached <- struct{}{}
				if !killer {
					<-l.hang
					return errors.New("it is dead")
				}
				for range beside {
					<-reached
				}
			default:
				time.Sleep(5 * time.Millisecond)
				disturbed.CompareAndSwap(false, life.at.now.Load() > 1)
			}
			if killer {
				l.killed(func() {})
			}
			return nil
		})
	b.enqueueMany(5, "early ")
	killer := b.enqueue(greet{Name: "killer"}, queue.JobOptions{})
	b.enqueueMany(4, "late ")
	require.True(t, l.next())
	require.True(t, l.next())
	b.enqueueMany(5, "fresh ")
	deaths := 2
	for l.next() {
		deaths++
		require.LessOrEqual(t, deaths, 4, "it must end")
	}
	assert.Equal(t, 4, deaths)
	assert.False(t, disturbed.Load(), "nothing is worked beside them")
	b.assertOnlyKillerDied(killer, 4, 14)
	assert.Equal(t, 5, b.count(completed+` AND payload ->> 'name' LIKE 'fresh%' AND run_count = 1`),
		"they are not charged")
	l.revive()
	b.assertOnlyKillerDied(killer, 4, 14)
}
