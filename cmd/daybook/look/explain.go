package look

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/text/cursor"
	"github.com/daybook-dev/daybook/internal/text/minor"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
)

func explainCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{
		Use:   "explain ORG DOCUMENT",
		Short: "Show how a document was posted: by which rules, job, attempt and workflow run, entry by entry",
		Args:  cobra.ExactArgs(2),
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, args []string) error {
			if _, err := db.Organization(c.Context(), args[0]); err != nil {
				return err
			}
			e, err := db.Explain(c.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			shown, err := answers.ExplanationOf(&e)
			if err != nil {
				return err
			}
			return a.Emit(shown, func(w io.Writer) error { return printExplanation(a, w, &e) })
		}),
	}
	return command
}

func printExplanation(a *cli.App, w io.Writer, e *listing.Explanation) error {
	if err := printDocument(w, e); err != nil {
		return err
	}
	if len(e.Attempts) > 0 {
		_, _ = fmt.Fprintln(w)
		t := cli.NewTable("ATTEMPT", "VERSION", "STARTED", "TOOK", "OUTCOME", "WORKER", "WORKFLOW RUN", "CODE", "ERROR")
		t.Right = []int{0, 1}
		for i := range e.Attempts {
			at := &e.Attempts[i]
			t.Add(strconv.Itoa(at.Attempt), strconv.FormatInt(at.Version, 10), cli.FormatTime(at.StartedAt),
				phrase.Duration(at.EndedAt.Sub(at.StartedAt)), cli.OutcomeOf(at), at.Worker, at.WorkflowRunID,
				answers.Text(at.ErrorCode), answers.Text(at.Error))
		}
		if err := a.Print(w, t); err != nil {
			return err
		}
		if e.MoreAttempts {
			_, _ = fmt.Fprintf(w, "There are older attempts: daybook accounting show %s %s --cursor %s\n", e.OrgID,
				e.DocumentID, cursor.Of(e.Attempts[len(e.Attempts)-1].ID))
		}
	}
	for i := range e.Impacts {
		if err := printImpact(a, w, &e.Impacts[i], e.LiveImpactID, e.Elsewhere != nil); err != nil {
			return err
		}
	}
	return nil
}

func printDocument(w io.Writer, e *listing.Explanation) error {
	lines := cli.Fields{{"document", e.DocumentID}, {"organization", e.OrgID}}
	if d := e.Document; d == nil {
		where := "not in daybook.documents: it was removed, or never written"
		if e.Source != store.SourceDaybook {
			where = "in the application's own tables: read from the source " + e.Source
		}
		lines = append(lines, [2]string{"kept", where})
	} else {
		state := "not ready"
		switch {
		case d.DeletedAt != nil:
			state = "deleted " + cli.FormatTime(*d.DeletedAt)
		case d.AccountingReadyAt != nil:
			state = "ready since " + cli.FormatTime(*d.AccountingReadyAt)
		}
		dates := d.IssueDate.String()
		if d.ValueDate != nil {
			dates += ", value date " + d.ValueDate.String()
		}
		lines = append(lines,
			[2]string{"type", string(d.Type) + ", " + string(d.Direction)},
			[2]string{"number", d.Content.Number},
			[2]string{"issue date", dates},
			[2]string{"currency", d.Currency},
			[2]string{"version", strconv.FormatInt(d.AccountingReadyVersion, 10) + ", " + state})
		if j := d.Content.Journal; j != nil {
			lines = append(lines, [2]string{"journal", j.Reason + ", by " + j.By})
		}
	}
	if j := e.Job; j == nil {
		lines = append(lines, [2]string{"job", "none"})
	} else {
		state := string(j.State)
		if j.State == models.JobPending {
			state += ", due " + cli.FormatTime(j.ReadyAt)
		}
		lines = append(lines,
			[2]string{"job", j.ID},
			[2]string{"", state + ", version " + strconv.FormatInt(j.VersionHint, 10) + ", " +
				phrase.Plural(int64(j.RunCount), "attempt", "attempts")},
			[2]string{"error", answers.Text(j.LastErrorCode)},
			[2]string{"", answers.Text(j.LastError)})
	}
	live := "no"
	if e.LiveImpactID != nil {
		live = "impact " + strconv.FormatInt(*e.LiveImpactID, 10)
	}
	if why := e.NoEntries(); why != "" {
		live += ", without an entry: " + why.Words()
	}
	if e.Elsewhere != nil {
		lines = append(lines, cli.ElsewhereFields(e.Elsewhere)...)
	}
	return append(lines, [2]string{"posted", live}).Print(w)
}

func printImpact(a *cli.App, w io.Writer, m *listing.ExplainedImpact, live *int64, elsewhere bool) error {
	kind := "posts"
	switch {
	case m.Kind == models.ImpactReverse:
		kind = "reverses"
	case elsewhere && m.RuleSetVersion == nil:
		kind = "takes back what is posted elsewhere"
	case live != nil && *live == m.ID:
		kind = "posts, live"
	}
	rules := ""
	if m.RuleSetVersion != nil {
		rules = fmt.Sprintf("version %d", *m.RuleSetVersion)
		if m.RuleSetName != "" {
			rules += " " + m.RuleSetName
		}
		if len(m.RuleSetSHA256) >= 12 {
			rules += ", SHA-256 " + m.RuleSetSHA256[:12]
		}
	}
	epoch := ""
	if m.Epoch > 0 {
		epoch = strconv.Itoa(m.Epoch)
	}
	_, _ = fmt.Fprintln(w)
	err := cli.Fields{
		{"impact", fmt.Sprintf("%d, number %d of the chain: %s", m.ID, m.Seq, kind)},
		{"version", strconv.FormatInt(m.DocumentVersion, 10)},
		{"rule set", rules},
		{"rule", m.RuleID},
		{"epoch", epoch},
		{"document date", m.DocumentDate.String()},
		{"posting date", m.PostingDate.String()},
		{"made by", fmt.Sprintf("job %s, attempt %d, %s", m.JobID, m.Attempt, cli.FormatTime(m.CreatedAt))},
		{"workflow run", m.WorkflowRunID},
	}.Print(w)
	if err != nil {
		return err
	}
	for i := range m.Confirmations {
		c := &m.Confirmations[i]
		line := fmt.Sprintf("version %d, rule set version %d: job %s, attempt %d, %s", c.DocumentVersion, c.RuleSetVersion,
			c.JobID, c.Attempt, cli.FormatTime(c.CreatedAt))
		if err := (cli.Fields{{"confirmed for", line}, {"", c.WorkflowRunID}}).Print(w); err != nil {
			return err
		}
	}
	if len(m.Entries) == 0 {
		_, err := fmt.Fprintln(w, "no entries: "+m.NoEntries.Words())
		return err
	}
	t := cli.NewTable("LINE", "ACCOUNT", "DEBIT", "CREDIT", "CURRENCY", "RULE LINE", "DOCUMENT LINE", "DIMENSIONS")
	t.Right = []int{0, 2, 3, 6}
	for i := range m.Entries {
		e := &m.Entries[i]
		debit, credit := cli.Sides(e.Side, minor.Decimal64(e.Amount, e.Currency))
		line := ""
		if e.DocumentLine != nil {
			line = strconv.Itoa(*e.DocumentLine)
		}
		t.Add(strconv.Itoa(e.LineNo), e.Account, debit, credit, e.Currency, e.RuleLineID, line, e.Dimensions.String())
	}
	return a.Print(w, t)
}
