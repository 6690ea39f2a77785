package work

import (
	"context"
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
	"github.com/daybook-dev/daybook/internal/text/cursor"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
)

func accountingCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{Use: "accounting", Short: "Enqueue, list, show, retry, repost and cancel accounting jobs"}
	command.AddCommand(accountingEnqueueCommand(a), accountingListCommand(a), accountingShowCommand(a),
		accountingRetryCommand(a), accountingRepostCommand(a), accountingCancelCommand(a), accountingElsewhereCommand(a))
	return command
}

func accountingListCommand(a *cli.App) *cobra.Command {
	var filter listing.AccountingJobFilter
	var page cli.PageFlags
	var state, code, since, until string
	command := &cobra.Command{
		Use:     "list",
		Short:   "List jobs, the last enqueued one first; failed ones by when they failed",
		Example: "  daybook accounting list --state failed --code UNBALANCED --since 24h",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if filter.State, err = cli.ParseState(state); err != nil {
				return err
			}
			now := time.Now()
			if filter.Since, err = cli.ParseMoment("--since", since, now); err != nil {
				return err
			}
			if filter.Until, err = cli.ParseMoment("--until", until, now); err != nil {
				return err
			}
			if err := page.Check(); err != nil {
				return err
			}
			filter.Code = models.ErrorCode(code)
			db, err := a.Open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.Close()
			list, err := readAccountingJobs(c.Context(), db, filter, page)
			if err != nil {
				return err
			}
			return a.Emit(answers.AccountingJobListOf(list.Jobs, list.Next), func(w io.Writer) error {
				defer a.More(list.Next)
				return printAccountingJobs(a, w, list.Jobs)
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&filter.OrgID, "org", "", "only of this organization")
	flags.StringVar(&state, "state", "", "only in this state: pending, leased, completed, failed or cancelled")
	flags.StringVar(&code, "code", "", "only with this error code, such as UNBALANCED")
	flags.StringVar(&since, "since", "", "only changed since: a duration such as 24h, or a time as RFC 3339")
	flags.StringVar(&until, "until", "", "only changed before: the same")
	page.Add(command, "jobs", store.DefaultLimit)
	return command
}

// accountingPage is a page of accounting jobs.
type accountingPage struct {
	Jobs []models.AccountingJob
	Next string
}

// readAccountingJobs reads a whole page, in as many searches as that takes: one reads a bounded
// number of rows.
func readAccountingJobs(ctx context.Context, db *cli.Database, f listing.AccountingJobFilter,
	page cli.PageFlags,
) (accountingPage, error) {
	list := accountingPage{Jobs: []models.AccountingJob{}, Next: page.Cursor}
	for {
		f.Limit = page.Limit - len(list.Jobs)
		found, err := db.FindAccountingJobs(ctx, f, "", list.Next)
		if err != nil {
			return list, err
		}
		list.Jobs, list.Next = append(list.Jobs, found.Jobs...), found.Next
		if list.Next == "" || len(list.Jobs) >= page.Limit {
			return list, nil
		}
	}
}

func printAccountingJobs(a *cli.App, w io.Writer, jobs []models.AccountingJob) error {
	t := cli.NewTable("ORGANIZATION", "DOCUMENT", "VERSION", "STATE", "ATTEMPTS", "CHANGED", "DUE", "CODE", "ERROR")
	t.Right = []int{2, 4}
	for i := range jobs {
		j := &jobs[i]
		due := ""
		if j.State == models.JobPending {
			due = cli.FormatTime(j.ReadyAt)
		}
		state := string(j.State)
		if j.NoEntries != "" {
			state += ": " + j.NoEntries.Words()
		}
		t.Add(j.OrgID, j.DocumentID, strconv.FormatInt(j.VersionHint, 10), state, strconv.Itoa(j.RunCount),
			cli.FormatTime(j.UpdatedAt), due, answers.Text(j.LastErrorCode), cli.ListLine(answers.Text(j.LastError)))
	}
	return a.Print(w, t)
}

// accountingJobDetails is a job with a page of its history and what it posted.
type accountingJobDetails struct {
	Job models.AccountingJob
	// Attempts are the newest first; Next is the cursor of older ones, empty: there are none.
	Attempts []models.Attempt
	Next     string
	Impacts  []models.Impact
}

// ShownAccountingJob is accountingJobDetails for programs.
type ShownAccountingJob struct {
	answers.AccountingJobDetail
	Impacts []answers.Impact `json:"impacts"`
}

func accountingShowCommand(a *cli.App) *cobra.Command {
	var page cli.PageFlags
	command := &cobra.Command{
		Use:   "show ORG DOCUMENT",
		Short: "Show a document's job, the newest attempts at it and what it posted",
		Args:  cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			history, err := page.History()
			if err != nil {
				return err
			}
			db, err := a.Open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.Close()
			d, err := readAccountingJob(c.Context(), db, args[0], args[1], history)
			if err != nil {
				return err
			}
			shown := ShownAccountingJob{
				answers.AccountingJobDetailOf(&d.Job, d.Attempts, d.Next),
				answers.List(d.Impacts, answers.ImpactOf),
			}
			return a.Emit(shown, func(w io.Writer) error { return printAccountingJob(a, w, &d) })
		},
	}
	page.Add(command, "attempts, the newest first,", store.DefaultLimit)
	return command
}

func readAccountingJob(ctx context.Context, db *cli.Database, org, document string,
	history listing.HistoryPage,
) (d accountingJobDetails, err error) {
	if d.Job, err = db.AccountingJob(ctx, org, document); err != nil {
		return d, err
	}
	shown := history.Limit
	history.Limit++
	if d.Attempts, err = db.Attempts(ctx, d.Job.ID, history); err != nil {
		return d, err
	}
	d.Attempts, d.Next = cursor.Page(shown, d.Attempts, func(at models.Attempt) any { return at.ID })
	d.Impacts, err = db.Impacts(ctx, org, document)
	return d, err
}

func printAccountingJob(a *cli.App, w io.Writer, d *accountingJobDetails) error {
	j := &d.Job
	for _, line := range [][2]string{
		{"job", j.ID},
		{"organization", j.OrgID},
		{"document", j.DocumentID},
		{"version", strconv.FormatInt(j.VersionHint, 10)},
		{"state", string(j.State)},
		{"attempts", strconv.Itoa(j.RunCount)},
		{"priority", answers.Priority(j.Priority)},
		{"first due", cli.FormatTime(j.FirstReadyAt)},
		{"due", cli.FormatTime(j.ReadyAt)},
		{"finished", cli.OptionalTime(j.FinishedAt)},
		{"last attempt", cli.OptionalTime(j.LastAttemptedAt)},
		{"error", answers.Text(j.LastErrorCode)},
		{"", answers.Text(j.LastError)},
		{"turn", answers.Text(j.TurnID)},
		{"worker", answers.Text(j.Worker)},
		{"trace", span.TraceID(answers.Text(j.TraceParent))},
	} {
		if line[1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%-13s %s\n", line[0], terminal.OneLine(line[1])); err != nil {
			return err
		}
	}
	if len(d.Attempts) > 0 {
		_, _ = fmt.Fprintln(w)
		t := cli.NewTable("ATTEMPT", "VERSION", "STARTED", "TOOK", "OUTCOME", "WORKER", "CODE", "ERROR")
		t.Right = []int{0, 1}
		for i := range d.Attempts {
			at := &d.Attempts[i]
			t.Add(strconv.Itoa(at.Attempt), strconv.FormatInt(at.Version, 10), cli.FormatTime(at.StartedAt),
				phrase.Duration(at.EndedAt.Sub(at.StartedAt)), cli.OutcomeOf(at), at.Worker, answers.Text(at.ErrorCode),
				answers.Text(at.Error))
		}
		if err := a.Print(w, t); err != nil {
			return err
		}
		if d.Next != "" {
			_, _ = fmt.Fprintf(w, "There are older attempts: --cursor %s\n", d.Next)
		}
	}
	if len(d.Impacts) == 0 {
		return nil
	}
	_, _ = fmt.Fprintln(w)
	t := cli.NewTable("IMPACT", "KIND", "VERSION", "POSTING DATE", "RULES", "RULE", "ENTRIES", "CREATED")
	t.Right = []int{0, 2, 4, 6}
	for i := range d.Impacts {
		m := &d.Impacts[i]
		rules := ""
		if m.RuleSetVersion != nil {
			rules = strconv.FormatInt(*m.RuleSetVersion, 10)
		}
		entries := strconv.Itoa(m.EntryCount)
		if m.NoEntries != "" {
			entries += ": " + m.NoEntries.Words()
		}
		t.Add(strconv.FormatInt(m.ID, 10), string(m.Kind), strconv.FormatInt(m.DocumentVersion, 10), m.PostingDate.String(),
			rules, m.RuleID,
			entries, cli.FormatTime(m.CreatedAt))
	}
	return a.Print(w, t)
}
