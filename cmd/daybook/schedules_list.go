package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-dev/daybook/activities"
	"github.com/daybook-dev/daybook/workflows"
)

// describedAtOnce bounds how many schedules are asked for side by side.
const describedAtOnce = 8

// whenKey names what is kept with a schedule's action: when it fires, as it was said. Temporal keeps that in another form, and
// replaces with a schedule what is kept with its action, but nothing that is kept with the schedule itself.
const whenKey = "daybook-when"

// listedSchedule is a schedule, for programs.
type listedSchedule struct {
	ID       string          `json:"id"`
	OrgID    string          `json:"org_id"`
	Type     string          `json:"type"`
	Payload  json.RawMessage `json:"payload"`
	When     string          `json:"when"`
	TimeZone string          `json:"time_zone"`
	Overlap  string          `json:"overlap"`
	Paused   bool            `json:"paused"`
	Note     string          `json:"note,omitempty"`
	// LastFired and NextFiring are nil when there is none.
	LastFired  *time.Time `json:"last_fired,omitempty"`
	NextFiring *time.Time `json:"next_firing,omitempty"`
}

func schedulesListCommand(a *app) *cobra.Command {
	var org string
	command := &cobra.Command{
		Use:   "list",
		Short: "List schedules; a new one may take a moment to show",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withTemporal(c.Context(), func(temporal client.Client) error {
				all, err := listSchedules(c.Context(), temporal, org)
				if err != nil {
					return fmt.Errorf("list schedules: %w", err)
				}
				return a.emit(map[string]any{"schedules": all}, func(w io.Writer) error { return a.printSchedules(w, all) })
			})
		},
	}
	command.Flags().StringVar(&org, "org", "", "only of this organization")
	return command
}

// listSchedules reads Daybook's schedules in the order of their ids. What Temporal lists may be late; each schedule is asked for
// what it is now.
func listSchedules(ctx context.Context, c client.Client, org string) ([]listedSchedule, error) {
	entries, err := c.ScheduleClient().List(ctx, client.ScheduleListOptions{})
	if err != nil {
		return nil, err
	}
	var ids []string
	for entries.HasNext() {
		e, err := entries.Next()
		if err != nil {
			return nil, err
		}
		if e.WorkflowType.Name == workflows.ScheduledJobWorkflow {
			ids = append(ids, e.ID)
		}
	}
	slices.Sort(ids)
	described := make([]*listedSchedule, len(ids))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(describedAtOnce)
	for i, id := range ids {
		group.Go(func() (err error) {
			described[i], err = describeSchedule(ctx, c.ScheduleClient().GetHandle(ctx, id))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	all := []listedSchedule{}
	for _, s := range described {
		if s != nil && (org == "" || s.OrgID == org) {
			all = append(all, *s)
		}
	}
	return all, nil
}

// describeSchedule reads one schedule; nil: it is gone, or none of Daybook's.
func describeSchedule(ctx context.Context, h client.ScheduleHandle) (*listedSchedule, error) {
	d, err := h.Describe(ctx)
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
	s := &listedSchedule{
		ID: h.GetID(), OrgID: job.OrgID, Type: job.Type, Payload: job.Payload, TimeZone: d.Schedule.Spec.TimeZoneName, Overlap: overlapAllow,
		Paused: d.Schedule.State.Paused, Note: d.Schedule.State.Note,
	}
	if job.Unique {
		s.Overlap = overlapSkip
	}
	decode(action.Memo[whenKey], &s.When)
	if n := len(d.Info.RecentActions); n > 0 {
		s.LastFired = &d.Info.RecentActions[n-1].ScheduleTime
	}
	if len(d.Info.NextActionTimes) > 0 && !s.Paused {
		s.NextFiring = &d.Info.NextActionTimes[0]
	}
	return s, nil
}

// decode reads what Temporal keeps.
func decode(kept, to any) bool {
	p, ok := kept.(*common.Payload)
	return ok && converter.GetDefaultDataConverter().FromPayload(p, to) == nil
}

func (a *app) printSchedules(w io.Writer, all []listedSchedule) error {
	t := newTable("ID", "ORG", "TYPE", "WHEN", "ZONE", "OVERLAP", "LAST", "NEXT")
	for _, s := range all {
		next := s.inZone(s.NextFiring)
		if s.Paused {
			next = "paused"
		}
		t.add(s.ID, s.OrgID, s.Type, s.When, s.TimeZone, s.Overlap, s.inZone(s.LastFired), next)
	}
	return a.print(w, t)
}

// inZone writes a time in the schedule's time zone, and in UTC, marked by a Z, if this machine does not know the zone.
func (s *listedSchedule) inZone(t *time.Time) string {
	if t == nil {
		return ""
	}
	zone, err := time.LoadLocation(s.TimeZone)
	if err != nil {
		return t.UTC().Format("2006-01-02 15:04:05Z")
	}
	return t.In(zone).Format("2006-01-02 15:04:05")
}
