package books

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/internal/text/phrase"
)

// caseFlags name what the cases run with, in place of what their files name.
type caseFlags struct {
	rules, chart string
}

// TestedFile is what became of the cases of one file, for programs.
type TestedFile struct {
	File string `json:"file"`
	// RuleSet is the path of the rules that the cases ran with.
	RuleSet string               `json:"ruleset"`
	Cases   []posting.CaseResult `json:"cases"`
}

func rulesTestCommand(a *cli.App) *cobra.Command {
	var flags caseFlags
	command := &cobra.Command{
		Use:   "test FILE…",
		Short: "Run test cases: documents, and the entries that the rules must make of them",
		Long: "Runs files of test cases: documents, and the entries or the error that the rules must make of them. It prints a line\n" +
			"a case, and what differs: \"-\" is an entry that is missing, \"+\" one that was not expected. It reads no " +
			"database.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			files := make([]TestedFile, 0, len(args))
			total, failed := 0, 0
			for _, path := range args {
				f, err := testFile(a, path, flags)
				if err != nil {
					return err
				}
				files = append(files, f)
				for _, r := range f.Cases {
					total++
					if !r.Passed {
						failed++
					}
				}
			}
			err := a.Emit(map[string]any{"cases": total, "failed": failed, "files": files}, func(w io.Writer) error {
				return printTested(w, files, total, failed)
			})
			if err == nil && failed > 0 {
				err = cli.Tagged(cli.ErrNotAsExpected, "%d of %s failed", failed, phrase.Plural(int64(total), "case", "cases"))
			}
			return err
		},
	}
	command.Flags().StringVar(&flags.rules, "rules", "", "the rule set, in place of the one that each file names")
	command.Flags().StringVar(&flags.chart, "chart", "",
		"the chart of accounts (CSV), in place of the one that each file names")
	return command
}

// testFile runs the cases of one file. Paths in it start from its folder.
func testFile(a *cli.App, path string, flags caseFlags) (TestedFile, error) {
	done := TestedFile{File: path}
	source, err := a.ReadInput(path)
	if err != nil {
		return done, err
	}
	file, err := posting.ParseCases(source)
	if err != nil {
		return done, fmt.Errorf("%s: %w", path, err)
	}
	switch {
	case flags.rules != "":
		done.RuleSet = flags.rules
	case file.RuleSet != "":
		done.RuleSet = relativeTo(path, file.RuleSet)
	default:
		return done, cli.Usagef("%s names no rule set: add ruleset: PATH to it, or give --rules", path)
	}
	_, rules, err := compileFile(a, done.RuleSet)
	if err != nil {
		return done, err
	}
	var chart posting.Chart
	switch {
	case flags.chart != "":
		chart, err = chartFile(a, flags.chart)
	case file.Chart != "":
		chart, err = chartFile(a, relativeTo(path, file.Chart))
	case file.Accounts != nil:
		chart = file.Accounts
	}
	if err != nil {
		return done, err
	}
	done.Cases = posting.RunCases(rules, chart, file.Cases)
	return done, nil
}

func chartFile(a *cli.App, path string) (posting.Chart, error) {
	data, err := a.ReadInput(path)
	if err != nil {
		return nil, err
	}
	accounts, err := books.ParseAccounts(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return posting.ChartOf(accounts), nil
}

// relativeTo returns the path that a file names; standard input names paths from the working
// directory.
func relativeTo(file, path string) string {
	if file == "-" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}

func printTested(w io.Writer, files []TestedFile, total, failed int) error {
	for _, f := range files {
		if _, err := fmt.Fprintf(w, "%s, rules %s\n", f.File, f.RuleSet); err != nil {
			return err
		}
		for _, r := range f.Cases {
			line := "  ok    " + terminal.OneLine(r.Title)
			if !r.Passed {
				line = fmt.Sprintf("  FAIL  %s (%v)", terminal.OneLine(r.Title), r.Place)
			}
			for _, d := range r.Differences {
				line += "\n          " + terminal.OneLine(d)
			}
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
	}
	_, err := fmt.Fprintf(w, "%s, %d failed\n", phrase.Plural(int64(total), "case", "cases"), failed)
	return err
}
