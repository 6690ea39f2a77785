package work

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/keylimit"
	"github.com/daybook-dev/daybook/internal/text/phrase"
)

// mostKeys is how many keys of a limit are listed.
const mostKeys = 50

func jobsLimitsCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "limits [TYPE]",
		Short: "List the limits by key, or the keys of a type that jobs wait for",
		Long: "Lists the types whose jobs are limited by key: those of one organization and key, such as a customer's\n" +
			"account. With a type, the 50 keys that most jobs wait for: ADMITTED counts the jobs of the key that run or\n" +
			"are about to, WAITING those that are due and wait for them.",
		Args: cobra.MaximumNArgs(1),
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, args []string) error {
			if len(args) == 1 {
				return listKeys(a, c, db, args[0])
			}
			limits, err := store.KeyLimits(c.Context(), db.Pool)
			if err != nil {
				return err
			}
			return a.Emit(map[string]any{"limits": answers.List(limits, answers.KeyLimitOf)}, func(w io.Writer) error {
				t := cli.NewTable("TYPE", "BY", "AT A TIME", "RATE", "SET BY")
				for _, l := range limits {
					rate, by := "", "a person"
					if l.Rate > 0 {
						per := time.Duration(l.RateSeconds * float64(time.Second))
						rate = strconv.Itoa(l.Rate) + " in " + phrase.Duration(per)
					}
					if l.Declared {
						by = "its policy"
					}
					t.Add(l.Type, l.By, unlessZero(l.Parallel), rate, by)
				}
				return a.Print(w, t)
			})
		}),
	}
}

func listKeys(a *cli.App, c *cobra.Command, db *cli.Database, jobType string) error {
	keys, err := store.LimitedKeys(c.Context(), db.Pool, jobType, mostKeys)
	if err != nil {
		return err
	}
	return a.Emit(map[string]any{"type": jobType, "keys": answers.List(keys, answers.LimitedKeyOf)}, func(w io.Writer) error {
		t := cli.NewTable("ORGANIZATION", "KEY", "ADMITTED", "WAITING", "OLDEST DUE")
		t.Right = []int{2, 3}
		for _, k := range keys {
			t.Add(k.OrgID, k.Key, strconv.Itoa(k.Admitted), strconv.Itoa(k.Waiting), cli.FormatTime(k.OldestDue))
		}
		return a.Print(w, t)
	})
}

func jobsLimitCommand(a *cli.App) *cobra.Command {
	var l store.KeyLimit
	var per time.Duration
	var remove bool
	command := &cobra.Command{
		Use:   "limit TYPE",
		Short: "Limit the jobs of a type by key, such as a customer's account",
		Long: "Sets how many jobs of a type, organization and key run at a time, or begin in a time, over all workers. It\n" +
			"replaces the limit that the policy of the type's handler says, until --remove: then a worker sets that again\n" +
			"when it starts. What waits follows the new numbers at once; --by holds for what is enqueued from now on.",
		Example: "  daybook jobs limit sync_account --by payload.account_id --parallel 2\n" +
			"  daybook jobs limit sync_account --remove",
		Args: cobra.ExactArgs(1),
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, args []string) error {
			if remove == (l.Parallel != 0 || l.Rate != 0) {
				return cli.Usagef("give --parallel or --rate, or --remove")
			}
			if l.Type = args[0]; l.Rate != 0 {
				l.RateSeconds = per.Seconds()
			}
			changed, err := keylimit.Set(c.Context(), db.Pool, l)
			if err != nil {
				return err
			}
			return a.Emit(map[string]any{"type": l.Type, "changed": changed}, func(w io.Writer) error {
				said := "The limit of " + l.Type + map[bool]string{true: " is removed.", false: " is set."}[remove]
				if !changed {
					said = "Nothing was changed: the limit of " + l.Type + " is so already."
				}
				_, err := fmt.Fprintln(w, said)
				return err
			})
		}),
	}
	flags := command.Flags()
	flags.StringVar(&l.By, "by", "",
		"the key of a job that is enqueued without one: org_id, or a member of the payload such as payload.account_id")
	flags.IntVar(&l.Parallel, "parallel", 0, "how many jobs of a key run at a time")
	flags.IntVar(&l.Rate, "rate", 0, "how many attempts of a key begin in the time of --per")
	flags.DurationVar(&per, "per", time.Second, "the time of --rate")
	flags.BoolVar(&remove, "remove", false, "take the limit away")
	return command
}
