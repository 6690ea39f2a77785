package books

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/moving/importer"
)

func importNDJSONCommand(a *cli.App) *cobra.Command {
	var options importFlags
	command := &cobra.Command{
		Use:   "ndjson PATH…|-",
		Short: "Import documents in Daybook's own format, one JSON object a line",
		Long: "Imports documents in Daybook's own format, one JSON object a line (https://github.com/daybook-dev/daybook/blob/main/docs/import.md). A path is a file, or a folder or an\n" +
			"archive (.zip, .tar, .tar.gz, .tar.xz) with files that end in .ndjson or .jsonl; - reads standard input.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return importLines(c.Context(), a, options, "ndjson", importer.NDJSON, args, ".ndjson", ".jsonl")
		},
	}
	options.add(a, command)
	command.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedName() == "org" {
			return cli.Usagef("%s: each document of this format names its own organization, in the member org_id: leave "+
				"the flag out, and write the organization there", err)
		}
		return cli.UnknownFlag(c, err)
	})
	return command
}
