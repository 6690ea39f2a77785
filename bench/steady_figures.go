package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// figures come to what was measured. Daybook has to have completed every job exactly once; River
// may be behind when its patience has ended, and a job that is not done counts as if it were done
// then.
func (r *steadyRun) figures(ctx context.Context) (f steadyFigures, err error) {
	committed, refused, err := r.load.result()
	if err != nil {
		return f, err
	}
	if refused > 0 {
		return f, fmt.Errorf("%d jobs were not accepted: %w", refused, r.load.lastError)
	}
	completed, err := r.completions(ctx)
	if err != nil {
		return f, err
	}
	begun, err := r.journal.all()
	if err != nil {
		return f, err
	}
	for number := range committed {
		_, done := completed[number]
		if r.q.own() && (!done || len(begun[number]) != 1) {
			return f, fmt.Errorf("not exactly once: job %d was begun %d times, completed by its first attempt: %t: %s",
				number, len(begun[number]), done, r.story(ctx, number))
		}
	}
	window := func(from, until steadyMark) steadyWindow { return r.window(from, until, committed, completed, begun) }
	m := r.marks
	f.planned = r.plan.rate
	f.first, f.last, f.all = window(m[0], m[1]), window(m[2], m[3]), window(m[0], m[3])
	return f, nil
}

// story tells what became of a job of Daybook, for an error.
func (r *steadyRun) story(ctx context.Context, number int) string {
	text, err := one[string](ctx, r.d.pool, `
SELECT coalesce(string_agg(format('%s, run_count %s, attempts %s', j.state, j.run_count,
                (SELECT json_agg(json_build_object('outcome', a.outcome, 'code', a.error_code, 'started', a.started_at, 'ended', a.ended_at) ORDER BY a.id)
                   FROM daybook.attempts a WHERE a.job_id = j.id)), '; '), 'it is not in the database')
  FROM daybook.jobs j WHERE (j.payload->>'number')::bigint = $1`, number)
	if err != nil {
		return err.Error()
	}
	return text
}

// completions reads when the transactions that completed the jobs were committed, by PostgreSQL's
// own record.
func (r *steadyRun) completions(ctx context.Context) (map[int]time.Time, error) {
	rows, err := r.d.pool.Query(ctx, r.q.completed)
	if err != nil {
		return nil, err
	}
	completed := map[int]time.Time{}
	var number int
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&number, &at}, func() error {
		if number < longJobs {
			completed[number] = at
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read when the jobs were completed: %w", err)
	}
	return completed, nil
}

func (r *steadyRun) window(from, until steadyMark, committed, completed map[int]time.Time,
	begun map[int][]beginning,
) (w steadyWindow) {
	length := until.at.Sub(from.at)
	done := 0
	for _, at := range completed {
		if !at.Before(from.at) && at.Before(until.at) {
			done++
		}
	}
	w.rate = perSecond(done, length)
	w.postgres, w.worker = (until.postgres-from.postgres)/length.Seconds(), (until.worker-from.worker)/length.Seconds()
	for number, at := range committed {
		if at.Before(from.at) || !at.Before(until.at) {
			continue
		}
		ended, began := r.end, r.end
		if c, ok := completed[number]; ok {
			ended = c
		}
		if calls := begun[number]; len(calls) > 0 {
			began = calls[0].at
		}
		w.completed = append(w.completed, milliseconds(ended.Sub(at)))
		w.begun = append(w.begun, milliseconds(began.Sub(at)))
	}
	w.offered = perSecond(len(w.completed), length)
	return w
}
