package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
)

// goesOn is the answer to a request for many jobs that takes long.
func (s *server) goesOn() map[string]*huma.Response {
	return map[string]*huma.Response{"202": {
		Description: "It takes longer: the server goes on, and GET /api/bulk-operations/{id} says how far it has come",
		Content: map[string]*huma.MediaType{"application/json": {
			Schema: s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[answers.BulkOperation](), true, ""),
		}},
	}}
}

func (s *server) deadLetters() {
	s.edits()
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "retryJobs", Method: http.MethodPost, Path: "/api/jobs/retry", Tags: []string{tagJobs},
		Summary:     "Try all jobs again that match",
		Description: "Dead letters, unless the filter names another state. Jobs that fail meanwhile are not tried twice.",
		Responses:   s.goesOn(),
		Metadata: map[string]any{
			limitKey: runTimeout, exampleKey: `{"all": true, "mode": "now"}`,
			actionKey: "jobs.retry_many",
		},
	}, s.retryJobs, http.StatusNotFound)
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "cancelJobs", Method: http.MethodPost, Path: "/api/jobs/cancel", Tags: []string{tagJobs},
		Summary:     "Cancel all jobs that match",
		Description: "Dead letters, unless the filter names another state.",
		Responses:   s.goesOn(),
		Metadata:    map[string]any{limitKey: runTimeout, exampleKey: `{"all": true}`, actionKey: "jobs.cancel_many"},
	}, s.cancelJobs, http.StatusNotFound)
}

// BulkFilter says which jobs are meant.
type BulkFilter struct {
	OrgID    string    `json:"orgId,omitempty" maxLength:"255" doc:"Only of this organization; default that of the token"`
	Type     string    `json:"type,omitempty" maxLength:"64" doc:"Only of this type"`
	Code     string    `json:"code,omitempty" maxLength:"100" doc:"Only with this error code"`
	LinkKind string    `json:"linkKind,omitempty" maxLength:"64" doc:"Only with a link of this kind"`
	LinkID   string    `json:"linkId,omitempty" maxLength:"255" doc:"Only with a link to this id"`
	Since    time.Time `json:"since,omitzero" required:"false" doc:"Only failed since; in another state: only enqueued since"`
	Until    time.Time `json:"until,omitzero" required:"false" doc:"Only failed before; in another state: only enqueued before"`
}

// bulkJobs turns a request's filter into the store's; the default state is failed.
func bulkJobs(ctx context.Context, f *BulkFilter, state string, dryRun bool) (listing.BulkJobs, error) {
	org, err := caller(ctx).reach(f.OrgID)
	if err != nil {
		return listing.BulkJobs{}, err
	}
	if state == "" {
		state = string(models.JobFailed)
	}
	return listing.BulkJobs{
		Filter: listing.JobFilter{
			OrgID: org, State: models.JobState(state), Type: f.Type, Code: models.ErrorCode(f.Code), Since: f.Since,
			Until: f.Until,
			Link:  models.JobLink{Kind: f.LinkKind, ID: f.LinkID},
		},
		All: true, DryRun: dryRun,
	}, nil
}

// unconfirmedError is the error of a request that changes all jobs without confirmation; its text
// says what to send. huma asks for it while it checks the request, so that one answer names it and
// what else is missing.
type unconfirmedError string

// Error implements error.
func (e unconfirmedError) Error() string { return string(e) }

// Unwrap returns errUnconfirmed.
func (unconfirmedError) Unwrap() error { return errUnconfirmed }

// ErrorDetail implements huma.ErrorDetailer.
func (e unconfirmedError) ErrorDetail() *huma.ErrorDetail {
	return &huma.ErrorDetail{Location: "body.all", Message: string(e)}
}

// requireAll returns an unconfirmedError unless the request has all or dryRun. missing is added to
// its text.
func requireAll(all, dryRun bool, missing string) []error {
	if all || dryRun {
		return nil
	}
	return []error{unconfirmedError(fmt.Sprintf(
		`%v: this changes every job that matches: send "all": true, or "dryRun": true to count them first%s`,
		errUnconfirmed, missing))}
}

// RetryFilter says which jobs are tried again.
type RetryFilter struct {
	BulkFilter
	State string `json:"state,omitempty" enum:"failed,cancelled,pending" doc:"Default failed"`
}

type retryJobsInput struct {
	Body struct {
		All          bool        `json:"all,omitempty" doc:"Must be true, unless dryRun is: every job that matches is meant"`
		Filter       RetryFilter `json:"filter,omitzero" required:"false" doc:"Which jobs are meant; none: every one that the token reaches"`
		Mode         string      `json:"mode" enum:"now,later,reset" doc:"now and later keep the count of attempts, reset begins anew"`
		DelaySeconds float64     `json:"delaySeconds,omitempty" minimum:"0" maximum:"31536000" doc:"With mode later: until they are due; default 5 minutes"`
		DryRun       bool        `json:"dryRun,omitempty" doc:"Count them and change nothing"`
	}
}

// Resolve implements huma.Resolver.
func (in *retryJobsInput) Resolve(huma.Context) []error {
	missing := ""
	if in.Body.Mode == "" {
		missing = `; and a "mode": "now", "later" or "reset"`
	}
	return requireAll(in.Body.All, in.Body.DryRun, missing)
}

func (s *server) retryJobs(ctx context.Context, in *retryJobsInput) (*bulkOutput, error) {
	b := &in.Body
	delay, err := retryDelay(b.Mode, b.DelaySeconds)
	if err != nil {
		return nil, err
	}
	r, err := bulkJobs(ctx, &b.Filter.BulkFilter, b.Filter.State, b.DryRun)
	if err != nil {
		return nil, err
	}
	op, err := s.Listing.StartRetry(ctx, r, b.Mode, delay)
	aboutBulk(ctx, &r, &op, map[string]any{"mode": b.Mode, "delay_seconds": delay.Seconds()})
	return s.runBulk(ctx, op, b.DryRun, err)
}

// CancelFilter says which jobs are cancelled.
type CancelFilter struct {
	BulkFilter
	State string `json:"state,omitempty" enum:"failed,pending,leased" doc:"Default failed"`
}

type cancelJobsInput struct {
	Body struct {
		All    bool         `json:"all,omitempty" doc:"Must be true, unless dryRun is: every job that matches is meant"`
		Filter CancelFilter `json:"filter,omitzero" required:"false" doc:"Which jobs are meant; none: every one that the token reaches"`
		DryRun bool         `json:"dryRun,omitempty" doc:"Count them and change nothing"`
	}
}

// Resolve implements huma.Resolver.
func (in *cancelJobsInput) Resolve(huma.Context) []error {
	return requireAll(in.Body.All, in.Body.DryRun, "")
}

func (s *server) cancelJobs(ctx context.Context, in *cancelJobsInput) (*bulkOutput, error) {
	b := &in.Body
	r, err := bulkJobs(ctx, &b.Filter.BulkFilter, b.Filter.State, b.DryRun)
	if err != nil {
		return nil, err
	}
	op, err := s.Listing.StartCancel(ctx, r)
	aboutBulk(ctx, &r, &op, nil)
	return s.runBulk(ctx, op, b.DryRun, err)
}
