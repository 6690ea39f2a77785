package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/daybook-dev/daybook/internal/text/phrase"
)

// mistyped is how many letters a name may differ from the one that was meant.
const mistyped = 2

// didYouMean ends an error about a name that is not known with those that are near it, and could be
// meant.
func didYouMean(near []string) string {
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + phrase.Or(near) + "?"
}

// UnknownCommand is the error of a command that groups others and does not know the name.
func UnknownCommand(c *cobra.Command, name string) error {
	return Usagef("unknown command %s for %s%s", name, c.CommandPath(), didYouMean(c.SuggestionsFor(name)))
}

// UnknownFlag says of a flag that is not known which one could be meant. Other errors of flags stay
// as they are.
func UnknownFlag(c *cobra.Command, err error) error {
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !unknown {
		return err
	}
	var near []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && (distance(name, f.Name) <= mistyped || len(name) > 1 && strings.HasPrefix(f.Name, name)) {
			near = append(near, "--"+f.Name)
		}
	})
	slices.SortStableFunc(near, func(x, y string) int { return distance(name, x[2:]) - distance(name, y[2:]) })
	return Usagef("unknown flag --%s for %s%s", name, c.CommandPath(), didYouMean(near))
}

// distance is how many letters have to be changed, added or left out to make one word of the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := before
			if a[i] != b[j] {
				changed++
			}
			before = row[j+1]
			row[j+1] = min(changed, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}
