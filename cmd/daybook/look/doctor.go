package look

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/internal/watching/health"
)

// doctorFlags are what `daybook doctor` asks with.
type doctorFlags struct {
	org         string
	noTemporal  bool
	snapshotAge time.Duration
}

func doctorCommand(a *cli.App) *cobra.Command {
	var f doctorFlags
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is wrong, in words, and what to do",
		Long: "Looks at the database, its migrations and roles, Temporal, the workflow of each kind and the workers that poll for it, and at what waits,\n" +
			"what failed and what holds jobs back. It says what is wrong, since when, how much waits for it, who owns it, and what to do, the\n" +
			"worst first. It changes nothing, costs the same whatever the tables' size, and ends within seconds also when the database or\n" +
			"Temporal is unavailable. https://github.com/daybook-dev/daybook/blob/main/docs/doctor.md has every code.\n\n" +
			"The exit code is 0 when nothing is wrong (findings of severity info do not count), 7 when there are warnings, and 8 when work\n" +
			"that is due is not done.",
		Example: "  daybook doctor\n  daybook doctor --json | jq '.findings[] | {code, kind, count, todo}'",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a.Quiet(slog.LevelWarn)
			r, err := diagnose(c.Context(), a, f)
			if err != nil {
				return err
			}
			if err := a.Emit(r, func(w io.Writer) error { return printReport(a, w, r) }); err != nil {
				return err
			}
			return verdict(r)
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.org, "org", "", "only of this organization's jobs; the rest is looked at all the same")
	flags.BoolVar(&f.noTemporal, "no-temporal", false, "do not ask Temporal")
	flags.DurationVar(&f.snapshotAge, "snapshot-age", health.DefaultSnapshotAge,
		"from what age on an open transaction is named")
	return command
}

// diagnose asks the database and Temporal. That either cannot be asked is part of the report.
func diagnose(ctx context.Context, a *cli.App, f doctorFlags) (health.Report, error) {
	o := health.Options{OrgID: f.org, SnapshotAge: f.snapshotAge, Workflows: health.OfFleet(a.Environment.Fleet)}
	if f.snapshotAge < 0 {
		return health.Report{}, cli.Usagef("--snapshot-age %s: want 0 or more", f.snapshotAge)
	}
	if o.Pool, o.PoolError = a.Pool(ctx, 2); o.Pool != nil {
		defer cli.ClosePool(o.Pool)
		if err := a.KnowsOrganization(ctx, o.Pool); err != nil {
			return health.Report{}, err
		}
		past, err := a.DirectPool(ctx)
		if err != nil {
			return health.Report{}, err
		}
		if past != nil {
			defer cli.ClosePool(past)
		}
		o.Sessions = func(ctx context.Context) error { return store.VerifyWorker(ctx, o.Pool, past) }
	}
	if !f.noTemporal {
		askTemporal(a, &o)
	}
	if o.Temporal != nil {
		defer o.Temporal.Close()
	}
	r := health.Check(ctx, o)
	return r, ctx.Err()
}

// askTemporal has the options ask Temporal as the environment names it. named: the environment, or
// its configuration file, does name it.
func askTemporal(a *cli.App, o *health.Options) (named bool) {
	settings, err := a.TemporalOptions()
	if err != nil {
		o.TemporalError = err
		return true
	}
	// The report says what goes wrong.
	settings.Logger = sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))
	o.TemporalAddress, o.Namespace = cmp.Or(settings.HostPort, client.DefaultHostPort),
		cmp.Or(settings.Namespace, client.DefaultNamespace)
	if o.Temporal, err = client.NewLazyClient(settings); err != nil {
		o.Temporal, o.TemporalError = nil, err
	}
	return settings.HostPort != ""
}

// verdict is the error that says how bad the report is; nil: nothing is wrong.
func verdict(r health.Report) error {
	count := map[health.Severity]int64{}
	for _, f := range r.Findings {
		count[f.Severity]++
	}
	switch {
	case count[health.Critical] > 0:
		return cli.Tagged(errCritical, "%s, %s",
			phrase.Plural(count[health.Critical], "critical finding", "critical findings"),
			phrase.Plural(count[health.Warning], "warning", "warnings"))
	case count[health.Warning] > 0:
		return cli.Tagged(errWarnings, "%s", phrase.Plural(count[health.Warning], "warning", "warnings"))
	}
	return nil
}

// printReport writes the report for people: whether work gets done, what was found, and what was
// looked at.
func printReport(a *cli.App, w io.Writer, r health.Report) error {
	if _, err := fmt.Fprintln(w, a.Bold(w, terminal.OneLine(r.Summary))); err != nil {
		return err
	}
	for _, f := range r.Findings {
		if err := printFinding(a, w, f, r.At); err != nil {
			return err
		}
	}
	return printChecked(w, r)
}

func printFinding(a *cli.App, w io.Writer, f health.Finding, now time.Time) error {
	head := []string{strings.ToUpper(string(f.Severity)), string(f.Code)}
	if about := strings.Join(slices.DeleteFunc([]string{phrase.And(f.AboutKinds()), f.Type, f.ErrorCode},
		func(s string) bool { return s == "" || s == string(f.Code) }), " "); about != "" {
		head = append(head, about)
	}
	if f.OrgID != "" {
		head = append(head, "organization "+f.OrgID)
	}
	var facts []string
	if f.Since != nil {
		facts = append(facts, fmt.Sprintf("Since %s (%s ago).", cli.FormatTime(*f.Since), phrase.Age(now.Sub(*f.Since))))
	}
	if f.Owner != "" {
		facts = append(facts, "Owner: "+f.Owner+".")
	}
	lines := []string{"", a.Bold(w, terminal.OneLine(strings.Join(head, "  "))), "  " + terminal.OneLine(f.Says)}
	if len(facts) > 0 {
		lines = append(lines, "  "+terminal.OneLine(strings.Join(facts, " ")))
	}
	lines = append(lines, "  → "+terminal.OneLine(f.Todo))
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// printChecked says what was looked at, and what could not be.
func printChecked(w io.Writer, r health.Report) error {
	var done, skipped, notes []string
	for _, c := range r.Checked {
		switch {
		case c.Skipped:
			skipped = append(skipped, c.Name)
		case c.Error != "":
			notes = append(notes, c.Name+" could not be looked at: "+c.Error)
		default:
			done = append(done, c.Name)
		}
		if c.Note != "" {
			notes = append(notes, c.Name+": "+c.Note)
		}
	}
	lines := []string{"", "Looked at: " + strings.Join(done, ", ") + "."}
	if len(skipped) > 0 {
		lines = append(lines, "Not looked at: "+strings.Join(skipped, ", ")+".")
	}
	for _, n := range notes {
		lines = append(lines, "Note: "+terminal.OneLine(n)+".")
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}
