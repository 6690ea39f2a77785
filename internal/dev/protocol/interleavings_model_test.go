package protocol_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// How jobs are enqueued. What a waiting one waits for is decided beside the transactions that end
// it, so the model knows when it may be due, not when it is.
const (
	plainJob     = "plain"
	keyedJob     = "keyed"
	uniqueJob    = "unique"
	debouncedJob = "debounced"
	sequenceJob  = "sequence"
	afterJob     = "after"
	limitedJob   = "limited"
)

// job is what the model knows of a job. It is copied, never changed in place.
type job struct {
	id, org, how string
	// key is its idempotency key, its debounce key, its sequence or the key of its limit.
	key string
	// queue is its named queue, or "".
	queue string
	// input is the payload that it was enqueued with, payload the one that it has.
	input, payload int
	after          []string
	anyEnd         bool
	most           int
	// order is when its row was committed.
	order int

	state     models.JobState
	runs, gen int
	cancel    bool
	// later: it is due in an hour. tried: an attempt has begun. steps: it has kept one.
	later, tried, steps bool
	lease               *lease
	// effects counts what its attempts have committed.
	effects int
	// loose: its place has been given to another job, or it was tried again after it had ended, so its
	// turn is not the first one. released: it has ended, and was tried again without those of after
	// that had ended as well.
	loose, released bool
	// follows: it waits for the end of another one that had its debounce key. yields: another one with
	// its key takes its place when its attempt ends.
	follows, yields bool
	// endedOnce: it has been completed, cancelled or a dead letter.
	endedOnce bool
}

// lease is what its holder knows of it.
type lease struct {
	worker  int
	turn    store.Turn
	gen     int
	working bool
	job     store.Job
}

// waits: when it is due is decided beside the transactions.
func (j *job) waits() bool {
	return j.how == sequenceJob || j.how == afterJob || j.how == limitedJob || j.follows
}

func (j *job) open() bool {
	return j.state == models.JobPending || j.state == models.JobLeased
}

func (j *job) ended() bool { return j.state == models.JobCompleted || j.state == models.JobCancelled }

// asked: a request came during the attempt.
func (j *job) asked() bool { return j.gen != j.lease.gen }

// complete is the end of an attempt (completeStmt).
func (j *job) complete(outcome models.Outcome, later bool) {
	again := j.asked() && !j.cancel
	retried := outcome == models.OutcomeRetried || outcome == models.OutcomeRescheduled
	if outcome == models.OutcomeCompleted && !j.cancel {
		j.effects++
	}
	switch {
	case again:
		j.runs = 0
	case outcome == models.OutcomeRescheduled:
		j.runs--
	}
	switch {
	case j.cancel:
		j.state = models.JobCancelled
	case again, retried:
		j.state = models.JobPending
	default:
		j.state = models.JobState(outcome)
	}
	if retried && !j.asked() {
		j.later = later
	}
	j.let(again)
}

// giveBack is giveBackStmt, and cancelling before the begin.
func (j *job) giveBack(later bool) {
	again := j.asked() && !j.cancel
	j.runs = max(j.runs-1, 0)
	if again {
		j.runs = 0
	}
	if !j.asked() {
		j.later = later
	}
	j.state = models.JobPending
	if j.cancel {
		j.state = models.JobCancelled
	}
	j.let(again)
}

// expire is endLeases: charged if it was being worked.
func (j *job) expire(charged bool) {
	again := j.asked() && !j.cancel
	fails := !j.asked() && !j.cancel && charged && j.most > 0 && j.runs >= j.most
	switch {
	case again:
		j.runs = 0
	case !charged:
		j.runs = max(j.runs-1, 0)
	}
	if !j.asked() {
		j.later = false
	}
	switch {
	case j.cancel:
		j.state = models.JobCancelled
	case fails:
		j.state = models.JobFailed
	default:
		j.state = models.JobPending
	}
	j.let(again)
}

// let is what each end of a lease does: steps that were kept before a request are forgotten.
func (j *job) let(again bool) {
	j.steps = j.steps && !again
	j.cancel, j.lease = false, nil
	j.endedOnce = j.endedOnce || !j.open() // also where the same transaction takes it back
}

// cancelIt is daybook.cancel_jobs.
func (j *job) cancelIt() {
	if !j.cancel {
		j.gen++
	}
	if j.state == models.JobLeased && j.lease.working {
		j.cancel = true
		return
	}
	if j.state == models.JobLeased {
		j.runs = max(j.runs-1, 0)
	}
	j.state, j.lease, j.cancel = models.JobCancelled, nil, false
	j.endedOnce = true // also where the same transaction takes it back
}

// join is daybook.join_unique_job.
func (j *job) join(later bool) string {
	switch {
	case j.state == models.JobLeased && j.lease.working:
		if !j.asked() || j.cancel {
			j.later = later
		} else {
			j.later = j.later && later
		}
		j.gen++
		j.cancel = false
		return "coalesced"
	case j.cancel:
		j.gen, j.cancel, j.steps = j.lease.gen, false, false
		return "coalesced"
	case j.state == models.JobPending && j.runs == 0 && !j.tried && j.later && !later:
		j.later, j.steps = false, false
		return "rescheduled"
	}
	j.steps = false
	return "unchanged"
}

// actor is a client, whose transaction may be open while others go on.
type actor struct {
	tx pgx.Tx
	// pid is of its session.
	pid uint32
	// own are the jobs as its transaction has made them: their rows are locked. were are those that it
	// had made of them before: a unique index has these as well until it ends.
	own  map[string]job
	were []job
}

// model is all jobs as they are committed, and what open transactions have made of them.
type model struct {
	jobs map[string]job
	// made are all ids in the order in which they were made.
	made   []string
	commit int
	actors [3]actor
	paused map[string]bool
	caps   map[string]int
	// places is how many jobs of a key of a limit run at most.
	places int
	// admitted were the places that were taken, by organization and key.
	admitted map[string]int
}

// at is a job as an actor sees it; ok: it does.
func (m *model) at(a int, id string) (job, bool) {
	if j, ok := m.actors[a].own[id]; ok {
		return j, true
	}
	j, ok := m.jobs[id]
	return j, ok
}

// put has an actor change a job, at once or when its transaction commits.
func (m *model) put(a int, j job) {
	if !slices.Contains(m.made, j.id) {
		m.made = append(m.made, j.id)
	}
	if of := &m.actors[a]; of.tx != nil {
		if was, ok := of.own[j.id]; ok {
			of.were = append(of.were, was)
		}
		of.own[j.id] = j
		return
	}
	m.keep(j)
}

func (m *model) keep(j job) {
	if _, known := m.jobs[j.id]; !known {
		m.commit++
		j.order = m.commit
	}
	j.endedOnce = j.endedOnce || !j.open()
	m.jobs[j.id] = j
}

// held: another actor's transaction has the row of the job locked, or made it.
func (m *model) held(a int, id string) bool {
	for i := range m.actors {
		if _, ok := m.actors[i].own[id]; ok && i != a {
			return true
		}
	}
	return false
}

// visible are the jobs that an actor sees and may change without waiting, in the order in which they
// were made.
func (m *model) visible(a int, of func(j *job) bool) (found []job) {
	for _, id := range m.made {
		if j, ok := m.at(a, id); ok && !m.held(a, id) && of(&j) {
			found = append(found, j)
		}
	}
	return found
}

// committed are the jobs that no open transaction has locked.
func (m *model) committed(of func(j *job) bool) (found []job) {
	for _, id := range m.made {
		if j, ok := m.jobs[id]; ok && !m.held(-1, id) && of(&j) {
			found = append(found, j)
		}
	}
	return found
}

// openWith is the open job of a key that an actor sees; wait: another transaction has to end first.
func (m *model) openWith(a int, same func(j *job) bool) (found *job, wait bool) {
	for i := range m.actors {
		wait = wait || i != a && slices.ContainsFunc(m.actors[i].were, func(j job) bool { return same(&j) })
	}
	for _, id := range m.made {
		for i := range m.actors {
			if j, ok := m.actors[i].own[id]; ok && i != a {
				was, known := m.jobs[id]
				wait = wait || same(&j) || known && same(&was)
			}
		}
		if j, ok := m.at(a, id); ok && same(&j) && j.open() {
			found = &j
		}
	}
	return found, wait
}

// commitOf makes what an actor's transaction has done everyone's.
func (m *model) commitOf(a int) {
	own := m.actors[a].own
	m.actors[a] = actor{}
	ids := slices.Collect(maps.Keys(own))
	slices.SortFunc(ids, func(x, y string) int { return slices.Index(m.made, x) - slices.Index(m.made, y) })
	for _, id := range ids {
		m.keep(own[id])
	}
}

// mayBegin: nothing is left that the job has to wait for.
func (m *model) mayBegin(j *job) bool {
	for _, id := range j.after {
		if o := m.jobs[id]; o.state != models.JobCompleted && (!o.endedOnce || !j.anyEnd && !j.released) {
			return false
		}
	}
	if j.how == sequenceJob {
		for _, o := range m.jobs {
			if o.how != sequenceJob || o.org != j.org || o.key != j.key || o.id == j.id {
				continue
			}
			if o.state == models.JobLeased || !j.loose && !o.loose && o.id < j.id && o.order < j.order && !o.ended() {
				return false
			}
		}
	}
	return true
}

// allEnded: what the job waits for has ended as it has to.
func (m *model) allEnded(j *job) bool {
	return !slices.ContainsFunc(j.after, func(id string) bool {
		o := m.jobs[id]
		return o.state != models.JobCompleted && (!j.anyEnd || o.open())
	})
}

// GoString is how a job is shown among what was drawn.
func (j job) GoString() string { return fmt.Sprintf("%s %s %s", j.how, j.state, j.id) }

// GoString is how a lease is shown among what was drawn.
func (l lease) GoString() string { return fmt.Sprintf("attempt %d of %s", l.job.Attempt, l.job.ID) }
