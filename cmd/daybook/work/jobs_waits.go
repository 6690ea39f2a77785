package work

import (
	"fmt"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/models"
)

// listedDue says in a list when a job is due.
func listedDue(j *models.Job) string {
	switch {
	case !j.Waits():
		return cli.FormatTime(j.ReadyAt)
	case j.Sequence != nil:
		return cli.WaitsForTurn
	default:
		return "waits for other jobs"
	}
}

// dueOf says when a job is due.
func dueOf(j *models.Job) string {
	if j.Waits() {
		return "not before " + cli.FormatTime(j.FirstReadyAt) + ", when it need not wait any more"
	}
	return cli.FormatTime(j.ReadyAt)
}

func waitsForText(w listing.WaitsFor) string {
	switch w.What {
	case "turn":
		return fmt.Sprintf("its turn, which job %s has (%s)", w.ID, w.State)
	case "limit":
		of := ""
		if w.Queue != "" {
			of = " in the queue " + w.Queue
		}
		return "the limit of its key " + w.ID + of + ": " + w.Standing()
	case "callback":
		return fmt.Sprintf("the callback %s, until %s", w.ID, cli.OptionalTime(w.Until))
	default:
		return fmt.Sprintf("job %s (%s)", w.ID, w.State)
	}
}
