package books

import (
	"fmt"
	"strings"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/models"
)

// ErrUnposted: the period cannot be closed without CloseOptions.Force, because documents with a date
// that would be closed are not posted. The error is an *UnpostedError, which names them.
var ErrUnposted = failure.New(failure.UnpostedDocuments, "documents are not posted")

// UnpostedError is ErrUnposted, with the documents.
type UnpostedError struct {
	Period models.Period
	models.Unposted
}

// Error names the documents, at most models.MaxUnpostedDocuments.
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
