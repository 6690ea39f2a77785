package schedules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-dev/daybook/activities"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/workflows"
)

// describedAtOnce bounds how many schedules are asked for side by side.
const describedAtOnce = 8

// whenKey names what is kept with a schedule's action: when it fires, as it was said. Temporal
// keeps that in another form, and replaces with a schedule what is kept with its action, but
// nothing that is kept with the schedule itself.
const whenKey = "daybook-when"

// fleetKey names the fleet that is kept there as well.
const fleetKey = "daybook-fleet"

// Listed is a schedule as it is now.
type Listed struct {
	ID      string          `json:"id"`
	OrgID   string          `json:"org_id"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload"`
	// Queue is the named queue of its jobs, Fleet the fleet whose workers execute its firings; empty:
	// none, and the fleet without a name.
	Queue string `json:"queue,omitempty"`
	Fleet string `json:"fleet,omitempty"`
	// When says when it fires, as it was given: the cron expressions, or "every 10m".
	When     string  `json:"when"`
	TimeZone string  `json:"time_zone"`
	Overlap  Overlap `json:"overlap"`
	Paused   bool    `json:"paused"`
	Note     string  `json:"note,omitempty"`
	// LastFired and NextFiring are nil when there is none.
	LastFired *time.Time `json:"last_fired,omitempty"`
	// LastResult says what the last firing did: queue.Enqueued, queue.Skipped (the job of an earlier
	// one was open), or for Again what queue.EnqueuedJob.Result says. Empty: no worker has executed
	// it yet, it failed, or Temporal no longer keeps it.
	LastResult queue.Result `json:"last_result,omitempty"`
	// LastJobID is the job that it led to.
	LastJobID  string     `json:"last_job_id,omitempty"`
	NextFiring *time.Time `json:"next_firing,omitempty"`
	// NextFirings are up to ten times at which it fires next, or would if it were not paused.
	NextFirings []time.Time `json:"next_firings,omitempty"`
}

// List reads Daybook's schedules in the order of their ids: those of an organization, or of all if
// orgID is empty. A schedule that was made a moment ago may be missing from Temporal's list; each
// listed schedule is read as it is now. Errors: ErrNoClient.
func List(ctx context.Context, c client.Client, orgID string) ([]Listed, error) {
	if store.IsNil(c) {
		return nil, ErrNoClient
	}
	entries, err := c.ScheduleClient().List(ctx, client.ScheduleListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list schedules: %w", err)
	}
	var ids []string
	for entries.HasNext() {
		e, err := entries.Next()
		if err != nil {
			return nil, fmt.Errorf("list schedules: %w", err)
		}
		if e.WorkflowType.Name == workflows.ScheduledJobWorkflow {
			ids = append(ids, e.ID)
		}
	}
	slices.Sort(ids)
	described := make([]*Listed, len(ids))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(describedAtOnce)
	for i, id := range ids {
		group.Go(func() (err error) {
			described[i], err = describe(ctx, c, id)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("list schedules: %w", err)
	}
	all := []Listed{}
	for _, s := range described {
		if s != nil && (orgID == "" || s.OrgID == orgID) {
			all = append(all, *s)
		}
	}
	return all, nil
}

// Describe reads one schedule. Errors: ErrNotFound, ErrNoClient.
func Describe(ctx context.Context, c client.Client, id string) (Listed, error) {
	if store.IsNil(c) {
		return Listed{}, ErrNoClient
	}
	s, err := describe(ctx, c, id)
	if err != nil {
		return Listed{}, translate(err, id)
	}
	if s == nil {
		return Listed{}, errorf(ErrNotFound, "there is no schedule %s of Daybook's", id)
	}
	return *s, nil
}

// describe reads one schedule; nil: it is gone, or none of Daybook's.
func describe(ctx context.Context, c client.Client, id string) (*Listed, error) {
	d, err := described(ctx, c, id)
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	action := ownAction(d.Schedule.Action)
	var job activities.ScheduledJob
	if action == nil || len(action.Args) == 0 || !decode(action.Args[0], &job) {
		return nil, nil
	}
	s := &Listed{
		ID: id, OrgID: job.OrgID, Type: job.Type, Payload: job.Payload, Queue: job.Queue,
		TimeZone: d.Schedule.Spec.TimeZoneName, Overlap: Allow,
		Paused: d.Schedule.State.Paused, Note: d.Schedule.State.Note,
	}
	switch {
	case job.One && job.Again:
		s.Overlap = Again
	case job.One:
		s.Overlap = Skip
	}
	decode(action.Memo[whenKey], &s.When)
	decode(action.Memo[fleetKey], &s.Fleet)
	if n := len(d.Info.RecentActions); n > 0 {
		last := d.Info.RecentActions[n-1]
		s.LastFired = &last.ScheduleTime
		out := firingResult(ctx, c, last.StartWorkflowResult)
		s.LastResult, s.LastJobID = out.Result, out.JobID
	}
	s.NextFirings = d.Info.NextActionTimes
	if len(d.Info.NextActionTimes) > 0 && !s.Paused {
		s.NextFiring = &d.Info.NextActionTimes[0]
	}
	return s, nil
}

// firingResult is what a firing did. It is empty while the firing runs, when it failed, and when
// Temporal keeps or tells nothing of it: a list of schedules does not fail for that.
func firingResult(ctx context.Context, c client.Client,
	w *client.ScheduleWorkflowExecution,
) (out activities.EnqueueScheduledOutput) {
	if w == nil {
		return out
	}
	events := c.GetWorkflowHistory(ctx, w.WorkflowID, w.FirstExecutionRunID, false,
		enums.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	if !events.HasNext() {
		return out
	}
	last, err := events.Next()
	if result := last.GetWorkflowExecutionCompletedEventAttributes().GetResult().GetPayloads(); err == nil &&
		len(result) > 0 {
		decode(result[0], &out)
	}
	return out
}

// decode reads what Temporal keeps.
func decode(kept, to any) bool {
	p, ok := kept.(*common.Payload)
	return ok && converter.GetDefaultDataConverter().FromPayload(p, to) == nil
}
