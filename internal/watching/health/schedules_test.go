package health_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/daybook-dev/daybook/admin/schedules"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/watching/health"
	"github.com/daybook-dev/daybook/queue"
)

// TestSchedulesThatTheClocksThrowOff compares what is found of a schedule with when Temporal fires
// it on that day.
func TestSchedulesThatTheClocksThrowOff(t *testing.T) {
	t.Parallel()
	server := temporaltest.Shared(t)
	const none = ""
	for name, c := range map[string]struct {
		cron, zone string
		// day is that on which the clocks go forward, or which follows.
		day   string
		fires bool
		says  string
	}{
		"a Sunday without a midnight": {
			"0 9 * * SUN", "America/Santiago", "2027-09-05", false,
			"misses Sunday 2027-09-05: the clocks of America/Santiago go forward then, from 00:00 to 01:00, and " +
				"Temporal takes the day, which has no midnight, for a Saturday.",
		},
		"the Saturday before it": {
			"0 9 * * SAT", "America/Santiago", "2027-09-05", true,
			"fires on Sunday 2027-09-05, which is none of its days: the clocks of America/Santiago go forward then, ",
		},
		"both days":          {"0 9 * * SAT,SUN", "America/Santiago", "2027-09-05", true, none},
		"a Monday there":     {"0 9 * * MON", "America/Santiago", "2027-09-05", false, none},
		"a day of the month": {"0 9 5 * *", "America/Santiago", "2027-09-05", true, none},
		"a midnight there":   {"0 0 * * *", "America/Santiago", "2027-09-05", false, "misses Sunday 2027-09-05"},
		"in Havana":          {"0 9 * * SUN", "America/Havana", "2027-03-14", false, "misses Sunday 2027-03-14"},
		"east of Greenwich":  {"0 9 * * FRI", "Africa/Cairo", "2027-04-30", true, none},
		"its midnight":       {"0 0 * * *", "Africa/Cairo", "2027-04-30", false, "misses Friday 2027-04-30"},
		"in the Azores":      {"0 9 * * SUN", "Atlantic/Azores", "2027-03-28", false, "misses Sunday 2027-03-28"},
		"in Nuuk": {
			"30 23 * * *", "America/Nuuk", "2027-03-27", false,
			"misses Saturday 2027-03-27: the clocks of America/Nuuk go forward then, from 23:00 to 00:00.",
		},
		"a Sunday in Nuuk":     {"0 9 * * SUN", "America/Nuuk", "2027-03-28", true, none},
		"nine in Berlin":       {"0 9 * * *", "Europe/Berlin", "2027-03-28", true, none},
		"a Sunday in Berlin":   {"0 9 * * SUN", "Europe/Berlin", "2027-03-28", true, none},
		"half past two":        {"30 2 * * *", "Europe/Berlin", "2027-03-28", false, "misses Sunday 2027-03-28"},
		"each hour":            {"0 * * * *", "Europe/Berlin", "2027-03-28", true, none},
		"half an hour skipped": {"15 2 * * *", "Australia/Lord_Howe", "2027-10-03", true, none},
		"no changes":           {"0 9 * * SUN", "UTC", "2027-09-05", true, none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := server.Namespace(t)
			temporal := server.Client(t, namespace)
			s := schedules.Schedule{
				ID: strings.ReplaceAll(name, " ", "-"), OrgID: "acme", Payload: queue.RawPayload{Type: "mail", Data: []byte(`{}`)},
				Crons: []string{c.cron}, TimeZone: c.zone,
			}
			require.NoError(t, schedules.Create(t.Context(), temporal, s))
			zone, err := time.LoadLocation(c.zone)
			require.NoError(t, err)
			day, err := time.ParseInLocation("2006-01-02 15:04", c.day+" 12:00", zone)
			require.NoError(t, err)
			r, err := temporal.WorkflowService().ListScheduleMatchingTimes(t.Context(),
				&workflowservice.ListScheduleMatchingTimesRequest{
					Namespace: namespace, ScheduleId: s.ID, StartTime: timestamppb.New(day.Add(-72 * time.Hour)),
					EndTime: timestamppb.New(day.Add(72 * time.Hour)),
				})
			require.NoError(t, err)
			fires := false
			for _, at := range r.StartTime {
				fires = fires || at.AsTime().In(zone).Format(time.DateOnly) == c.day
			}
			assert.Equal(t, c.fires, fires, "%v", r.StartTime)

			found := func(now time.Time) health.Report {
				return clean(t, health.Check(context.WithoutCancel(t.Context()),
					health.Options{Temporal: temporal, Now: func() time.Time { return now }}))
			}
			if c.says == none {
				// The list is a moment behind: it is complete when it has another schedule that is off.
				s.ID, s.Crons, s.TimeZone = "zzz", []string{"0 9 * * SUN"}, "America/Santiago"
				if c.zone != "America/Santiago" {
					s.Crons, s.TimeZone = []string{"30 2 * * *"}, "Pacific/Auckland"
				}
				require.NoError(t, schedules.Create(t.Context(), temporal, s))
				c.says = "The schedule zzz misses "
			}
			var f health.Finding
			require.Eventually(t, func() bool {
				all := of(found(day.AddDate(0, -2, 0)), health.ScheduleClocks)
				if len(all) > 0 {
					f = all[0]
				}
				return len(all) > 0
			}, time.Minute, 100*time.Millisecond)
			assert.Contains(t, f.Says, c.says)
			assert.NotContains(t, f.Says, "more schedule", "the other one is not off")
			assert.Equal(t, health.Info, f.Severity)
		})
	}
}
