package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/internal/top"
)

// The pause between two pictures.
const (
	topEvery   = 2 * time.Second
	topFastest = 500 * time.Millisecond
)

func topCommand(a *app) *cobra.Command {
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
				return usagef("--every %s: want at least %s", every, topFastest)
			}
			return a.top(c.Context(), every, once || !isTerminal(a.stdout), noTemporal)
		},
	}
	flags := command.Flags()
	flags.DurationVar(&every, "every", topEvery, "the pause between two pictures, such as 5s")
	flags.BoolVar(&once, "once", false, "print one picture and end")
	flags.BoolVar(&noTemporal, "no-temporal", false, "do not ask Temporal")
	return command
}

func (a *app) top(ctx context.Context, every time.Duration, once, noTemporal bool) error {
	a.quiet(slog.LevelWarn)
	db, err := a.open(ctx, 3)
	if err != nil {
		return err
	}
	defer db.close()
	reader := &top.Reader{Pool: db.Pool}
	if !noTemporal {
		a.askTemporal(&reader.Health)
		if reader.Health.Temporal != nil {
			defer reader.Health.Temporal.Close()
		}
	}
	if once || a.json {
		p, err := reader.Read(ctx)
		if err != nil {
			return err
		}
		return a.emit(p, func(w io.Writer) error { return top.Write(w, p, screenWidth(w)) })
	}
	color := a.environment.NoColor == "" && a.environment.Term != "dumb"
	program := tea.NewProgram(top.New(ctx, reader, every, color), tea.WithContext(ctx), tea.WithInput(a.stdin), tea.WithOutput(a.stdout))
	if _, err := program.Run(); err != nil && !errors.Is(err, tea.ErrProgramKilled) && !errors.Is(err, tea.ErrInterrupted) {
		return err
	}
	return nil
}
