package main

import (
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/text/phrase"
)

func manCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIRECTORY",
		Short: "Write the manual pages, one a command",
		Long: "Writes a manual page for each command, as man(1) shows them, into a directory, which is made if it is " +
			"missing.",
		Example: "  daybook man /usr/local/share/man/man1\n" +
			"  man daybook-jobs-list",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // every user of the machine reads manual pages
				return err
			}
			withoutTag(c.Root())
			if err := doc.GenManTree(c.Root(), &doc.GenManHeader{Section: "1", Source: "Daybook", Manual: "Daybook"},
				args[0]); err != nil {
				return err
			}
			pages, err := filepath.Glob(filepath.Join(args[0], "daybook*.1"))
			if err != nil {
				return err
			}
			return a.Emit(map[string]int{"pages": len(pages)}, func(w io.Writer) error {
				_, err := io.WriteString(w, phrase.Plural(int64(len(pages)), "page", "pages")+" written to "+args[0]+"\n")
				return err
			})
		},
	}
}

// withoutTag leaves out the line that says on which day a page was written. The month in its head
// is that of SOURCE_DATE_EPOCH, if it is set.
func withoutTag(c *cobra.Command) {
	c.DisableAutoGenTag = true
	for _, sub := range c.Commands() {
		withoutTag(sub)
	}
}
