package main

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/telemetry/span"
	"github.com/daybook-dev/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/models"
)

func tasksListCommand(a *app) *cobra.Command {
	var filter listing.TaskFilter
	var page pageFlags
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
			if filter.Since, err = parseMoment("--since", since, now); err != nil {
				return err
			}
			if filter.Until, err = parseMoment("--until", until, now); err != nil {
				return err
			}
			if err := page.check(); err != nil {
				return err
			}
			db, err := a.open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.close()
			list, err := db.Tasks(c.Context(), filter, page.limit, page.cursor)
			if err != nil {
				return err
			}
			return a.emit(answers.TaskListOf(&list), func(w io.Writer) error {
				defer a.more(list.Next)
				return a.printTasks(w, list.Tasks)
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&state, "state", "", "only in this state: waiting, ready, leased, stuck, failed or completed")
	flags.StringVar(&filter.Type, "type", "", "only of this type")
	flags.StringVar(&since, "since", "", "only enqueued, completed or failed since: a duration such as 24h, or a time as RFC 3339")
	flags.StringVar(&until, "until", "", "only enqueued, completed or failed before: the same")
	page.add(command, "tasks", store.DefaultLimit)
	return command
}

func (a *app) printTasks(w io.Writer, tasks []listing.ListedTask) error {
	t := newTable("TASK", "TYPE", "STATE", "LEASES", "ENQUEUED", "SCHEDULED", "LEASED UNTIL", "COMPLETED", "LAST ERROR")
	t.right = []int{0, 3}
	for i := range tasks {
		k := &tasks[i]
		t.add(strconv.FormatInt(k.ID, 10), k.Type, string(k.State), strconv.Itoa(k.Leases), formatTime(k.EnqueuedAt), formatTime(k.ScheduledAt),
			optionalTime(k.LeasedUntil), optionalTime(k.CompletedAt), listLine(k.LastError))
	}
	return a.print(w, t)
}

// parseTaskID reads the number of a task.
func parseTaskID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, usagef("task %q: want its number, such as 17", text)
	}
	return id, nil
}

// shownTask is a task with the newest of its facts, for programs.
type shownTask struct {
	answers.TaskDetail
	answers.TaskHistory
}

func tasksShowCommand(a *app) *cobra.Command {
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
				return usagef("--limit must be at least 1")
			}
			db, err := a.open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.close()
			d, err := db.Task(c.Context(), id)
			if err != nil {
				return err
			}
			h, err := db.TaskHistory(c.Context(), id, limit, "")
			if err != nil {
				return err
			}
			return a.emit(shownTask{answers.TaskDetailOf(&d), answers.TaskHistoryOf(&h)}, func(w io.Writer) error {
				if err := printTask(w, &d); err != nil {
					return err
				}
				return a.printTaskHistory(w, &h)
			})
		},
	}
	command.Flags().IntVar(&limit, "limit", 20, "how many facts to show, the newest first; `daybook tasks history` shows all")
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
		{"enqueued", formatTime(d.EnqueuedAt)},
		{"scheduled", formatTime(d.ScheduledAt)},
		{"leased until", optionalTime(d.LeasedUntil)},
		{"worker", d.Worker},
		{"trace", span.TraceID(d.TraceParent)},
		{"completed", optionalTime(d.CompletedAt)},
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

func tasksHistoryCommand(a *app) *cobra.Command {
	var page pageFlags
	command := &cobra.Command{
		Use:   "history ID",
		Short: "List the facts of a task, the newest first: when it was handed out, what went wrong, when it was completed",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := parseTaskID(args[0])
			if err == nil {
				err = page.check()
			}
			if err != nil {
				return err
			}
			db, err := a.open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.close()
			h, err := db.TaskHistory(c.Context(), id, page.limit, page.cursor)
			if err != nil {
				return err
			}
			return a.emit(answers.TaskHistoryOf(&h), func(w io.Writer) error { return a.printTaskHistory(w, &h) })
		},
	}
	page.add(command, "facts", store.DefaultLimit)
	return command
}

func (a *app) printTaskHistory(w io.Writer, h *listing.TaskHistory) error {
	t := newTable("AT", "FACT", "LEASE", "EXPIRES", "ERROR")
	t.right = []int{2}
	for i := range h.Events {
		e := &h.Events[i]
		lease := ""
		if e.LeaseID != nil {
			lease = strconv.FormatInt(*e.LeaseID, 10)
		}
		t.add(formatTime(e.At), e.Event, lease, optionalTime(e.ExpiresAt), e.Error)
	}
	if err := a.print(w, t); err != nil {
		return err
	}
	if h.Next != "" {
		a.say("There are older ones: daybook tasks history %d --cursor %s", h.TaskID, h.Next)
	}
	return nil
}
