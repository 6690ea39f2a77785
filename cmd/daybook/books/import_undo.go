package books

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/text/cursor"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
)

func importListCommand(a *cli.App) *cobra.Command {
	var o books.ImportsOptions
	var page cli.PageFlags
	command := &cobra.Command{
		Use:   "list",
		Short: "List imports, the latest first",
		Args:  cobra.NoArgs,
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, _ []string) error {
			if err := page.Read(&o.Before); err != nil {
				return err
			}
			o.Limit = page.Limit + 1
			list, err := books.Imports(c.Context(), db.Pool, o)
			if err != nil {
				return err
			}
			list, next := cursor.Page(page.Limit, list, func(i models.Import) any { return i.ID })
			return a.Emit(answers.ImportListOf(list, next), func(w io.Writer) error {
				defer a.More(next)
				return a.Print(w, importsTable(list))
			})
		}),
	}
	command.Flags().StringVar(&o.OrgID, "org", "", "only of this organization")
	page.Add(command, "imports", store.DefaultLimit)
	return command
}

func importsTable(list []models.Import) *cli.Table {
	t := cli.NewTable("IMPORT", "ORGANIZATION", "STARTED", "FORMAT", "BY", "NEW", "CHANGED", "UNDO", "FILES")
	t.Right = []int{0, 5, 6}
	for i := range list {
		one := &list[i]
		created, changed := "", ""
		if one.EndedAt != nil {
			created, changed = strconv.FormatInt(one.Inserted, 10), strconv.FormatInt(one.Changed, 10)
		}
		t.Add(strconv.FormatInt(one.ID, 10), one.OrgID, cli.FormatTime(one.StartedAt), one.Format, one.Actor, created, changed,
			undoText(one), one.Files)
	}
	return t
}

// undoText says how far an import is undone.
func undoText(i *models.Import) string {
	switch {
	case i.UndoStartedAt == nil:
		return ""
	case i.UndoEndedAt == nil:
		return "begun"
	case i.Kept > 0:
		return fmt.Sprintf("all but %d", i.Kept)
	}
	return "done"
}

func importUndoCommand(a *cli.App) *cobra.Command {
	var o books.UndoOptions
	command := &cobra.Command{
		Use:   "undo IMPORT",
		Short: "Take back what an import wrote",
		Long: "Takes back what an import wrote. A document that it made and that was never posted is removed with its job; what is posted\n" +
			"is reversed by the workers. A document that it changed gets its former content again. What was changed since is left\n" +
			"alone and listed, and so is what is posted in a closed period, unless the policy is first_open_day (https://github.com/daybook-dev/daybook/blob/main/docs/import.md).\n" +
			"An undo that was interrupted goes on when it is called again.",
		Example: "  daybook import undo 17 --dry-run\n  daybook import undo 17",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || id <= 0 {
				return cli.Usagef("%q is no import: give its number (`daybook import list`)", args[0])
			}
			db, err := a.Open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.Close()
			done, err := books.UndoImport(c.Context(), db.Pool, id, o)
			actions.About(c.Context(), done.Import.OrgID, args[0], map[string]any{
				"removed": done.Removed, "reversed": done.Reversed, "restored": done.Restored, "kept": len(done.Kept),
			})
			return a.EmitDone(err, done.Import.ID == 0, answers.UndoneOf(&done.Import, done.Removed, done.Reversed, done.Restored,
				done.Kept, done.Failing, "", o.DryRun), func(w io.Writer) error { return printUndone(a, w, &done, o.DryRun, err != nil) })
		},
	}
	command.Flags().StringVar(&o.OrgID, "org", "", "refuse an import that is another organization's")
	command.Flags().BoolVar(&o.DryRun, "dry-run", false, "change nothing, and show what would be done")
	return command
}

// keptShown is how many documents that were kept an undo lists.
const keptShown = 20

func printUndone(a *cli.App, w io.Writer, u *books.Undone, dry, interrupted bool) error {
	for n, d := range u.Kept {
		if n == keptShown {
			if _, err := fmt.Fprintf(w, "kept  %s more: --json lists them\n",
				phrase.Plural(int64(len(u.Kept)-n), "document", "documents")); err != nil {
				return err
			}
			break
		}
		if _, err := fmt.Fprintf(w, "kept  %s: %s\n", d.ID, keptText(d)); err != nil {
			return err
		}
	}
	if err := printFailing(w, u.Failing); err != nil {
		return err
	}
	if dry {
		if _, err := fmt.Fprint(w, "dry run, nothing is changed: "); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(w, "import %d of organization %s: %d removed, %d reversed, %d restored, %d kept\n",
		u.Import.ID, u.Import.OrgID, u.Removed, u.Reversed, u.Restored, len(u.Kept)); err != nil {
		return err
	}
	undone := u.Removed + u.Reversed + u.Restored
	switch {
	case interrupted:
	case dry && undone > 0:
		a.Say("Next: `daybook import undo %d` does it.", u.Import.ID)
	case dry:
	case undone == 0 && len(u.Kept) > 0:
		a.Say("Nothing was undone: see above why the documents are kept.")
	case undone == 0:
		a.Say("Nothing was left to undo.")
	case u.Reversed+u.Restored > 0:
		a.Say("Next: workers reverse what is posted: `daybook accounting list --org %s --state pending` shows what waits for them.",
			u.Import.OrgID)
	}
	return nil
}

// printFailing lists documents that are restored and cannot be posted.
func printFailing(w io.Writer, failing []models.UndoneDocument) error {
	for n, d := range failing {
		if n == keptShown {
			break
		}
		if _, err := fmt.Fprintf(w, "cannot be posted  %s: %s: %s\n", d.ID, d.Fails.Code, terminal.OneLine(d.Fails.Message)); err != nil {
			return err
		}
	}
	if len(failing) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "what %s before the import cannot be posted, as rules, accounts and periods are\n",
		phrase.Plural(int64(len(failing)), "restored document was", "restored documents were"))
	return err
}

// keptText says why a document was kept.
func keptText(d models.UndoneDocument) string {
	reason := map[models.KeptCode]string{
		models.KeptNotFound:      "its row is gone",
		models.KeptDeleted:       "it was deleted since",
		models.KeptChanged:       "it was changed since",
		models.KeptFormerUnknown: "what it was before the import is not kept",
		models.KeptClosed: "it is posted in a closed period: open the period (`daybook periods open`), or set the policy " +
			"first_open_day (`daybook periods policy`), and undo again",
	}[d.Code]
	if d.OtherImport > 0 {
		reason += fmt.Sprintf(" by import %d", d.OtherImport)
	}
	return string(d.Code) + ": " + reason
}
