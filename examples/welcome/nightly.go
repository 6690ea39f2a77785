package welcome

import (
	"context"

	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/admin/schedules"
	"github.com/daybook-dev/daybook/handlers"
)

// Nightly makes a schedule that removes finished jobs each night. A program may call it each time
// it starts.
func Nightly(ctx context.Context, temporal client.Client) error {
	_, err := schedules.Replace(ctx, temporal, schedules.Schedule{
		ID: "nightly", OrgID: "acme", Payload: handlers.Cleanup{}, Crons: []string{"30 3 * * *"}, TimeZone: "Europe/Berlin",
	}, schedules.ReplaceOptions{})
	return err
}
