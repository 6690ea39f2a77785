package languages_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// stepping is an attempt of handleSteps.
type stepping struct {
	*jobs.Job[queue.RawPayload]
	note string
}

// cut are the jobs whose connection was lost in a step.
var cut sync.Map

// handleSteps does what the payload asks for, in steps.
func handleSteps(ctx context.Context, job *jobs.Job[queue.RawPayload], do, note string) error {
	s := stepping{job, note}
	nothing := func() error { return nil }
	switch do {
	case "steps":
		return s.steps(ctx, s.again)
	case "hang behind steps":
		if err := s.steps(ctx, nothing); err != nil || s.Attempt > 1 {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	case "cut step":
		_, err := s.effectStep(ctx, func(tx pgx.Tx) error {
			if _, done := cut.LoadOrStore(s.ID, true); done {
				return nil
			}
			_, err := tx.Exec(ctx, `SELECT pg_terminate_backend(pg_backend_pid())`)
			return err
		})
		return err
	case "refuse step":
		return s.leave(s.effectStep(ctx, func(pgx.Tx) error { return s.again() }))
	case "pause in step":
		return s.leave(s.effectStep(ctx, func(pgx.Tx) error {
			if s.Attempt == 1 {
				time.Sleep(3 * time.Second)
			}
			return nil
		}))
	case "renamed step":
		name := "new"
		if s.Attempt == 1 {
			name = "old"
		}
		kept, err := s.step(ctx, name, s.Attempt)
		s.SetResult(map[string]any{"new": kept})
		if err == nil {
			err = s.again()
		}
		return err
	}
	return s.wrong(ctx, do)
}

// wrong are steps that cannot be.
func (s stepping) wrong(ctx context.Context, do string) error {
	name, value := "a", any(1)
	switch do {
	case "big step":
		value = strings.Repeat("x", 1<<20)
	case "unstorable step":
		value = "\x00"
	case "long step":
		name = strings.Repeat("a", 65)
	case "step twice":
		if _, err := s.step(ctx, name, value); err != nil {
			return err
		}
	case "step of loop":
		if s.Attempt == 1 {
			_, err := jobs.Loop(ctx, s.Job, name, func(_ context.Context, done int) (int, bool, error) {
				if done > 0 {
					return 0, false, s.again()
				}
				return 1, true, nil
			})
			return err
		}
	default:
		return fmt.Errorf("there is no case %q", do)
	}
	_, err := s.step(ctx, name, value)
	return err
}

// again fails the first attempt. The next one begins at once.
func (s stepping) again() error {
	if s.Attempt > 1 {
		return nil
	}
	return jobs.RetryAfter(0, fmt.Errorf("again"))
}

func (s stepping) leave(result any, err error) error {
	s.SetResult(result)
	return err
}

func (s stepping) step(ctx context.Context, name string, value any) (any, error) {
	return jobs.Step(ctx, s.Job, name, func(context.Context) (any, error) { return value, nil })
}

func (s stepping) effect(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `INSERT INTO app.effects (job_id, note) VALUES ($1, $2)`, s.ID, s.note)
	return err
}

func (s stepping) effectStep(ctx context.Context, then func(tx pgx.Tx) error) (map[string]int, error) {
	return jobs.StepInTx(ctx, s.Job, "effect", func(ctx context.Context, tx pgx.Tx) (map[string]int, error) {
		err := s.effect(ctx, tx)
		if err == nil {
			err = then(tx)
		}
		return map[string]int{"attempt": s.Attempt}, err
	})
}

// steps are one of each sort; f is called in the last round of the loop.
func (s stepping) steps(ctx context.Context, f func() error) error {
	first, err := s.step(ctx, "first", []int{s.Attempt})
	if err != nil {
		return err
	}
	second, err := s.effectStep(ctx, func(pgx.Tx) error { return nil })
	if err != nil {
		return err
	}
	third, err := jobs.LoopInTx(ctx, s.Job, "rounds", func(ctx context.Context, tx pgx.Tx, done int) (int, bool, error) {
		if done == 2 {
			if err := f(); err != nil {
				return 0, false, err
			}
		}
		return done + 1, done < 2, s.effect(ctx, tx)
	})
	s.SetResult([]any{first, second, third})
	return err
}
