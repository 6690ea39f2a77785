package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"
)

// The fields of a run's memo. Temporal shows the memo and answers questions about it (DescribeWorkflowExecution) also while no worker
// runs, other than current details and the query status, which a worker must answer.
const (
	// MemoKind is the kind of queue: accounting, jobs or tasks.
	MemoKind = "kind"
	// MemoAbout is Description.Summary.
	MemoAbout = "about"
	// MemoState is MemoStateRunning or MemoStatePaused.
	MemoState = "state"
	// MemoPausedSince is since when the run is paused, by RFC 3339; missing: it is not paused, or was so when it was started.
	MemoPausedSince = "pausedSince"
	// MemoSettings are the Settings of the run.
	MemoSettings = "settings"
)

// The values of MemoState.
const (
	MemoStateRunning = "running"
	MemoStatePaused  = "paused"
)

// changeMemo is the change of the code that has runs keep a memo: runs that began before it keep none.
const changeMemo = "memo"

// keepMemo decides, once for each run, whether it keeps a memo.
func (a *run) keepMemo(ctx workflow.Context) {
	a.keepsMemo = workflow.GetVersion(ctx, changeMemo, workflow.DefaultVersion, 1) == 1
}

// memo is what the memo says, but for what never changes.
type memo struct {
	paused   bool
	since    time.Time
	settings Settings
}

// remember writes the memo if it would say something else than before. A run that ends writes none: the next one writes its own.
func (a *run) remember() {
	if !a.keepsMemo || !a.configured || a.draining {
		return
	}
	m := memo{paused: a.state.Paused, settings: a.state.Settings}
	if a.state.PausedSince != nil {
		m.since = *a.state.PausedSince
	}
	if a.memo != nil && *a.memo == m {
		return
	}
	a.memo = &m
	d := Describe(workflow.GetInfo(a.laneCtx).WorkflowType.Name)
	fields := map[string]any{MemoKind: d.Kind, MemoAbout: d.Summary, MemoState: MemoStateRunning, MemoSettings: m.settings, MemoPausedSince: nil}
	if m.paused {
		fields[MemoState] = MemoStatePaused
		if !m.since.IsZero() {
			fields[MemoPausedSince] = m.since.UTC().Format(time.RFC3339)
		}
	}
	if err := workflow.UpsertMemo(a.laneCtx, fields); err != nil {
		workflow.GetLogger(a.laneCtx).Error("the run's memo was not written", "error", err)
	}
}
