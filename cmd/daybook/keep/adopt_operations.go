package keep

import (
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/moving/adopt"
)

func adoptOperationsCommand(a *cli.App) *cobra.Command {
	var f adoption
	var o adopt.OperationsOptions
	command := &cobra.Command{
		Use:   "async-operations [--apply | --verify | --undo]",
		Short: "Move in from a table of async operations: typed jobs with a payload",
		Long: "Looks at a table of async operations and says what it would do. With --apply it adopts what the legacy worker does not hold: open rows\n" +
			"with their attempts, errors and times, and dead ones as dead letters. It may run beside the legacy worker and old code that enqueues, be\n" +
			"killed at any moment, and be repeated. Payloads that a built-in type of Daybook would refuse are reported and " +
			"left.",
		Example: "  daybook adopt async-operations\n" +
			"  daybook adopt async-operations --org-from workspace_id --drop-credentials --apply\n" +
			"  daybook adopt async-operations --verify",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			db, err := a.Open(c.Context(), 2)
			if err != nil {
				return err
			}
			defer db.Close()
			o.Check = checkOperation
			adopter, err := adopt.NewOperations(c.Context(), db.Pool, o)
			if err != nil {
				return err
			}
			return runAdoption(a, c, adopter, f)
		},
	}
	f.add(command)
	a.CreateFlag(command)
	flags := command.Flags()
	flags.StringVar(&o.Table, "table", adopt.DefaultOperationsTable, "the legacy table")
	flags.StringVar(&o.Org, "org", "",
		"the organization of every row or, with --org-from, of those that name none (default default)")
	flags.StringVar(&o.OrgFrom, "org-from", "",
		"the column that says whose a row is (default workspace_id, without --org)")
	flags.BoolVar(&o.Completed, "completed", false, "adopt completed and cancelled rows as well, as a record")
	flags.BoolVar(&o.DropCredentials, "drop-credentials", false,
		"adopt rows whose payload holds credentials without them: store those as secrets first")
	return command
}

// checkOperation checks the payload of a built-in type. Every other type is the application's.
func checkOperation(operationType string, raw []byte) error {
	_, err := cli.CheckBuiltinType(operationType, raw)
	return err
}
