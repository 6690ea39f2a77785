package console

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"github.com/daybook-dev/daybook/internal/payload"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// patchSamples is of how many jobs the form shows what a patch would change.
const patchSamples = 5

// patchForm is the form by which the payloads of many dead letters are edited, and what a dry run
// of it says.
type patchForm struct {
	many    many
	Patch   string
	Problem string
	// Tried says that nothing is wrong: Operation and Samples are what the dry run says.
	Tried     bool
	Operation models.BulkOperation
	Samples   []patchSample
}

// patchSample is a job as it would be.
type patchSample struct {
	ID      string
	Changes []payload.Difference
	Hidden  bool

	jobType       string
	before, after json.RawMessage
}

// Fields are the fields by which the form means the same dead letters.
func (f *patchForm) Fields() []field { return f.many.hidden() }

// Filter is which dead letters are meant.
func (f *patchForm) Filter() listing.JobFilter { return f.many.jobs }

// Rows is how high the field of the patch is.
func (f *patchForm) Rows() int { return max((&payloadField{Value: f.Patch}).Rows(), 4) }

// patchPage asks for a patch.
func (c *console) patchPage(ctx context.Context, r *request) (*view, error) {
	f, err := c.patchForm(ctx, r)
	if err != nil {
		return nil, err
	}
	f.Patch = `[
  {"op": "replace", "path": "/currency", "value": "EUR"}
]`
	return f.view(r), nil
}

// tryPatchPage shows what a patch would change, or why it would be refused.
func (c *console) tryPatchPage(ctx context.Context, r *request) (*view, error) {
	f, err := c.patchForm(ctx, r)
	if err != nil {
		return nil, err
	}
	edit := c.patchEdit(r, f)
	edit.Try = func(id, jobType string, before, after json.RawMessage) {
		if len(f.Samples) < patchSamples {
			f.Samples = append(f.Samples, patchSample{ID: id, jobType: jobType, before: before, after: after})
		}
	}
	if f.Operation, err = c.Listing.StartEdit(ctx, f.many.bulk(true), edit); err != nil {
		if class := store.Failure(err); class == nil || class.Status >= http.StatusInternalServerError {
			return nil, err
		}
		f.Problem = err.Error()
		return f.view(r), nil
	}
	f.Tried = true
	for i := range f.Samples {
		s := &f.Samples[i]
		secrets, err := store.SecretsOf(ctx, c.Pool, s.jobType)
		if err != nil {
			return nil, err
		}
		s.Changes, s.Hidden = shownDiff(s.jobType, secrets, s.before, s.after)
	}
	return f.view(r), nil
}

// patchMany edits the dead letters.
func (c *console) patchMany(ctx context.Context, r *request) (done, error) {
	f, err := c.patchForm(ctx, r)
	if err != nil {
		return done{}, err
	}
	mode := r.PostFormValue("retry")
	if mode != "" && mode != string(queue.RetryNow) {
		return done{}, wrongParameter("retry must be now or nothing")
	}
	edit := c.patchEdit(r, f)
	edit.Retry = mode
	op, err := c.Listing.StartEdit(ctx, f.many.bulk(false), edit)
	return c.begun(ctx, r, f.many, op, err)
}

func (c *console) patchForm(ctx context.Context, r *request) (*patchForm, error) {
	m, err := c.manyOf(ctx, r)
	if err == nil && m.kind != string(models.KindJobs) {
		err = store.Invalid("the payloads of jobs are edited, not of %s", m.kind)
	}
	return &patchForm{many: m}, err
}

// patchEdit is the edit that the form asks for.
func (c *console) patchEdit(r *request, f *patchForm) listing.BulkEdit {
	f.Patch = r.PostFormValue("patch")
	return listing.BulkEdit{
		Patch: json.RawMessage(f.Patch), By: r.Token.Name,
		Check: func(jobType string, raw json.RawMessage) error {
			return cmp.Or(r.Token.CheckType(jobType, c.TypeName), c.checkPayload("any", jobType, raw))
		},
	}
}

func (f *patchForm) view(r *request) *view {
	return &view{
		Title: "Edit dead letters", Template: "jobs-edit", Nav: "dead-letters",
		Trail: []trail{{"Dead letters", r.link("dead-letters")}}, Data: f,
	}
}
