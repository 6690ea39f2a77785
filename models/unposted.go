package models

import (
	"fmt"
	"strings"
)

// MaxUnpostedDocuments is how many documents Unposted names.
const MaxUnpostedDocuments = 20

// Unposted is what is not posted, of an organization, when days are closed: documents whose job
// failed or waits (pending, leased or backed off). A document counts if its issue date, its value
// date, a date of its present posting, or the one that its rule computes, is a day that the change
// closes.
type Unposted struct {
	Failed  int64 `json:"failed"`
	Waiting int64 `json:"waiting"`
	// UnknownDates counts the documents, failed or waiting, of which Daybook knows no date: they are
	// in a source of the application's own, or their row is gone, and they were never posted.
	UnknownDates int64 `json:"unknown_dates"`
	// Documents are the first of those that failed or wait, the failed ones first, at most
	// MaxUnpostedDocuments.
	Documents []UnpostedDocument `json:"documents"`
}

// UnpostedDocument is a document with a date that is being closed.
type UnpostedDocument struct {
	DocumentID string   `json:"document_id"`
	Date       Date     `json:"date"`
	State      JobState `json:"state"`
	// Code is why its last attempt failed; empty: there was none, or it did not fail.
	Code ErrorCode `json:"code,omitempty"`
}

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
		said = append(said, fmt.Sprintf("Jobs of documents of which Daybook knows no date, failed or waiting: %d.",
			u.UnknownDates))
	}
	return strings.Join(said, " ")
}
