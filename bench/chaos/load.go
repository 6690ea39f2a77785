package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/moving/sample"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/queue"
)

// tables are those of the application. accepted has what was enqueued, in the transaction that
// enqueued it; effects what was done, in the transaction that completes it but for the kind plain.
const tables = `
CREATE SCHEMA chaos;
CREATE TABLE chaos.accepted (key bigint PRIMARY KEY, kind text NOT NULL, job_id text, task_id bigint);
CREATE TABLE chaos.effects (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind text NOT NULL, key bigint NOT NULL);
CREATE INDEX ON chaos.effects (kind, id);
CREATE FUNCTION chaos.run_job(_payload jsonb) RETURNS void LANGUAGE sql AS
	$$ INSERT INTO chaos.effects (kind, key) VALUES ('sql', (_payload ->> 'key')::bigint) $$;
CREATE FUNCTION chaos.run_task(_payload jsonb) RETURNS jsonb LANGUAGE sql AS
	$$ INSERT INTO chaos.effects (kind, key) VALUES ('task', (_payload ->> 'key')::bigint); SELECT '{"status": "succeeded"}'::jsonb $$`

const (
	// callers is how many connections enqueue.
	callers = 8
	// enqueueLimit is how long the application waits for an answer.
	enqueueLimit = 4 * time.Second
	// organizations is how many have documents and jobs.
	organizations = 5
	// taskLease is the lease of a task: what a killed worker held is worked again when it has ended.
	taskLease = 5 * time.Minute
)

// kinds of what is enqueued, by how often.
var kinds = []string{
	"document", "document", "plain", "own", "own", "shared", "shared", "shared", "steps", "limited", "ordered", "sql", "sql",
	"task", "task", "slow",
}

// prepareTables makes the application's tables, and organizations that post by the sample rules.
func prepareTables(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, tables); err != nil {
		return fmt.Errorf("make the application's tables: %w", err)
	}
	if _, err := queue.SetQueue(ctx, pool, queue.NamedQueue{Name: fleet, Fleet: fleet, Owner: "chaos"}); err != nil {
		return fmt.Errorf("make the application's queue: %w", err)
	}
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		for i := range organizations {
			org := organization(int64(i))
			if err := store.PutOrganization(ctx, tx, org, org); err != nil {
				return err
			}
			if _, err := ledgerdb.PutAccounts(ctx, tx, org, sample.Chart(), nil); err != nil {
				return err
			}
			if _, err := ledgerdb.ApplyRuleSet(ctx, tx, org, "chaos", string(sample.Rules())); err != nil {
				return err
			}
		}
		return nil
	})
}

func organization(key int64) string { return fmt.Sprintf("org-%d", key%organizations) }

// acknowledgement is what COMMIT was answered for, from when to when.
type acknowledgement struct {
	kind         string
	begun, ended time.Time
}

// load enqueues, and remembers what was acknowledged.
type load struct {
	pool *pgxpool.Pool
	// apart is how far the clocks of the servers are apart.
	apart time.Duration

	mu     sync.Mutex
	random *rand.Rand
	next   int64
	// acknowledged are the kinds of what COMMIT was answered for, by key. refused counts what the
	// application was told has failed, and unanswered what it was told nothing about.
	acknowledged        map[int64]acknowledgement
	refused, unanswered int
}

// run enqueues rate things a second until ctx ends.
func (l *load) run(ctx context.Context, rate int) {
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for ctx.Err() == nil {
				l.mu.Lock()
				kind := kinds[l.random.IntN(len(kinds))]
				wait := time.Duration(l.random.ExpFloat64() * float64(time.Second) * callers / float64(rate))
				l.mu.Unlock()
				pause(ctx, min(wait, 2*time.Second))
				if ctx.Err() == nil {
					_ = l.add(ctx, l.pool, enqueueLimit, kind) // the application lives with it, and it is counted
				}
			}
		})
	}
	all.Wait()
}

// add enqueues one of each of the kinds in one transaction.
func (l *load) add(ctx context.Context, pool *pgxpool.Pool, limit time.Duration, kinds ...string) error {
	l.mu.Lock()
	first := l.next + 1
	l.next += int64(len(kinds))
	l.mu.Unlock()
	// What is begun is finished, so that it is known whether it was acknowledged.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	begun, committing := time.Now(), false
	err := func() error {
		tx, err := pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(ctx) }()
		for i, kind := range kinds {
			if err := l.enqueue(ctx, tx, kind, first+int64(i)); err != nil {
				return err
			}
		}
		committing = true
		return tx.Commit(ctx)
	}()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		for i, kind := range kinds {
			l.acknowledged[first+int64(i)] = acknowledgement{kind, begun, time.Now()}
		}
	case committing:
		l.unanswered += len(kinds)
	default:
		l.refused += len(kinds)
	}
	return err
}

// enqueue enqueues one thing and notes that, in the caller's transaction.
func (l *load) enqueue(ctx context.Context, tx pgx.Tx, kind string, key int64) error {
	of := keyed{Key: key, Millis: int(key % 15)}
	var payload queue.Payload
	o := queue.JobOptions{Queue: fleet}
	switch kind {
	case "document":
		return enqueueDocument(ctx, tx, key)
	case "task":
		return enqueueTask(ctx, tx, key)
	case "sql":
		argument, err := json.Marshal(map[string]any{"function": "chaos.run_job", "argument": map[string]int64{"key": key}})
		if err != nil {
			return err
		}
		payload, o = queue.RawPayload{Type: "db_function", Data: argument}, queue.JobOptions{MaxAttempts: 100}
	case "plain":
		payload = plainJob{of}
	case "own":
		payload = ownJob{of}
	case "shared":
		payload = sharedJob{of}
	case "steps":
		payload = stepsJob{of}
	case "slow":
		of.Millis = 2000 + int(key%5)*1000
		payload = slowJob{of}
	case "limited":
		payload = limitedJob{of, "customer-" + strconv.FormatInt(key%7, 10)}
	case "ordered":
		payload, o.Sequence = orderedJob{of}, sequenceOf(key)
	default:
		return errors.New("no such kind: " + kind)
	}
	job, err := queue.EnqueueJob(ctx, tx, organization(key), payload, o)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO chaos.accepted (key, kind, job_id) VALUES ($1, $2, $3)`, key, kind, job.ID)
	return err
}

// sequenceOf is the sequence of a job: each organization has one.
func sequenceOf(key int64) string { return "sequence of " + organization(key) }

func enqueueDocument(ctx context.Context, tx pgx.Tx, key int64) error {
	const write = `
INSERT INTO daybook.documents (org_id, id, type, direction, currency, issue_date, content)
VALUES ($1, $2, 'invoice', 'out', 'EUR', '2026-03-14', $3)`
	net := 10_000 + key%1000*100
	content, err := json.Marshal(map[string]any{
		"number":  strconv.FormatInt(key, 10),
		"lines":   []any{map[string]any{"kind": "item", "net": net, "rate": 19, "category": "VAT"}},
		"taxes":   []any{map[string]any{"category": "VAT", "rate": 19, "base": net, "amount": net * 19 / 100}},
		"total":   net + net*19/100,
		"payable": net + net*19/100,
	})
	if err != nil {
		return err
	}
	of := queue.Document{OrgID: organization(key), ID: documentID(key)}
	if _, err := tx.Exec(ctx, write, of.OrgID, of.ID, content); err != nil {
		return err
	}
	if _, err := queue.MarkDocumentReady(ctx, tx, of); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO chaos.accepted (key, kind) VALUES ($1, 'document')`, key)
	return err
}

func documentID(key int64) string { return "invoice-" + strconv.FormatInt(key, 10) }

func enqueueTask(ctx context.Context, tx pgx.Tx, key int64) error {
	data, err := json.Marshal(map[string]any{"task_type": "db_function", "db_function": "chaos.run_task", "key": key})
	if err != nil {
		return err
	}
	task, err := queue.EnqueueTask(ctx, tx, queue.RawTask{Type: "db_function", Data: data}, queue.TaskOptions{})
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO chaos.accepted (key, kind, task_id) VALUES ($1, 'task', $2)`, key, task.ID)
	return err
}
