package schedules_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/schedules"
)

func TestNoClient(t *testing.T) {
	t.Parallel()
	s := schedules.Schedule{ID: "x", OrgID: "acme", Payload: queue.RawPayload{Type: "t", Data: []byte(`{}`)}, Every: time.Minute}
	ctx, said := t.Context(), map[string]error{}
	said["Create"] = schedules.Create(ctx, nil, s)
	_, said["Replace"] = schedules.Replace(ctx, nil, s, schedules.ReplaceOptions{})
	said["Pause"] = schedules.Pause(ctx, nil, s.ID, "")
	said["Resume"] = schedules.Resume(ctx, nil, s.ID, "")
	said["Trigger"] = schedules.Trigger(ctx, nil, s.ID)
	said["Delete"] = schedules.Delete(ctx, nil, s.ID)
	_, said["List"] = schedules.List(ctx, nil, "")
	_, said["Describe"] = schedules.Describe(ctx, nil, s.ID)
	for function, err := range said {
		require.ErrorIs(t, err, schedules.ErrNoClient, function)
	}
}
