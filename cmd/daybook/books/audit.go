package books

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/audit"
	"github.com/daybook-dev/daybook/internal/text/minor"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/migrations"
)

// Audited is the report of an audit, for programs.
type Audited struct {
	// Sound is true when nothing is wrong.
	Sound bool `json:"sound"`
	// Wrong counts the findings of all checks.
	Wrong int64 `json:"wrong"`
	audit.Report
	// Figures are those of the report.
	Figures auditFigures `json:"figures"`
}

type auditFigures struct {
	accounting.AuditFigures
	Totals []currencyTotal `json:"totals"`
}

// currencyTotal is what was debited and credited in a currency.
type currencyTotal struct {
	Currency    string          `json:"currency"`
	DebitMinor  answers.Minor   `json:"debit_minor"`
	CreditMinor answers.Minor   `json:"credit_minor"`
	Debit       answers.Decimal `json:"debit"`
	Credit      answers.Decimal `json:"credit"`
}

func auditFiguresOf(f *accounting.AuditFigures) auditFigures {
	return auditFigures{*f, answers.List(f.Totals, func(t *accounting.CurrencyTotal) currencyTotal {
		out := currencyTotal{Currency: t.Currency}
		out.DebitMinor, out.Debit = answers.Amount(t.Debit, t.Currency)
		out.CreditMinor, out.Credit = answers.Amount(t.Credit, t.Currency)
		return out
	})}
}

func auditCommand(a *cli.App) *cobra.Command {
	var options audit.Options
	var all bool
	var closingKey string
	command := &cobra.Command{
		Use:   "audit --org ORG|--all-orgs",
		Short: "Check that every document is posted once, and that the ledger and the queues are sound",
		Long: "Checks in one read-only snapshot that each ready document is posted exactly once or has a job that says why not, that\n" +
			"debits equal credits, that reversals mirror what they reverse, that chains have no gaps, and that nothing was posted\n" +
			"into a period after its closing, nor changed there; and that the constraints, keys and triggers that guard the ledger are there. Lists what\n" +
			"is wrong with its ids and ends with 1 if anything is. It waits for no other transaction and delays none.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case (options.OrgID == "") != all:
				return cli.Usagef("give either --org or --all-orgs")
			case options.Limit < 1:
				return cli.Usagef("--limit must be at least 1")
			}
			var err error
			if closingKey != "" {
				if options.ClosingKey, err = cli.ClosingPublicKey(closingKey); err != nil {
					return err
				}
			}
			db, err := a.Open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.Close()
			if !all {
				if _, err := db.Organization(c.Context(), options.OrgID); err != nil {
					return err
				}
			}
			options.Guards = audit.GuardsOf(migrations.Schema())
			if options.Newest, err = migrations.Newest(); err != nil {
				return err
			}
			report, err := audit.Run(c.Context(), db.Pool, options)
			if err != nil {
				return err
			}
			result := Audited{Sound: report.Wrong() == 0, Wrong: report.Wrong(), Report: report, Figures: auditFiguresOf(&report.Figures)}
			if err := a.Emit(result, func(w io.Writer) error { return printAudit(a, w, report) }); err != nil {
				return err
			}
			if !result.Sound {
				return cli.Tagged(errNotSound, "the audit found %s",
					phrase.Plural(result.Wrong, "thing that is wrong", "things that are wrong"))
			}
			return nil
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.OrgID, "org", "", "the organization")
	flags.BoolVar(&all, "all-orgs", false, "all organizations")
	flags.StringVar(&closingKey, "closing-key", "", "the file of the public key (PEM) by which closings must be signed")
	flags.IntVar(&options.Limit, "limit", 20, "how many findings of each check are listed at most; all are counted")
	return command
}

func printAudit(a *cli.App, w io.Writer, r audit.Report) error {
	f := r.Figures
	lines := [][2]string{
		{"organizations", strconv.FormatInt(f.Organizations, 10)},
		{"documents", fmt.Sprintf("%d, %d of them ready", f.Documents, f.Ready)},
		{"impacts", fmt.Sprintf("%d, %d of them live, %s, %s", f.Impacts, f.Live,
			phrase.Plural(f.Reversals, "reversal", "reversals"),
			phrase.Plural(f.Confirmations, "confirmation", "confirmations"))},
		{"entries", strconv.FormatInt(f.Entries, 10)},
	}
	for _, q := range f.Queues {
		lines = append(lines, [2]string{
			string(q.Kind),
			fmt.Sprintf("%s open, %d failed", cli.PluralOf(string(q.Kind), q.Open), q.Failed),
		})
	}
	for _, line := range lines {
		if _, err := fmt.Fprintf(w, "%-14s %s\n", line[0], line[1]); err != nil {
			return err
		}
	}
	if err := printSources(a, w, f.Sources); err != nil {
		return err
	}
	totals := cli.NewTable("CURRENCY", "DEBIT", "CREDIT")
	totals.Right = []int{1, 2}
	for _, t := range f.Totals {
		totals.Add(t.Currency, minor.Decimal(t.Debit, t.Currency), minor.Decimal(t.Credit, t.Currency))
	}
	if len(totals.Rows) > 0 {
		_, _ = fmt.Fprintln(w)
		if err := a.Print(w, totals); err != nil {
			return err
		}
	}
	_, _ = fmt.Fprintln(w)
	checks := cli.NewTable("CHECK", "WRONG", "WHAT MUST HOLD")
	checks.Right = []int{1}
	for _, c := range r.Checks {
		checks.Add(strings.ReplaceAll(c.Kind, "_", " "), strconv.FormatInt(c.Count, 10), c.Rule)
	}
	for _, c := range r.Warnings {
		checks.Add(strings.ReplaceAll(c.Kind, "_", " "), strconv.FormatInt(c.Count, 10)+" to look at", c.Rule)
	}
	if err := a.Print(w, checks); err != nil {
		return err
	}
	for _, c := range slices.Concat(r.Checks, r.Warnings) {
		if err := printFindings(a, w, c); err != nil {
			return err
		}
	}
	return nil
}

// printSources says which sources there are, unless daybook is the only one, and which of them were
// compared.
func printSources(a *cli.App, w io.Writer, sources []audit.SourceFigures) error {
	if len(sources) == 0 || len(sources) == 1 && sources[0].Name == store.SourceDaybook {
		return nil
	}
	t := cli.NewTable("SOURCE", "COMPARED", "ORGANIZATIONS", "DOCUMENTS", "JOBS OPEN", "FAILED", "IMPACTS", "LIVE")
	t.Right = []int{2, 3, 4, 5, 6, 7}
	var unread []string
	for _, s := range sources {
		compared, documents := "yes", strconv.FormatInt(s.Documents, 10)
		if !s.Checked {
			compared, documents = "no", "?"
			unread = append(unread, s.Name)
		}
		t.Add(s.Name, compared, strconv.FormatInt(s.Organizations, 10), documents, strconv.FormatInt(s.OpenJobs, 10),
			strconv.FormatInt(s.FailedJobs, 10), strconv.FormatInt(s.Impacts, 10), strconv.FormatInt(s.Live, 10))
	}
	_, _ = fmt.Fprintln(w)
	if err := a.Print(w, t); err != nil || len(unread) == 0 {
		return err
	}
	_, err := fmt.Fprintf(w, "\nThe documents of %s are not compared with what is posted of them: this program cannot read them.\n"+
		"The program that has the source can: workers.Audit (https://github.com/daybook-dev/daybook/blob/main/docs/embedding.md).\n", strings.Join(unread, ", "))
	return err
}

func printFindings(a *cli.App, w io.Writer, c audit.CheckResult) error {
	if c.Count == 0 {
		return nil
	}
	listed := ""
	if n := int64(len(c.Findings)); n < c.Count {
		listed = fmt.Sprintf(", the first %d", n)
	}
	if _, err := fmt.Fprintf(w, "\n%s: %d%s\n", strings.ReplaceAll(c.Kind, "_", " "), c.Count, listed); err != nil {
		return err
	}
	t := cli.NewTable("ORGANIZATION", "DOCUMENT", "IMPACT", "WHAT IS WRONG")
	t.Right = []int{2}
	for _, f := range c.Findings {
		impact := ""
		if f.ImpactID != 0 {
			impact = strconv.FormatInt(f.ImpactID, 10)
		}
		t.Add(f.OrgID, f.DocumentID, impact, f.Detail)
	}
	return a.Print(w, t)
}
