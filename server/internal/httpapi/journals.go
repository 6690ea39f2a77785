package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
)

// journals adds journal entries that people write.
func (s *server) journals() {
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "listJournals", Method: http.MethodGet, Path: "/api/journals", Tags: []string{tagLedger},
		Summary: "List the journals that people wrote, the latest first",
	}, s.listJournals, http.StatusNotFound)
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "putJournal", Method: http.MethodPost, Path: "/api/journals", Tags: []string{tagLedger},
		Summary: "Write a journal, which a worker posts as it is",
		Description: "Amounts are in minor units, as texts: a debit is positive, a credit negative, and they balance in each currency. What " +
			"could not be posted is DOCUMENT_REFUSED, and errors says with which code, such as UNBALANCED. With an id, the same " +
			"request again changes nothing, and another one replaces the journal: what was posted is reversed.",
		Metadata: map[string]any{
			exampleKey: `{"date": "2026-03-31", "reason": "Accrued rent", "entries": [{"account": "6310", "amountMinor": "50000"}, {"account": "3500", "amountMinor": "-50000"}], "currency": "EUR"}`,
			actionKey:  "journals.put",
		},
	}, s.putJournal, http.StatusNotFound, http.StatusConflict)
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "deleteJournal", Method: http.MethodDelete, Path: "/api/journals/{documentId}", Tags: []string{tagLedger},
		Summary:  "Delete a journal: a worker reverses what is posted of it",
		Metadata: map[string]any{actionKey: "journals.delete"},
	}, s.deleteJournal, http.StatusNotFound, http.StatusConflict)
}

type listJournalsInput struct {
	PageInput
	OrgID string `query:"orgId" maxLength:"255" doc:"The organization; default that of the token"`
}

type listJournalsOutput struct {
	Body struct{ answers.JournalList }
}

func (s *server) listJournals(ctx context.Context, in *listJournalsInput) (*listJournalsOutput, error) {
	o := books.JournalsOptions{Limit: in.Limit + 1}
	if err := in.decode(&o.Before); err != nil {
		return nil, err
	}
	org, err := s.organization(ctx, in.OrgID)
	if err != nil {
		return nil, err
	}
	list, err := books.Journals(ctx, s.pool, org, o)
	if err != nil {
		return nil, err
	}
	out := &listJournalsOutput{}
	list, next := page(in.PageInput, list, func(d models.Document) any { return d.ID })
	out.Body.JournalList = answers.JournalListOf(list, next)
	return out, nil
}

type journalEntryInput struct {
	Account     string            `json:"account" minLength:"1" maxLength:"255"`
	AmountMinor answers.Minor     `json:"amountMinor" maxLength:"20" doc:"In minor units: a debit is positive, a credit negative"`
	Currency    currency          `json:"currency,omitempty" doc:"Default that of the journal"`
	Note        string            `json:"note,omitempty" maxLength:"2000"`
	Dimensions  map[string]string `json:"dimensions,omitempty" doc:"Above those of the journal"`
}

type putJournalInput struct {
	Body struct {
		OrgID        string              `json:"orgId,omitempty" maxLength:"255" doc:"The organization; default that of the token"`
		ID           string              `json:"id,omitempty" maxLength:"240" doc:"Names the journal, so that the same request again changes nothing; default an id of its own"`
		Date         string              `json:"date" format:"date" doc:"The day on which it is posted"`
		Reason       string              `json:"reason" minLength:"1" maxLength:"2000" doc:"Why it is posted"`
		By           string              `json:"by,omitempty" maxLength:"255" doc:"Who wrote it; default the token's name"`
		Number       string              `json:"number,omitempty" maxLength:"255"`
		Counterparty string              `json:"counterparty,omitempty" maxLength:"255"`
		Currency     currency            `json:"currency,omitempty" doc:"That of entries that name none; default that of the first entry, or else the organization's own"`
		Dimensions   map[string]string   `json:"dimensions,omitempty" doc:"Those of all entries, such as a cost centre"`
		Entries      []journalEntryInput `json:"entries" minItems:"2" maxItems:"1000"`
		DryRun       bool                `json:"dryRun,omitempty" doc:"Write nothing, and say whether it could be posted"`
	}
}

type journalChangeOutput struct {
	Body struct{ answers.JournalChange }
}

func (s *server) putJournal(ctx context.Context, in *putJournalInput) (*journalChangeOutput, error) {
	b := &in.Body
	org, err := s.organizationOf(ctx, b.OrgID)
	if err != nil {
		return nil, err
	}
	date, err := day("body.date", b.Date)
	if err != nil {
		return nil, err
	}
	j := books.Journal{
		ID: b.ID, Date: date, Number: b.Number, Counterparty: b.Counterparty, Currency: string(b.Currency),
		Dimensions: b.Dimensions, Reason: b.Reason, By: cmp.Or(b.By, caller(ctx).Name),
	}
	for i, e := range b.Entries {
		amount, err := strconv.ParseInt(string(e.AmountMinor), 10, 64)
		if err != nil {
			return nil, invalid(fmt.Sprintf("body.entries[%d].amountMinor", i), "the amount is out of range")
		}
		j.Entries = append(j.Entries, models.JournalEntry{
			Account: e.Account, Amount: amount, Currency: string(e.Currency), Note: e.Note, Dimensions: e.Dimensions,
		})
	}
	actions.About(ctx, org, b.ID, nil)
	if b.DryRun {
		actions.Drop(ctx)
		day, err := books.CheckJournal(ctx, s.pool, org, j)
		return journalChanged(books.JournalChange{OrgID: org, DocumentID: b.ID, PostingDate: day}, err)
	}
	return journalChanged(books.PutJournal(ctx, s.pool, org, j))
}

type deleteJournalInput struct {
	DocumentID string `path:"documentId" maxLength:"255"`
	OrgID      string `query:"orgId" maxLength:"255" doc:"The organization; default that of the token"`
}

func (s *server) deleteJournal(ctx context.Context, in *deleteJournalInput) (*journalChangeOutput, error) {
	org, err := s.organization(ctx, in.OrgID)
	if err != nil {
		return nil, err
	}
	actions.About(ctx, org, in.DocumentID, nil)
	return journalChanged(books.DeleteJournal(ctx, s.pool, org, in.DocumentID))
}

// journalChanged makes the answer of a change of a journal, or the problem of one that cannot be
// posted.
func journalChanged(c books.JournalChange, err error) (*journalChangeOutput, error) {
	if wrong, ok := errors.AsType[*models.JobError](err); ok {
		p := newProblem(failure.Of(err), err.Error())
		p.Errors = []ProblemPart{{Location: "body.entries", Message: wrong.Message, Code: string(wrong.Code)}}
		return nil, p
	}
	if err != nil {
		return nil, err
	}
	out := &journalChangeOutput{}
	out.Body.JournalChange = answers.JournalChange{
		OrgID: c.OrgID, DocumentID: c.DocumentID, Changed: c.Changed, Version: c.Version, JobID: c.JobID,
		PostingDate: c.PostingDate.String(),
	}
	return out, nil
}
