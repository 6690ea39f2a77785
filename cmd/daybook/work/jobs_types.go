package work

import (
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/text/phrase"
)

// typeOutput is a type for programs.
type typeOutput struct {
	store.TypeOnRecord
	TimeoutSeconds float64 `json:"timeoutSeconds,omitempty"`
}

func jobsTypesCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "types",
		Short: "List the types that workers have handlers for, and who owns each",
		Long: "Lists the types of every kind that workers have handlers for, and who owns each. A worker puts its types on record when it\n" +
			"starts, and every minute; LAST SEEN is when one last did. What no worker has put on record for 90 days is " +
			"left out.",
		Args: cobra.NoArgs,
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, _ []string) error {
			types, err := store.TypesOnRecord(c.Context(), db.Pool)
			if err != nil {
				return err
			}
			out := make([]typeOutput, len(types))
			for i, t := range types {
				out[i] = typeOutput{t, t.Timeout.Seconds()}
			}
			return a.Emit(map[string]any{"types": out}, func(w io.Writer) error {
				t := cli.NewTable("KIND", "TYPE", "OWNER", "ATTEMPTS", "TIMEOUT", "PARALLEL", "LAST SEEN", "WORKER")
				t.Right = []int{3, 5}
				for _, o := range out {
					name := o.Type
					if o.AliasOf != "" {
						name += " (alias of " + o.AliasOf + ")"
					}
					t.Add(o.Kind, name, o.Owner, unlessZero(o.MaxAttempts), shortDuration(o.Timeout), unlessZero(o.Parallel),
						cli.FormatTime(o.LastSeen), o.Worker)
				}
				return a.Print(w, t)
			})
		}),
	}
}

// unlessZero is a number, or nothing for 0.
func unlessZero(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// shortDuration is a duration, or nothing for 0.
func shortDuration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return phrase.Duration(d)
}
