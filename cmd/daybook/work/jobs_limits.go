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
	var of store.LimitScope
	command := &cobra.Command{
		Use:   "limits [TYPE]",
		Short: "List the limits by key, or the keys of a type or a queue that jobs wait for",
		Long: "Lists the types and the named queues whose jobs are limited by key: those of one organization and key, such\n" +
			"as a customer's account. With a type, or --queue, the 50 keys that most jobs wait for: ADMITTED counts the\n" +
			"jobs of the key that run or are about to, WAITING those that are due and wait for them.",
		Args: cobra.MaximumNArgs(1),
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, args []string) error {
			if len(args) == 1 || of.Queue != "" {
				if err := limitScope(&of, args); err != nil {
					return err
				}
				return listKeys(a, c, db, of)
			}
			limits, err := store.KeyLimits(c.Context(), db.Pool)
			if err != nil {
				return err
			}
			return a.Emit(map[string]any{"limits": answers.List(limits, answers.KeyLimitOf)}, func(w io.Writer) error {
				t := cli.NewTable("TYPE", "QUEUE", "BY", "AT A TIME", "RATE", "SET BY")
				for _, l := range limits {
					rate, by := "", "a person"
					if l.Rate > 0 {
						per := time.Duration(l.RateSeconds * float64(time.Second))
						rate = strconv.Itoa(l.Rate) + " in " + phrase.Duration(per)
					}
					if l.Declared {
						by = map[bool]string{true: "its policy", false: "its programs"}[l.Queue == ""]
					}
					t.Add(l.Type, l.Queue, l.By, unlessZero(l.Parallel), rate, by)
				}
				return a.Print(w, t)
			})
		}),
	}
	command.Flags().StringVar(&of.Queue, "queue", "", "the keys of this named queue")
	return command
}

// limitScope takes in the type, if one is given: a limit is of that or of the named queue.
func limitScope(of *store.LimitScope, args []string) error {
	if len(args) == 1 {
		of.Type = args[0]
	}
	if (of.Type == "") == (of.Queue == "") {
		return cli.Usagef("give a type, or --queue")
	}
	return nil
}

func listKeys(a *cli.App, c *cobra.Command, db *cli.Database, of store.LimitScope) error {
	keys, err := store.LimitedKeys(c.Context(), db.Pool, of, mostKeys)
	if err != nil {
		return err
	}
	return a.Emit(struct {
		answers.LimitScope
		Keys []answers.LimitedKey `json:"keys"`
	}{answers.LimitScope(of), answers.List(keys, answers.LimitedKeyOf)}, func(w io.Writer) error {
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
		Use:   "limit {TYPE | --queue NAME}",
		Short: "Limit the jobs of a type or a queue by key, such as a customer's account",
		Long: "Sets how many jobs of a type, organization and key run at a time, or begin in a time, over all workers; with\n" +
			"--queue those of a named queue, of any type: a job to which that gives a key has no limit of its type. It\n" +
			"replaces the limit that the policy of the type's handler says, or the program that declares the queue, until\n" +
			"--remove: then those set theirs again when they start. What waits follows the new numbers at once; --by holds\n" +
			"for what is enqueued from now on.",
		Example: "  daybook jobs limit sync_account --by payload.account_id --parallel 2\n" +
			"  daybook jobs limit --queue bank --by payload.account_id --parallel 2\n" +
			"  daybook jobs limit sync_account --remove",
		Args: cobra.MaximumNArgs(1),
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, args []string) error {
			if remove == (l.Parallel != 0 || l.Rate != 0) {
				return cli.Usagef("give --parallel or --rate, or --remove")
			}
			if err := limitScope(&l.LimitScope, args); err != nil {
				return err
			}
			if l.Rate != 0 {
				l.RateSeconds = per.Seconds()
			}
			changed, err := keylimit.Set(c.Context(), db.Pool, l)
			if err != nil {
				return err
			}
			return a.Emit(struct {
				answers.LimitScope
				Changed bool `json:"changed"`
			}{answers.LimitScope(l.LimitScope), changed}, func(w io.Writer) error {
				of := l.Type
				if l.Queue != "" {
					of = "the queue " + l.Queue
				}
				said := "The limit of " + of + map[bool]string{true: " is removed.", false: " is set."}[remove]
				if !changed {
					said = "Nothing was changed: the limit of " + of + " is so already."
				}
				_, err := fmt.Fprintln(w, said)
				return err
			})
		}),
	}
	flags := command.Flags()
	flags.StringVar(&l.Queue, "queue", "", "limit the jobs of this named queue, of any type")
	flags.StringVar(&l.By, "by", "",
		"the key of a job that is enqueued without one: org_id, or a member of the payload such as payload.account_id")
	flags.IntVar(&l.Parallel, "parallel", 0, "how many jobs of a key run at a time")
	flags.IntVar(&l.Rate, "rate", 0, "how many attempts of a key begin in the time of --per")
	flags.DurationVar(&per, "per", time.Second, "the time of --rate")
	flags.BoolVar(&remove, "remove", false, "take the limit away")
	return command
}
