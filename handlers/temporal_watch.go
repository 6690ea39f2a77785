package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

const (
	// watchEvery is the pause between two questions about a workflow, while an attempt waits for it.
	watchEvery = 3 * time.Second
	// mostActivities is of how many activities of a workflow the progress tells.
	mostActivities = 20
)

// WorkflowProgress is the progress of a job that a workflow works: one for each of its activities
// that have sent a heartbeat and have not ended, 20 at most. The progress of a job that an activity
// works is the details of its last heartbeat alone.
type WorkflowProgress struct {
	// Activity is the name of its type, ID its id within the workflow.
	Activity string `json:"activity"`
	ID       string `json:"id"`
	// Attempt is Temporal's number of its attempt, from 1.
	Attempt int32 `json:"attempt"`
	// Heartbeat are the details of its last heartbeat: one value, or a list of several.
	Heartbeat json.RawMessage `json:"heartbeat"`
}

// watch makes what heartbeats say the job's progress, while an attempt waits. Call stop before the
// attempt ends.
func (h *TemporalHandler) watch(ctx context.Context, job *jobs.Job[queue.RawPayload]) (stop func()) {
	watched, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(h.watchEvery)
		defer tick.Stop()
		var last []byte
		for {
			select {
			case <-watched.Done():
				return
			case <-tick.C:
			}
			// A server that cannot be asked now is asked again.
			if now := h.progress(watched, job.ID); now != nil && !bytes.Equal(now, last) &&
				job.Progress(watched, now) == nil {
				last = now
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// progress is what the heartbeats of a job's workflow say; nil: nothing.
func (h *TemporalHandler) progress(ctx context.Context, jobID string) json.RawMessage {
	if h.c.Standalone {
		return h.bounded(h.standaloneProgress(ctx, jobID))
	}
	d, err := h.c.Client.DescribeWorkflow(ctx, WorkflowID(jobID), "")
	if err != nil {
		return nil
	}
	var all []WorkflowProgress
	for _, a := range d.RawResponse.GetPendingActivities() {
		if said := heartbeat(a.GetHeartbeatDetails()); said != nil && len(all) < mostActivities {
			all = append(all, WorkflowProgress{
				Activity: a.GetActivityType().GetName(), ID: a.GetActivityId(),
				Attempt: a.GetAttempt(), Heartbeat: said,
			})
		}
	}
	if len(all) == 0 {
		return nil
	}
	if h.c.Activity != "" {
		return h.bounded(all[0].Heartbeat)
	}
	whole, err := json.Marshal(all)
	if err != nil {
		return nil
	}
	return h.bounded(whole)
}

// bounded leaves out what is larger than a result may be, or what the database cannot hold.
func (h *TemporalHandler) bounded(progress json.RawMessage) json.RawMessage {
	if len(progress) == 0 || len(progress) > h.c.MaxResult || !storable(progress) {
		return nil
	}
	return progress
}

// heartbeat are the details of an activity's last heartbeat as JSON; nil: there are none, or they
// were written otherwise.
func heartbeat(details *common.Payloads) json.RawMessage {
	var all []json.RawMessage
	for _, p := range details.GetPayloads() {
		said, ok := plainJSON(converter.NewRawValue(p))
		if !ok {
			return nil
		}
		all = append(all, said)
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	list, err := json.Marshal(all)
	if err != nil {
		return nil
	}
	return list
}
