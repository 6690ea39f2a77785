package health

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/models"
)

const (
	checkSchedules = "schedules"
	// schedulesRead bounds how many schedules are looked at.
	schedulesRead = 1000
	// clocksAhead is how far ahead changes of the clocks are looked for.
	clocksAhead = 366 * 24 * time.Hour
	// clocksSoon is how long before such a day a person has to do something about it.
	clocksSoon = 14 * 24 * time.Hour
)

// listSchedules lists Daybook's schedules that are not paused. Temporal's list has when they fire.
func listSchedules(ctx context.Context, c client.Client, timeout time.Duration) (all []*client.ScheduleListEntry, err error) {
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	entries, err := c.ScheduleClient().List(asking, client.ScheduleListOptions{PageSize: schedulesRead})
	if err != nil {
		return nil, err
	}
	for read := 0; read < schedulesRead && entries.HasNext(); read++ {
		s, err := entries.Next()
		if err != nil {
			return nil, err
		}
		if s.WorkflowType.Name == models.ScheduledJobWorkflow && !s.Paused {
			all = append(all, s)
		}
	}
	return all, nil
}

// offDay is a day on which the clocks go forward and a schedule does not fire as its calendar says.
type offDay struct {
	schedule string
	zone     string
	// day is when the clocks go forward, as they would show it without that; at is what they show.
	day, at time.Time
	// fires: it fires on a day that is not one of its own. Otherwise it misses one.
	fires bool
	// taken is the day of the week that Temporal takes the day for.
	taken time.Weekday
}

// clocks finds schedules that a change of the clocks makes miss a day, or fire on a wrong one. That
// a repeated hour does neither is Temporal's rule.
func (p *probe) clocks(all []*client.ScheduleListEntry) []Finding {
	var days []offDay
	for _, s := range all {
		if d, ok := nextOffDay(s, p.clock()); ok {
			days = append(days, d)
		}
	}
	if len(days) == 0 {
		return nil
	}
	slices.SortFunc(days, func(a, b offDay) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.schedule, b.schedule))
	})
	first := days[0]
	f := Finding{Code: ScheduleClocks, Severity: Info, Kind: "jobs"}
	if first.at.Sub(p.clock()) < clocksSoon {
		f.Severity = Warning
	}
	f.Says, f.Todo = first.says(), first.todo()
	if more := int64(len(days) - 1); more > 0 {
		f.Says += " " + plural(more, "more schedule is", "more schedules are") + " off on such a day within a year."
		f.Todo += " After that day doctor names the next one."
	}
	return []Finding{f}
}

// nextOffDay is the next day of that kind of a schedule; false: there is none within clocksAhead.
func nextOffDay(s *client.ScheduleListEntry, now time.Time) (offDay, bool) {
	if s.Spec == nil || len(s.Spec.Intervals) > 0 || len(s.Spec.Calendars) == 0 {
		return offDay{}, false
	}
	zone, err := time.LoadLocation(s.Spec.TimeZoneName)
	if err != nil {
		return offDay{}, false // Temporal knows a zone that this machine does not
	}
	for at := now.In(zone); ; {
		_, change := at.ZoneBounds()
		if change.IsZero() || change.After(now.Add(clocksAhead)) {
			return offDay{}, false
		}
		at = change.In(zone)
		_, before := at.Add(-time.Second).Zone()
		if _, after := at.Zone(); after <= before {
			continue
		}
		day := at.In(time.FixedZone("", before))
		midnight := time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, zone)
		its, fires := false, false
		for _, c := range s.Spec.Calendars {
			its = its || within(c, day, day.Weekday())
			fires = fires || within(c, day, midnight.Weekday()) && hasHour(c, day, zone)
		}
		if its != fires {
			return offDay{s.ID, zone.String(), day, at, fires, midnight.Weekday()}, true
		}
	}
}

// within reports whether a day is one of a calendar's, if it is that day of the week.
func within(c client.ScheduleCalendarSpec, day time.Time, weekday time.Weekday) bool {
	return inRanges(c.Year, day.Year(), true) && inRanges(c.Month, int(day.Month()), true) &&
		inRanges(c.DayOfMonth, day.Day(), true) && inRanges(c.DayOfWeek, int(weekday), true)
}

// hasHour reports whether the day has one of a calendar's times in a zone. Temporal passes over a time
// whose hour the day does not have.
func hasHour(c client.ScheduleCalendarSpec, day time.Time, zone *time.Location) bool {
	for hour := range 24 {
		for minute := range 60 {
			if inRanges(c.Hour, hour, hour == 0) && inRanges(c.Minute, minute, minute == 0) &&
				time.Date(day.Year(), day.Month(), day.Day(), hour, minute, 0, 0, zone).Hour() == hour {
				return true
			}
		}
	}
	return false
}

// inRanges reports whether a number is in one of the ranges of a calendar; without any, the answer
// is none.
func inRanges(all []client.ScheduleRange, n int, none bool) bool {
	if len(all) == 0 {
		return none
	}
	return slices.ContainsFunc(all, func(r client.ScheduleRange) bool {
		return n == r.Start || n > r.Start && n <= r.End && (n-r.Start)%max(r.Step, 1) == 0
	})
}

func (d offDay) says() string {
	const clock = "15:04"
	day := d.day.Format("Monday 2006-01-02")
	text := fmt.Sprintf("The schedule %s misses %s", d.schedule, day)
	if d.fires {
		text = fmt.Sprintf("The schedule %s fires on %s, which is none of its days", d.schedule, day)
	}
	text += fmt.Sprintf(": the clocks of %s go forward then, from %s to %s", d.zone, d.day.Format(clock),
		d.at.Format(clock))
	if d.taken != d.day.Weekday() {
		return text + fmt.Sprintf(", and Temporal takes the day, which has no midnight, for a %s.", d.taken)
	}
	return text + "."
}

func (d offDay) todo() string {
	id := shell(d.schedule)
	if strings.HasPrefix(d.schedule, "-") {
		id = "-- " + id
	}
	if d.fires {
		return "Pause it before that day by `daybook schedules pause " + id + "`, and resume it on the next one by " +
			"`daybook schedules resume " + id + "`; or make it in a time zone without such changes, as UTC is."
	}
	return "Fire it by hand on that day: `daybook schedules trigger " + id + "`. Or make it at a time that is not left " +
		"out, or in a time zone without such changes, as UTC is."
}
