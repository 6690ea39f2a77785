package books

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/report"
	"github.com/daybook-dev/daybook/models"
)

func statementCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{
		Use:   "statement",
		Short: "Make the balance sheet, the income statement, the statement of cash and the VAT summary",
	}
	command.AddCommand(statementBalanceCommand(a), statementIncomeCommand(a), statementCashCommand(a),
		statementVATCommand(a))
	return command
}

// StatementFormats are the formats of statements.
func StatementFormats() []string { return []string{"table", "csv", "json", "pdf"} }

// statementFile is how a statement is written.
type statementFile struct{ format, output string }

func (f *statementFile) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.format, "format", "table", "table, csv, json or pdf")
	flags.StringVarP(&f.output, "output", "o", "", "the file to write (default standard output)")
}

func (f *statementFile) check() error {
	if slices.Contains(StatementFormats(), f.format) {
		return nil
	}
	return cli.Usagef("--format %q: want table, csv, json or pdf", f.format)
}

// write writes a statement: answer is it for programs.
func (f *statementFile) write(a *cli.App, r *report.Report, answer any) error {
	write := func(w io.Writer) error {
		switch {
		case f.format == "csv":
			return r.WriteCSV(w)
		case f.format == "pdf":
			return r.WritePDF(w, time.Now())
		case f.format == "json" || a.JSON:
			encoder := json.NewEncoder(w)
			encoder.SetIndent("", "  ")
			return encoder.Encode(answer)
		}
		return printReport(a, w, r)
	}
	if f.output == "" || f.output == "-" {
		return write(a.Stdout)
	}
	return cli.WriteFile(f.output, write)
}

// printReport writes the tables of a report for people, each currency by itself.
func printReport(a *cli.App, w io.Writer, r *report.Report) error {
	if len(r.Tables) == 0 {
		a.Say("Nothing was posted.")
	}
	for i := range r.Tables {
		table := &r.Tables[i]
		head := []string{"CURRENCY"}
		for _, c := range table.Columns {
			head = append(head, strings.ToUpper(c.Title))
		}
		t := cli.NewTable(head...)
		for n, c := range table.Columns {
			if c.Number {
				t.Right = append(t.Right, n+1)
			}
		}
		for _, row := range table.Rows {
			cells := []string{table.Caption}
			for _, c := range row.Cells {
				cells = append(cells, c.Value)
			}
			t.Add(cells...)
		}
		if err := a.Print(w, t); err != nil {
			return err
		}
	}
	return nil
}

// statementFlags are the flags of a statement that has columns.
type statementFlags struct {
	statementFile
	org            string
	compare, where string
	options        books.StatementOptions
}

func (f *statementFlags) add(c *cobra.Command) {
	orgFlag(c, &f.org)
	flags := c.Flags()
	flags.StringVar(&f.compare, "compare", "", "add the same of the days before (previous), or of a year before (year)")
	flags.StringVar(&f.options.By, "by", "", "a dimension whose values are the columns, such as cost_centre")
	flags.StringVar(&f.where, "where", "",
		"only what has this value of a dimension, such as cost_centre=sales; an empty value: what has none")
	f.statementFile.add(flags)
}

// read reads the flags that statements have in common.
func (f *statementFlags) read() error {
	f.options.Compare = books.Compare(f.compare)
	if f.where != "" {
		var found bool
		if f.options.WhereKey, f.options.WhereValue, found = strings.Cut(f.where, "="); !found || f.options.WhereKey == "" {
			return cli.Usagef("--where %q: want a dimension and its value, such as cost_centre=sales", f.where)
		}
	}
	return f.check()
}

// statementSpan names the days of a statement, also as a year.
type statementSpan struct {
	spanFlags
	year string
}

func (s *statementSpan) add(flags *pflag.FlagSet) {
	s.spanFlags.add(flags)
	flags.StringVar(&s.year, "year", "", "a year such as 2025")
}

// parse returns the first and the last day; a day that is not named is the zero date.
func (s *statementSpan) parse() (from, to models.Date, err error) {
	if s.year == "" {
		return s.spanFlags.parse()
	}
	if s.given() {
		return from, to, cli.Usagef("give either --year, --period, or --from and --to")
	}
	months, err := parseYear(s.year)
	if err != nil {
		return from, to, err
	}
	return months[0].StartsOn, months[len(months)-1].EndsOn, nil
}

func statementBalanceCommand(a *cli.App) *cobra.Command {
	var f statementFlags
	var on, year string
	command := &cobra.Command{
		Use:   "balance --org ORG [--on DAY | --year YEAR]",
		Short: "Make the balance sheet: assets, liabilities and equity at the end of a day",
		Long: "Makes the balance sheet at the end of a day, each currency by itself, with the totals of sections and types. Income less\n" +
			"expense that no year-end close has moved is a line of equity, so that assets equal liabilities and equity.",
		Example: "  daybook statement balance --org acme --on 2026-03-31 --compare year\n" +
			"  daybook statement balance --org acme --on 2026-12-31 --format pdf -o balance.pdf",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if f.options.To, err = parseDay("--on", on); err != nil {
				return err
			}
			if year != "" {
				if on != "" {
					return cli.Usagef("give either --on or --year")
				}
				if _, f.options.To, err = (&statementSpan{year: year}).parse(); err != nil {
					return err
				}
			}
			return f.run(c, a, books.BalanceSheet)
		},
	}
	f.add(command)
	command.Flags().StringVar(&on, "on", "", "the day (default: all that is posted)")
	command.Flags().StringVar(&year, "year", "", "the last day of a year such as 2025")
	return command
}

func statementIncomeCommand(a *cli.App) *cobra.Command {
	var f statementFlags
	var span statementSpan
	command := &cobra.Command{
		Use:   "income --org ORG [--period PERIOD | --year YEAR | --from DAY --to DAY]",
		Short: "Make the income statement: income and expense of a span of days",
		Long: "Makes the income statement of a span of posting dates, each currency by itself, with the totals of sections and types.\n" +
			"What a year-end close moved to equity is left out.",
		Example: "  daybook statement income --org acme --period 2026-03 --compare previous\n" +
			"  daybook statement income --org acme --year 2026 --by cost_centre --format csv",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if f.options.From, f.options.To, err = span.parse(); err != nil {
				return err
			}
			return f.run(c, a, books.IncomeStatement)
		},
	}
	f.add(command)
	span.add(command.Flags())
	return command
}

// statementReader is books.BalanceSheet or books.IncomeStatement.
type statementReader func(ctx context.Context, db books.DB, org string, o books.StatementOptions) (models.Statement, error)

// run makes a statement and writes it.
func (f *statementFlags) run(c *cobra.Command, a *cli.App, read statementReader) error {
	if err := f.read(); err != nil {
		return err
	}
	db, err := a.Open(c.Context(), 1)
	if err != nil {
		return err
	}
	defer db.Close()
	s, err := read(c.Context(), db.Pool, f.org, f.options)
	if err != nil {
		return err
	}
	return f.write(a, report.Statement(&s), answers.StatementOf(&s))
}

// spannedStatement has the flags of a statement of a span that is neither compared nor split.
type spannedStatement struct {
	statementFile
	span statementSpan
	org  string
}

func (s *spannedStatement) add(command *cobra.Command) {
	orgFlag(command, &s.org)
	s.span.add(command.Flags())
	s.statementFile.add(command.Flags())
}

// run checks the flags, opens the database, and writes the statement.
func (s *spannedStatement) run(c *cobra.Command, a *cli.App,
	write func(ctx context.Context, db *cli.Database, from, to models.Date) error,
) error {
	from, to, err := s.span.parse()
	if err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return err
	}
	db, err := a.Open(c.Context(), 1)
	if err != nil {
		return err
	}
	defer db.Close()
	return write(c.Context(), db, from, to)
}

func statementCashCommand(a *cli.App) *cobra.Command {
	var f spannedStatement
	command := &cobra.Command{
		Use:   "cash --org ORG [--period PERIOD | --year YEAR | --from DAY --to DAY]",
		Short: "Make the statement of cash: what came in and went out, by account",
		Long: "Makes the statement of cash of a span of posting dates: of each account with the role cash the balance before, what came\n" +
			"in and went out, and the balance after. A reversal counts on both sides.",
		Example: "  daybook statement cash --org acme --period 2026-03",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return f.run(c, a, func(ctx context.Context, db *cli.Database, from, to models.Date) error {
				s, err := books.CashStatement(ctx, db.Pool, f.org, books.CashOptions{From: from, To: to})
				if err != nil {
					return err
				}
				return f.write(a, report.CashStatement(&s), answers.CashStatementOf(&s))
			})
		},
	}
	f.add(command)
	return command
}
