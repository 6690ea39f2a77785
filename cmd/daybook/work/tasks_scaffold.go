package work

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/scaffold"
)

func tasksScaffoldCommand(a *cli.App) *cobra.Command {
	var o scaffold.Options
	var dir string
	var force bool
	command := &cobra.Command{
		Use:   "scaffold NAME",
		Short: "Write the migration of a process that is supervised in SQL, and its tests",
		Long: "Writes two files. NAME.sql is a migration: the tables of the process, its supervisor, a function that begins it, the handlers\n" +
			"of its attempts, and the grants of worker_service_user. NAME_test.sql tests it, and leaves nothing behind. Both work as they are\n" +
			"written, with psql and with goose; no database is needed to write them. https://github.com/daybook-dev/daybook/blob/main/docs/tasks.md walks through it.",
		Example: "  daybook tasks scaffold send_reminder --schema shop --references shop.orders.order_id --out migrations --prefix 00007_\n" +
			"  daybook tasks scaffold send_invoice --channel email --max-attempts 8",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			o.Name = args[0]
			files, err := scaffold.Files(o)
			if err != nil {
				return err
			}
			paths, err := writeFiles(dir, files, force)
			if err != nil {
				return err
			}
			return a.Emit(map[string][]string{"files": paths}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "wrote %s\nwrote %s\n", paths[0], paths[1])
				return err
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.Schema, "schema", "app", "the schema of its tables and functions")
	flags.StringVar(&o.Channel, "channel", "db_function",
		"what an attempt is: db_function, email, sms, file_delete, or a type of your own")
	flags.IntVar(&o.MaxAttempts, "max-attempts", 5, "after how many failures it is stuck")
	flags.StringVar(&o.References, "references", "",
		"what it is about, as schema.table.column (default a number, NAME_id)")
	flags.StringVar(&o.Prefix, "prefix", "", "what the files' names begin with, such as 00007_")
	flags.StringVar(&dir, "out", ".", "the folder that the files are written into; it is made if it is missing")
	flags.BoolVar(&force, "force", false, "overwrite files that exist")
	return command
}

// writeFiles writes all files or, when one of them exists and force does not say otherwise, none.
// It returns their paths.
func writeFiles(dir string, files []scaffold.File, force bool) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // a folder of source code, as others are
		return nil, err
	}
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = filepath.Join(dir, f.Name)
		_, err := os.Lstat(paths[i])
		switch {
		case err == nil && !force:
			return nil, fmt.Errorf("%w: %s; choose another --out or --prefix, or overwrite it with --force", errFileExists,
				paths[i])
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	for i, f := range files {
		if err := writeNew(paths[i], flags, f.Text); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

func writeNew(path string, flags int, text []byte) (err error) {
	f, err := os.OpenFile(path, flags, 0o644) //nolint:gosec // the path is the caller's own
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(text)
	return err
}
