package health

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/encryption"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/diagnosis"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/internal/text/redact"
	"github.com/daybook-dev/daybook/models"
)

// failed groups what failed in a kind, by type, error code and cause.
func (p *probe) failed(ctx context.Context, tx pgx.Tx, kind string) ([]Finding, error) {
	groups, err := diagnosis.FailedJobs(ctx, tx, kind, p.OrgID, causesApart(kind))
	if err != nil {
		return nil, err
	}
	var found []Finding
	var total int64
	for _, g := range groups {
		total += g.Count
		p.dead[kind] += g.Count
		f := Finding{
			Code: FailedJobs, Severity: Warning, Kind: kind, Type: g.Type, ErrorCode: g.Code, Count: g.Count,
			Since: store.TimeOrNil(g.Since), Example: g.ID, ExampleOrg: g.OrgID,
		}
		c := causeOf(kind, g.Code, g.Error)
		if g.Code == string(models.CodeHandlerMissing) {
			f.Code = HandlerMissing
		}
		f.Says = fmt.Sprintf("%s failed with %s: %s The newest, %s ago: %s", counted(f), orNoCode(g.Code), c.says,
			phrase.Age(p.clock().Sub(g.Last)), told(g.Error))
		f.Todo = c.steps(f)
		found = append(found, f)
	}
	for i := range found {
		found[i].AtLeast = total >= diagnosis.Most
	}
	return found, nil
}

// retrying groups what is to be tried again in a kind, by type and error code.
func (p *probe) retrying(ctx context.Context, tx pgx.Tx, kind string) ([]Finding, error) {
	groups, err := diagnosis.RetryingJobs(ctx, tx, kind, p.OrgID)
	if err != nil {
		return nil, err
	}
	var found []Finding
	var total int64
	for _, g := range groups {
		total += g.Count
		f := Finding{
			Code: RetryingJobs, Severity: Info, Kind: kind, Type: g.Type, ErrorCode: g.Code, Count: g.Count,
			Since: store.TimeOrNil(g.Since), Example: g.ID, ExampleOrg: g.OrgID,
		}
		// A server that is down makes every job of a type fail, and wants seeing to before they are
		// dead letters.
		if g.Count >= manyRetries {
			f.Severity = Warning
		}
		verb := "are"
		if g.Count == 1 {
			verb = "is"
		}
		f.Says = fmt.Sprintf("%s %s to be tried again after %s: %s The newest: %s", counted(f), verb, orNoCode(g.Code),
			causeOf(kind, g.Code, g.Error).says, told(g.Error))
		f.Todo = "Nothing has to be done if the cause passes: each is tried again by itself. Look at one: " +
			showCommand(f) + "."
		found = append(found, f)
	}
	for i := range found {
		found[i].AtLeast = total >= diagnosis.Most
	}
	return found, nil
}

// notPosted looks for documents that are completed without an entry although they state an amount.
func (p *probe) notPosted(ctx context.Context, tx pgx.Tx) ([]Finding, error) {
	n, err := diagnosis.AmountsNotPosted(ctx, tx, p.OrgID)
	if err != nil || n.Count == 0 {
		return nil, err
	}
	f := Finding{
		Code: AmountNotPosted, Severity: Warning, Kind: "accounting", Count: n.Count, AtLeast: n.Count >= diagnosis.Most,
		Since:   n.Since,
		Example: n.DocumentID, ExampleOrg: n.OrgID,
	}
	verb := "are"
	if n.Count == 1 {
		verb = "is"
	}
	f.Says = fmt.Sprintf("%s %s completed without an entry although an amount is stated: the money is not in the books.",
		counted(f), verb)
	f.Todo = fmt.Sprintf("List them: `daybook audit --org %s`. Mend the organization's rules, or the document. Then "+
		"`daybook accounting repost %s %s`: "+
		"it is posted, or its job says why it cannot be.", shell(n.OrgID), shell(n.OrgID), shell(n.DocumentID))
	return []Finding{f}, nil
}

// manyRetries is how many jobs of a type that wait for another attempt are a warning.
const manyRetries = 10

// counted begins a sentence about a finding's jobs: "3 documents", "1 job of type email".
func counted(f Finding) string {
	words := jobWords(f)
	text := plural(f.Count, words[0], words[1])
	if f.Type != "" {
		text += " of type " + f.Type
	}
	return text
}

func orNoCode(code string) string {
	if code == "" {
		return "an error"
	}
	return code
}

// ended ends a text that may end no sentence.
func ended(s string) string {
	if s == "" || strings.ContainsAny(s[len(s)-1:], ".!?") || strings.HasSuffix(s, "…") {
		return s
	}
	return s + "."
}

// told is an error as findings say it.
func told(text string) string {
	if key := encryption.KeyOf(json.RawMessage(text)); key != "" {
		return "it is encrypted under the key " + key + " (`daybook jobs decrypt` shows it)."
	}
	return ended(clip(redact.Text(text), 200))
}
