package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/daybook-dev/daybook/internal/text/phrase"
)

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
	var names []string
	for _, known := range c.Commands() {
		if known.IsAvailableCommand() {
			names = append(names, known.Name())
		}
	}
	return Usagef("unknown command %s for %s%s", name, c.CommandPath(), didYouMean(nearest(name, names)))
}

// UnknownFlag says of a flag that is not known which one could be meant. Other errors of flags stay
// as they are.
func UnknownFlag(c *cobra.Command, err error) error {
	written, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !unknown {
		return err
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	near := nearest(written, names)
	for i := range near {
		near[i] = "--" + near[i]
	}
	return Usagef("unknown flag --%s for %s%s", written, c.CommandPath(), didYouMean(near))
}

// nearest returns the names that may be meant where another one was written, the likeliest first:
// those with the fewest changed, missing, additional or swapped letters, of at most a third of
// them, and of two such the one that begins with the same letter; then those that begin with what
// was written.
func nearest(written string, names []string) []string {
	from := []rune(strings.ToLower(written))
	if len(from) == 0 {
		return nil
	}
	most := max(1, len(from)/3)
	far := map[string]int{}
	for _, name := range names {
		to := []rune(strings.ToLower(name))
		d := 2 * typos(from, to, most+1)
		if len(to) > 0 && to[0] != from[0] {
			d++
		}
		if d < 2*(most+1) || len(from) > 1 && strings.HasPrefix(string(to), string(from)) {
			far[name] = d
		}
	}
	near := slices.DeleteFunc(slices.Clone(names), func(name string) bool { _, is := far[name]; return !is })
	slices.SortStableFunc(near, func(a, b string) int { return far[a] - far[b] })
	return near
}

// typos counts the letters that differ, or returns limit if there are as many.
func typos(a, b []rune, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		next[0] = i + 1
		for j := range b {
			same := 1
			if a[i] == b[j] {
				same = 0
			}
			next[j+1] = min(row[j+1]+1, next[j]+1, row[j]+same)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return min(limit, row[len(b)])
}
