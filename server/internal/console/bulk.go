package console

import (
	"context"
	"net/url"
	"time"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// bulkInline is how long a request works its bulk operation before it shows how far it has come;
// what is left then goes on without it.
const bulkInline = time.Second

// begun works an operation that was begun for a short while, has it go on, and leads to the page of
// its progress.
func (c *console) begun(ctx context.Context, r *request, m many, op models.BulkOperation, err error) (done, error) {
	if err != nil {
		return done{}, err
	}
	within, cancel := context.WithTimeout(ctx, bulkInline)
	defer cancel()
	if err := store.RunBulk(within, c.Pool, op.ID); err != nil && c.GoOn != nil {
		// Its time is over, the caller has gone, or the database is unavailable: the rest is done, and
		// counted, all the same.
		c.GoOn(op.ID)
	}
	details := m.details()
	details["matched"], details["mode"] = op.Matched, answers.Text(op.Mode)
	if op.DelaySeconds != nil {
		details["delay_seconds"] = *op.DelaySeconds
	}
	return done{To: r.link("bulk/" + url.PathEscape(op.ID)), Org: m.jobs.OrgID, Subject: op.ID, Details: details}, nil
}

// bulkPage shows how far an operation has come.
func (c *console) bulkPage(ctx context.Context, r *request) (*view, error) {
	org, err := r.reach("")
	if err != nil {
		return nil, err
	}
	op, err := c.Listing.BulkOperation(ctx, org, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	title, list := "Retry of many jobs", r.link("jobs", "state", "pending")
	switch {
	case op.Action == models.BulkCancel:
		title, list = "Cancellation of many jobs", r.link("jobs", "state", "cancelled")
	case op.Action == models.BulkEdit && op.Mode == nil:
		title, list = "Edit of many jobs", r.link("jobs", "state", "failed")
	case op.Action == models.BulkEdit:
		title = "Edit of many jobs"
	}
	if op.Kind == models.KindAccounting {
		list = r.link("accounting", "state", "pending")
	}
	worked := op.Changed + op.LeftAlone
	took := op.UpdatedAt.Sub(op.CreatedAt)
	if op.FinishedAt != nil {
		took = op.FinishedAt.Sub(op.CreatedAt)
	}
	return &view{
		Title: title, Template: "bulk", Nav: "dead-letters", Live: op.FinishedAt == nil,
		Trail: []trail{{"Dead letters", r.link("dead-letters")}},
		Data: map[string]any{
			"Operation": op, "Worked": worked, "Left": max(op.Matched-worked, 0), "Took": took,
			"List": list, "By": answers.Text(op.Actor),
		},
	}, nil
}
