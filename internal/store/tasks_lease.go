package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/telemetry/events"
	"github.com/daybook-dev/daybook/models"
)

// LeaseFor implements engine.Picker, for tasks of the types that the worker has processors for and
// room for.
func (q *TaskQueue) LeaseFor(ctx context.Context, turn Turn, limit int, room Room) (Leased, error) {
	const stmt = `
SELECT coalesce(task_id::text, ''), coalesce(task_type, ''), payload, coalesce(enqueued_at, 'epoch'), coalesce(leased_at, 'epoch'), coalesce(attempt, 0), coalesce(reclaims, 0),
       due, "full", coalesce(ready_at, 'epoch'), ended, coalesce(traceparent, '')
  FROM queues.lease_tasks(@turn, @fence, @worker, @detached, @begins, @limit, @types, @rooms, @everywhere)`
	var got Leased
	if limit <= 0 {
		return got, nil
	}
	types, rooms, everywhere := q.reserve(limit, room)
	if len(types) == 0 {
		return Leased{Passed: len(q.types) > 0}, nil
	}
	var due *float64
	var full []string
	var gone []endedTask
	var jobs []Job
	received := time.Now()
	_, err := askTasksOn(ctx, q.pool, LeaseLimit, func(row pgx.CollectableRow) (struct{}, error) {
		var j Job
		var ready time.Time
		err := row.Scan(&j.ID, &j.Type, &j.Payload, &j.EnqueuedAt, &j.StartedAt, &j.Attempt, &j.Reclaims, &due, &full,
			&ready, &gone, &j.TraceParent)
		j.ReadyHere = readyHere(received, ready, j.StartedAt)
		if j.ID != "" {
			jobs = append(jobs, j)
		}
		return struct{}{}, err
	}, stmt, turn.args(Args{
		"worker": turn.Worker, "detached": turn.Detached, "begins": turn.Begins, "limit": min(limit, 10000), "types": types,
		"rooms": rooms, "everywhere": everywhere,
	}))
	if err != nil {
		// What was leased all the same is found by the turn's next reclaim.
		q.leave(room, types, rooms, nil, limit)
		return got, Wrap("lease tasks", q.suspect(ctx, err))
	}
	got.Jobs = jobs
	q.reclaimed(gone)
	passed := q.leave(room, types, rooms, jobs, limit)
	for _, t := range full {
		room.Full(t)
	}
	got.Passed = len(jobs) < limit && (len(types) < len(q.types) || passed)
	switch {
	case len(jobs) > 0 || due == nil:
	case *due <= 0:
		got.Locked, got.Again = true, lockedPause
	default:
		got.Due = max(seconds(min(*due, 1e9)), time.Millisecond)
	}
	return got, nil
}

// reserve reserves room for as many tasks as may be of each type, another type first each time, and
// leaves out those that have none.
func (q *TaskQueue) reserve(limit int, room Room) (types []string, rooms, everywhere []int32) {
	first := q.turn.Add(1)
	for i := range q.types {
		t := q.types[(first+uint64(i))%uint64(len(q.types))]
		if !room.Handles(t, 0) {
			continue
		}
		if n := room.Reserve(t, limit); n > 0 {
			types, rooms, everywhere = append(types, t), append(rooms, int32(n)),
				append(everywhere, int32(room.Everywhere(t)))
		}
	}
	return types, rooms, everywhere
}

// leave gives back the room that was reserved and not used, and reports whether there may be more
// tasks of a type than there was room for.
func (q *TaskQueue) leave(room Room, types []string, rooms []int32, jobs []Job, limit int) (passed bool) {
	used := map[string]int{}
	for _, j := range jobs {
		used[j.Type]++
	}
	for i, t := range types {
		unused := int(rooms[i]) - used[t]
		if unused > 0 {
			room.Return(t, unused)
		}
		passed = passed || unused == 0 && used[t] < limit
	}
	return passed
}

// HasLeft reports whether tasks are due that this worker has no processor for, and another one that
// lives has.
func (q *TaskQueue) HasLeft(ctx context.Context) (bool, error) {
	left, err := askTasks(ctx, q, pgx.RowTo[bool], `SELECT queues.has_other_tasks($1)`,
		slices.Concat([]string{}, q.types))
	return err == nil && left[0], Wrap("look for tasks of other workers", err)
}

// Renew gives the turn's leases five minutes more where half of that is over, except those of the
// overdue ids. The leases are renewed by the clock of the database alone: what is young is left
// alone.
func (q *TaskQueue) Renew(ctx context.Context, turn Turn, overdue []string, _ time.Duration) (Renewed, error) {
	const stmt = `SELECT task_id::text, missed FROM queues.renew_tasks_of_turn($1, $2, $3)`
	var r Renewed
	var id string
	var missed bool
	var err error
	r.Crowded, err = q.keeping(ctx, func(on batcher) error {
		_, err := askTasksOn(ctx, on, statementLimit, eachRow([]any{&id, &missed}, func() {
			r.Held, r.Missed = append(r.Held, id), r.Missed || missed
		}), stmt, turn.ID, turn.Fence, taskNumbers(overdue))
		return err
	})
	return r, Wrap("renew the leases of tasks", err)
}

// Held returns the ids of the tasks that the turn holds under its fence.
func (q *TaskQueue) Held(ctx context.Context, turn Turn) ([]string, error) {
	ids, err := kept(ctx, &q.base, func(on batcher) ([]string, error) {
		return askTasksOn(ctx, on, statementLimit, pgx.RowTo[string],
			`SELECT id::text FROM queues.tasks_of_turn($1, $2) AS id`, turn.ID, turn.Fence)
	})
	return ids, Wrap("read the turn's tasks", err)
}

// TurnsWithLeases returns those of the named turns that hold a task under any fence.
func (q *TaskQueue) TurnsWithLeases(ctx context.Context, turns []string) ([]string, error) {
	held, err := askTasks(ctx, q, pgx.RowTo[string], `SELECT * FROM queues.turns_with_tasks($1)`, turns)
	return held, Wrap("read turns with tasks", err)
}

// MarkWaiting says that leased tasks are not being worked yet.
func (q *TaskQueue) MarkWaiting(ctx context.Context, turn Turn, ids []string) error {
	_, err := askTasks(ctx, q, ignoreRow, `SELECT queues.mark_tasks_waiting($1, $2, $3)`, turn.ID, turn.Fence,
		taskNumbers(ids))
	return Wrap("mark tasks as waiting", err)
}

// BeginWaiting says that leased tasks which waited are worked now.
func (q *TaskQueue) BeginWaiting(ctx context.Context, turn Turn, ids []string) (Begun, error) {
	const stmt = `SELECT task_id::text, begun FROM queues.begin_tasks($1, $2, $3)`
	var b Begun
	var id string
	var begun bool
	_, err := askTasks(ctx, q, eachRow([]any{&id, &begun}, func() {
		if begun {
			b.Working = append(b.Working, id)
		} else {
			b.Held = append(b.Held, id)
		}
	}), stmt, turn.ID, turn.Fence, taskNumbers(ids))
	return b, Wrap("begin tasks", err)
}

// HandOver implements engine.Leases.
func (q *TaskQueue) HandOver(ctx context.Context, from, to Turn, ids []string) (bool, error) {
	const stmt = `SELECT queues.hand_tasks_over(@turn, @fence, @to, @detached, @tasks)`
	handed, err := kept(ctx, &q.base, func(on batcher) ([]bool, error) {
		return askTasksOn(ctx, on, statementLimit, pgx.RowTo[bool], stmt,
			from.args(Args{"to": to.ID, "detached": to.Detached, "tasks": taskNumbers(ids)}))
	})
	return err == nil && handed[0], Wrap("hand tasks over", err)
}

// GiveBack implements engine.Leases.
func (q *TaskQueue) GiveBack(ctx context.Context, turn Turn, ids []string, delay time.Duration) (int, error) {
	var numbers []int64
	if ids != nil {
		numbers = taskNumbers(ids)
	}
	back, err := askTasks(ctx, q, func(row pgx.CollectableRow) (Change, error) {
		c := Change{What: events.GivenBack, Worker: turn.Worker, Turn: turn.ID}
		err := row.Scan(&c.Job.ID, &c.Job.Type, &c.Job.Attempt)
		return c, err
	}, `SELECT task_id::text, task_type, attempt FROM queues.give_tasks_of_turn_back($1, $2, $3, $4)`, turn.ID,
		turn.Fence, numbers, delay.Seconds())
	if err != nil {
		return 0, Wrap("give tasks back", err)
	}
	q.changed(back)
	return len(back), nil
}

// ReclaimTurns implements engine.Leases. After a crash what was being worked counts as lost, and is
// handed out anew.
func (q *TaskQueue) ReclaimTurns(ctx context.Context, turn Turn, from []string, crashed bool) (ReclaimedTurns, error) {
	const stmt = `
SELECT task_id::text, coalesce(task_type, ''), payload, coalesce(enqueued_at, 'epoch'), leased_at, attempt, reclaims, lost, failed,
       coalesce(ready_at, 'epoch'), coalesce(was_worker, ''), coalesce(was_turn, ''), coalesce(traceparent, '')
  FROM queues.reclaim_tasks_of_turns(@turn, @fence, @first, @worker, @detached, @from, @crashed)`
	var t ReclaimedTurns
	var gone []endedTask
	received := time.Now()
	_, err := askTasks(ctx, q, func(row pgx.CollectableRow) (struct{}, error) {
		var j Job
		var failed bool
		var ready time.Time
		var was endedTask
		err := row.Scan(&j.ID, &j.Type, &j.Payload, &j.EnqueuedAt, &j.StartedAt, &j.Attempt, &j.Reclaims, &j.Charged,
			&failed, &ready, &was.Worker, &was.Turn, &j.TraceParent)
		j.ReadyHere = readyHere(received, ready, j.StartedAt)
		if j.Charged {
			t.Lost++
			was.ID, was.Type, was.Attempt, was.Lost, was.Failed = j.ID, j.Type, j.Attempt, true, failed
			if !failed {
				was.Attempt-- // the next one has begun
			}
			gone = append(gone, was)
		}
		if failed {
			t.Failed++
		} else {
			t.Jobs = append(t.Jobs, j)
		}
		return struct{}{}, err
	}, stmt, turn.args(Args{
		"first": cmp.Or(turn.FirstFence, turn.Fence), "worker": turn.Worker,
		"detached": turn.Detached, "from": from, "crashed": crashed,
	}))
	if err != nil {
		return ReclaimedTurns{}, Wrap("reclaim tasks", q.suspect(ctx, err))
	}
	q.reclaimed(gone)
	return t, nil
}

// Check implements engine.Reclaimer. Each call that leases tasks ends expired leases as well; Check
// does it while no such call comes.
func (q *TaskQueue) Check(ctx context.Context) (Reclaimed, time.Duration, error) {
	got, err := q.reclaimAll(ctx, false)
	return got, unevenly(reclaimPause), err
}

// ReclaimExpired ends the leases that have expired, at once: their tasks are ready again. With an
// error it returns what was reclaimed before.
//
// It is for people who know that a worker has ended. Check gives a holder ten seconds to renew.
func (q *TaskQueue) ReclaimExpired(ctx context.Context) (Reclaimed, error) {
	return q.reclaimAll(ctx, true)
}

func (q *TaskQueue) reclaimAll(ctx context.Context, atOnce bool) (Reclaimed, error) {
	return reclaimAll(maxReclaimedTasks, func() (Reclaimed, error) { return q.reclaimSome(ctx, atOnce) })
}

// maxReclaimedTasks is how many expired leases queues.reclaim_expired ends, or more, where there
// are as many.
const maxReclaimedTasks = 1000

func (q *TaskQueue) reclaimSome(ctx context.Context, atOnce bool) (Reclaimed, error) {
	var gone []endedTask
	got, err := askTasks(ctx, q, func(row pgx.CollectableRow) (r Reclaimed, err error) {
		err = row.Scan(&r.Jobs, &r.Lost, &r.Failed, &gone)
		return r, err
	}, `SELECT tasks, lost, failed, ended FROM queues.reclaim_expired_tasks($1)`, atOnce)
	if err != nil {
		return Reclaimed{}, Wrap("reclaim tasks whose leases have expired", err)
	}
	q.reclaimed(gone)
	return got[0], nil
}

// ignoreRow scans nothing.
func ignoreRow(pgx.CollectableRow) (struct{}, error) { return struct{}{}, nil }

// endedTask is a task whose lease was ended by another one than its holder. Lost: it was being
// worked; Failed: for the last time.
type endedTask struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Attempt int    `json:"attempt"`
	Worker  string `json:"worker"`
	Turn    string `json:"turn"`
	Lost    bool   `json:"lost"`
	Failed  bool   `json:"failed"`
}

// reclaimed tells of tasks whose leases were ended.
func (q *TaskQueue) reclaimed(gone []endedTask) {
	if q.observe == nil {
		return
	}
	var all []Change
	for _, t := range gone {
		state := ""
		if t.Failed {
			state = string(models.JobFailed)
		}
		c := Change{Job: Job{ID: t.ID, Type: t.Type, Attempt: t.Attempt}, Worker: t.Worker, Turn: t.Turn, Counted: t.Lost}
		all = append(all, c.ended(events.Reclaimed, state, models.CodeWorkerLost)...)
	}
	q.changed(all)
}
