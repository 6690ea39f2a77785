package work

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/moving/archive"
	"github.com/daybook-dev/daybook/internal/text/phrase"
)

// ArchivedTasks is what an archive got, for programs.
type ArchivedTasks struct {
	Before time.Time `json:"before"`
	// Tasks counts those that were moved, Files the files that they are in.
	Tasks int64 `json:"tasks"`
	Files int64 `json:"files"`
}

func tasksArchiveCommand(a *cli.App) *cobra.Command {
	var before, to string
	var batch int
	command := &cobra.Command{
		Use:   "archive --before TIME --to DIRECTORY|URL",
		Short: "Move completed tasks, with all their facts, from the database to files of JSON lines",
		Long: "Moves tasks that were completed before a time to an archive: a line of JSON each, with payload, leases and errors. Each file is complete and\n" +
			"flushed before the transaction commits that removes its tasks. When the program ends between the two, the tasks are in both, and a later call\n" +
			"writes them again: a task may be in the archive twice, with equal lines, and is never lost.",
		Example: "  daybook tasks archive --before 2160h --to /var/lib/daybook/archive",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			now := time.Now()
			at, err := cli.ParseMoment("--before", before, now)
			switch {
			case err != nil:
				return err
			case at.IsZero():
				return cli.Usagef("--before: want a duration such as 2160h, or a time such as 2026-01-31T09:00:00Z")
			case at.After(now):
				return cli.Usagef("--before %q lies ahead: want a time in the past", before)
			case batch < 1 || batch > 100_000:
				return cli.Usagef("--batch must be from 1 to 100000")
			}
			store, err := archive.Open(c.Context(), to)
			if err != nil {
				return err
			}
			defer func() { _ = store.Close() }()
			db, err := a.Open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.Close()
			if at, err = db.Moment(c.Context(), "--before", before); err != nil {
				return err
			}
			done := ArchivedTasks{Before: at}
			var ended error
			for {
				n, err := store.RemoveTasks(c.Context(), db.Pool, at, batch)
				if ended = err; err != nil || n == 0 {
					break
				}
				done.Tasks += int64(n)
				done.Files++
			}
			return a.EmitDone(ended, done.Files == 0, done, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s moved to %s\n", phrase.Plural(done.Tasks, "task", "tasks"),
					phrase.Plural(done.Files, "file", "files"))
				return err
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&before, "before", "",
		"those completed before: a duration back from now such as 2160h, or a time as RFC 3339")
	flags.StringVar(&to, "to", "", "a directory, or the URL of a bucket, such as file:///var/lib/daybook/archive")
	flags.IntVar(&batch, "batch", 1000, "how many tasks are moved at once, into one file; they are held in memory")
	_ = command.MarkFlagRequired("before")
	_ = command.MarkFlagRequired("to")
	return command
}
