package work

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/payload"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// editFlags are those of an edit of one job or of all that match.
type editFlags struct {
	changeFlags
	payload, patch, retry string
	generation            int64
	// based says that generation was given.
	based, skipValidation bool
	encrypt               []string
}

func (f *editFlags) check(args []string) error {
	switch {
	case f.retry != "" && f.retry != string(queue.RetryNow) && f.retry != string(queue.RetryLater) &&
		f.retry != string(queue.RetryReset):
		return cli.Usagef("--retry=%s: want now, later or reset", f.retry)
	case len(args) == 1 && (f.all || f.given()):
		return cli.Usagef("name either one job, or --all that match")
	case len(args) == 1 && (f.payload == "" || f.patch != ""):
		return cli.Usagef("give the job's new payload by --payload; --patch is for --all that match")
	case len(args) == 0 && !f.all && !f.dryRun:
		return cli.Usagef("name a job, or say --all; --dry-run counts those that match")
	case len(args) == 0 && (f.patch == "" || f.payload != "" || f.based || f.skipValidation || f.encrypt != nil):
		return cli.Usagef("many jobs are edited by --patch alone; --payload, --generation, --encrypt and --skip-validation are for one job")
	}
	return nil
}

func jobsEditCommand(a *cli.App) *cobra.Command {
	var f editFlags
	command := &cobra.Command{
		Use:   "edit (ID --payload JSON | --all --patch JSON [--org ORG] [--type TYPE] [--code CODE]) [--retry]",
		Short: "Correct the payload of a job, or of all dead letters that match",
		Long: "Gives a dead letter, a cancelled job or one that waits another payload. Its attempts, its place in its sequence\n" +
			"and its key stay; `daybook jobs show` has the old payload. A job that runs is refused. Many jobs are edited by a\n" +
			"JSON patch (RFC 6902): if the payload of one of them would be refused, nothing is changed.",
		Example: "  daybook jobs edit 0197… --payload @corrected.json --retry\n" +
			"  daybook jobs edit --all --type invoice --code PAYLOAD_INVALID \\\n" +
			"    --patch '[{\"op\": \"replace\", \"path\": \"/currency\", \"value\": \"EUR\"}]' --retry --dry-run",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			f.based = c.Flags().Changed("generation")
			if err := f.check(args); err != nil {
				return err
			}
			if len(args) == 1 {
				return f.one(c.Context(), a, args[0])
			}
			return f.many(c.Context(), a)
		},
	}
	f.add(command, "failed, cancelled or pending")
	flags := command.Flags()
	flags.StringVar(&f.payload, "payload", "", "the whole new payload, a JSON object; @FILE reads a file, @- standard input")
	flags.StringVar(&f.patch, "patch", "", "a JSON patch of each payload; @FILE reads a file, @- standard input")
	flags.StringVar(&f.retry, "retry", "", "try them again as well, in the same transaction; =reset as if never tried")
	flags.Lookup("retry").NoOptDefVal = string(queue.RetryNow)
	flags.Int64Var(&f.generation, "generation", 0, "refuse if the job was changed since `daybook jobs show` showed this")
	flags.StringSliceVar(&f.encrypt, "encrypt", nil,
		"members of the payload to keep encrypted, or * for all; needed for a job that is encrypted")
	flags.BoolVar(&f.skipValidation, "skip-validation", false, "leave the check against the type's schema to the worker")
	return command
}

// one edits a job, and shows where its payload differs.
func (f *editFlags) one(ctx context.Context, a *cli.App, id string) error {
	raw, err := readPayload(a, f.payload)
	if err != nil {
		return err
	}
	db, err := a.Open(ctx, 2)
	if err != nil {
		return err
	}
	defer db.Close()
	job, err := db.JobToEdit(ctx, "", id)
	if err != nil {
		return err
	}
	actions.About(ctx, job.OrgID, "", nil)
	if !f.skipValidation {
		if _, err := cli.CheckBuiltinType(job.Type, raw); err != nil {
			return err
		}
	}
	o := queue.EditOptions{By: cli.SystemUser(), Retry: queue.RetryMode(f.retry), Encrypt: f.encrypt}
	if o.Encryption, err = a.Encryption(); err != nil {
		return err
	}
	if f.based {
		o.Generation = &f.generation
	}
	p := queue.RawPayload{Type: job.Type, Data: raw}
	var done queue.Response
	if f.dryRun {
		err = queue.CheckJob(job.OrgID, p, queue.JobOptions{})
		done = queue.Response{JobID: id, Result: queue.Unchanged, Reason: "nothing was changed: it was a dry run"}
	} else {
		done, err = queue.EditJob(ctx, db.Pool, id, p, o)
	}
	if err != nil {
		return err
	}
	change := answers.Change{JobID: done.JobID, Result: string(done.Result), Reason: done.Reason}
	return a.Emit(change, func(w io.Writer) error { return printEdit(w, change, job.Payload, raw) })
}

func printEdit(w io.Writer, change answers.Change, before, after json.RawMessage) error {
	for _, d := range payload.Diff(before, after) {
		line := fmt.Sprintf("%s: %s → %s", cmp.Or(d.Place, "/"), cmp.Or(d.Before, "(nothing)"), cmp.Or(d.After, "(nothing)"))
		if _, err := fmt.Fprintln(w, terminal.OneLine(line)); err != nil {
			return err
		}
	}
	said := fmt.Sprintf("%s (job %s)", change.Result, change.JobID)
	if change.Reason != "" {
		said += ": " + change.Reason
	}
	_, err := fmt.Fprintln(w, said)
	return err
}

// many edits all jobs that match.
func (f *editFlags) many(ctx context.Context, a *cli.App) error {
	filter, err := f.parse(models.JobFailed)
	if err != nil {
		return err
	}
	patch, err := readJSON(a, "--patch", f.patch)
	if err != nil {
		return err
	}
	db, err := a.Open(ctx, 2)
	if err != nil {
		return err
	}
	defer db.Close()
	op, ended := db.EditJobs(ctx, db.Pool, listing.BulkJobs{Filter: filter, All: true, DryRun: f.dryRun}, listing.BulkEdit{
		Patch: patch, Retry: f.retry, By: cli.SystemUser(),
		Check: func(jobType string, raw json.RawMessage) error {
			p := queue.RawPayload{Type: jobType, Data: raw}
			return cmp.Or(queue.CheckJob("any", p, queue.JobOptions{}), cli.CheckBuiltinPayload(jobType, raw))
		},
	})
	if ended != nil && op.ID == "" {
		return ended
	}
	return f.emitBulk(a, &op, ended, "edited")
}
