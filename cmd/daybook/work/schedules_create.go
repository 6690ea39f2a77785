package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/admin/schedules"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/text/cron"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// Flags that --replace leaves alone unless they are given.
const (
	pausedFlag = "paused"
	noteFlag   = "note"
)

// shownFirings is how many times to come are printed of a schedule that was created or replaced.
const shownFirings = 3

// printFirings says what was done to a schedule, and when it fires next.
func printFirings(w io.Writer, result string, s schedules.Listed, next []time.Time) error {
	about := "fires"
	if s.Paused {
		about = "paused; without that it fires"
	}
	lines := []string{result + " " + s.ID, fmt.Sprintf("%s (%s, %s):", about, s.When, s.TimeZone)}
	for i := range next {
		lines = append(lines, "  "+inZone(s, &next[i], "Mon 2006-01-02 15:04:05"))
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// newSchedule is what the flags of `schedules create` say.
type newSchedule struct {
	id, org, jobType, payload string
	crons                     []string
	every, offset, jitter     time.Duration
	timeZone                  string
	bothDays                  bool
	priority, overlap         string
	maxAttempts               int
	catchUp                   time.Duration
	paused, replace           bool
	note                      string
	queue, fleet              string
}

func schedulesCreateCommand(a *cli.App) *cobra.Command {
	var s newSchedule
	command := &cobra.Command{
		Use:   "create ID --org ORG --type TYPE (--cron EXPRESSION | --every DURATION)",
		Short: "Create a schedule that enqueues a job each time it fires, or change one (--replace)",
		Long: "Creates a Temporal schedule that enqueues a job each time it fires, exactly once for each firing: the job's idempotency\n" +
			"key is made of the schedule's id and the time for which the firing was planned. A worker of background jobs must run.\n\n" +
			"If a schedule with this id exists, the command fails (SCHEDULE_EXISTS), unless --replace is given.\n\n" +
			"The payload is kept in Temporal: it may name secrets, and must not hold them.",
		Example: "  daybook schedules create cleanup --org acme --type cleanup --cron '30 3 * * *' --time-zone Europe/Berlin\n" +
			"  daybook schedules create ping --org acme --type webhook --payload '{\"url\": \"https://example.com/ping\"}' " +
			"--every 10m",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s.id, a.Organization = args[0], s.org
			schedule, err := schedule(c.Context(), a, s)
			if err != nil {
				return err
			}
			return a.WithTemporal(c.Context(), func(temporal client.Client) error {
				result, err := s.put(c, temporal, schedule)
				if err != nil {
					return err
				}
				listed, err := schedules.Describe(c.Context(), temporal, s.id)
				if err != nil {
					return fmt.Errorf("the schedule is %s, but when it fires is not known: %w", result, err)
				}
				next := listed.NextFirings[:min(len(listed.NextFirings), shownFirings)]
				return a.Emit(scheduleChange{ID: s.id, Result: result, NextFirings: next}, func(w io.Writer) error {
					return printFirings(w, result, listed, next)
				})
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&s.org, "org", "", "the organization of the jobs")
	flags.StringVar(&s.jobType, "type", "", "the jobs' type")
	flags.StringVar(&s.payload, "payload", "{}",
		"the jobs' payload, a JSON object; @FILE reads a file, @- standard input")
	flags.StringArrayVar(&s.crons, "cron", nil, "when: minute, hour, day of month, month, day of week, such as '0 6 * "+
		"* MON-FRI'; or seven fields, with seconds before and a year after them; or @daily and the like; may be repeated")
	flags.BoolVar(&s.bothDays, "both-days", false, "with --cron: fire on days that match both the day of month and the "+
		"day of week; else an expression with both is refused")
	flags.DurationVar(&s.every, "every", 0,
		"when: at every multiple of this, such as 10m, counted from 1970 in UTC: 24h fires at midnight")
	flags.DurationVar(&s.offset, "offset", 0, "with --every: so much later")
	flags.StringVar(&s.timeZone, "time-zone", "UTC", "the time zone of --cron, such as Europe/Berlin. A time that a "+
		"change of the clocks leaves out does not fire, and one that it repeats fires once, in either of the two hours; "+
		"--every knows no time zone")
	flags.StringVar(&s.priority, "priority", "normal", "high, normal or low")
	flags.IntVar(&s.maxAttempts, "max-attempts", 0,
		"after how many attempts a job is a dead letter (default the policy of the type's handler)")
	flags.StringVar(&s.queue, "queue", "", "the named queue of the jobs (default none)")
	flags.StringVar(&s.fleet, "fleet", "", "the fleet whose workers execute the firings, with --queue, a queue of that "+
		"fleet (default the fleet without a name)")
	flags.StringVar(&s.overlap, "overlap", string(schedules.Skip),
		"what a firing does while a job of the schedule waits, also for a retry, or runs. skip: nothing; again: has a "+
			"running job worked once more afterwards; allow: enqueues another")
	flags.DurationVar(&s.jitter, "jitter", 0, "fire up to so much later, each time by another amount")
	flags.DurationVar(&s.catchUp, "catch-up", schedules.DefaultCatchUp,
		"how late a firing may be that Temporal missed while it was down; later ones are left out")
	flags.BoolVar(&s.paused, pausedFlag, false, "create it paused")
	flags.StringVar(&s.note, noteFlag, "", "what it is for, for people who look at it")
	flags.BoolVar(&s.replace, "replace", false, "change the schedule if there is one with this id: what its jobs are "+
		"and when it fires. Whether it is paused, and its note, stay unless --paused or --note is given")
	a.CreateFlag(command)
	for _, required := range []string{"org", "type"} {
		_ = command.MarkFlagRequired(required)
	}
	command.MarkFlagsOneRequired("cron", "every")
	command.MarkFlagsMutuallyExclusive("cron", "every")
	return command
}

// schedule checks what the flags say. When a schedule fires is Temporal's to check.
func schedule(ctx context.Context, a *cli.App, s newSchedule) (schedules.Schedule, error) {
	if err := s.check(); err != nil {
		return schedules.Schedule{}, err
	}
	priority, err := cli.ParsePriority(s.priority)
	if err != nil {
		return schedules.Schedule{}, err
	}
	raw, err := readPayload(a, s.payload)
	if err != nil {
		return schedules.Schedule{}, err
	}
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	payload := queue.RawPayload{Type: s.jobType, Data: raw}
	if err := queue.CheckJob(s.org, payload,
		queue.JobOptions{Priority: priority, MaxAttempts: s.maxAttempts, Queue: s.queue}); err != nil {
		return schedules.Schedule{}, err
	}
	builtin, err := cli.CheckBuiltinType(s.jobType, raw)
	if !builtin {
		a.NoteType(ctx, s.jobType, s.queue)
	}
	return schedules.Schedule{
		ID: s.id, OrgID: s.org, Payload: payload, Priority: priority, MaxAttempts: s.maxAttempts, Crons: s.crons,
		BothDays: s.bothDays, Every: s.every, Offset: s.offset,
		TimeZone: s.timeZone, Jitter: s.jitter, Overlap: schedules.Overlap(s.overlap), CatchUp: s.catchUp, Paused: s.paused,
		Note:  s.note,
		Queue: s.queue, Fleet: s.fleet,
	}, err
}

// put creates the schedule, or replaces the one of this id if the flags say so, and says which.
func (s newSchedule) put(
	c *cobra.Command, temporal client.Client, schedule schedules.Schedule,
) (result string, err error) {
	if !s.replace {
		err := schedules.Create(c.Context(), temporal, schedule)
		if errors.Is(err, schedules.ErrExists) {
			err = cli.Tagged(schedules.ErrExists, "schedule %s exists already: --replace changes it; or choose another ID",
				s.id)
		}
		return "created", err
	}
	created, err := schedules.Replace(c.Context(), temporal, schedule, schedules.ReplaceOptions{
		SetPaused: c.Flags().Changed(pausedFlag), SetNote: c.Flags().Changed(noteFlag),
	})
	if created {
		return "created", err
	}
	return "replaced", err
}

// check says by their names which flags are out of range; package schedules checks the rest.
func (s newSchedule) check() error {
	switch {
	case s.id == "" || len(s.id) > schedules.MaxIDBytes ||
		strings.ContainsFunc(s.id, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return cli.Usagef("ID %q: want 1 to %d bytes without spaces", s.id, schedules.MaxIDBytes)
	case len(s.crons) == 0 && s.every < schedules.MinEvery:
		return cli.Usagef("--every %s: want a second at least", s.every)
	case s.every%time.Second != 0 || s.offset%time.Second != 0:
		return cli.Usagef("--every %s and --offset %s: want whole seconds", s.every, s.offset)
	case s.every != 0 && s.timeZone != "UTC":
		return cli.Usagef("--every knows no time zone, which --time-zone %s names: use --cron, or leave it out", s.timeZone)
	case s.bothDays && len(s.crons) == 0:
		return cli.Usagef("--both-days is for --cron")
	case s.offset < 0 || s.offset > 0 && s.offset >= s.every:
		return cli.Usagef("--offset %s: want less than --every", s.offset)
	case s.jitter < 0:
		return cli.Usagef("--jitter must not be negative")
	case s.catchUp < schedules.MinCatchUp:
		return cli.Usagef("--catch-up %s: want 10s at least", s.catchUp)
	case s.fleet != "" && s.queue == "":
		return cli.Usagef("--fleet %s works the jobs of its named queues alone: name one of them by --queue", s.fleet)
	case s.maxAttempts < 0 || s.maxAttempts > models.MaxJobAttempts:
		return cli.Usagef("--max-attempts %d: want 1 to %d, or leave it out", s.maxAttempts, models.MaxJobAttempts)
	case !slices.Contains([]schedules.Overlap{schedules.Skip, schedules.Again, schedules.Allow},
		schedules.Overlap(s.overlap)):
		return cli.Usagef("--overlap %q: want skip, again or allow", s.overlap)
	}
	for _, text := range s.crons {
		if err := cron.Check(text, s.bothDays,
			cron.Words{Zone: "--time-zone", Every: "--every", BothDays: "--both-days"}); err != nil {
			return cli.Tagged(schedules.ErrInvalid, "%v", err)
		}
	}
	return nil
}
