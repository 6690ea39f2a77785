package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/queue"
)

func (s *server) edits() {
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "editJob", Method: http.MethodPost, Path: "/api/jobs/{id}/edit", Tags: []string{tagJobs},
		Summary: "Give a dead letter, or a job that waits or is cancelled, another payload",
		Description: "Its attempts, its place in its sequence and its key stay, and getJob shows the old payload. " +
			"A job that runs is refused (JOB_RUNNING).",
		Metadata: map[string]any{exampleKey: `{"payload": {"url": "https://example.com/hook"}, "retry": "now"}`, actionKey: "jobs.edit"},
	}, s.editJob, http.StatusNotFound, http.StatusConflict)
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "editJobs", Method: http.MethodPost, Path: "/api/jobs/edit", Tags: []string{tagJobs},
		Summary: "Edit the payloads of all jobs that match by a JSON patch",
		Description: "Dead letters, unless the filter names another state. If the payload of one of them would be refused, " +
			"nothing is changed. Jobs that the patch does not apply to are left alone.",
		Responses: s.goesOn(),
		Metadata: map[string]any{
			limitKey:   runTimeout,
			exampleKey: `{"all": true, "patch": [{"op": "replace", "path": "/currency", "value": "EUR"}]}`,
			actionKey:  "jobs.edit_many",
		},
	}, s.editJobs, http.StatusNotFound)
}

type editJobInput struct {
	JobInput
	Body struct {
		Payload        answers.Object `json:"payload" doc:"The whole new payload: 128 KB, 10 levels, 500 keys at most"`
		Retry          string         `json:"retry,omitempty" enum:"now,later,reset" doc:"Try it again in the same transaction, as retryJob does with this mode; absent: it is not"`
		Generation     *int64         `json:"generation,omitempty" doc:"As getJob showed it: the edit is refused (JOB_CHANGED) if the job was changed since; absent: it is not looked at"`
		Encrypt        []string       `json:"encrypt,omitempty" maxItems:"100" doc:"Members of the payload to keep encrypted, or * alone for all; needed for a job that is encrypted"`
		SkipValidation bool           `json:"skipValidation,omitempty" doc:"Leave the check against the type's schema to the worker"`
	}
}

func (s *server) editJob(ctx context.Context, in *editJobInput) (*changeOutput, error) {
	b := &in.Body
	org := answers.Text(caller(ctx).OrgID)
	actions.About(ctx, org, in.ID, nil)
	job, err := s.Listing.JobToEdit(ctx, org, in.ID)
	if err != nil {
		return nil, err
	}
	if err := s.allowsType(ctx, job.Type); err != nil {
		return nil, err
	}
	if s.CheckPayload != nil && !b.SkipValidation {
		if err := s.CheckPayload(job.Type, json.RawMessage(b.Payload)); err != nil {
			return nil, err
		}
	}
	return s.changed(ctx, job.OrgID, in.ID, map[string]any{"retry": b.Retry}, func(tx pgx.Tx) (queue.Response, error) {
		return queue.EditJob(ctx, tx, in.ID, queue.RawPayload{Type: job.Type, Data: json.RawMessage(b.Payload)},
			queue.EditOptions{
				By: caller(ctx).Name, Retry: queue.RetryMode(b.Retry), Generation: b.Generation, Encryption: s.Encryption,
				Encrypt: b.Encrypt,
			})
	})
}

type editJobsInput struct {
	Body struct {
		All    bool             `json:"all,omitempty" doc:"Must be true, unless dryRun is: every job that matches is meant"`
		Filter RetryFilter      `json:"filter,omitzero" required:"false" doc:"Which jobs are meant; none: every one that the token reaches"`
		Patch  []answers.Object `json:"patch" minItems:"1" maxItems:"100" doc:"A JSON patch (RFC 6902) of each payload"`
		Retry  string           `json:"retry,omitempty" enum:"now,later,reset" doc:"Try them again as well, as retryJobs does with this mode; absent: they are not"`
		DryRun bool             `json:"dryRun,omitempty" doc:"Count those that would be changed, and change nothing"`
	}
}

// Resolve implements huma.Resolver.
func (in *editJobsInput) Resolve(huma.Context) []error {
	return requireAll(in.Body.All, in.Body.DryRun, "")
}

func (s *server) editJobs(ctx context.Context, in *editJobsInput) (*bulkOutput, error) {
	b := &in.Body
	r, err := bulkJobs(ctx, &b.Filter.BulkFilter, b.Filter.State, b.DryRun)
	if err != nil {
		return nil, err
	}
	patch, err := json.Marshal(b.Patch)
	if err != nil {
		return nil, err
	}
	op, err := s.Listing.StartEdit(ctx, r, listing.BulkEdit{
		Patch: patch, Retry: b.Retry, By: caller(ctx).Name, Check: func(jobType string, payload json.RawMessage) error {
			p := queue.RawPayload{Type: jobType, Data: payload}
			err := cmp.Or(s.allowsType(ctx, jobType), queue.CheckJob("any", p, queue.JobOptions{}))
			if err != nil || s.CheckPayload == nil {
				return err
			}
			return s.CheckPayload(jobType, payload)
		},
	})
	aboutBulk(ctx, &r, &op, map[string]any{"retry": b.Retry})
	return s.runBulk(ctx, op, b.DryRun, err)
}
