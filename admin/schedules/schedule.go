package schedules

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/activities"
	"github.com/daybook-dev/daybook/internal/text/cron"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/workflows"
)

// Limits of a schedule.
const (
	// MaxIDBytes is how many bytes a schedule's id may have. It leaves room for the time in a
	// firing's idempotency key.
	MaxIDBytes = 200
	// MinEvery is the shortest time between two firings.
	MinEvery = time.Second
	// MinCatchUp is the least CatchUp.
	MinCatchUp = 10 * time.Second
	// DefaultCatchUp is the CatchUp of a schedule that names none.
	DefaultCatchUp = 24 * time.Hour
)

// Overlap says what a firing does while the job of an earlier one is open: it waits, also for a
// retry, or runs.
type Overlap string

const (
	// Skip: a firing does nothing while a job of the schedule is open. The default.
	Skip Overlap = "skip"
	// Again: a firing has a running job worked once more after its attempt, because the attempt may
	// have read old data. Several firings during one attempt are one. A job that waits does what a
	// further firing asks for. What counts as the same job is its organization, type and payload, as
	// with queue.JobOptions.Unique.
	Again Overlap = "again"
	// Allow: each firing enqueues a job.
	Allow Overlap = "allow"
)

// Schedule says which job is enqueued, and when. ID, OrgID, Payload and one of Crons and Every are
// required.
type Schedule struct {
	// ID names the schedule: 1 to MaxIDBytes bytes without spaces, unique in the Temporal namespace.
	ID string
	// OrgID is the organization of the jobs. One that Daybook does not know becomes known with the
	// first job, as when that is enqueued by itself.
	OrgID string
	// Payload is the jobs'; queue.RawPayload for a program that has no struct for it.
	Payload queue.Payload
	// Priority of the jobs; zero: queue.Normal.
	Priority queue.Priority
	// MaxAttempts is after how many attempts a job is a dead letter; 0: the policy of the type's
	// handler.
	MaxAttempts int
	// Crons are times as cron has them: five fields (minute, hour, day of month, month, day of week),
	// or seven with seconds before and a year after them, or @hourly, @daily and the like. Months and
	// days of the week may be names (JAN, MON); Sunday is 0 or 7. Several expressions fire at the
	// times of each. What others take for something else is refused: six fields, a step that is
	// larger than its field, and the signs # ? L W.
	Crons []string
	// BothDays lets a day of the month and a day of the week stand in one expression, and fires on
	// days that are both: 0 9 1-7 * MON is the first Monday. cron would fire on days that are either:
	// that takes two expressions.
	BothDays bool
	// Every fires at each multiple of it, counted from 1970 in UTC, in whole seconds: 24h fires at
	// midnight, 168h on Thursdays. At least MinEvery. Offset is added to these times; it is less than
	// Every.
	Every, Offset time.Duration
	// TimeZone is that of Crons, such as Europe/Berlin; empty: UTC. Every takes no other. A time that
	// a change of the clocks leaves out does not fire, and one that it repeats fires once, in either
	// of the two hours. What must happen at a steady distance takes Every, which knows no time zone.
	TimeZone string
	// Jitter delays each firing by a random time of up to this; zero: no delay.
	Jitter time.Duration
	// Overlap is Skip, Again or Allow; empty: Skip.
	Overlap Overlap
	// CatchUp is how late a firing may be made up for that Temporal missed while it was down; older
	// ones are left out, and so are those after the first 1,000. At least MinCatchUp; zero:
	// DefaultCatchUp.
	CatchUp time.Duration
	// Paused creates the schedule paused.
	Paused bool
	// Note is for people who look at it.
	Note string
	// Queue is the named queue of the jobs; empty: none. It must exist when the schedule fires; else
	// the firing fails (QUEUE_NOT_FOUND).
	Queue string
	// Fleet is the fleet whose workers execute the firings; empty: the one without a name. A fleet
	// with a name works the jobs of its named queues alone, so that Queue is required with it. The
	// jobs themselves are worked by the fleet of their queue.
	Fleet string
	// TaskQueue is that of the workers that execute the firings; empty: that of the fleet, which is
	// workflows.JobsTaskQueue for the one without a name.
	TaskQueue string
}

// fields are the words for what is said beside a cron expression.
var fields = cron.Words{Zone: "TimeZone", Every: "Every", BothDays: "BothDays"}

// check says what is wrong with the schedule itself. When it fires is Temporal's to check.
func (s Schedule) check() error {
	badID := func(r rune) bool { return r <= ' ' || r == 0x7f }
	switch {
	case s.ID == "" || len(s.ID) > MaxIDBytes || strings.ContainsFunc(s.ID, badID):
		return errorf(ErrInvalid, "ID %q: want 1 to %d bytes without spaces", s.ID, MaxIDBytes)
	case s.Payload == nil:
		return errorf(ErrInvalid, "schedule %s: Payload is nil: name the job that it enqueues", s.ID)
	case (len(s.Crons) == 0) == (s.Every == 0):
		return errorf(ErrInvalid, "schedule %s: set one of Crons and Every", s.ID)
	case s.Every != 0 && s.Every < MinEvery:
		return errorf(ErrInvalid, "schedule %s: Every is %s: want a second at least", s.ID, s.Every)
	case s.Every%time.Second != 0 || s.Offset%time.Second != 0:
		return errorf(ErrInvalid, "schedule %s: Every is %s and Offset %s: want whole seconds", s.ID, s.Every, s.Offset)
	case s.Every != 0 && s.zone() != "UTC":
		return errorf(ErrInvalid, "schedule %s: Every knows no time zone, and TimeZone is %s: use Crons, or leave it out",
			s.ID, s.TimeZone)
	case s.Offset < 0 || s.Offset > 0 && s.Offset >= s.Every:
		return errorf(ErrInvalid, "schedule %s: Offset is %s: want less than Every", s.ID, s.Offset)
	case s.Jitter < 0:
		return errorf(ErrInvalid, "schedule %s: Jitter must not be negative", s.ID)
	case s.CatchUp != 0 && s.CatchUp < MinCatchUp:
		return errorf(ErrInvalid, "schedule %s: CatchUp is %s: want 10s at least", s.ID, s.CatchUp)
	case s.Fleet != "" && s.Queue == "":
		return errorf(ErrInvalid,
			"schedule %s: the fleet %s works the jobs of its named queues alone: set Queue to one of them", s.ID, s.Fleet)
	case !slices.Contains([]Overlap{"", Skip, Again, Allow}, s.Overlap):
		return errorf(ErrInvalid, "schedule %s: Overlap is %q: want skip, again or allow", s.ID, s.Overlap)
	}
	for _, text := range s.Crons {
		if err := cron.Check(text, s.BothDays, fields); err != nil {
			return errorf(ErrInvalid, "schedule %s: %v", s.ID, err)
		}
	}
	return queue.CheckJob(s.OrgID, s.Payload,
		queue.JobOptions{Priority: s.Priority, MaxAttempts: s.MaxAttempts, Queue: s.Queue})
}

// options are the schedule as Temporal has it.
func (s Schedule) options() (client.ScheduleOptions, error) {
	if err := s.check(); err != nil {
		return client.ScheduleOptions{}, err
	}
	raw, err := json.Marshal(s.Payload)
	if err != nil {
		return client.ScheduleOptions{},
			errorf(queue.ErrPayloadInvalid, "schedule %s: the payload is not JSON: %v", s.ID, err)
	}
	job := activities.ScheduledJob{
		ScheduleID: s.ID, OrgID: s.OrgID, Type: s.Payload.JobType(), Payload: raw, Priority: s.Priority,
		MaxAttempts: s.MaxAttempts,
		One:         s.Overlap != Allow, Again: s.Overlap == Again, Queue: s.Queue,
	}
	return client.ScheduleOptions{
		ID: s.ID, Spec: s.spec(),
		Action: &client.ScheduleWorkflowAction{
			ID: "schedule-" + s.ID, Workflow: workflows.ScheduledJobWorkflow,
			TaskQueue: cmp.Or(s.TaskQueue, models.TaskQueueOf(workflows.JobsTaskQueue, s.Fleet)), Args: []any{job},
			Memo:          map[string]any{whenKey: s.when(), fleetKey: s.Fleet},
			StaticSummary: "Daybook: the schedule " + s.ID + " enqueues a job of type " + job.Type,
		},
		// Firings are short, and each is to be done: what must not overlap are the jobs.
		Overlap:       enums.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL,
		CatchupWindow: cmp.Or(s.CatchUp, DefaultCatchUp), Paused: s.Paused, Note: s.Note,
	}, nil
}

func (s Schedule) zone() string { return cmp.Or(s.TimeZone, "UTC") }

func (s Schedule) spec() client.ScheduleSpec {
	spec := client.ScheduleSpec{CronExpressions: s.Crons, Jitter: s.Jitter, TimeZoneName: s.zone()}
	if s.Every > 0 {
		spec.Intervals = []client.ScheduleIntervalSpec{{Every: s.Every, Offset: s.Offset}}
	}
	return spec
}

// when is the same for people.
func (s Schedule) when() string {
	text := strings.Join(s.Crons, ", ")
	if s.Every > 0 {
		text = "every " + durationText(s.Every)
	}
	if s.Offset > 0 {
		text += " + " + durationText(s.Offset)
	}
	return text
}

// durationText writes a duration without units that are zero: 10m, 1h30m.
func durationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
