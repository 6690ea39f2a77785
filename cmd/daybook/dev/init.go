package dev

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/newapp"
)

func initCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{
		Use:   "init",
		Short: "Begin a program that embeds Daybook",
	}
	command.AddCommand(initAppCommand(a))
	return command
}

func initAppCommand(a *cli.App) *cobra.Command {
	var o newapp.Options
	command := &cobra.Command{
		Use:   "app DIR",
		Short: "Write a small application that runs as it is written",
		Long: "Writes a module in Go: a table of orders, which the ledger posts from there, a job with its handler, their tests, the\n" +
			"chart of accounts and the rules, a Makefile and a compose file. DIR is empty or does not exist. Neither a database nor a\n" +
			"network is needed to write it.",
		Example: "  daybook init app shop --module example.com/shop && cd shop && make test",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			o.Dir, o.Version = args[0], a.Version
			paths, err := newapp.Make(o)
			if err != nil {
				return err
			}
			return a.Emit(map[string]any{"dir": o.Dir, "files": paths}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, `wrote %d files into %s

Next:

  cd %s
  make test       # needs Go and PostgreSQL's programs; the first time downloads and compiles the modules
  make servers    # PostgreSQL and Temporal, in another terminal; paste the two export lines that it prints
  make run        # works until Ctrl-C
  make order      # in a third terminal: an order that is posted

README.md says what is where, and how to add a handler of your own.
`, len(paths), o.Dir, quoted(o.Dir))
				return err
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.Module, "module", "", "the path of its module (default example.com/ and the name of DIR)")
	flags.StringVar(&o.Replace, "replace", "",
		"the folder of a checkout of Daybook, which the application uses in place of a release")
	return command
}
