package schedules_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/admin/schedules"
	"github.com/daybook-dev/daybook/queue"
)

func TestNoClient(t *testing.T) {
	t.Parallel()
	s := schedules.Schedule{
		ID: "x", OrgID: "acme", Payload: queue.RawPayload{Type: "t", Data: []byte(`{}`)},
		Every: time.Minute,
	}
	ctx, said := t.Context(), map[string]error{}
	said["Create"] = schedules.Create(ctx, nil, s)
	_, said["Replace"] = schedules.Replace(ctx, nil, s, schedules.ReplaceOptions{})
	_, said["Pause"] = schedules.Pause(ctx, nil, s.ID, "")
	_, said["Resume"] = schedules.Resume(ctx, nil, s.ID, "")
	said["Trigger"] = schedules.Trigger(ctx, nil, s.ID)
	said["Delete"] = schedules.Delete(ctx, nil, s.ID)
	_, said["List"] = schedules.List(ctx, nil, "")
	_, said["Describe"] = schedules.Describe(ctx, nil, s.ID)
	for function, err := range said {
		require.ErrorIs(t, err, schedules.ErrNoClient, function)
	}
}

// What is wrong with a schedule is said to Go programs, by its fields.
func TestErrorsNameFields(t *testing.T) {
	t.Parallel()
	c, err := client.NewLazyClient(client.Options{HostPort: "127.0.0.1:1"})
	require.NoError(t, err)
	defer c.Close()
	for field, change := range map[string]func(*schedules.Schedule){
		"TimeZone": func(s *schedules.Schedule) { s.Every, s.Crons = 0, []string{"CRON_TZ=UTC 0 0 * * *"} },
		"Every":    func(s *schedules.Schedule) { s.Every, s.Crons = 0, []string{"@every 1h"} },
		"Queue":    func(s *schedules.Schedule) { s.Fleet = "shop" },
		"Overlap":  func(s *schedules.Schedule) { s.Overlap = "maybe" },
	} {
		s := schedules.Schedule{
			ID: "x", OrgID: "acme", Payload: queue.RawPayload{Type: "t", Data: []byte(`{}`)},
			Every: time.Minute,
		}
		change(&s)
		err := schedules.Create(t.Context(), c, s)
		require.ErrorIs(t, err, schedules.ErrInvalid, field)
		require.ErrorContains(t, err, field)
		require.NotContains(t, err.Error(), "--", field)
	}
}
