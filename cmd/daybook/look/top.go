package look

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/top"
)

// The pause between two pictures.
const (
	topEvery   = 2 * time.Second
	topFastest = 500 * time.Millisecond
)

func topCommand(a *cli.App) *cobra.Command {
	var every time.Duration
	var once, noTemporal bool
	command := &cobra.Command{
		Use:   "top",
		Short: "Watch the queues in the terminal: depths, rates, times, failures",
		Long: "Shows whether work gets done, each queue's depth, age, rate and times, and below it types, failures by code, organizations or workers; keys\n" +
			"1 to 4 choose. Rates and times are those of the last five minutes, failures those of the last hour, as the workers note them every ten seconds.\n\n" +
			"Where the output is no terminal, and with --once or --json, it prints one picture and ends.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if every < topFastest {
				return cli.Usagef("--every %s: want at least %s", every, topFastest)
			}
			return showTop(c.Context(), a, every, once || !cli.IsTerminal(a.Stdout), noTemporal)
		},
	}
	flags := command.Flags()
	flags.DurationVar(&every, "every", topEvery, "the pause between two pictures, such as 5s")
	flags.BoolVar(&once, "once", false, "print one picture and end")
	flags.BoolVar(&noTemporal, "no-temporal", false, "do not ask Temporal")
	return command
}

func showTop(ctx context.Context, a *cli.App, every time.Duration, once, noTemporal bool) error {
	a.Quiet(slog.LevelWarn)
	db, err := a.Open(ctx, 3)
	if err != nil {
		return err
	}
	defer db.Close()
	reader := &top.Reader{Pool: db.Pool}
	if !noTemporal {
		askTemporal(a, &reader.Health)
		if reader.Health.Temporal != nil {
			defer reader.Health.Temporal.Close()
		}
	}
	if once || a.JSON {
		p, err := reader.Read(ctx)
		if err != nil {
			return err
		}
		return a.Emit(p, func(w io.Writer) error { return top.Write(w, p, cli.ScreenWidth(w)) })
	}
	color := a.Environment.NoColor == "" && a.Environment.Term != "dumb"
	program := tea.NewProgram(top.New(ctx, reader, every, color), tea.WithContext(ctx), tea.WithInput(a.Stdin),
		tea.WithOutput(a.Stdout))
	if _, err := program.Run(); err != nil && !errors.Is(err, tea.ErrProgramKilled) &&
		!errors.Is(err, tea.ErrInterrupted) {
		return err
	}
	return nil
}
