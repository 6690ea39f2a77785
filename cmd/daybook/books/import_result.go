package books

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/internal/moving/importer"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
)

// ImportProblem is a source that was not imported.
type ImportProblem struct {
	Source string `json:"source"`
	Reason string `json:"reason"`
	// Code is why it cannot be posted; empty: the document cannot be read, or was not written.
	Code models.ErrorCode `json:"code,omitempty"`
}

// problemOf words an error, its code first.
func problemOf(source string, err error) ImportProblem {
	p := ImportProblem{Source: source, Reason: err.Error()}
	if failed, ok := errors.AsType[*posting.Error](err); ok {
		p.Code, p.Reason = failed.Code, string(failed.Code)+": "+failed.Error()
	}
	return p
}

// ImportResult counts what an import did.
type ImportResult struct {
	Inserted  int `json:"inserted"`
	Changed   int `json:"changed"`
	Unchanged int `json:"unchanged"`
	// Skipped are documents that cause no booking.
	Skipped []ImportProblem `json:"skipped"`
	Failed  []ImportProblem `json:"failed"`
	// Imports are the imports by which the documents of each organization are on record.
	Imports []ImportMade `json:"imports,omitempty"`
	// SkippedRows are the rows of CSV files that the mapping leaves out; other formats have none.
	SkippedRows []importer.SkippedRows `json:"skipped_rows,omitempty"`
	// Twice are the numbers that other documents have as well; nil: there are none.
	Twice *numbersTwice `json:"numbers_twice,omitempty"`
	// Trial is what the import would cause; nil: it was no dry run.
	Trial *importTrial `json:"dry_run,omitempty"`
}

func newImportResult() *ImportResult {
	return &ImportResult{Skipped: []ImportProblem{}, Failed: []ImportProblem{}}
}

// showImport prints the result, also of an import that ended early with an error. An import of
// which a part failed is an error, so that programs notice.
func showImport(a *cli.App, r *ImportResult, ended error) error {
	err := a.Emit(r, func(w io.Writer) error {
		if err := printProblems(w, "skipped", r.Skipped); err != nil {
			return err
		}
		if err := printProblems(w, "failed", r.Failed); err != nil {
			return err
		}
		for _, s := range r.SkippedRows {
			if _, err := fmt.Fprintf(w, "csv.skip  %s: %s left out, the first in line %d\n",
				s.Source, phrase.Plural(int64(s.Rows), "row", "rows"), s.FirstLine); err != nil {
				return err
			}
		}
		if r.Twice != nil {
			if err := r.Twice.print(w); err != nil {
				return err
			}
		}
		if r.Trial != nil {
			if err := r.Trial.print(a, w); err != nil {
				return err
			}
			if _, err := fmt.Fprint(w, "dry run, nothing is written: "); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(w, "%d new, %d changed, %d unchanged, %d skipped, %d failed\n",
			r.Inserted, r.Changed, r.Unchanged, len(r.Skipped), len(r.Failed))
		if err == nil {
			err = printImportsMade(a, w, r.Imports)
		}
		return err
	})
	if ended != nil {
		return ended
	}
	if err == nil && r.Trial != nil && len(r.Failed)+len(r.Trial.Failing) > 0 {
		return cli.Tagged(errPartlyFailed, "%s: correct them, or the rules, before the import", r.wouldFail())
	}
	if err == nil && len(r.Failed) > 0 {
		return cli.Tagged(errPartlyFailed, "%s failed: correct and import again; what is there already stays as it is",
			phrase.Plural(int64(len(r.Failed)), "document", "documents"))
	}
	return err
}

// wouldFail says how much of a dry run is refused, and how many documents would fail.
func (r *ImportResult) wouldFail() string {
	var parts []string
	if n := len(r.Failed); n > 0 {
		parts = append(parts, phrase.Plural(int64(n), "line or file is refused", "lines or files are refused"))
	}
	if n := len(r.Trial.Failing); n > 0 {
		parts = append(parts, phrase.Plural(int64(n), "document would fail", "documents would fail"))
	}
	return strings.Join(parts, ", and ")
}

func printProblems(w io.Writer, what string, problems []ImportProblem) error {
	for _, p := range problems {
		if _, err := fmt.Fprintf(w, "%s  %s: %s\n", what, p.Source, terminal.OneLine(p.Reason)); err != nil {
			return err
		}
	}
	return nil
}
