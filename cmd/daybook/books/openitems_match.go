package books

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/text/minor"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
)

func openItemsMatchCommand(a *cli.App) *cobra.Command {
	var org string
	var rules []string
	var o books.MatchOptions
	command := &cobra.Command{
		Use:   "match --org ORG",
		Short: "Put documents together whose open items belong together",
		Long: "Puts documents together by rules, in this order:\n" +
			"  reference  the one refers to the number or the id of the other (content.refers_to)\n" +
			"  number     a payment's texts name the number of the other, and the amount is equal\n" +
			"  amount     the counterparty and the amount are equal, and no other item fits\n" +
			"Nothing is posted. What was matched by mistake is taken apart by `daybook open-items unreconcile`.",
		Example: "  daybook open-items match --org acme --dry-run\n  daybook open-items match --org acme --rules reference,number",
		Args:    cobra.NoArgs,
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, _ []string) error {
			for _, r := range rules {
				o.Rules = append(o.Rules, models.MatchedBy(r))
			}
			if o.DryRun {
				actions.Drop(c.Context())
			}
			list, err := books.MatchOpenItems(c.Context(), db.Pool, org, o)
			if err != nil {
				return err
			}
			return a.Emit(answers.MatchedOf(list, o.DryRun), func(w io.Writer) error {
				if err := a.Print(w, matchesTable(list)); err != nil {
					return err
				}
				done := "matched"
				if o.DryRun {
					done = "would be matched"
				}
				_, err := fmt.Fprintf(w, "%s %s\n", phrase.Plural(int64(len(list)), "pair", "pairs"), done)
				return err
			})
		}),
	}
	flags := command.Flags()
	flags.StringVar(&org, "org", "", "the organization")
	flags.StringSliceVar(&rules, "rules", nil, "only these rules, in this order; default: reference,number,amount")
	flags.BoolVar(&o.DryRun, "dry-run", false, "change nothing, and show what would be matched")
	_ = command.MarkFlagRequired("org")
	return command
}

func matchesTable(list []models.Match) *cli.Table {
	t := cli.NewTable("DOCUMENT", "BELONGS TO", "BY", "ACCOUNT", "CURRENCY", "AMOUNT", "GROUP")
	t.Right = []int{5, 6}
	for _, m := range list {
		t.Add(m.DocumentID, m.OtherID, string(m.MatchedBy), m.Account, m.Currency, minor.Decimal(m.Amount, m.Currency),
			groupText(m.GroupID))
	}
	return t
}
