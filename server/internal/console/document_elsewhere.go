package console

import (
	"context"
	"strconv"

	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// documentsElsewhere adds the decision about a document that another system has posted.
func (c *console) documentsElsewhere() {
	c.action(Root+"documents/elsewhere", tokens.ScopeOperate, "accounting.elsewhere", c.decideElsewhere)
}

// elsewhereButtons are the decisions that a document as it is allows: none without a job, which is
// what is tried again.
func elsewhereButtons(e *listing.Explanation) []button {
	if e.Elsewhere == nil || e.Job == nil {
		return nil
	}
	version := strconv.FormatInt(e.Job.VersionHint, 10)
	decision := func(post, label, tone, confirm string) button {
		return button{
			Action: Root + "documents/elsewhere", Label: label, Tone: tone, Confirm: confirm,
			Hidden: []field{
				{Name: "org", Value: e.OrgID},
				{Name: "document", Value: e.DocumentID},
				{Name: "post", Value: post},
			},
		}
	}
	var list []button
	if e.Elsewhere.Entries != nil {
		list = append(list, decision("difference", "Post the difference", "quiet",
			"Daybook posts version "+version+
				" and the mirror of what is posted elsewhere, so that both ledgers together hold the document once."))
	}
	list = append(list, decision("full", "Post in full", "quiet",
		"Daybook posts all of version "+version+". Choose it only when "+e.Elsewhere.System+
			" has taken its posting back: otherwise the document is posted twice."))
	if len(e.Impacts) == 0 {
		list = append(list, decision("nothing", "Post nothing", "quiet",
			"Daybook leaves version "+version+" to "+e.Elsewhere.System+
				", also when the document is no longer ready or is deleted. A newer version waits for another decision."))
	}
	return list
}

// decideElsewhere decides what Daybook posts of the document that a form names.
func (c *console) decideElsewhere(ctx context.Context, r *request) (done, error) {
	org, err := c.ofLedger(ctx, r)
	if err != nil {
		return done{}, err
	}
	document, post := r.PostFormValue("document"), r.PostFormValue("post")
	d := done{To: documentAddress(org, document), Org: org, Subject: document, Details: map[string]any{"post": post}}
	if _, err = ledgerdb.DecideElsewhere(ctx, c.Pool, org, document, post); err != nil {
		return d, err
	}
	d.Text = map[string]string{
		"difference": "Decided: the difference is posted.", "full": "Decided: the document is posted in full.",
		"nothing": "Decided: Daybook posts nothing of this version.",
	}[post] + " The job is tried again."
	return d, nil
}
