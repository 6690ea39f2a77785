package console

import (
	"context"
	"errors"
	"fmt"

	"github.com/daybook-dev/daybook/admin/schedules"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// scheduleLine is a schedule with what can be done to it.
type scheduleLine struct {
	schedules.Listed
	Buttons []button
}

// schedules adds the list of periodic jobs.
func (c *console) schedules() {
	c.addToMenu(menuEntry{Group: "Operate", Name: "Schedules", Path: "schedules"})
	c.page("GET "+Root+"schedules", tokens.ScopeRead, c.scheduleList)
	for _, a := range []struct {
		name, text string
		do         func(ctx context.Context, id string) (changed bool, err error)
	}{
		{"pause", "Paused: it fires no more until it is resumed.", func(ctx context.Context, id string) (bool, error) {
			return schedules.Pause(ctx, c.Temporal, id, "")
		}},
		{"resume", "Resumed.", func(ctx context.Context, id string) (bool, error) {
			return schedules.Resume(ctx, c.Temporal, id, "")
		}},
		{
			"trigger", "Fired once. What that did stands in the list once a worker has executed it.",
			func(ctx context.Context, id string) (bool, error) {
				return true, schedules.Trigger(ctx, c.Temporal, id)
			},
		},
	} {
		c.action(Root+"schedules/{id}/"+a.name, tokens.ScopeOperate, "schedules."+a.name,
			func(ctx context.Context, r *request) (done, error) {
				id := r.PathValue("id")
				d := done{Subject: id, Text: a.text}
				return d, c.withTemporal(ctx, func(ctx context.Context) error {
					s, err := schedules.Describe(ctx, c.Temporal, id)
					if err != nil {
						return err
					}
					if r.Token.OrgID != nil && *r.Token.OrgID != s.OrgID {
						return fmt.Errorf("%w: %s", schedules.ErrNotFound, id)
					}
					d.Org = s.OrgID
					changed, err := a.do(ctx, id)
					d.unless(changed, "the schedule "+id+" is "+map[bool]string{true: "paused", false: "active"}[s.Paused]+
						" already")
					return err
				})
			})
	}
}

func (c *console) scheduleList(ctx context.Context, r *request) (*view, error) {
	org, err := r.org()
	if err != nil {
		return nil, err
	}
	var list []schedules.Listed
	data := map[string]any{}
	err = c.withTemporal(ctx, func(ctx context.Context) (err error) {
		list, err = schedules.List(ctx, c.Temporal, org)
		return err
	})
	switch {
	case errors.Is(err, errNoTemporal):
		data["Missing"] = true
	case err != nil && r.Token.OrgID != nil: // it is not told where Temporal is
		data["Down"] = errTemporalDown.Error()
	case err != nil:
		data["Down"] = err.Error()
	}
	lines := make([]scheduleLine, len(list))
	for i, s := range list {
		base := Root + joinPath("schedules", s.ID) + "/"
		toggle := button{Action: base + "pause", Label: "Pause", Tone: "quiet", Next: r.here()}
		if s.Paused {
			toggle = button{Action: base + "resume", Label: "Resume", Next: r.here()}
		}
		lines[i] = scheduleLine{s, []button{toggle, {
			Action: base + "trigger", Label: "Fire now", Tone: "quiet", Next: r.here(),
			Confirm: "It enqueues its job once, also while it is paused.",
		}}}
	}
	data["Lines"] = lines
	return &view{
		Title: "Schedules", Template: "schedules", Nav: "schedules", Data: data,
		Lead: "Periodic jobs: Temporal schedules that enqueue a background job each time they fire.",
	}, nil
}
