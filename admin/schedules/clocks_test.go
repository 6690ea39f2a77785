package schedules_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/daybook-dev/daybook/admin/schedules"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
)

// TestFiringsWhenTheClocksChange asks Temporal when a schedule fires on the days on which the
// clocks change: a time that is left out does not fire, one that is repeated fires once. In which
// of the two hours it does is Temporal's, and no rule holds for it.
func TestFiringsWhenTheClocksChange(t *testing.T) {
	t.Parallel()
	server := temporaltest.Shared(t)
	namespace := server.Namespace(t)
	temporal := server.Client(t, namespace)
	for name, c := range map[string]struct {
		cron, from string
		lasting    time.Duration
		want       []string
		zone       string // empty: Europe/Berlin
	}{
		"left out": {
			"30 2 * * *", "2027-03-27T00:00:00+01:00", 72 * time.Hour,
			[]string{"27 02:30", "29 02:30"},
			"",
		},
		"repeated": {
			"30 2 * * *", "2027-10-30T00:00:00+02:00", 73 * time.Hour,
			[]string{"30 02:30", "31 02:30", "01 02:30"},
			"",
		},
		"each hour": {
			"0 * * * *", "2027-03-28T00:30:00+01:00", 3 * time.Hour,
			[]string{"28 01:00", "28 03:00", "28 04:00"},
			"",
		},
		"each half hour of one that is repeated": {
			"0,30 * * * *", "2027-10-31T01:15:00+02:00", 3 * time.Hour,
			[]string{"31 01:30", "31 02:00", "31 02:30", "31 03:00"},
			"",
		},
		// Sunday 5 September has no midnight there. Temporal looks which day of the week it is then,
		// and finds Saturday.
		"a Sunday that begins at one": {
			"0 9 * * SUN", "2027-09-03T12:00:00-04:00", 10 * 24 * time.Hour,
			[]string{"12 09:00"},
			"America/Santiago",
		},
		"the day after a Saturday": {
			"0 9 * * SAT", "2027-09-03T12:00:00-04:00", 72 * time.Hour,
			[]string{"04 09:00", "05 09:00"},
			"America/Santiago",
		},
		"a day of the month that begins at one": {
			"0 9 5 * *", "2027-09-03T12:00:00-04:00", 72 * time.Hour,
			[]string{"05 09:00"},
			"America/Santiago",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := schedules.Schedule{
				ID: strings.ReplaceAll(name, " ", "-"), OrgID: "acme", Payload: Digest{},
				Crons: []string{c.cron}, TimeZone: cmp.Or(c.zone, "Europe/Berlin"),
			}
			require.NoError(t, schedules.Create(t.Context(), temporal, s))
			from, err := time.Parse(time.RFC3339, c.from)
			require.NoError(t, err)
			r, err := temporal.WorkflowService().ListScheduleMatchingTimes(t.Context(),
				&workflowservice.ListScheduleMatchingTimesRequest{
					Namespace: namespace, ScheduleId: s.ID, StartTime: timestamppb.New(from),
					EndTime: timestamppb.New(from.Add(c.lasting)),
				})
			require.NoError(t, err)
			zone, err := time.LoadLocation(s.TimeZone)
			require.NoError(t, err)
			var fires []string
			for _, at := range r.StartTime {
				fires = append(fires, at.AsTime().In(zone).Format("02 15:04"))
			}
			assert.Equal(t, c.want, fires)
		})
	}
}
