package look

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
)

// printQueues writes the counts of every queue, what waits longest, and who is paused.
func printQueues(a *cli.App, w io.Writer, queues []store.QueueStatus, paused []store.PausedOrganization) error {
	t := cli.NewTable("QUEUE", "PENDING", "DUE", "WAITING", "LEASED", "STALE", "COMPLETED", "FAILED", "CANCELLED")
	t.Right = []int{1, 2, 3, 4, 5, 6, 7, 8}
	var waits []string
	for _, s := range queues {
		count := func(state models.JobState) string {
			return cli.CountText(s.Counts[state], slices.Contains(s.Estimated, state))
		}
		t.Add(s.Kind, count(models.JobPending), strconv.FormatInt(s.Due, 10), strconv.FormatInt(s.Waiting, 10),
			count(models.JobLeased), strconv.FormatInt(s.StaleLeases, 10),
			count(models.JobCompleted), count(models.JobFailed), count(models.JobCancelled))
		if o := s.OldestDue; o != nil {
			waits = append(waits, fmt.Sprintf("%s: due longest: %s, for %s", s.Kind, pendingText(o), ageText(o)))
		}
		if o := s.OldestPending; o != nil {
			waits = append(waits, fmt.Sprintf("%s: oldest pending: %s, asked for %s ago, %s", s.Kind, pendingText(o),
				ageText(o), dueText(o)))
		}
	}
	if err := a.Print(w, t); err != nil {
		return err
	}
	for i, line := range waits {
		if i == 0 {
			line = "\n" + line
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	if len(paused) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\npaused: %s\n", pausedText(paused))
	return err
}

// pendingText names a job that waits.
func pendingText(p *store.PendingJob) string {
	if p.DocumentID != "" {
		return fmt.Sprintf("document %s of organization %s", terminal.OneLine(p.DocumentID), terminal.OneLine(p.OrgID))
	}
	if p.OrgID == "" {
		return fmt.Sprintf("task %s (%s)", terminal.OneLine(p.JobID), terminal.OneLine(p.Type))
	}
	return fmt.Sprintf("job %s (%s) of organization %s", terminal.OneLine(p.JobID), terminal.OneLine(p.Type),
		terminal.OneLine(p.OrgID))
}

func dueText(p *store.PendingJob) string {
	if p.Waits {
		return cli.WaitsForTurn
	}
	return "due " + cli.FormatTime(p.ReadyAt)
}

func ageText(p *store.PendingJob) string {
	return phrase.Age(time.Duration(p.AgeSeconds * float64(time.Second)))
}

// pausedShown is how many paused organizations a line names.
const pausedShown = 10

func pausedText(paused []store.PausedOrganization) string {
	names := make([]string, 0, pausedShown+1)
	for _, p := range paused[:min(len(paused), pausedShown)] {
		names = append(names, terminal.OneLine(p.OrgID)+" since "+cli.FormatTime(p.PausedAt))
	}
	if more := len(paused) - pausedShown; more > 0 {
		names = append(names, fmt.Sprintf("and %d more (`daybook organizations list`)", more))
	}
	return strings.Join(names, ", ")
}

func printFailed(a *cli.App, w io.Writer, queues []store.QueueStatus) error {
	failed := cli.NewTable("FAILED", "QUEUE", "CODE")
	failed.Right = []int{0}
	for _, s := range queues {
		codes := slices.SortedFunc(maps.Keys(s.FailedByCode), func(x, y models.ErrorCode) int {
			return cmp.Or(cmp.Compare(s.FailedByCode[y], s.FailedByCode[x]), cmp.Compare(x, y))
		})
		for _, code := range codes {
			failed.Add(strconv.FormatInt(s.FailedByCode[code], 10), s.Kind, string(code))
		}
	}
	if len(failed.Rows) == 0 {
		return nil
	}
	_, _ = fmt.Fprintln(w)
	return a.Print(w, failed)
}
