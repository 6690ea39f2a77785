package ledgerdb

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/failure"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// ErrUnposted: a period cannot be closed without force, because documents are not posted that have a
// date which the closing would close. It is an *UnpostedError.
var ErrUnposted = failure.New(failure.UnpostedDocuments, "documents are not posted")

// MaxUnposted is how many documents Unposted names.
const MaxUnposted = 20

// Unposted is what is not posted, of an organization, when days are closed: documents whose job failed
// or waits (pending, leased or backed off). A document counts if its issue date, its value date, or a
// date of its present posting is a day that the change closes. A date that only a rule computes is not
// known here.
type Unposted struct {
	Failed  int64 `json:"failed"`
	Waiting int64 `json:"waiting"`
	// UnknownDates counts the documents, failed or waiting, of which Daybook knows no date: they are in a
	// source of the application's own, or their row is gone, and they were never posted.
	UnknownDates int64 `json:"unknown_dates"`
	// Documents are the first of those that failed or wait, the failed ones first, at most MaxUnposted.
	Documents []UnpostedDocument `json:"documents"`
}

// UnpostedDocument is a document with a date that is being closed.
type UnpostedDocument struct {
	DocumentID string          `json:"document_id"`
	Date       models.Date     `json:"date"`
	State      models.JobState `json:"state"`
	// Code is why its last attempt failed; empty: there was none, or it did not fail.
	Code models.ErrorCode `json:"code,omitempty"`
}

// UnpostedError is ErrUnposted, with the documents.
type UnpostedError struct {
	Period models.Period
	Unposted
}

// Error names the documents, at most MaxUnposted.
func (e *UnpostedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "closing the period from %s to %s would shut out %s", e.Period.StartsOn, e.Period.EndsOn, e.Unposted.String())
	for i, d := range e.Documents {
		fmt.Fprintf(&b, "%s %s of %s (%s", map[bool]string{true: ":", false: ","}[i == 0], d.DocumentID, d.Date, d.State)
		if d.Code != "" {
			fmt.Fprintf(&b, ", %s", d.Code)
		}
		b.WriteByte(')')
	}
	if more := e.Failed + e.Waiting - int64(len(e.Documents)); more > 0 {
		fmt.Fprintf(&b, ", and %d more", more)
	}
	b.WriteString(". Have them posted first, or force the closing (--force); then they are handled by the policy for closed periods")
	return b.String()
}

// Unwrap makes it ErrUnposted.
func (e *UnpostedError) Unwrap() error { return ErrUnposted }

// String says how many there are, such as "3 documents that are not posted (1 failed, 2 wait)".
func (u Unposted) String() string {
	n := u.Failed + u.Waiting
	noun := "documents that are"
	if n == 1 {
		noun = "document that is"
	}
	return fmt.Sprintf("%d %s not posted (%d failed, %d wait)", n, noun, u.Failed, u.Waiting)
}

// Sentence says what a closing shut out, and what it could not know.
func (u Unposted) Sentence() string {
	var said []string
	if u.Failed+u.Waiting > 0 {
		said = append(said, "The closing shut out "+u.String()+".")
	}
	if u.UnknownDates > 0 {
		said = append(said, fmt.Sprintf("Jobs of documents of which Daybook knows no date, failed or waiting: %d.", u.UnknownDates))
	}
	return strings.Join(said, " ")
}

const closedDays = `
SELECT coalesce(range_agg(daterange(s.starts_on, s.ends_on, '[]')), '{}')::text FROM daybook.closed_spans($1) s`

// ShutOut makes a change of an organization's periods and returns what is not posted of the days that
// were open before the change and are closed after it. It waits until no transaction posts for the
// organization, and keeps posting out until the transaction ends.
func ShutOut(ctx context.Context, tx pgx.Tx, org string, change func() error) (Unposted, error) {
	var u Unposted
	if err := lockConfiguration(ctx, tx, org); err != nil {
		return u, err
	}
	var before string
	if err := tx.QueryRow(ctx, closedDays, org).Scan(&before); err != nil {
		return u, store.Wrap("read closed periods", err)
	}
	if err := change(); err != nil {
		return u, err
	}
	const stmt = `
WITH shut AS MATERIALIZED (
    SELECT coalesce(range_agg(daterange(s.starts_on, s.ends_on, '[]')), '{}') - $2::text::datemultirange AS days FROM daybook.closed_spans($1) s
), jobs AS MATERIALIZED (
    SELECT q.document_id, q.state, q.last_error_code AS code, coalesce(d.issue_date, i.document_date) AS date,
           -- null: no date is known.
           CASE WHEN d.issue_date IS NOT NULL OR i.posting_date IS NOT NULL
                THEN coalesce(d.issue_date <@ shut.days, false) OR coalesce(d.value_date <@ shut.days, false)
                     OR coalesce(i.document_date <@ shut.days, false) OR coalesce(i.posting_date <@ shut.days, false) END AS inside
      FROM shut
      JOIN daybook.accounting_work_queue q ON q.org_id = $1 AND q.state IN ('pending', 'leased', 'failed')
      LEFT JOIN daybook.documents d ON d.org_id = q.org_id AND d.id = q.document_id
      LEFT JOIN LATERAL (SELECT x.document_date, x.posting_date FROM daybook.impacts x
                          WHERE x.org_id = q.org_id AND x.document_id = q.document_id ORDER BY x.seq DESC LIMIT 1) i ON true
     WHERE NOT isempty(shut.days)
), named AS (
    SELECT document_id, date, state, coalesce(code, '') AS code FROM jobs WHERE inside
     ORDER BY state = 'failed' DESC, date, document_id LIMIT $3
)
SELECT count(*) FILTER (WHERE inside AND state = 'failed'), count(*) FILTER (WHERE inside AND state <> 'failed'),
       count(*) FILTER (WHERE inside IS NULL), (SELECT coalesce(json_agg(n), '[]') FROM named n)::text
  FROM jobs`
	var documents string
	err := tx.QueryRow(ctx, stmt, org, before, MaxUnposted).Scan(&u.Failed, &u.Waiting, &u.UnknownDates, &documents)
	if err == nil {
		err = json.Unmarshal([]byte(documents), &u.Documents)
	}
	return u, store.Wrap("look for documents that are not posted", err)
}
