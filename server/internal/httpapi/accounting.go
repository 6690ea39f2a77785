package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// DocumentInput names one document.
type DocumentInput struct {
	DocumentID string `path:"documentId" maxLength:"255" doc:"The document; a slash in it is written %2F"`
	OrgID      string `query:"orgId" maxLength:"255" doc:"The organization; default that of the token"`
}

func (s *server) accounting() {
	operation(s, tokens.ScopeEnqueue, huma.Operation{
		OperationID: "enqueueAccountingJob", Method: http.MethodPost, Path: "/api/accounting/jobs/enqueue",
		Tags:        []string{tagAccounting},
		Summary:     "Ask for a document version to be posted",
		Description: "There is one job a document: a newer version takes the place of an older one, never the reverse.",
		Metadata:    map[string]any{exampleKey: `{"documentId": "invoice-17", "version": 1}`},
	}, s.enqueueAccountingJob, http.StatusNotFound)
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "listAccountingJobs", Method: http.MethodGet, Path: "/api/accounting/jobs",
		Tags:    []string{tagAccounting},
		Summary: "List accounting jobs, the last created one first",
	}, s.listAccountingJobs, http.StatusNotFound)
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "getAccountingJob", Method: http.MethodGet, Path: "/api/accounting/jobs/{documentId}",
		Tags:    []string{tagAccounting},
		Summary: "Get a document's job and a page of the attempts at it",
	}, s.getAccountingJob, http.StatusNotFound)
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "retryAccountingJob", Method: http.MethodPost, Path: "/api/accounting/jobs/{documentId}/retry",
		Tags:     []string{tagAccounting},
		Summary:  "Make a document's job due again, whatever became of it",
		Metadata: map[string]any{actionKey: "accounting.retry"},
	}, s.retryAccountingJob, http.StatusNotFound)
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "cancelAccountingJob", Method: http.MethodPost, Path: "/api/accounting/jobs/{documentId}/cancel",
		Tags:        []string{tagAccounting},
		Summary:     "Ask that a document not be posted",
		Description: "A running attempt commits nothing. What is posted already stays.",
		Metadata:    map[string]any{actionKey: "accounting.cancel"},
	}, s.cancelAccountingJob, http.StatusNotFound, http.StatusConflict)
}

type enqueueAccountingJobInput struct {
	Body struct {
		OrgID      string    `json:"orgId,omitempty" maxLength:"255" doc:"The organization; default that of the token"`
		DocumentID string    `json:"documentId" minLength:"1" maxLength:"255"`
		Version    int64     `json:"version" minimum:"0" doc:"The document version that is to be posted"`
		ReadyAt    time.Time `json:"readyAt,omitzero" required:"false" doc:"When it is due; default now"`
		Priority   string    `json:"priority,omitempty" enum:"high,normal,low" doc:"Default normal"`
	}
}

func (s *server) enqueueAccountingJob(ctx context.Context, in *enqueueAccountingJobInput) (*changeOutput, error) {
	org, err := caller(ctx).reachOne(in.Body.OrgID, "body.orgId")
	if err != nil {
		return nil, err
	}
	if err := s.limits.job(&caller(ctx).Token); err != nil {
		return nil, err
	}
	return requested(queue.EnqueueAccountingJob(ctx, s.pool, queue.AccountingJob{
		OrgID: org, DocumentID: in.Body.DocumentID, Version: in.Body.Version, ReadyAt: in.Body.ReadyAt,
		Priority: priority(in.Body.Priority),
	}))
}

type listAccountingJobsInput struct {
	PageInput
	OrgID string    `query:"orgId" maxLength:"255" doc:"Only of this organization; default that of the token"`
	State string    `query:"state" enum:"pending,leased,completed,failed,cancelled"`
	Code  string    `query:"code" maxLength:"100" doc:"Only with this error code"`
	Since time.Time `query:"since" doc:"Only changed since"`
	Until time.Time `query:"until" doc:"Only changed before"`
}

type listAccountingJobsOutput struct {
	Body struct{ answers.AccountingJobList }
}

func (s *server) listAccountingJobs(ctx context.Context,
	in *listAccountingJobsInput,
) (*listAccountingJobsOutput, error) {
	org, err := caller(ctx).reach(in.OrgID)
	if err != nil {
		return nil, err
	}
	var after string
	if err := in.decode(&after); err != nil {
		return nil, err
	}
	f := listing.AccountingJobFilter{
		OrgID: org, State: models.JobState(in.State), Code: models.ErrorCode(in.Code),
		Since: in.Since, Until: in.Until, Limit: in.Limit + 1,
	}
	jobs, err := s.Listing.AccountingJobsAfter(ctx, f, after)
	if err != nil {
		return nil, err
	}
	out := &listAccountingJobsOutput{}
	jobs, next := page(in.PageInput, jobs, func(j models.AccountingJob) any { return j.ID })
	out.Body.AccountingJobList = answers.AccountingJobListOf(jobs, next)
	return out, nil
}

type getAccountingJobInput struct {
	DocumentInput
	PageInput
}

type accountingJobOutput struct {
	Body struct{ answers.AccountingJobDetail }
}

func (s *server) getAccountingJob(ctx context.Context, in *getAccountingJobInput) (*accountingJobOutput, error) {
	org, err := caller(ctx).reachOne(in.OrgID, "query.orgId")
	if err != nil {
		return nil, err
	}
	h := listing.HistoryPage{Limit: in.Limit + 1}
	if err := in.decode(&h.Before); err != nil {
		return nil, err
	}
	job, err := s.Listing.AccountingJob(ctx, org, in.DocumentID)
	if err != nil {
		return nil, err
	}
	attempts, err := s.Listing.Attempts(ctx, job.ID, h)
	if err != nil {
		return nil, err
	}
	out := &accountingJobOutput{}
	attempts, next := page(in.PageInput, attempts, func(a models.Attempt) any { return a.ID })
	out.Body.AccountingJobDetail = answers.AccountingJobDetailOf(&job, attempts, next)
	return out, nil
}

type retryAccountingJobInput struct {
	DocumentInput
	Body *struct {
		DelaySeconds float64 `json:"delaySeconds,omitempty" minimum:"0" maximum:"31536000" doc:"Until it is due; default at once"`
	}
}

func (s *server) retryAccountingJob(ctx context.Context, in *retryAccountingJobInput) (*changeOutput, error) {
	org, err := caller(ctx).reachOne(in.OrgID, "query.orgId")
	if err != nil {
		return nil, err
	}
	p := queue.PendingAccountingJob{OrgID: org, DocumentID: in.DocumentID}
	if in.Body != nil {
		p.Delay = seconds(in.Body.DelaySeconds)
	}
	return s.changed(ctx, org, in.DocumentID, map[string]any{"delay_seconds": p.Delay.Seconds()},
		func(tx pgx.Tx) (queue.Response, error) {
			return queue.MarkAccountingJobPending(ctx, tx, p)
		})
}

func (s *server) cancelAccountingJob(ctx context.Context, in *DocumentInput) (*changeOutput, error) {
	org, err := caller(ctx).reachOne(in.OrgID, "query.orgId")
	if err != nil {
		return nil, err
	}
	return s.changed(ctx, org, in.DocumentID, nil, func(tx pgx.Tx) (queue.Response, error) {
		return queue.CancelAccountingJob(ctx, tx, queue.Document{OrgID: org, ID: in.DocumentID})
	})
}
