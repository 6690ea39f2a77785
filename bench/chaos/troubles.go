package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/daybook-dev/daybook/internal/dev/devstack"
	"github.com/daybook-dev/daybook/models"
)

// troubles are those that do not concern the cluster, which come whenever they come.
func (w *world) troubles() []trouble {
	random := w.newRandom(4)
	var mu sync.Mutex
	between := func(from, to int) int {
		mu.Lock()
		defer mu.Unlock()
		return from + random.IntN(to-from+1)
	}
	seconds := func(from, to int) time.Duration { return time.Duration(between(from*1000, to*1000)) * time.Millisecond }
	return []trouble{
		{
			name: "kill", what: "worker killed (kill -9)", every: 15 * time.Second,
			strike: func(context.Context) error { return w.killWorker(between(0, 1000)) },
		},
		{
			name: "stop", what: "worker stopped for 1 to 15 s, and continued", every: 25 * time.Second,
			strike: func(context.Context) error { return w.stopWorker(between(0, 1000), seconds(1, 15)) },
		},
		{name: "reset", what: "all connections reset", every: 30 * time.Second, strike: func(context.Context) error {
			w.database.Reset()
			w.workflow.Reset()
			return nil
		}},
		{
			name: "silence", impedes: true, what: "all connections half open, for 4 to 12 s", every: 60 * time.Second,
			strike: func(ctx context.Context) error {
				_, end := w.database.Silence()
				_, endToo := w.workflow.Silence()
				pause(ctx, seconds(4, 12))
				end()
				endToo()
				return nil
			},
		},
		{name: "backends", what: "connections ended by an administrator", every: 10 * time.Second, strike: w.terminateBackends},
		{name: "exhaust", impedes: true, what: "no connection left, for 3 s", every: 60 * time.Second, strike: w.exhaust},
		{name: "migrate", what: "daybook migrate up under load", every: 40 * time.Second, strike: w.migrate},
		{name: "temporal", impedes: true, what: "Temporal crashed and started again", every: 90 * time.Second, strike: w.restartTemporal},
		{
			name: "terminate", impedes: true, what: "workflow terminated, and started anew", every: 45 * time.Second,
			strike: func(ctx context.Context) error { return w.terminateWorkflow(ctx, between(0, 3)) },
		},
		{
			name: "rewind", impedes: true, what: "workflow reset to an earlier point", every: 60 * time.Second,
			strike: func(ctx context.Context) error { return w.resetWorkflow(ctx, between(0, 3)) },
		},
		{
			name: "cancel", impedes: true, what: "workflow cancelled, and started anew", every: 60 * time.Second,
			strike: func(ctx context.Context) error { return w.cancelWorkflow(ctx, between(0, 3)) },
		},
	}
}

// suffer has everything go wrong until the time is over, and mends it then.
func (w *world) suffer(ctx context.Context) error {
	loading, endLoad := context.WithCancel(ctx)
	defer endLoad()
	var loads sync.WaitGroup
	loads.Go(func() { w.load.run(loading, w.rate) })
	loads.Go(func() { w.probe.run(loading) })
	// Work goes on before something goes wrong.
	err := await(ctx, time.Minute, "work begins", func(context.Context) error {
		w.probe.mu.Lock()
		defer w.probe.mu.Unlock()
		for i, n := range w.probe.base {
			if n == 0 {
				return fmt.Errorf("no %s is done (enqueuing: %w)", probed[i], w.probe.lastError)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	w.say("everything is worked; now things go wrong")
	w.watching.Go(func() { w.supervise(w.life) })
	wrong, end := context.WithTimeout(ctx, w.lasting)
	defer end()
	var all sync.WaitGroup
	for i, t := range w.troubles() {
		if w.wanted(t.name) {
			all.Go(func() { w.keepStriking(wrong, t, w.newRandom(100+uint64(i))) })
		}
	}
	all.Go(func() { w.troubleCluster(ctx, wrong) })
	if w.wanted("snapshot") {
		all.Go(func() { w.holdSnapshot(wrong) })
	}
	all.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	w.say("all is mended, and the rest is worked")
	if err := w.mend(ctx); err != nil {
		return err
	}
	// Until work goes on, which the probe notes.
	_ = await(ctx, w.patience, "work goes on", func(context.Context) error {
		w.probe.mu.Lock()
		defer w.probe.mu.Unlock()
		if len(w.probe.window) > 0 {
			return errors.New("it does not")
		}
		return nil
	})
	endLoad()
	loads.Wait()
	return ctx.Err()
}

// mend has everything run again.
func (w *world) mend(ctx context.Context) error {
	if err := w.servers.mend(ctx); err != nil {
		return fmt.Errorf("mend the cluster: %w", err)
	}
	if err := w.replaceEnded(ctx); err != nil {
		return err
	}
	return await(ctx, time.Minute, "the workflows run", w.startWorkflows)
}

// keepStriking strikes once in a random part of a short run, and again and again in a long one.
func (w *world) keepStriking(ctx context.Context, t trouble, random *rand.Rand) {
	first := min(t.every, w.lasting*7/10)
	pause(ctx, w.lasting/20+time.Duration(random.Float64()*float64(first)))
	for ctx.Err() == nil {
		w.strike(ctx, t)
		pause(ctx, time.Duration((0.3+random.ExpFloat64()*0.7)*float64(t.every)))
	}
}

// strike makes a trouble and counts it.
func (w *world) strike(ctx context.Context, t trouble) {
	end := func() { w.probe.touch(t.name) }
	if t.impedes {
		end = w.probe.impede(t.name)
	} else {
		end()
	}
	began := time.Now()
	err := t.strike(ctx)
	end()
	if err != nil {
		if ctx.Err() == nil {
			w.say("%s: could not be done: %v", t.what, err)
			w.mu.Lock()
			w.failed = append(w.failed, fmt.Sprintf("%s: %v", t.name, err))
			w.mu.Unlock()
		}
		return
	}
	w.note(t.name)
	w.say("%s (%.1f s)", t.what, time.Since(began).Seconds())
}

// troubleCluster has each trouble of the cluster come in a random order, one at a time, as often as
// there is time, and at least once.
func (w *world) troubleCluster(ctx, wrong context.Context) {
	random := w.newRandom(5)
	all := append(w.servers.troubles(), trouble{name: "disk", what: "disk of the primary full, for 3 s", impedes: true, strike: w.fillDisk})
	if w.servers.primaryDir(ctx) == "" && w.wanted("disk") {
		w.mu.Lock()
		w.lacks = append(w.lacks, "full disk (needs root on Linux)")
		w.mu.Unlock()
		all = all[:len(all)-1]
	}
	var deck []trouble
	for first := true; ctx.Err() == nil; {
		if len(deck) == 0 {
			if !first && wrong.Err() != nil {
				return
			}
			for _, i := range random.Perm(len(all)) {
				if w.wanted(all[i].name) {
					deck = append(deck, all[i])
				}
			}
			if len(deck) == 0 {
				return
			}
		}
		if !first && wrong.Err() != nil {
			return
		}
		within := wrong
		if first {
			within = ctx
		}
		longest := min(w.lasting/time.Duration(2*len(all)), 15*time.Second)
		pause(within, time.Duration(random.Float64()*float64(longest)))
		w.strike(ctx, deck[0])
		if deck = deck[1:]; len(deck) == 0 {
			first = false
		}
		// The next one has to find a standby.
		if err := w.servers.mend(ctx); err != nil && ctx.Err() == nil {
			w.say("the cluster could not be mended: %v", err)
		}
	}
}

// supervise starts workers and workflows that have ended, also when the trouble is over: a workflow
// that was cancelled may take its time to end.
func (w *world) supervise(ctx context.Context) {
	for ; ctx.Err() == nil; pause(ctx, time.Second) {
		if err := w.replaceEnded(ctx); err != nil {
			w.say("a worker could not be started: %v", err)
		}
		_ = w.startWorkflows(ctx) // Temporal may be unavailable
	}
}

func (w *world) killWorker(choose int) error {
	p := w.living(choose)
	if p == nil {
		return errors.New("no worker lives")
	}
	w.mu.Lock()
	w.killed[p.name] = time.Now()
	w.mu.Unlock()
	p.Kill()
	w.watching.Go(func() { w.watchReclaim(w.life, p.name) })
	return nil
}

// watchReclaim notes how long, while nothing else is wrong, what a killed worker held is held by a
// dead one.
func (w *world) watchReclaim(ctx context.Context, name string) {
	const held = `
SELECT (SELECT count(*) FROM daybook.jobs WHERE state = 'leased' AND worker = $1) +
       (SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'leased' AND worker = $1)`
	var took time.Duration
	for last := time.Now(); ctx.Err() == nil; pause(ctx, probeEvery) {
		calm := w.probe.clear()
		var n int
		try, cancel := context.WithTimeout(ctx, probeLimit)
		err := w.probe.pool.QueryRow(try, held, name).Scan(&n)
		cancel()
		if err == nil && n == 0 {
			w.probe.mu.Lock()
			w.probe.reclaims = append(w.probe.reclaims, took)
			w.probe.mu.Unlock()
			return
		}
		if calm {
			took += time.Since(last)
		}
		last = time.Now()
	}
}

// stopWorker has a worker stand still for a while. It goes on also when the trouble is over before.
func (w *world) stopWorker(choose int, d time.Duration) error {
	p := w.living(choose)
	if p == nil {
		return errors.New("no worker lives")
	}
	if err := syscall.Kill(p.PID, syscall.SIGSTOP); err != nil {
		return err
	}
	time.AfterFunc(d, func() {
		if !p.Ended() {
			_ = syscall.Kill(p.PID, syscall.SIGCONT) // it may be gone
		}
	})
	return nil
}

func (w *world) terminateBackends(ctx context.Context) error {
	address, err := w.servers.admin(ctx)
	if err != nil {
		return err
	}
	return onServer(ctx, address, `SELECT pg_terminate_backend(pid) FROM (
SELECT pid FROM pg_stat_activity WHERE usename = 'daybook' AND backend_type = 'client backend' ORDER BY random() LIMIT 3) x`)
}

// exhaust takes every connection that the server has.
func (w *world) exhaust(ctx context.Context) error {
	var conns []*pgx.Conn
	defer func() {
		for _, c := range conns {
			_ = c.Close(context.WithoutCancel(ctx)) // it is gone either way
		}
	}()
	for {
		try, cancel := context.WithTimeout(ctx, 3*time.Second)
		c, err := pgx.Connect(try, w.url)
		cancel()
		if err != nil {
			if strings.Contains(err.Error(), "53300") {
				break
			}
			return err
		}
		if conns = append(conns, c); len(conns) > 300 {
			return errors.New("the server has more than 300 connections")
		}
	}
	pause(ctx, 3*time.Second)
	return nil
}

func (w *world) migrate(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, w.daybook, "migrate", "up")
	command.Env = w.environment()
	out, err := command.CombinedOutput()
	// It may say that the database is unavailable: then it is called again, as a deployment does.
	if err != nil && ctx.Err() == nil && !w.probe.clear() {
		pause(ctx, 2*time.Second)
		again := exec.CommandContext(ctx, w.daybook, "migrate", "up")
		again.Env = command.Env
		out, err = again.CombinedOutput()
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

func (w *world) restartTemporal(ctx context.Context) error {
	address := w.temporal.TemporalAddress
	_, text, _ := strings.Cut(address, ":")
	var port int
	if _, err := fmt.Sscan(text, &port); err != nil {
		return err
	}
	if err := w.temporal.Kill(); err != nil {
		return err
	}
	pause(ctx, 2*time.Second)
	// Also when the time is over: without Temporal nothing is worked.
	next, err := w.startTemporal(context.WithoutCancel(ctx), port)
	if err != nil {
		return err
	}
	w.temporal = next
	return nil
}

func workflowID(i int) string { return models.WorkflowIDOf(queues()[i][1]) }

func (w *world) terminateWorkflow(ctx context.Context, i int) error {
	if err := w.client.TerminateWorkflow(ctx, workflowID(i), "", "chaos"); err != nil {
		return err
	}
	pause(ctx, time.Second)
	return w.startWorkflowsAgain(ctx)
}

func (w *world) startWorkflowsAgain(ctx context.Context) error {
	return await(context.WithoutCancel(ctx), time.Minute, "the workflows run", w.startWorkflows)
}

func (w *world) cancelWorkflow(ctx context.Context, i int) error {
	if err := w.client.CancelWorkflow(ctx, workflowID(i), ""); err != nil {
		return err
	}
	// It gives back what it has, and ends: also when the time is over.
	ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelLimit)
	defer cancel()
	if _ = w.client.GetWorkflow(ended, workflowID(i), "").Get(ended, nil); ended.Err() != nil {
		return fmt.Errorf("it has not ended after %s", cancelLimit)
	}
	return w.startWorkflowsAgain(ctx)
}

// cancelLimit is how long a cancelled workflow may take to end while everything goes wrong: what its
// turns work ends within 20 seconds, and a worker that dies or sleeps has it wait for each.
const cancelLimit = 2 * time.Minute

// resetWorkflow has a run go on from an earlier decision of its own, as an operator does after a bug.
func (w *world) resetWorkflow(ctx context.Context, i int) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	id := workflowID(i)
	described, err := w.client.DescribeWorkflow(ctx, id, "")
	if err != nil {
		return err
	}
	run := described.RawResponse.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	history := w.client.GetWorkflowHistory(ctx, id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	var points []int64
	for history.HasNext() {
		event, err := history.Next()
		if err != nil {
			return err
		}
		if event.GetEventType() == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			points = append(points, event.GetEventId())
		}
	}
	if len(points) == 0 {
		return errors.New("the run has decided nothing yet")
	}
	_, err = w.client.ResetWorkflowExecution(ctx, &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: devstack.Namespace, WorkflowExecution: &common.WorkflowExecution{WorkflowId: id, RunId: run},
		Reason: "chaos", WorkflowTaskFinishEventId: points[len(points)/2], RequestId: fmt.Sprint(time.Now().UnixNano()),
	})
	return err
}

// fillDisk leaves the primary no room, and gives it back. Where PostgreSQL ended for it, and nothing
// starts it again, that is done.
func (w *world) fillDisk(ctx context.Context) error {
	dir := w.servers.primaryDir(ctx)
	if dir == "" {
		return errors.New("there is no primary")
	}
	empty, err := fillDisk(filepath.Join(dir, "ballast"))
	if err != nil {
		return err
	}
	pause(ctx, 3*time.Second)
	empty()
	if p, ok := w.servers.(*plain); ok {
		return p.reviveEnded(ctx)
	}
	return nil
}

// holdSnapshot keeps an old state of the database in sight, all the time; when the connection is
// lost, the next one begins.
func (w *world) holdSnapshot(ctx context.Context) {
	for ; ctx.Err() == nil; pause(ctx, time.Second) {
		func() {
			conn, err := pgx.Connect(ctx, w.url)
			if err != nil {
				return
			}
			defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
			tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
			if err != nil {
				return
			}
			for ctx.Err() == nil {
				// It reads, now and then, what it saw.
				try, cancel := context.WithTimeout(ctx, 5*time.Second)
				_, err := tx.Exec(try, `SELECT count(*) FROM daybook.jobs WHERE state = 'pending'`)
				cancel()
				if err != nil {
					return
				}
				pause(ctx, 2*time.Second)
			}
		}()
		w.note("snapshot")
	}
}
