package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/daybook-dev/daybook/models"
)

// changeMemo is the change of the code that has runs keep a memo: runs that began before it keep
// none.
const changeMemo = "memo"

// keepMemo decides, once for each run, whether it keeps a memo.
func (a *run) keepMemo(ctx workflow.Context) {
	a.keepsMemo = workflow.GetVersion(ctx, changeMemo, workflow.DefaultVersion, 1) == 1
}

// memo is what the memo says, but for what never changes.
type memo struct {
	paused   bool
	since    time.Time
	settings models.RunSettings
}

// remember writes the memo if it would say something else than before. A run that ends writes none:
// the next one writes its own.
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
	fields := map[string]any{
		models.MemoKind: d.Kind, models.MemoAbout: d.Summary,
		models.MemoState: models.MemoStateRunning, models.MemoSettings: m.settings, models.MemoPausedSince: nil,
	}
	if m.paused {
		fields[models.MemoState] = models.MemoStatePaused
		if !m.since.IsZero() {
			fields[models.MemoPausedSince] = m.since.UTC().Format(time.RFC3339)
		}
	}
	if err := workflow.UpsertMemo(a.laneCtx, fields); err != nil {
		workflow.GetLogger(a.laneCtx).Error("the run's memo was not written", "error", err)
	}
}
