package work

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/telemetry/span"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
)

func jobsCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{Use: "jobs", Short: "Enqueue, search, show, retry, edit, cancel and count jobs"}
	command.AddCommand(jobsEnqueueCommand(a), jobsListCommand(a), jobsShowCommand(a), jobsDecryptCommand(a),
		jobsRetryCommand(a), jobsEditCommand(a), jobsCancelCommand(a), jobsResumeCommand(a), jobsStatsCommand(a),
		jobsTypesCommand(a), jobsLimitCommand(a), jobsLimitsCommand(a))
	return command
}

// jobsFlags say which background jobs are meant.
type jobsFlags struct {
	filter                           listing.JobFilter
	state, code, since, until, about string
}

// add adds the flags; states says which --state may name.
func (f *jobsFlags) add(flags *pflag.FlagSet, states string) {
	flags.StringVar(&f.filter.OrgID, "org", "", "only of this organization")
	flags.StringVar(&f.filter.Type, "type", "", "only of this type")
	flags.StringVar(&f.state, "state", "", "only in this state: "+states)
	flags.StringVar(&f.code, "code", "", "only with this error code, such as UPSTREAM_5XX")
	flags.StringVar(&f.since, "since", "",
		"only enqueued, or with failed jobs failed, since: a duration such as 24h, or a time as RFC 3339")
	flags.StringVar(&f.until, "until", "", "only enqueued, or with failed jobs failed, before: the same")
	flags.StringVar(&f.filter.Queue, "queue", "",
		"only of this named queue; default: of the one that jobs without a queue are in")
	flags.StringVar(&f.filter.Waits, "waits", "",
		"only those that wait for: turn (in their sequence), jobs, callback or limit (of their key)")
	flags.StringVar(&f.about, "link", "", "only with a link, such as order=17")
}

// given reports whether any of the flags is.
func (f *jobsFlags) given() bool {
	return *f != jobsFlags{}
}

// parse makes the filter of the flags. What they do not say of the state is state.
func (f *jobsFlags) parse(state models.JobState) (listing.JobFilter, error) {
	out := f.filter
	var err error
	if out.State, err = cli.ParseState(f.state); err != nil {
		return out, err
	}
	if out.State == "" {
		out.State = state
	}
	now := time.Now()
	if out.Since, err = cli.ParseMoment("--since", f.since, now); err != nil {
		return out, err
	}
	if out.Until, err = cli.ParseMoment("--until", f.until, now); err != nil {
		return out, err
	}
	if f.about != "" {
		if out.Link, err = cli.ParseLink(f.about); err != nil {
			return out, err
		}
	}
	out.Code = models.ErrorCode(f.code)
	return out, nil
}

func jobsListCommand(a *cli.App) *cobra.Command {
	var f jobsFlags
	var page cli.PageFlags
	command := &cobra.Command{
		Use:     "list",
		Short:   "List jobs, the last enqueued one first; failed ones (dead letters) by when they failed",
		Example: "  daybook jobs list --state failed --type webhook --code UPSTREAM_5XX --since 24h",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			filter, err := f.parse("")
			if err != nil {
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
			list, err := db.Jobs(c.Context(), filter, page.Limit, page.Cursor)
			if err != nil {
				return err
			}
			return a.Emit(answers.JobListOf(&list), func(w io.Writer) error {
				defer a.More(list.Next)
				return printJobs(a, w, list.Jobs, list.Owners)
			})
		},
	}
	flags := command.Flags()
	f.add(flags, "pending, leased, completed, failed or cancelled")
	flags.StringVar(&f.filter.Key, "key", "", "only with this idempotency key")
	page.Add(command, "jobs", store.DefaultLimit)
	return command
}

func printJobs(a *cli.App, w io.Writer, jobs []models.Job, owners map[string]string) error {
	t := cli.NewTable("JOB", "ORGANIZATION", "TYPE", "OWNER", "STATE", "ATTEMPTS", "ENQUEUED", "DUE", "FINISHED", "CODE",
		"ERROR")
	t.Right = []int{5}
	for i := range jobs {
		j := &jobs[i]
		due := ""
		if j.State == models.JobPending {
			due = listedDue(j)
		}
		t.Add(j.ID, j.OrgID, j.Type, owners[j.Type], string(j.State), strconv.Itoa(j.RunCount), cli.FormatTime(j.CreatedAt),
			due, cli.OptionalTime(j.FinishedAt),
			answers.Text(j.LastErrorCode), cli.ListLine(answers.ErrorText(j.LastError)))
	}
	return a.Print(w, t)
}

func jobsShowCommand(a *cli.App) *cobra.Command {
	return jobCommand(a, &cobra.Command{
		Use:   "show ID",
		Short: "Show a job: payload, links, result, and the history of its attempts",
	}, func(context.Context, *listing.JobDetail) error { return nil })
}

func jobsDecryptCommand(a *cli.App) *cobra.Command {
	return jobCommand(a, &cobra.Command{
		Use:   "decrypt ID",
		Short: "Show a job with what is encrypted of it in plain",
		Long: "Shows a job as `daybook jobs show` does, with what is encrypted of it in plain, by the keys of\n" +
			"DAYBOOK_ENCRYPTION_KEYS. Each call is in the log of actions (`daybook actions`).",
	}, func(ctx context.Context, d *listing.JobDetail) error {
		keys, err := a.Encryption()
		if err != nil {
			return err
		}
		actions.About(ctx, d.OrgID, "", nil)
		return answers.Decrypt(ctx, keys, d)
	})
}

// jobCommand shows one job. prepare may change what it shows.
func jobCommand(a *cli.App, command *cobra.Command, prepare func(context.Context, *listing.JobDetail) error,
) *cobra.Command {
	var page cli.PageFlags
	command.Args = cobra.ExactArgs(1)
	command.RunE = func(c *cobra.Command, args []string) error {
		history, err := page.History()
		if err != nil {
			return err
		}
		db, err := a.Open(c.Context(), 1)
		if err != nil {
			return err
		}
		defer db.Close()
		d, err := db.Job(c.Context(), "", args[0], history)
		if err != nil {
			return err
		}
		if err := prepare(c.Context(), &d); err != nil {
			return err
		}
		shown := answers.JobDetailOf(&d)
		return a.Emit(shown, func(w io.Writer) error { return printJob(a, w, &d, shown.NextCursor) })
	}
	page.Add(command, "attempts, the newest first,", 20)
	return command
}

func printJob(a *cli.App, w io.Writer, d *listing.JobDetail, older string) error {
	attempts := strconv.Itoa(d.RunCount)
	if d.MaxAttempts != nil {
		attempts += " of " + strconv.Itoa(*d.MaxAttempts)
	}
	lines := [][2]string{
		{"job", d.ID},
		{"organization", d.OrgID},
		{"type", d.Type},
		{"owner", d.Owner},
		{"state", string(d.State)},
		{"attempts", attempts},
		{"priority", answers.Priority(d.Priority)},
		{"key", answers.Text(d.IdempotencyKey)},
		{"queue", answers.Text(d.Queue)},
		{"min version", versionText(d.MinVersion)},
		{"sequence", answers.Text(d.Sequence)},
		{"limit key", answers.Text(d.LimitKey)},
		{"debounce key", answers.Text(d.DebounceKey)},
		{"enqueued", cli.FormatTime(d.CreatedAt)},
		{"due", dueOf(&d.Job)},
		{"finished", cli.OptionalTime(d.FinishedAt)},
		{"last attempt", cli.OptionalTime(d.LastAttemptedAt)},
		{"error", answers.Text(d.LastErrorCode)},
		{"", answers.ErrorText(d.LastError)},
		{"worker", answers.Text(d.Worker)},
		{"trace", span.TraceID(answers.Text(d.TraceParent))},
		{"generation", strconv.FormatInt(d.Generation, 10)},
		{"payload", string(d.Payload)},
		{"progress", string(d.Progress)},
		{"result", string(d.Result)},
	}
	for _, e := range d.Edits {
		lines = append(lines, [2]string{"edited", fmt.Sprintf("%s by %s, after %s; the payload was %s",
			cli.FormatTime(e.At), e.By, phrase.Plural(int64(e.Attempts), "attempt", "attempts"), e.Payload)})
	}
	for _, l := range d.Links {
		lines = append(lines, [2]string{"link", l.Kind + "=" + l.ID})
	}
	for _, w := range d.WaitsFor {
		lines = append(lines, [2]string{"waits for", waitsForText(w)})
	}
	for i := range d.Steps {
		lines = append(lines, [2]string{"step", stepText(&d.Steps[i])})
	}
	for _, line := range lines {
		if line[1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%-13s %s\n", line[0], terminal.OneLine(line[1])); err != nil {
			return err
		}
	}
	if len(d.Attempts) == 0 {
		return nil
	}
	_, _ = fmt.Fprintln(w)
	t := cli.NewTable("ATTEMPT", "STARTED", "TOOK", "OUTCOME", "WORKER", "CODE", "ERROR")
	t.Right = []int{0}
	for i := range d.Attempts {
		at := &d.Attempts[i]
		t.Add(strconv.Itoa(at.Attempt), cli.FormatTime(at.StartedAt), phrase.Duration(at.EndedAt.Sub(at.StartedAt)),
			cli.OutcomeOf(&models.Attempt{Outcome: at.Outcome, Times: at.Times, FirstStartedAt: at.FirstStartedAt}),
			at.Worker, answers.Text(at.ErrorCode), answers.ErrorText(at.Error))
	}
	if err := a.Print(w, t); err != nil || older == "" {
		return err
	}
	_, err := fmt.Fprintf(w, "%s in all; older ones: --cursor %s\n", phrase.Plural(d.AttemptRows, "entry", "entries"),
		older)
	return err
}

// versionText is the lowest version of a handler; empty: there is none.
func versionText(version *int) string {
	if version == nil {
		return ""
	}
	return strconv.Itoa(*version)
}

// stepText is a step that is kept, in a line.
func stepText(s *store.Step) string {
	text := fmt.Sprintf("%s, attempt %d, %s, took %s", s.Name, s.Attempt, cli.FormatTime(s.KeptAt),
		phrase.Duration(s.KeptAt.Sub(s.StartedAt)))
	if s.Times > 1 || !s.Done {
		text += ", " + phrase.Plural(int64(s.Times), "round", "rounds")
	}
	if !s.Done {
		text += ", goes on"
	}
	return text + ": " + string(s.Result)
}

func jobsStatsCommand(a *cli.App) *cobra.Command {
	var org string
	command := &cobra.Command{
		Use:   "stats",
		Short: "Count jobs by type and state",
		Args:  cobra.NoArgs,
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, _ []string) error {
			stats, err := db.JobStats(c.Context(), org)
			if err != nil {
				return err
			}
			return a.Emit(map[string]any{"jobs": answers.List(stats, answers.TypeStatsOf)}, func(w io.Writer) error {
				t := cli.NewTable("TYPE", "STATE", "JOBS", "OLDEST", "NEWEST", "AVERAGE ATTEMPTS")
				t.Right = []int{2, 5}
				for _, s := range stats {
					t.Add(s.Type, string(s.State), cli.CountText(s.Count, s.Estimated), cli.FormatTime(s.Oldest),
						cli.FormatTime(s.Newest),
						strconv.FormatFloat(s.AverageAttempts, 'f', 1, 64))
				}
				return a.Print(w, t)
			})
		}),
	}
	command.Flags().StringVar(&org, "org", "", "only of this organization")
	return command
}
