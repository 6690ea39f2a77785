package keep

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/internal/moving/adopt"
	"github.com/daybook-dev/daybook/internal/text/phrase"
)

func adoptCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{
		Use:   "adopt",
		Short: "Move in from a legacy queue, while its workers still run",
	}
	command.AddCommand(adoptAccountingQueueCommand(a), adoptOperationsCommand(a))
	return command
}

// adoption are the flags that every command of adopt has. Without any of them nothing is changed.
type adoption struct {
	apply, verify, undo bool
}

func (f *adoption) add(c *cobra.Command) {
	flags := c.Flags()
	flags.BoolVar(&f.apply, "apply", false, "adopt the rows; repeat it at any time")
	flags.BoolVar(&f.verify, "verify", false,
		"compare counts and checksums by organization and state, and say what differs")
	flags.BoolVar(&f.undo, "undo", false, "give back what Daybook has not worked, and say what it cannot give back")
}

// check refuses flags that exclude each other.
func (f *adoption) check() error {
	n := 0
	for _, given := range []bool{f.apply, f.verify, f.undo} {
		if given {
			n++
		}
	}
	if n > 1 {
		return cli.Usagef("give one of --apply, --verify and --undo; without them the command says what it would do")
	}
	return nil
}

// runAdoption does with a legacy queue what the flags say, and prints what came of it.
func runAdoption(a *cli.App, c *cobra.Command, adopter adopt.Adopter, f adoption) error {
	ctx := c.Context()
	bar := a.NewProgress("rows", 0)
	progress := func(r adopt.Report) { bar.Set(r.Done.Rows()) }
	switch {
	case f.apply, f.undo:
		run := adopt.Apply
		if f.undo {
			run = adopt.GiveBack
		}
		report, err := run(ctx, adopter, progress)
		bar.End()
		return a.EmitDone(err, report.Done.Rows() == 0, report,
			func(w io.Writer) error { return printAdoption(a, w, report, f.undo) })
	case f.verify:
		v, err := adopt.Check(ctx, adopter)
		if err != nil && !errors.Is(err, adopt.ErrDiffers) {
			return err
		}
		return errors.Join(a.Emit(v, func(w io.Writer) error { return printVerification(a, w, v) }), err)
	}
	plan, err := adopter.Look(ctx)
	if err != nil {
		return err
	}
	if err := a.Emit(plan, func(w io.Writer) error { return printPlan(a, w, plan) }); err != nil {
		return err
	}
	if blocking := plan.Problems.Blocking(); len(blocking) > 0 {
		return adopt.Refusal(blocking)
	}
	return nil
}

func printPlan(a *cli.App, w io.Writer, p adopt.Plan) error {
	_, _ = fmt.Fprintln(w, p.Table)
	if len(p.Missing) > 0 {
		_, _ = fmt.Fprintln(w, "columns that it lacks and that have a default: "+
			terminal.OneLine(strings.Join(p.Missing, ", ")))
	}
	if len(p.Ignored) > 0 {
		_, _ = fmt.Fprintln(w, "columns that are not read: "+terminal.OneLine(strings.Join(p.Ignored, ", ")))
	}
	t := cli.NewTable("ORGANIZATION", "STATE", "ROWS", "TO ADOPT", "LEFT FOR NOW", "CHECKSUM")
	t.Right = []int{2, 3, 4}
	for _, g := range p.Found {
		t.Add(g.OrgID, g.State, strconv.FormatInt(g.Rows, 10), countOf(p.Take, g), countOf(p.Leave, g), g.Checksum.String())
	}
	if err := printGroups(a, w, t); err != nil {
		return err
	}
	if n := p.Held.Rows(); n > 0 {
		_, _ = fmt.Fprintf(w, "%s held by Daybook already\n", phrase.Plural(n, "row is", "rows are"))
	}
	if err := printProblems(a, w, p.Problems); err != nil {
		return err
	}
	printNotes(w, p.Notes)
	_, err := fmt.Fprintf(w, "\nNothing was changed. --apply would adopt %s.\n",
		phrase.Plural(p.Take.Rows(), "row", "rows"))
	return err
}

// countOf is the number of rows of the group's organization and state in other groups.
func countOf(groups adopt.Groups, like adopt.Group) string {
	for _, g := range groups {
		if g.OrgID == like.OrgID && g.State == like.State {
			return strconv.FormatInt(g.Rows, 10)
		}
	}
	return "0"
}

func printAdoption(a *cli.App, w io.Writer, r adopt.Report, back bool) error {
	t := cli.NewTable("ORGANIZATION", "STATE", "ROWS", "CHECKSUM")
	t.Right = []int{2}
	for _, g := range r.Done {
		t.Add(g.OrgID, g.State, strconv.FormatInt(g.Rows, 10), g.Checksum.String())
	}
	if err := printGroups(a, w, t); err != nil {
		return err
	}
	if err := printProblems(a, w, r.Problems); err != nil {
		return err
	}
	printNotes(w, r.Notes)
	done, left := "adopted", "stay with "+r.Table+" for now: repeat --apply"
	if back {
		done, left = "given back", "stay with Daybook"
	}
	_, err := fmt.Fprintf(w, "%s %s\n", phrase.Plural(r.Done.Rows(), "row", "rows"), done)
	if n := r.Left.Rows(); err == nil && n > 0 {
		_, err = fmt.Fprintf(w, "%s %s\n", phrase.Plural(n, "row", "rows"), left)
	}
	return err
}

func printVerification(a *cli.App, w io.Writer, v adopt.Verification) error {
	t := cli.NewTable("ORGANIZATION", "ADOPTED AS", "LEGACY", "DAYBOOK", "CHECKSUM", "DIFFERS")
	t.Right = []int{2, 3}
	for _, c := range v.Compared {
		sum, differs := c.LegacyChecksum.String(), ""
		if !c.Same {
			sum, differs = sum+" / "+c.HeldChecksum.String(), "yes"
		}
		t.Add(c.OrgID, c.State, strconv.FormatInt(c.LegacyRows, 10), strconv.FormatInt(c.HeldRows, 10), sum, differs)
	}
	if err := printGroups(a, w, t); err != nil {
		return err
	}
	if err := printProblems(a, w, v.Problems); err != nil {
		return err
	}
	said := "nothing differs"
	if !v.Sound {
		said = "there are differences"
	}
	if n := v.Left.Rows(); n > 0 {
		said += fmt.Sprintf("; %s not adopted yet", phrase.Plural(n, "row is", "rows are"))
	}
	_, err := fmt.Fprintln(w, said)
	return err
}

// printGroups prints a table that has rows.
func printGroups(a *cli.App, w io.Writer, t *cli.Table) error {
	if len(t.Rows) == 0 {
		return nil
	}
	return a.Print(w, t)
}

func printProblems(a *cli.App, w io.Writer, problems adopt.Problems) error {
	if len(problems) == 0 {
		return nil
	}
	_, _ = fmt.Fprintln(w)
	t := cli.NewTable("CODE", "ROWS", "WHAT IT MEANS", "SUCH AS")
	t.Right = []int{1}
	for _, p := range problems {
		rows, detail := "", p.Detail
		if p.Rows > 0 {
			rows = strconv.FormatInt(p.Rows, 10)
		}
		if p.Blocks {
			detail = "nothing is adopted: " + detail
		}
		t.Add(p.Code, rows, detail, strings.Join(p.Examples, " "))
	}
	return a.Print(w, t)
}

func printNotes(w io.Writer, notes []string) {
	for _, note := range notes {
		_, _ = fmt.Fprintln(w, "- "+terminal.OneLine(note))
	}
}
