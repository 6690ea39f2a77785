package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/api/workflowservice/v1"
)

// found is what came of it.
type found struct {
	acknowledged, documents, jobs, tasks int
	refused, unanswered                  int
	// gone are what was acknowledged and is in no table: lost with a primary whose standby had not got
	// it, or lost.
	gone int
	// noEffect are completed, and nothing was done; unknown are effects of what was not accepted.
	noEffect, twice, unknown, stuck, dead, disordered int
	// ended are runs of the queues' workflows that have ended by themselves.
	ended int
	// waiting are tasks that wait for the lease of a killed worker to end.
	waiting int
	// charged are attempts that were counted, because of a killed worker or wrongly; wrongly says why.
	chargedRightly, chargedWrongly int
	wrongly                        []string
	// again are effects that handlers made once more, whose effects are not in the job's transaction.
	again int
	audit string // what daybook audit has found; empty: the books are sound
	async bool
}

// wrong says what must not be.
func (f found) wrong() (all []string) {
	add := func(n int, what string) {
		if n > 0 {
			all = append(all, fmt.Sprintf("%d %s", n, what))
		}
	}
	if !f.async {
		add(f.gone, "acknowledged and gone")
	}
	add(f.noEffect, "completed without effect")
	add(f.twice, "done twice")
	add(f.unknown, "done and never enqueued")
	add(f.stuck, "stuck")
	add(f.ended, "workflows that ended by themselves")
	add(f.dead, "dead letters")
	add(f.disordered, "out of order")
	add(f.chargedWrongly, "charged wrongly")
	if f.audit != "" {
		all = append(all, "daybook audit: "+f.audit)
	}
	return all
}

// openOnes are what was accepted and is not ended. abandoned: a task that waits
// for the lease of one of the killed workers ($1) to end.
const openOnes = `
SELECT a.key, a.kind, coalesce(q.state::text, j.state::text, CASE WHEN t.turn_id IS NULL THEN 'pending' ELSE 'leased' END) AS state,
       coalesce(t.leased_until > clock_timestamp() AND t.worker = ANY ($1), false) AS abandoned
  FROM chaos.accepted a
  LEFT JOIN daybook.jobs j ON j.id = a.job_id
  LEFT JOIN daybook.accounting_work_queue q ON a.kind = 'document' AND q.document_id = 'invoice-' || a.key
  LEFT JOIN queues.open_task t ON t.task_id = a.task_id
 WHERE q.state::text IN ('pending', 'leased') OR j.state::text NOT IN ('completed', 'failed', 'cancelled') OR t.task_id IS NOT NULL
 ORDER BY a.key`

// judge waits until what was accepted is worked, and looks what came of it.
func (w *world) judge(ctx context.Context) (f found, err error) {
	// A pool that has seen none of the troubles.
	pool, err := pgxpool.New(ctx, w.url)
	if err != nil {
		return f, err
	}
	defer pool.Close()
	killed := w.killedNames()
	w.awaitWorked(ctx, pool, killed)
	if ctx.Err() != nil {
		return f, ctx.Err()
	}
	if f, err = w.load.judge(ctx, pool, killed); err != nil {
		return f, err
	}
	f.async = w.async
	rows, err := pool.Query(ctx, `
SELECT kind, state, count(*) FILTER (WHERE NOT abandoned), count(*) FILTER (WHERE abandoned), min(key) FROM (`+openOnes+`) x
 GROUP BY kind, state ORDER BY kind, state`, killed)
	if err != nil {
		return f, err
	}
	var kind, state string
	var stuck, waiting int
	var first int64
	_, err = pgx.ForEachRow(rows, []any{&kind, &state, &stuck, &waiting, &first}, func() error {
		f.waiting += waiting
		if f.stuck += stuck; stuck > 0 {
			w.say("stuck: %d of kind %s, %s, from %d on", stuck, kind, state, first)
		}
		return nil
	})
	if err != nil {
		return f, err
	}
	if f.ended, err = w.endedByThemselves(ctx); err != nil {
		return f, err
	}
	w.end()
	w.watching.Wait()
	if f.stuck > 0 {
		w.keepEvidence(ctx, pool)
	}
	audit := exec.CommandContext(ctx, w.daybook, "audit", "--all-orgs")
	audit.Env = w.environment()
	if out, err := audit.CombinedOutput(); err != nil {
		w.say("daybook audit: %v\n%s", err, out)
		f.audit = cmp.Or(firstFinding(string(out)), err.Error())
	}
	return f, nil
}

// longestPatience is how long the rest may be worked at most, however slowly it becomes less.
const longestPatience = 15 * time.Minute

// awaitWorked waits until what was accepted is worked: while it becomes less, and for w.patience
// when it does not. A short run does not wait for tasks whose workers were killed.
func (w *world) awaitWorked(ctx context.Context, pool *pgxpool.Pool, killed []string) {
	began := time.Now()
	fewest, since := math.MaxInt, began
	for ; ctx.Err() == nil && time.Since(since) < w.patience && time.Since(began) < longestPatience; pause(ctx, probeEvery) {
		var open, abandoned int
		err := pool.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE abandoned) FROM (`+openOnes+`) x`, killed).Scan(&open, &abandoned)
		if err != nil {
			continue
		}
		if w.patience < taskLease {
			open -= abandoned
		}
		if open < fewest {
			fewest, since = open, time.Now()
		}
		if open == 0 {
			break
		}
	}
	w.say("the rest was worked for %.1f s", time.Since(began).Seconds())
}

// endedByThemselves are the runs of queues that have failed, timed out or ended, which none of the
// troubles brings about.
func (w *world) endedByThemselves(ctx context.Context) (n int, err error) {
	list, err := w.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: `ExecutionStatus IN ("Failed", "TimedOut", "Completed")`,
	})
	for _, run := range list.GetExecutions() {
		w.say("%s ended by itself: %s", run.GetExecution().GetWorkflowId(), run.GetStatus())
		n++
	}
	return n, err
}

// keepEvidence keeps, beside the logs, what tells why something is stuck: its rows, the sessions and
// locks of PostgreSQL, what daybook says, and what each worker is doing, which ends it.
func (w *world) keepEvidence(ctx context.Context, pool *pgxpool.Pool) {
	for name, table := range map[string]string{
		"jobs": `daybook.jobs WHERE state IN ('pending', 'leased')`, "documents": `daybook.accounting_work_queue WHERE state IN ('pending', 'leased')`,
		"tasks": `queues.open_task`, "attempts": `daybook.attempt_log`, "sessions": `pg_stat_activity`, "locks": `pg_locks`,
	} {
		err := func() error {
			file, err := os.Create(filepath.Join(w.dir, name+".csv"))
			if err != nil {
				return err
			}
			defer func() { _ = file.Close() }()
			return pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
				_, err := c.Conn().PgConn().CopyTo(ctx, file, `COPY (SELECT clock_timestamp() AS read_at, * FROM `+table+`) TO STDOUT CSV HEADER`)
				return err
			})
		}()
		if err != nil {
			w.say("%s could not be kept: %v", name, err)
		}
	}
	doctor := exec.CommandContext(ctx, w.daybook, "doctor")
	doctor.Env = w.environment()
	out, _ := doctor.CombinedOutput() // it fails when it has found something
	if err := os.WriteFile(filepath.Join(w.dir, "doctor.txt"), out, 0o600); err != nil {
		w.say("what daybook doctor says could not be kept: %v", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.workers {
		if !p.Ended() {
			_ = syscall.Kill(p.PID, syscall.SIGQUIT) // Go writes what each goroutine does, and ends
		}
	}
	for _, p := range w.workers {
		select {
		case <-p.Done:
		case <-time.After(5 * time.Second):
		}
	}
}

func firstFinding(out string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
	return line
}

func (w *world) killedNames() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for name := range w.killed {
		names = append(names, name)
	}
	return names
}

// judge compares what was acknowledged with what the database has. killed are the workers that were
// killed.
func (l *load) judge(ctx context.Context, pool *pgxpool.Pool, killed []string) (f found, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f.refused, f.unanswered, f.acknowledged = l.refused, l.unanswered, len(l.acknowledged)
	accepted := map[int64]bool{}
	rows, err := pool.Query(ctx, `
SELECT a.key FROM chaos.accepted a
 WHERE EXISTS (SELECT FROM daybook.jobs j WHERE j.id = a.job_id) OR EXISTS (SELECT FROM queues.task t WHERE t.task_id = a.task_id)
    OR a.kind = 'document' AND EXISTS (SELECT FROM daybook.accounting_work_queue q WHERE q.document_id = 'invoice-' || a.key)`)
	if err != nil {
		return f, err
	}
	var key int64
	if _, err := pgx.ForEachRow(rows, []any{&key}, func() error {
		accepted[key] = true
		return nil
	}); err != nil {
		return f, err
	}
	for key, a := range l.acknowledged {
		switch a.kind {
		case "document":
			f.documents++
		case "task":
			f.tasks++
		default:
			f.jobs++
		}
		if !accepted[key] {
			f.gone++
		}
	}
	if err := f.count(ctx, pool, killed); err != nil {
		return f, err
	}
	f.disordered, err = l.disordered(ctx, pool)
	return f, err
}

// count asks the database what is wrong in it.
func (f *found) count(ctx context.Context, pool *pgxpool.Pool, killed []string) error {
	const (
		noEffect = `
SELECT count(*) FROM chaos.accepted a
  LEFT JOIN daybook.jobs j ON j.id = a.job_id
 WHERE CASE WHEN a.kind = 'document' THEN
            EXISTS (SELECT FROM daybook.accounting_work_queue q WHERE q.document_id = 'invoice-' || a.key AND q.state = 'completed')
            AND NOT EXISTS (SELECT FROM daybook.impacts i WHERE i.document_id = 'invoice-' || a.key)
       WHEN a.kind = 'task' THEN
            EXISTS (SELECT FROM queues.task_completed c WHERE c.task_id = a.task_id)
            AND NOT EXISTS (SELECT FROM chaos.effects e WHERE e.kind = 'task' AND e.key = a.key)
       WHEN a.kind = 'steps' THEN
            j.state = 'completed' AND (SELECT count(DISTINCT e.kind) FROM chaos.effects e WHERE e.kind LIKE 'step-_' AND e.key = a.key) < 2
       ELSE j.state = 'completed' AND NOT EXISTS (SELECT FROM chaos.effects e WHERE e.kind = a.kind AND e.key = a.key) END`
		twice = `
SELECT (SELECT count(*) FROM (SELECT FROM chaos.effects WHERE kind <> 'plain' GROUP BY kind, key HAVING count(*) > 1) x) +
       (SELECT count(*) FROM (SELECT FROM daybook.impacts WHERE document_id LIKE 'invoice-%' GROUP BY org_id, document_id HAVING count(*) > 1) x)`
		again   = `SELECT coalesce(sum(n - 1), 0) FROM (SELECT count(*) AS n FROM chaos.effects WHERE kind = 'plain' GROUP BY key) x`
		unknown = `
SELECT (SELECT count(*) FROM chaos.effects e WHERE NOT EXISTS (SELECT FROM chaos.accepted a WHERE a.key = e.key)) +
       (SELECT count(*) FROM daybook.impacts i WHERE NOT EXISTS (SELECT FROM chaos.accepted a WHERE 'invoice-' || a.key = i.document_id))`
		dead = `
SELECT (SELECT count(*) FROM daybook.jobs WHERE state IN ('failed', 'cancelled')) +
       (SELECT count(*) FROM daybook.accounting_work_queue WHERE state IN ('failed', 'cancelled'))`
	)
	for _, q := range []struct {
		statement string
		to        *int
	}{{noEffect, &f.noEffect}, {twice, &f.twice}, {again, &f.again}, {unknown, &f.unknown}, {dead, &f.dead}} {
		if err := pool.QueryRow(ctx, q.statement).Scan(q.to); err != nil {
			return err
		}
	}
	// Handlers never fail by themselves: an attempt counts because its worker was killed, or wrongly.
	const charged = `
SELECT kind || ' ' || coalesce(type || ' ', '') || error_code || ' (' || worker || '): ' || left(coalesce(error, ''), 160),
       outcome = 'lost' AND worker = ANY ($1), sum(times)
  FROM daybook.attempt_log WHERE outcome IN ('retried', 'failed', 'lost') GROUP BY 1, 2
 UNION ALL
SELECT 'task: ' || left(error_message, 160), false, count(*) FROM queues.error GROUP BY 1
 ORDER BY 3 DESC`
	rows, err := pool.Query(ctx, charged, killed)
	if err != nil {
		return err
	}
	var why string
	var rightly bool
	var n int
	_, err = pgx.ForEachRow(rows, []any{&why, &rightly, &n}, func() error {
		if rightly {
			f.chargedRightly += n
			return nil
		}
		f.chargedWrongly += n
		f.wrongly = append(f.wrongly, fmt.Sprintf("%d: %s", n, why))
		return nil
	})
	return err
}

// disordered counts the jobs of a sequence that were done before one that had been acknowledged
// before they were enqueued. The order is by the primary's clock: after a failover it is not kept
// among what was enqueued within the time that the clocks are apart.
func (l *load) disordered(ctx context.Context, pool *pgxpool.Pool) (n int, err error) {
	type done struct {
		acknowledgement
		effect int64
	}
	sequences := map[string][]done{}
	rows, err := pool.Query(ctx, `SELECT key, id FROM chaos.effects WHERE kind = 'ordered'`)
	if err != nil {
		return 0, err
	}
	var key, id int64
	if _, err := pgx.ForEachRow(rows, []any{&key, &id}, func() error {
		if a, ok := l.acknowledged[key]; ok {
			sequences[sequenceOf(key)] = append(sequences[sequenceOf(key)], done{a, id})
		}
		return nil
	}); err != nil {
		return 0, err
	}
	for _, all := range sequences {
		slices.SortFunc(all, func(a, b done) int { return cmp.Compare(a.effect, b.effect) })
		for i, late := range all {
			if slices.ContainsFunc(all[:i], func(early done) bool { return late.ended.Add(l.apart).Before(early.begun) }) {
				n++
			}
		}
	}
	return n, nil
}
