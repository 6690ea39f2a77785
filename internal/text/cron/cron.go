// Package cron refuses cron expressions that Temporal takes for something else than cron and other
// schedulers do. Package schedules and the command line check alike, each in its own words.
package cron

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	// shorthands are the names that stand for five fields.
	shorthands = []string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}
	// signs are words and signs that other programs know in a cron expression. Temporal takes # for
	// the beginning of a comment.
	signs = regexp.MustCompile(`(?i)[#?]|\b(L|LW|[0-9]+[LW]|L-[0-9]+|[a-z]{3}L)\b`)
	steps = regexp.MustCompile(`/([0-9]+)`)
)

// fieldSizes are how many values the seven fields have; a year has no bound. A larger step would
// fire once in each round of the field: */90 minutes each hour.
var fieldSizes = []struct {
	name string
	size int
}{{"seconds", 60}, {"minutes", 60}, {"hours", 24}, {"days of the month", 31}, {"months", 12}, {"days of the week", 7}}

// Words name what a caller sets beside the expressions.
type Words struct{ Zone, Every, BothDays string }

// Check returns an error for an expression that can be meant otherwise than Temporal takes it.
// bothDays lets a day of the month and a day of the week stand in it. What remains is Temporal's to
// check.
func Check(cron string, bothDays bool, say Words) error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("the cron expression %q "+format, append([]any{cron}, args...)...)
	}
	fields := strings.Fields(cron)
	switch {
	case len(fields) == 1 && slices.Contains(shorthands, fields[0]):
		return nil
	case strings.Contains(cron, "TZ="):
		return refuse("names a time zone: that is for %s", say.Zone)
	case strings.HasPrefix(cron, "@every"):
		return refuse("is an interval: that is for %s", say.Every)
	case strings.HasPrefix(cron, "@"):
		return refuse("is not known: want %s, or five fields", strings.Join(shorthands, ", "))
	case signs.MatchString(cron):
		return refuse("has %q, which is not known here: want numbers, names such as MON and JAN, and the signs * , - and /",
			signs.FindString(cron))
	case len(fields) == 6:
		return refuse("has six fields, which may mean seconds first or a year last: write seven, which is %q or %q; or "+
			"five, without both",
			cron+" *", "0 "+cron)
	case len(fields) != 5 && len(fields) != 7:
		return refuse("has %d fields: want five (minute, hour, day of month, month, day of week), or seven with seconds "+
			"first and a year last", len(fields))
	case len(fields) == 5:
		fields = append([]string{"0"}, fields...)
	}
	for i, field := range fieldSizes {
		for _, step := range steps.FindAllStringSubmatch(fields[i], -1) {
			if n, err := strconv.Atoi(step[1]); err != nil || n >= field.size {
				return refuse("has a step of %s %s, and a field begins anew after %d: a longer interval is for %s", step[1],
					field.name, field.size, say.Every)
			}
		}
	}
	if days, weekdays := fields[3], fields[5]; days != "*" && weekdays != "*" && !bothDays {
		return refuse("has a day of the month and a day of the week: for days that are either, as cron takes it, give "+
			"two expressions; for days that "+
			"are both, add %s", say.BothDays)
	}
	return nil
}
