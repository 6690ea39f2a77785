package work

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/telemetry/span"
	"github.com/daybook-dev/daybook/models"
)

func tasksListCommand(a *cli.App) *cobra.Command {
	var filter listing.TaskFilter
	var page cli.PageFlags
	var state, since, until string
	command := &cobra.Command{
		Use:   "list",
		Short: "List tasks, the last enqueued one first; completed and failed ones by when that was",
		Long: "Lists tasks. waiting, ready and leased are open; stuck are open tasks that need a person; failed are tasks of which an error was noted,\n" +
			"completed or not; completed are those that are done with, whether they succeeded or failed.",
		Example: "  daybook tasks list --state stuck\n  daybook tasks list --state failed --type email --since 24h",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			filter.State = models.TaskState(state)
			now := time.Now()
			var err error
			if filter.Since, err = cli.ParseMoment("--since", since, now); err != nil {
				return err
			}
			if filter.Until, err = cli.ParseMoment("--until", until, now); err != nil {
				return err
			}
			if err := page.Check(); err != nil {
				return err
			}
			db, err := a.Open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.Close()
			list, err := db.Tasks(c.Context(), filter, page.Limit, page.Cursor)
			if err != nil {
				return err
			}
			return a.Emit(answers.TaskListOf(&list), func(w io.Writer) error {
				defer a.More(list.Next)
				return printTasks(a, w, list.Tasks)
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&state, "state", "", "only in this state: waiting, ready, leased, stuck, failed or completed")
	flags.StringVar(&filter.Type, "type", "", "only of this type")
	flags.StringVar(&since, "since", "",
		"only enqueued, completed or failed since: a duration such as 24h, or a time as RFC 3339")
	flags.StringVar(&until, "until", "", "only enqueued, completed or failed before: the same")
	page.Add(command, "tasks", store.DefaultLimit)
	return command
}

func printTasks(a *cli.App, w io.Writer, tasks []listing.ListedTask) error {
	t := cli.NewTable("TASK", "TYPE", "STATE", "LEASES", "ENQUEUED", "SCHEDULED", "LEASED UNTIL", "COMPLETED",
		"LAST ERROR")
	t.Right = []int{0, 3}
	for i := range tasks {
		k := &tasks[i]
		t.Add(strconv.FormatInt(k.ID, 10), k.Type, string(k.State), strconv.Itoa(k.Leases), cli.FormatTime(k.EnqueuedAt),
			cli.FormatTime(k.ScheduledAt),
			cli.OptionalTime(k.LeasedUntil), cli.OptionalTime(k.CompletedAt), cli.ListLine(k.LastError))
	}
	return a.Print(w, t)
}

// parseTaskID reads the number of a task.
func parseTaskID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, cli.Usagef("task %q: want its number, such as 17", text)
	}
	return id, nil
}

// ShownTask is a task with the newest of its facts, for programs.
type ShownTask struct {
	answers.TaskDetail
	answers.TaskHistory
}

func tasksShowCommand(a *cli.App) *cobra.Command {
	var limit int
	command := &cobra.Command{
		Use:   "show ID",
		Short: "Show a task: payload, state, and the newest of its facts",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := parseTaskID(args[0])
			switch {
			case err != nil:
				return err
			case limit < 1:
				return cli.Usagef("--limit must be at least 1")
			}
			db, err := a.Open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.Close()
			d, err := db.Task(c.Context(), id)
			if err != nil {
				return err
			}
			h, err := db.TaskHistory(c.Context(), id, limit, "")
			if err != nil {
				return err
			}
			return a.Emit(ShownTask{answers.TaskDetailOf(&d), answers.TaskHistoryOf(&h)}, func(w io.Writer) error {
				if err := printTask(w, &d); err != nil {
					return err
				}
				return printTaskHistory(a, w, &h)
			})
		},
	}
	command.Flags().IntVar(&limit, "limit", 20,
		"how many facts to show, the newest first; `daybook tasks history` shows all")
	return command
}

func printTask(w io.Writer, d *listing.TaskDetail) error {
	errors := ""
	if d.Errors > 0 {
		errors = strconv.FormatInt(d.Errors, 10)
	}
	for _, line := range [][2]string{
		{"task", strconv.FormatInt(d.ID, 10)},
		{"type", d.Type},
		{"state", string(d.State)},
		{"stuck", d.Stuck},
		{"leases", strconv.Itoa(d.Leases)},
		{"enqueued", cli.FormatTime(d.EnqueuedAt)},
		{"scheduled", cli.FormatTime(d.ScheduledAt)},
		{"leased until", cli.OptionalTime(d.LeasedUntil)},
		{"worker", d.Worker},
		{"trace", span.TraceID(d.TraceParent)},
		{"completed", cli.OptionalTime(d.CompletedAt)},
		{"errors", errors},
		{"last error", d.LastError},
		{"payload", string(d.Payload)},
	} {
		if line[1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%-13s %s\n", line[0], terminal.OneLine(line[1])); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w)
	return err
}

func tasksHistoryCommand(a *cli.App) *cobra.Command {
	var page cli.PageFlags
	command := &cobra.Command{
		Use:   "history ID",
		Short: "List the facts of a task, the newest first: when it was handed out, what went wrong, when it was completed",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := parseTaskID(args[0])
			if err == nil {
				err = page.Check()
			}
			if err != nil {
				return err
			}
			db, err := a.Open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.Close()
			h, err := db.TaskHistory(c.Context(), id, page.Limit, page.Cursor)
			if err != nil {
				return err
			}
			return a.Emit(answers.TaskHistoryOf(&h), func(w io.Writer) error { return printTaskHistory(a, w, &h) })
		},
	}
	page.Add(command, "facts", store.DefaultLimit)
	return command
}

func printTaskHistory(a *cli.App, w io.Writer, h *listing.TaskHistory) error {
	t := cli.NewTable("AT", "FACT", "LEASE", "EXPIRES", "ERROR")
	t.Right = []int{2}
	for i := range h.Events {
		e := &h.Events[i]
		lease := ""
		if e.LeaseID != nil {
			lease = strconv.FormatInt(*e.LeaseID, 10)
		}
		t.Add(cli.FormatTime(e.At), e.Event, lease, cli.OptionalTime(e.ExpiresAt), e.Error)
	}
	if err := a.Print(w, t); err != nil {
		return err
	}
	if h.Next != "" {
		a.Say("There are older ones: daybook tasks history %d --cursor %s", h.TaskID, h.Next)
	}
	return nil
}
