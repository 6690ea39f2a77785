package queue

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// Limit bounds the jobs of one organization and key, over all workers: those of a type
// (jobs.Policy.Limit), or of a named queue, whatever their types (NamedQueue.Limit). A job has one: its
// queue's, if that gives it a key, or else its type's. A key that is at its limit holds up no other
// job, and costs nothing while it has no open jobs. docs/limits.md.
type Limit struct {
	// By is what the key of a job is that was enqueued without a LimitKey: "org_id", or a member of
	// the payload, such as "payload.account_id". A job without such a member has no key. Empty: the
	// jobs with a LimitKey alone have one.
	By string
	// Parallel is how many jobs of a key run at a time; 0: any number. A job that waits for its next
	// attempt is not counted.
	Parallel int
	// Rate is how many attempts of a key begin in the time Per, evenly; 0: any number. Per is a second
	// by default.
	Rate int
	Per  time.Duration
}

// NamedQueue is a named queue of background jobs: jobs that are enqueued in it (JobOptions.Queue)
// have its limits besides those of their type, and are worked by the workers of its fleet. The zero
// value of each field is no limit.
type NamedQueue struct {
	// Name is a letter and then letters, digits, '_', '.', ':' or '-', 64 bytes at most; "default" is
	// where jobs are that name no queue, and has no settings.
	Name string
	// Fleet is the name of the fleet whose workers work it; empty: the fleet without a name.
	Fleet string
	// MaxParallel is how many of its jobs are worked at a time, over all workers.
	MaxParallel int
	// PerProcess is how many of its jobs each worker process works at a time, for what a process can
	// bear: memory, a file, a connection. A process is known by the name of its worker, by default
	// host and process id; workers of one name share the limit.
	PerProcess int
	// Rate is how many attempts begin in the time Per, over all workers; Per is a second if it is 0.
	// They are spread evenly: Burst is how many may begin at once after a pause, by default what the
	// rate allows in 50 ms, at least one. So in any span of Per at most Rate + Burst - 1 attempts
	// begin.
	Rate  int
	Per   time.Duration
	Burst int
	// Owner is the team or contact responsible.
	Owner string
	// Limit bounds its jobs by key, such as those for one customer's account.
	Limit Limit
}

// SetQueue makes a named queue, or gives it these settings, in the transaction q, and says whether
// that changed those that count. Call it when a program starts: it changes nothing where nothing is to
// be changed. A pause stays. Open jobs go to
// the fleet that is named. Where a person has set the queue (`daybook queues set`, the HTTP API,
// the console), the settings are kept and count when that is taken back (`daybook queues release`);
// a Limit that a person has set (`daybook jobs limit --queue`) stays until it is removed.
//
// Errors: ErrInvalid, ErrInvalidText (of Owner, or of the Limit's By), ErrNoQuerier, ErrNoTransaction (a GORM handle
// outside of a transaction).
func SetQueue(ctx context.Context, q Querier, u NamedQueue) (changed bool, err error) {
	if err := cmp.Or(check(q), u.check()); err != nil {
		return false, err
	}
	changed, err = store.SetQueue(ctx, q, store.NamedQueue{
		Name: u.Name, Fleet: u.Fleet, MaxParallel: u.MaxParallel, PerProcess: u.PerProcess, Rate: u.Rate,
		RateSeconds: u.Per.Seconds(), RateBurst: u.Burst, Owner: u.Owner,
	})
	if err != nil {
		return false, err
	}
	limited, err := store.SetKeyLimit(ctx, q, store.KeyLimit{
		LimitScope: store.LimitScope{Queue: u.Name}, By: u.Limit.By, Parallel: u.Limit.Parallel, Rate: u.Limit.Rate,
		RateSeconds: u.Limit.Per.Seconds(), Declared: true,
	})
	return changed || limited, err
}

// longestPer is the longest time of a rate.
const longestPer = 365 * 24 * time.Hour

// check says in the words of NamedQueue what daybook.set_queue would refuse in those of SQL.
func (u NamedQueue) check() error {
	if !models.ValidQueueName(u.Name) {
		return store.Refuse(ErrInvalid, fmt.Sprintf("%q cannot be the name of a queue", u.Name),
			"take a letter and then letters, digits, '_', '.', ':' or '-', 64 bytes at most")
	}
	if u.Fleet != "" {
		if err := store.CheckFleet(u.Fleet); err != nil {
			return err
		}
	}
	for _, limit := range []struct {
		name  string
		value int
	}{{"MaxParallel", u.MaxParallel}, {"PerProcess", u.PerProcess}, {"Rate", u.Rate}, {"Burst", u.Burst}} {
		if limit.value < 0 || limit.value > math.MaxInt32 {
			return store.Refuse(ErrInvalid, fmt.Sprintf("%s of the queue %s is %d", limit.name, u.Name, limit.value),
				"want at least 1, or 0 for no limit; PauseQueue has nothing of it worked")
		}
	}
	switch {
	case u.Per != 0 && (u.Per < time.Millisecond || u.Per > longestPer):
		return store.Refuse(ErrInvalid, fmt.Sprintf("Per of the queue %s is %s", u.Name, u.Per),
			"want a millisecond to 365 days, or 0 for a second")
	case u.Rate == 0 && (u.Per != 0 || u.Burst != 0):
		return store.Refuse(ErrInvalid, fmt.Sprintf("Per or Burst of the queue %s is set, and Rate is not", u.Name),
			"set Rate, or leave them 0")
	case u.Limit != Limit{} && !models.ValidLimit(u.Limit.By, u.Limit.Parallel, u.Limit.Rate, u.Limit.Per):
		return store.Refuse(ErrInvalid, fmt.Sprintf("Limit of the queue %s cannot be kept", u.Name),
			"give Parallel or Rate, which are at least 1, Per from a millisecond to 365 days for a rate alone, and By as org_id, "+
				"a member such as payload.account_id, or nothing")
	}
	return cmp.Or(checkText("queue's owner", u.Owner), checkText("limit's By", u.Limit.By))
}

// PauseQueue has nothing of a named queue begin after the commit of q; what has begun is finished.
// It says whether the queue was not paused before.
//
// Errors: ErrQueueNotFound, ErrInvalidText, ErrNoQuerier, ErrNoTransaction.
func PauseQueue(ctx context.Context, q Querier, name string) (bool, error) {
	return pauseQueue(ctx, q, name, true)
}

// ResumeQueue ends the pause of a named queue, and says whether it was paused. Its workers are told
// when q commits.
//
// Errors: ErrQueueNotFound, ErrInvalidText, ErrNoQuerier, ErrNoTransaction.
func ResumeQueue(ctx context.Context, q Querier, name string) (bool, error) {
	return pauseQueue(ctx, q, name, false)
}

func pauseQueue(ctx context.Context, q Querier, name string, paused bool) (bool, error) {
	if err := cmp.Or(check(q), checkText("queue's name", name)); err != nil {
		return false, err
	}
	return store.PauseQueue(ctx, q, name, paused)
}

// DeleteQueue deletes a named queue that has no open jobs.
//
// Errors: ErrQueueNotFound, ErrQueueNotEmpty, ErrInvalidText, ErrNoQuerier, ErrNoTransaction.
func DeleteQueue(ctx context.Context, q Querier, name string) error {
	if err := cmp.Or(check(q), checkText("queue's name", name)); err != nil {
		return err
	}
	return store.DeleteQueue(ctx, q, name)
}
