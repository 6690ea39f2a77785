package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

func (s *server) jobs() {
	operation(s, tokens.ScopeEnqueue, huma.Operation{
		OperationID: "enqueueJob", Method: http.MethodPost, Path: "/api/jobs/enqueue", Tags: []string{tagJobs},
		DefaultStatus: http.StatusCreated,
		Summary:       "Ask for a background job",
		Description: "The same idempotencyKey with the same type and payload leads to the first job, with status 200 and " +
			"duplicate true, " +
			"for as long as that job is kept; with other input it is refused (KEY_REUSED).",
		Responses: map[string]*huma.Response{"200": {
			Description: "The job was there already",
			Content: map[string]*huma.MediaType{"application/json": {
				Schema: s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[answers.EnqueuedJob](), true, ""),
			}},
		}},
		Metadata: map[string]any{exampleKey: `{"type": "webhook", "payload": {"url": "https://example.com/hook"}}`},
	}, s.enqueueJob, http.StatusNotFound, http.StatusConflict)
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "runJobs", Method: http.MethodPost, Path: "/api/jobs/run", Tags: []string{tagJobs},
		Summary:     "Work due jobs once",
		Description: "For a cron job where no worker runs. It wants a token for all organizations.",
		Metadata:    map[string]any{limitKey: runTimeout},
	}, s.runJobs, http.StatusNotImplemented)
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "runJobsByGet", Method: http.MethodGet, Path: "/api/jobs/run", Tags: []string{tagJobs},
		Summary:     "Work due jobs once, for cron services that send GET",
		Description: "As POST, for a token that allows it (`--run-by-get`); for others the address knows POST alone.",
		Metadata:    map[string]any{limitKey: runTimeout},
	}, s.runJobsByGet, http.StatusNotImplemented, http.StatusMethodNotAllowed)
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "listJobs", Method: http.MethodGet, Path: "/api/jobs", Tags: []string{tagJobs},
		Summary: "List and search jobs, the last created one first",
	}, s.listJobs, http.StatusNotFound)
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "getJob", Method: http.MethodGet, Path: "/api/jobs/{id}", Tags: []string{tagJobs},
		Summary: "Get a job with its payload, links and attempts",
	}, s.getJob, http.StatusNotFound)
	operation(s, tokens.ScopeDecrypt, huma.Operation{
		OperationID: "decryptJob", Method: http.MethodPost, Path: "/api/jobs/{id}/decrypt", Tags: []string{tagJobs},
		Summary:     "Get a job with what is encrypted of it in plain",
		Description: "Each call is in the log of actions. The server needs the keys (KEY_UNKNOWN).",
		Metadata:    map[string]any{actionKey: "jobs.decrypt"},
	}, s.decryptJob, http.StatusNotFound, http.StatusConflict)
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "retryJob", Method: http.MethodPost, Path: "/api/jobs/{id}/retry", Tags: []string{tagJobs},
		Summary:  "Make a dead letter or a cancelled job due again, or move a pending one",
		Metadata: map[string]any{exampleKey: `{"mode": "now"}, or as mode "later" or "reset"`, actionKey: "jobs.retry"},
	}, s.retryJob, http.StatusNotFound, http.StatusConflict)
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "cancelJob", Method: http.MethodPost, Path: "/api/jobs/{id}/cancel", Tags: []string{tagJobs},
		Summary: "Cancel a job", Description: "One that runs is cancelled after its attempt.",
		Metadata: map[string]any{actionKey: "jobs.cancel"},
	}, s.cancelJob, http.StatusNotFound, http.StatusConflict)
}

type runJobsInput struct {
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"How many at most"`
}

type runJobsOutput struct {
	Body struct {
		Processed   int `json:"processed" doc:"The sum of the others, but for running"`
		Completed   int `json:"completed"`
		Retried     int `json:"retried" doc:"They failed and are tried again later"`
		Rescheduled int `json:"rescheduled" doc:"They asked to be looked at later"`
		Failed      int `json:"failed" doc:"They are dead letters now"`
		Cancelled   int `json:"cancelled"`
		Running     int `json:"running" doc:"They have begun and go on in the server after the answer"`
	}
}

func (s *server) runJobs(ctx context.Context, in *runJobsInput) (*runJobsOutput, error) {
	switch {
	case caller(ctx).OrgID != nil:
		return nil, fmt.Errorf("%w: running jobs wants one for all organizations", errScope)
	case s.Runner == nil:
		return nil, fmt.Errorf("%w: start a worker (`daybook worker`)", errNoRunner)
	}
	ctx, cancel := whileServing(ctx)
	defer cancel()
	report, err := s.Runner.RunDue(ctx, in.Limit)
	if err != nil {
		return nil, err
	}
	out := &runJobsOutput{}
	b := &out.Body
	b.Processed, b.Completed, b.Retried = report.Processed, report.Completed, report.Retried
	b.Rescheduled, b.Failed, b.Cancelled, b.Running = report.Rescheduled, report.Failed, report.Cancelled, report.Running
	return out, nil
}

// runJobsByGet is runJobs for tokens with RunByGet alone: browsers, proxies and crawlers send a GET
// on their own, and it must change nothing then.
func (s *server) runJobsByGet(ctx context.Context, in *runJobsInput) (*runJobsOutput, error) {
	if !caller(ctx).RunByGet {
		p := problemOf(errMethod)
		p.Detail = "send POST; GET runs jobs only for a token of `daybook tokens create --run-by-get`"
		p.header["Allow"] = []string{http.MethodPost}
		return nil, p
	}
	return s.runJobs(ctx, in)
}

// JobInput names one background job.
type JobInput struct {
	ID string `path:"id" maxLength:"255"`
}

type retryJobInput struct {
	JobInput
	Body struct {
		Mode         string  `json:"mode" enum:"now,later,reset" doc:"now and later keep the count of attempts, reset begins anew"`
		DelaySeconds float64 `json:"delaySeconds,omitempty" minimum:"0" maximum:"31536000" doc:"With mode later: until it is due; default 5 minutes"`
	}
}

// retryDelay returns how long a job that is tried again waits. A delay with another mode than later
// is refused.
func retryDelay(mode string, delaySeconds float64) (time.Duration, error) {
	if delaySeconds > 0 && mode != string(queue.RetryLater) {
		return 0, invalid("body.delaySeconds",
			fmt.Sprintf(`delaySeconds goes with "mode": "later" alone, not with %q`, mode))
	}
	return seconds(delaySeconds), nil
}

func (s *server) retryJob(ctx context.Context, in *retryJobInput) (*changeOutput, error) {
	delay, err := retryDelay(in.Body.Mode, in.Body.DelaySeconds)
	if err != nil {
		return nil, err
	}
	org, err := s.visible(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return s.changed(ctx, org, in.ID, map[string]any{"mode": in.Body.Mode, "delay_seconds": delay.Seconds()},
		func(tx pgx.Tx) (queue.Response, error) {
			return queue.RetryJob(ctx, tx, in.ID, queue.RetryOptions{Mode: queue.RetryMode(in.Body.Mode), Delay: delay})
		})
}

func (s *server) cancelJob(ctx context.Context, in *JobInput) (*changeOutput, error) {
	org, err := s.visible(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return s.changed(ctx, org, in.ID, nil,
		func(tx pgx.Tx) (queue.Response, error) { return queue.CancelJob(ctx, tx, in.ID) })
}

// visible returns whose a job is, or ErrJobNotFound for one that the token does not reach. The
// action of the context is about the job either way.
func (s *server) visible(ctx context.Context, id string) (org string, err error) {
	actions.About(ctx, answers.Text(caller(ctx).OrgID), id, nil)
	return s.Listing.OrganizationOfJob(ctx, answers.Text(caller(ctx).OrgID), id)
}

type jobOutput struct {
	Body struct{ answers.JobDetail }
}

type getJobInput struct {
	JobInput
	PageInput
}

func (s *server) getJob(ctx context.Context, in *getJobInput) (*jobOutput, error) {
	return s.showJob(ctx, in, func(*listing.JobDetail) error { return nil })
}

func (s *server) decryptJob(ctx context.Context, in *getJobInput) (*jobOutput, error) {
	actions.About(ctx, answers.Text(caller(ctx).OrgID), in.ID, nil)
	return s.showJob(ctx, in, func(d *listing.JobDetail) error {
		actions.About(ctx, d.OrgID, d.ID, nil)
		return answers.Decrypt(ctx, s.Encryption, d)
	})
}

// showJob answers with a job. prepare may change what it shows.
func (s *server) showJob(ctx context.Context, in *getJobInput, prepare func(*listing.JobDetail) error) (*jobOutput, error) {
	h := listing.HistoryPage{Limit: in.Limit}
	if err := in.decode(&h.Before); err != nil {
		return nil, err
	}
	d, err := s.Listing.Job(ctx, answers.Text(caller(ctx).OrgID), in.ID, h)
	if err != nil {
		return nil, err
	}
	if err := prepare(&d); err != nil {
		return nil, err
	}
	out := &jobOutput{}
	out.Body.JobDetail = answers.JobDetailOf(&d)
	return out, nil
}

type listJobsInput struct {
	PageInput
	OrgID    string    `query:"orgId" maxLength:"255" doc:"Only of this organization; default that of the token"`
	State    string    `query:"state" enum:"pending,leased,completed,failed,cancelled" doc:"failed: the dead letters, the last failed one first"`
	Type     string    `query:"type" maxLength:"64" doc:"Only of this type"`
	Code     string    `query:"code" maxLength:"100" doc:"Only with this error code"`
	Key      string    `query:"idempotencyKey" maxLength:"255" doc:"Only with this idempotency key"`
	Queue    string    `query:"queue" maxLength:"64" doc:"Only of this named queue; default: the one that jobs without a queue are in"`
	Waits    string    `query:"waits" enum:"turn,jobs,callback,limit" doc:"Only jobs that wait: for their turn in a sequence, for other jobs, for a callback, or for the limit of their key"`
	LinkKind string    `query:"linkKind" maxLength:"64" doc:"Only with a link of this kind"`
	LinkID   string    `query:"linkId" maxLength:"255" doc:"Only with a link to this id"`
	Since    time.Time `query:"since" doc:"Only enqueued since; with state failed: only failed since"`
	Until    time.Time `query:"until" doc:"Only enqueued before; with state failed: only failed before"`
}

type listJobsOutput struct {
	Body struct{ answers.JobList }
}

func (s *server) listJobs(ctx context.Context, in *listJobsInput) (*listJobsOutput, error) {
	org, err := caller(ctx).reach(in.OrgID)
	if err != nil {
		return nil, err
	}
	page, err := s.Listing.Jobs(ctx, listing.JobFilter{
		OrgID: org, State: models.JobState(in.State), Type: in.Type, Code: models.ErrorCode(in.Code), Since: in.Since,
		Until: in.Until,
		Link:  models.JobLink{Kind: in.LinkKind, ID: in.LinkID}, Key: in.Key, Queue: in.Queue, Waits: in.Waits,
	}, in.Limit, in.Cursor)
	if err != nil {
		return nil, err
	}
	out := &listJobsOutput{}
	out.Body.JobList = answers.JobListOf(&page)
	return out, nil
}
