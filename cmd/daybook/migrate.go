package main

import (
	"errors"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/migrations"
)

func migrateCommand(a *app) *cobra.Command {
	command := &cobra.Command{Use: "migrate", Short: "Change and show the database's schema"}
	command.AddCommand(migrateUpCommand(a), migrateDownCommand(a), migrateStatusCommand(a), migrateDumpCommand(a))
	return command
}

func migrateUpCommand(a *app) *cobra.Command {
	var roles bool
	command := &cobra.Command{
		Use:   "up",
		Short: "Apply the migrations that are missing",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkDatabaseURL(); err != nil {
				return err
			}
			if err := migrations.Up(c.Context(), a.databaseURL); err != nil {
				return err
			}
			if roles {
				if err := migrations.Roles(c.Context(), a.databaseURL); err != nil {
					return err
				}
			}
			return a.showMigrations(c)
		},
	}
	command.Flags().BoolVar(&roles, "roles", false, "make the roles daybook_reader, daybook_operator, daybook_domain, daybook_worker and daybook_server, and grant them what they need")
	return command
}

func migrateDownCommand(a *app) *cobra.Command {
	var all bool
	command := &cobra.Command{
		Use:   "down",
		Short: "Undo the newest migration, and delete the data in its tables",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkDatabaseURL(); err != nil {
				return err
			}
			if err := migrations.Down(c.Context(), a.databaseURL, all); err != nil {
				return err
			}
			return a.showMigrations(c)
		},
	}
	command.Flags().BoolVar(&all, "all", false, "undo every migration")
	return command
}

func migrateStatusCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "List the migrations and whether they are applied",
		Long: "Lists the migrations and whether they are applied. Ends with 5 unless the schema is the one that this program was made for.\n" +
			"It only reads, and does not wait for a migration that runs.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkDatabaseURL(); err != nil {
				return err
			}
			pool, err := a.pool(c.Context(), 1)
			if err != nil {
				return err
			}
			defer pool.Close()
			wrong := verify(c.Context(), pool)
			if errors.Is(wrong, migrations.ErrNoAnswer) {
				return wrong
			}
			if err := a.showMigrations(c); err != nil {
				return err
			}
			return wrong
		},
	}
}

func (a *app) showMigrations(c *cobra.Command) error {
	steps, err := migrations.Status(c.Context(), a.databaseURL)
	if err != nil {
		return err
	}
	return a.emit(map[string]any{"migrations": steps}, func(w io.Writer) error {
		t := newTable("VERSION", "FILE", "APPLIED")
		t.right = []int{0}
		for _, s := range steps {
			t.add(strconv.FormatInt(s.Version, 10), s.File, yesNo(s.Applied))
		}
		return a.print(w, t)
	})
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
