package start

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/migrations"
)

func migrateCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{Use: "migrate", Short: "Change and show the database's schema"}
	command.AddCommand(migrateUpCommand(a), migrateDownCommand(a), migrateStatusCommand(a), migrateDumpCommand(a))
	return command
}

func migrateUpCommand(a *cli.App) *cobra.Command {
	var roles bool
	command := &cobra.Command{
		Use:   "up",
		Short: "Apply the migrations that are missing",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.CheckDatabaseURL(); err != nil {
				return err
			}
			err := migrations.Up(c.Context(), a.SessionURL())
			switch {
			case err == nil && roles:
				if err = migrations.Roles(c.Context(), a.SessionURL()); err == nil {
					noteNewer(c.Context(), a)
				}
			case err == nil:
				noteRoles(c.Context(), a)
			}
			return migrated(c.Context(), a, err)
		},
	}
	command.Flags().BoolVar(&roles, "roles", false, "make the roles daybook_reader, daybook_operator, daybook_domain, "+
		"daybook_worker and daybook_server, and grant them what they need")
	return command
}

// noteRoles tells that the roles of this database have not what the migrations have made.
func noteRoles(ctx context.Context, a *cli.App) {
	pool, err := a.Pool(ctx, 1)
	if err != nil {
		return
	}
	defer cli.ClosePool(pool)
	if lacks, err := migrations.VerifyRoles(ctx, pool); err == nil && len(lacks) > 0 {
		a.Say("Daybook's roles lack rights, as on what is new: run `daybook migrate up --roles`.")
	}
}

// noteNewer tells that the roles were left as they are, because the schema is a newer program's.
func noteNewer(ctx context.Context, a *cli.App) {
	steps, err := migrations.Status(ctx, a.SessionURL())
	if err == nil && steps[len(steps)-1].File == "" {
		a.Say("The schema is a newer program's, and the roles were left as it made them: run `daybook migrate up --roles` of " +
			"that program to change them.")
	}
}

func migrateDownCommand(a *cli.App) *cobra.Command {
	var options migrations.DownOptions
	command := &cobra.Command{
		Use:   "down",
		Short: "Undo the newest migration, with the data in its tables",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.CheckDatabaseURL(); err != nil {
				return err
			}
			err := migrations.Down(c.Context(), a.SessionURL(), options)
			if err != nil && !options.All && !errors.Is(err, migrations.ErrHasData) {
				a.Say("Each call undoes one migration: look at `daybook migrate status` before you call it again.")
			}
			return migrated(c.Context(), a, err)
		},
	}
	command.Flags().BoolVar(&options.All, "all", false, "undo every migration")
	command.Flags().BoolVar(&options.DeleteData, "delete-data", false, "also when the database holds data, which is lost")
	return command
}

func migrateStatusCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "List the migrations and whether they are applied",
		Long: "Lists the migrations and whether they are applied. Ends with 5 unless this program can work with the schema.\n" +
			"It only reads, and does not wait for a migration that runs.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.CheckDatabaseURL(); err != nil {
				return err
			}
			pool, err := a.Pool(c.Context(), 1)
			if err != nil {
				return err
			}
			defer cli.ClosePool(pool)
			wrong := cli.Verify(c.Context(), pool)
			if errors.Is(wrong, migrations.ErrNoAnswer) {
				return wrong
			}
			if err := showMigrations(c.Context(), a); err != nil {
				return err
			}
			return wrong
		},
	}
}

// migrated shows which migrations are applied. A run that an interruption or an outage has ended
// with err has applied, or undone, those before it.
func migrated(ctx context.Context, a *cli.App, err error) error {
	if err == nil {
		return showMigrations(ctx, a)
	}
	if store.IsTransient(err) {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = showMigrations(within, a) // most often it is the same error
	}
	return err
}

func showMigrations(ctx context.Context, a *cli.App) error {
	steps, err := migrations.Status(ctx, a.SessionURL())
	if err != nil {
		return err
	}
	return a.Emit(map[string]any{"migrations": steps}, func(w io.Writer) error {
		t := cli.NewTable("VERSION", "FILE", "APPLIED")
		t.Right = []int{0}
		for _, s := range steps {
			t.Add(strconv.FormatInt(s.Version, 10), cmp.Or(s.File, "(of a newer program)"), yesNo(s.Applied))
		}
		return a.Print(w, t)
	})
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
