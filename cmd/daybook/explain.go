package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/internal/text/cursor"
	"github.com/daybook-dev/daybook/internal/text/minor"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
)

func explainCommand(a *app) *cobra.Command {
	command := &cobra.Command{
		Use:   "explain ORG DOCUMENT",
		Short: "Show how a document was posted: by which rules, job, attempt and workflow run, entry by entry",
		Args:  cobra.ExactArgs(2),
		RunE: a.onDatabase(func(c *cobra.Command, db *database, args []string) error {
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
			return a.emit(shown, func(w io.Writer) error { return a.printExplanation(w, &e) })
		}),
	}
	return command
}

// fields are names and values, one a line; those without a value are left out.
type fields [][2]string

func (f fields) print(w io.Writer) error {
	for _, line := range f {
		if line[1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%-14s %s\n", line[0], terminal.OneLine(line[1])); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printExplanation(w io.Writer, e *listing.Explanation) error {
	if err := a.printDocument(w, e); err != nil {
		return err
	}
	if len(e.Attempts) > 0 {
		_, _ = fmt.Fprintln(w)
		t := newTable("ATTEMPT", "VERSION", "STARTED", "TOOK", "OUTCOME", "WORKER", "WORKFLOW RUN", "CODE", "ERROR")
		t.right = []int{0, 1}
		for i := range e.Attempts {
			at := &e.Attempts[i]
			t.add(strconv.Itoa(at.Attempt), strconv.FormatInt(at.Version, 10), formatTime(at.StartedAt),
				phrase.Duration(at.EndedAt.Sub(at.StartedAt)), outcomeOf(at), at.Worker, at.WorkflowRunID,
				answers.Text(at.ErrorCode), answers.Text(at.Error))
		}
		if err := a.print(w, t); err != nil {
			return err
		}
		if e.MoreAttempts {
			_, _ = fmt.Fprintf(w, "There are older attempts: daybook accounting show %s %s --cursor %s\n", e.OrgID, e.DocumentID, cursor.Of(e.Attempts[len(e.Attempts)-1].ID))
		}
	}
	for i := range e.Impacts {
		if err := a.printImpact(w, &e.Impacts[i], e.LiveImpactID, e.Elsewhere != nil); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printDocument(w io.Writer, e *listing.Explanation) error {
	lines := fields{{"document", e.DocumentID}, {"organization", e.OrgID}}
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
			state = "deleted " + formatTime(*d.DeletedAt)
		case d.AccountingReadyAt != nil:
			state = "ready since " + formatTime(*d.AccountingReadyAt)
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
	}
	if j := e.Job; j == nil {
		lines = append(lines, [2]string{"job", "none"})
	} else {
		state := string(j.State)
		if j.State == models.JobPending {
			state += ", due " + formatTime(j.ReadyAt)
		}
		lines = append(lines,
			[2]string{"job", j.ID},
			[2]string{"", state + ", version " + strconv.FormatInt(j.VersionHint, 10) + ", " + phrase.Plural(int64(j.RunCount), "attempt", "attempts")},
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
		lines = append(lines, elsewhereFields(e.Elsewhere)...)
	}
	return append(lines, [2]string{"posted", live}).print(w)
}

func (a *app) printImpact(w io.Writer, m *listing.ExplainedImpact, live *int64, elsewhere bool) error {
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
	err := fields{
		{"impact", fmt.Sprintf("%d, number %d of the chain: %s", m.ID, m.Seq, kind)},
		{"version", strconv.FormatInt(m.DocumentVersion, 10)},
		{"rule set", rules},
		{"rule", m.RuleID},
		{"epoch", epoch},
		{"document date", m.DocumentDate.String()},
		{"posting date", m.PostingDate.String()},
		{"made by", fmt.Sprintf("job %s, attempt %d, %s", m.JobID, m.Attempt, formatTime(m.CreatedAt))},
		{"workflow run", m.WorkflowRunID},
	}.print(w)
	if err != nil {
		return err
	}
	for i := range m.Confirmations {
		c := &m.Confirmations[i]
		line := fmt.Sprintf("version %d, rule set version %d: job %s, attempt %d, %s", c.DocumentVersion, c.RuleSetVersion, c.JobID, c.Attempt, formatTime(c.CreatedAt))
		if err := (fields{{"confirmed for", line}, {"", c.WorkflowRunID}}).print(w); err != nil {
			return err
		}
	}
	if len(m.Entries) == 0 {
		_, err := fmt.Fprintln(w, "no entries: "+m.NoEntries.Words())
		return err
	}
	t := newTable("LINE", "ACCOUNT", "DEBIT", "CREDIT", "CURRENCY", "RULE LINE", "DOCUMENT LINE")
	t.right = []int{0, 2, 3, 6}
	for i := range m.Entries {
		e := &m.Entries[i]
		debit, credit := sides(e.Side, minor.Decimal64(e.Amount, e.Currency))
		line := ""
		if e.DocumentLine != nil {
			line = strconv.Itoa(*e.DocumentLine)
		}
		t.add(strconv.Itoa(e.LineNo), e.Account, debit, credit, e.Currency, e.RuleLineID, line)
	}
	return a.print(w, t)
}

// sides puts an amount in the column of its side.
func sides(side models.Side, amount string) (debit, credit string) {
	if side == models.Credit {
		return "", amount
	}
	return amount, ""
}
