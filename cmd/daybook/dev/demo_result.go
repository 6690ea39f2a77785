package dev

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.temporal.io/sdk/temporal"

	"github.com/daybook-dev/daybook/cmd/daybook/books"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
)

// demoResult is what the demonstration led to.
type demoResult struct {
	Source        string                `json:"source"`
	Organizations []demoOrganization    `json:"organizations"`
	Failed        []demoFailure         `json:"failed"`
	Skipped       []books.ImportProblem `json:"skipped"`
	TrialBalance  answers.TrialBalance  `json:"trial_balance"`
	TemporalUI    string                `json:"temporal_ui,omitempty"`
	// Wrong says in words what is not as it must be; empty: all is well.
	Wrong []string `json:"wrong"`
}

// demoOrganization is one organization's documents.
type demoOrganization struct {
	OrgID     string `json:"org_id"`
	Documents int64  `json:"documents"`
	Posted    int64  `json:"posted"`
	Failed    int64  `json:"failed"`
}

// demoFailure is a document that was not posted.
type demoFailure struct {
	OrgID      string           `json:"org_id"`
	DocumentID string           `json:"document_id"`
	Source     string           `json:"source"`
	Code       models.ErrorCode `json:"error_code"`
	Message    string           `json:"error"`
}

// collect reads the result from the database and compares it with what must be.
func (d *demo) collect(ctx context.Context) (*demoResult, error) {
	r := &demoResult{
		Source: d.documents.source, TemporalUI: d.stack.TemporalUI, Wrong: []string{}, Failed: []demoFailure{},
		Skipped: d.documents.skipped,
	}
	limit := len(d.documents.items) + 1
	jobs, err := d.db.AccountingJobs(ctx, listing.AccountingJobFilter{Limit: limit})
	if err != nil {
		return nil, err
	}
	posted, err := ledgerdb.CountImpacts(ctx, d.db.Pool)
	if err != nil {
		return nil, err
	}
	var all ledgerdb.BalanceFilter
	trial, err := ledgerdb.ReadTrial(ctx, d.db.Pool, all)
	if err != nil {
		return nil, err
	}
	r.TrialBalance = answers.TrialBalanceOf(&all, &trial)
	r.compare(&d.documents, jobs)
	r.count(jobs, posted)
	return r, nil
}

// compare checks each document's job against what must become of it.
func (r *demoResult) compare(docs *demoDocuments, jobs []models.AccountingJob) {
	byKey := map[ledgerdb.DocumentKey]*models.AccountingJob{}
	for i := range jobs {
		byKey[ledgerdb.DocumentKey{OrgID: jobs[i].OrgID, ID: jobs[i].DocumentID}] = &jobs[i]
	}
	if len(jobs) != len(docs.items) {
		r.wrong("%d documents were imported and there are %d jobs", len(docs.items), len(jobs))
	}
	for _, item := range docs.items {
		job := byKey[ledgerdb.DocumentKey{OrgID: item.Document.OrgID, ID: item.Document.ID}]
		if job == nil {
			r.wrong("%s has no job", item.Source)
			continue
		}
		code := models.ErrorCode(answers.Text(job.LastErrorCode))
		if job.State == models.JobFailed {
			r.Failed = append(r.Failed, demoFailure{
				OrgID: job.OrgID, DocumentID: job.DocumentID, Source: item.Source, Code: code,
				Message: answers.Text(job.LastError),
			})
		}
		want, fails := docs.mustFail[item.Source]
		switch {
		case fails && (job.State != models.JobFailed || code != want):
			r.wrong("%s is %s and must fail with %s", item.Source, strings.TrimSpace(string(job.State)+" "+string(code)),
				want)
		case !fails && job.State != models.JobCompleted:
			r.wrong("%s is %s and must be posted: %s %s", item.Source, job.State, code, answers.Text(job.LastError))
		}
	}
	if !r.TrialBalance.Balanced {
		r.wrong("debits and credits differ")
	}
}

// count sums up by organization, and checks that every completed job posted something.
func (r *demoResult) count(jobs []models.AccountingJob, posted map[string]int64) {
	byOrg := map[string]*demoOrganization{}
	completed := map[string]int64{}
	for i := range jobs {
		o := byOrg[jobs[i].OrgID]
		if o == nil {
			o = &demoOrganization{OrgID: jobs[i].OrgID, Posted: posted[jobs[i].OrgID]}
			byOrg[o.OrgID] = o
		}
		o.Documents++
		if jobs[i].State == models.JobFailed {
			o.Failed++
		}
		if jobs[i].State == models.JobCompleted {
			completed[o.OrgID]++
		}
	}
	for _, o := range byOrg {
		r.Organizations = append(r.Organizations, *o)
		if completed[o.OrgID] != o.Posted {
			r.wrong("organization %s has %d completed jobs and %d posted documents", o.OrgID, completed[o.OrgID], o.Posted)
		}
	}
	slices.SortFunc(r.Organizations, func(x, y demoOrganization) int { return cmp.Compare(x.OrgID, y.OrgID) })
}

func (r *demoResult) wrong(format string, args ...any) {
	r.Wrong = append(r.Wrong, fmt.Sprintf(format, args...))
}

// verdict is nil when exactly what must be is posted.
func (r *demoResult) verdict() error {
	if len(r.Wrong) == 0 {
		return nil
	}
	return cli.Tagged(cli.ErrNotAsExpected, "the result is not the expected one:\n  %s", strings.Join(r.Wrong, "\n  "))
}

// show prints the result.
func (d *demo) show(r *demoResult) error {
	return d.Emit(r, func(w io.Writer) error {
		if err := d.showOrganizations(w, r); err != nil {
			return err
		}
		for _, f := range r.Failed {
			if _, err := fmt.Fprintf(w, "\n%s of organization %s was not posted:\n  %s: %s\n", f.Source, f.OrgID, f.Code,
				terminal.OneLine(f.Message)); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintf(w, "\n%s\n\n", d.Bold(w, "Trial balance of all organizations")); err != nil {
			return err
		}
		if err := books.PrintTrialBalance(d.App, w, r.TrialBalance, false); err != nil {
			return err
		}
		if r.TrialBalance.Balanced {
			if _, err := fmt.Fprintf(w, "\nDebits equal credits in each of %s.\n",
				phrase.Plural(int64(len(r.TrialBalance.Totals)), "currency", "currencies")); err != nil {
				return err
			}
		}
		if r.TemporalUI == "" {
			return nil
		}
		next := fmt.Sprintf("Temporal UI: %s/namespaces/default/workflows/%s", r.TemporalUI, cli.AccountingLoop.ID)
		if !d.keep {
			next = "Next: `daybook dev` (`make dev`) runs such servers until Ctrl-C, with the console and the Temporal UI.\n" +
				"`daybook init app shop` makes an application, with a handler of your own."
		}
		_, err := fmt.Fprintln(w, next)
		return err
	})
}

func (d *demo) showOrganizations(w io.Writer, r *demoResult) error {
	t := cli.NewTable("ORGANIZATION", "DOCUMENTS", "POSTED", "FAILED")
	t.Right = []int{1, 2, 3}
	var total demoOrganization
	for _, o := range r.Organizations {
		t.Add(o.OrgID, strconv.FormatInt(o.Documents, 10), strconv.FormatInt(o.Posted, 10), strconv.FormatInt(o.Failed, 10))
		total.Documents += o.Documents
		total.Posted += o.Posted
		total.Failed += o.Failed
	}
	t.Add("total", strconv.FormatInt(total.Documents, 10), strconv.FormatInt(total.Posted, 10),
		strconv.FormatInt(total.Failed, 10))
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return d.Print(w, t)
}

func isCancelled(err error) bool {
	var cancelled *temporal.CanceledError
	return errors.As(err, &cancelled)
}
