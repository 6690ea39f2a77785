package work

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/queue"
)

func tasksEnqueueCommand(a *cli.App) *cobra.Command {
	var payload, at string
	var delay time.Duration
	command := &cobra.Command{
		Use:   "enqueue TYPE [--payload JSON]",
		Short: "Enqueue a task",
		Long: "Enqueues a task. What its payload must have depends on the type (https://github.com/daybook-dev/daybook/blob/main/docs/tasks.md); the worker checks that. Every call makes a task: a\n" +
			"process that must begin once is begun by its kickoff function.",
		Example: "  daybook tasks enqueue db_function --payload '{\"task_type\": \"db_function\", \"db_function\": " +
			"\"comms.send_email_supervisor\", \"send_email_task_id\": 123}'",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			raw, err := readPayload(a, payload)
			if err != nil {
				return err
			}
			var o queue.TaskOptions
			if o.ScheduledAt, err = parseDue("--scheduled-at", at, delay); err != nil {
				return err
			}
			task := queue.RawTask{Type: args[0], Data: raw}
			if err := queue.CheckTask(task, o); err != nil {
				return err
			}
			db, err := a.Open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.Close()
			if o.ScheduledAt, err = db.DueIn(c.Context(), delay, o.ScheduledAt); err != nil {
				return err
			}
			done, err := queue.EnqueueTask(c.Context(), db.Pool, task, o)
			if err != nil {
				return err
			}
			a.NoteTaskType(c.Context(), task.Type)
			return a.Emit(answers.EnqueuedTask{ID: done.ID}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "enqueued (task %d)\n", done.ID)
				return err
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&payload, "payload", "{}", "the payload, a JSON object; @FILE reads a file, @- standard input")
	flags.StringVar(&at, "scheduled-at", "", "when it is due, as RFC 3339 (default now)")
	flags.DurationVar(&delay, "delay", 0, "until it is due, such as 10m (default at once)")
	return command
}
