// Package welcome is the example of docs/jobs.md: a job that greets new users. Its test runs it.
package welcome

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// Welcome is the payload.
type Welcome struct {
	UserID string `json:"user_id"`
}

// JobType names the type.
func (Welcome) JobType() string { return "welcome" }

// Greeter works jobs of the type.
type Greeter struct {
	Pool *pgxpool.Pool
	// Send sends a message once per key, however often it is called.
	Send func(ctx context.Context, address, text, key string) error
}

// Greet is the handler.
func (g *Greeter) Greet(ctx context.Context, job *jobs.Job[Welcome]) error {
	var address string
	err := g.Pool.QueryRow(ctx, `SELECT address FROM users WHERE id = $1`, job.Payload.UserID).Scan(&address)
	if errors.Is(err, pgx.ErrNoRows) {
		// Final: trying again would not help.
		return jobs.WithCode(models.CodeNotFound, fmt.Errorf("there is no user %s", job.Payload.UserID))
	}
	if err != nil {
		return err // HANDLER_ERROR: again by the policy
	}
	// Outside the database an attempt may happen twice. The key is the same each time, so the server
	// can recognize a repetition.
	if err := g.Send(ctx, address, "Welcome!", job.IdempotencyKey); err != nil {
		return jobs.WithCode(models.CodeNetworkError, err)
	}
	// Inside the database once: this commits with the job's completion, or not at all.
	job.InTx(func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE users SET welcomed_at = now() WHERE id = $1`, job.Payload.UserID)
		return err
	})
	return nil
}

// Register adds the handler to a worker's registry.
func (g *Greeter) Register(r *jobs.Registry) {
	jobs.Register(r, jobs.Policy{Owner: "growth", MaxAttempts: 4, Base: 10 * time.Second}, g.Greet)
}

// SignUp writes a user and asks for the greeting, in one transaction.
func SignUp(ctx context.Context, pool *pgxpool.Pool, userID, address string) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO users (id, address) VALUES ($1, $2)`, userID, address); err != nil {
			return err
		}
		_, err := queue.EnqueueJob(ctx, tx, "acme", Welcome{UserID: userID},
			queue.JobOptions{IdempotencyKey: "welcome/" + userID})
		return err
	})
}

// Visit is the payload of a type that is worked in bulk.
type Visit struct {
	UserID string `json:"user_id"`
}

// JobType names the type.
func (Visit) JobType() string { return "visit" }

// CountVisits works up to 500 jobs in the transaction that completes them.
func CountVisits(ctx context.Context, tx pgx.Tx, visits []*jobs.Job[Visit]) ([]error, error) {
	users := make([]string, len(visits))
	for i, v := range visits {
		users[i] = v.Payload.UserID
	}
	_, err := tx.Exec(ctx, `
UPDATE users u SET visits = u.visits + v.n
  FROM (SELECT id, count(*) AS n FROM unnest($1::text[]) AS id GROUP BY id) v
 WHERE u.id = v.id`, users)
	return nil, err // nil: all well; one error for each job otherwise
}
