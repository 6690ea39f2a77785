package keep

import (
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/moving/adopt"
	"github.com/daybook-dev/daybook/models"
)

func adoptAccountingQueueCommand(a *cli.App) *cobra.Command {
	var f adoption
	var o adopt.AccountingOptions
	var next string
	command := &cobra.Command{
		Use:   "accounting-queue [--apply | --verify | --undo]",
		Short: "Move in from a legacy accounting queue: one row per organization and document",
		Long: "Looks at a legacy accounting queue and says what it would do. With --apply it adopts what the legacy worker does not hold:\n" +
			"open and failed rows with their attempts and errors; completed rows as documents that are posted elsewhere, so that neither they\n" +
			"nor their next version are posted in full by mistake. It may run beside the legacy worker and old code that enqueues, be killed\n" +
			"at any moment, and be repeated.",
		Example: "  daybook adopt accounting-queue --entries public.legacy_entries\n" +
			"  daybook adopt accounting-queue --entries public.legacy_entries --source orders --forward --apply\n" +
			"  daybook adopt accounting-queue --entries public.legacy_entries --verify",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			switch o.Next = models.NextPosting(next); {
			case next != "" && o.Next != models.NextDifference && o.Next != models.NextWait:
				return cli.Usagef("--next %q: want difference or wait", next)
			case o.Forward && len(o.Orgs) > 0:
				return cli.Usagef("--forward is for the whole table: give it without --org")
			case o.StaleAfter <= 0 || o.AttemptedWithin <= 0:
				return cli.Usagef("--stale-after and --attempted-within must be above zero")
			}
			db, err := a.Open(c.Context(), 2)
			if err != nil {
				return err
			}
			defer db.Close()
			adopter, err := adopt.NewAccounting(c.Context(), db.Pool, o)
			if err != nil {
				return err
			}
			return runAdoption(a, c, adopter, f)
		},
	}
	f.add(command)
	flags := command.Flags()
	flags.StringVar(&o.Table, "table", adopt.DefaultAccountingTable, "the legacy queue")
	flags.StringVar(&o.Documents, "documents", "", "the table of documents, whose accounting_impact_created_at says "+
		"what is posted (default the one that the queue's foreign key names)")
	flags.StringVar(&o.Entries, "entries", "", "a view of what the legacy ledger holds: org_id, document_id, account, "+
		"side, amount, currency and, if it has it, posting_date")
	flags.StringArrayVar(&o.Orgs, "org", nil, "only rows of this organization; may be repeated")
	flags.StringVar(&next, "next", "",
		"what the next version of a document does that is posted already: difference (default with --entries) or wait")
	flags.StringVar(&o.Source, "source", "",
		"put this source on record for the organizations that have rows: where Daybook's workers read their documents")
	flags.BoolVar(&o.Forward, "forward", false, "hand rows that old code inserts from now on to Daybook at once")
	flags.DurationVar(&o.StaleAfter, "stale-after", adopt.DefaultStaleAfter,
		"the age from which a lease of the legacy worker counts as abandoned")
	flags.DurationVar(&o.AttemptedWithin, "attempted-within", adopt.DefaultAttemptedWithin,
		"how long after its last attempt a pending row is left to the legacy worker, which may still post")
	return command
}
