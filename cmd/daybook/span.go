package main

import (
	"regexp"
	"time"

	"github.com/spf13/pflag"

	"github.com/daybook-dev/daybook/models"
)

// spanFlags name a span of days: a month or a year, or its first and last day.
type spanFlags struct {
	period, from, to string
}

func (s *spanFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&s.period, "period", "", "a month such as 2026-03, or a year such as 2026")
	flags.StringVar(&s.from, "from", "", "the first day, such as 2026-03-01")
	flags.StringVar(&s.to, "to", "", "the last day, such as 2026-03-31")
}

// given reports whether any of the flags is.
func (s *spanFlags) given() bool { return s.period != "" || s.from != "" || s.to != "" }

// parse returns the first and the last day; a day that is not named is the zero date.
func (s *spanFlags) parse() (from, to models.Date, err error) {
	if s.period != "" {
		if s.from != "" || s.to != "" {
			return from, to, usagef("give either --period, or --from and --to")
		}
		if months, err := parseYear(s.period); err == nil {
			return months[0].StartsOn, months[11].EndsOn, nil
		}
		p, err := parseMonth(s.period)
		if err != nil {
			return from, to, usagef("--period %q: want a month such as 2026-03, or a year such as 2026", s.period)
		}
		return p.StartsOn, p.EndsOn, nil
	}
	if from, err = parseDay("--from", s.from); err != nil {
		return from, to, err
	}
	if to, err = parseDay("--to", s.to); err != nil {
		return from, to, err
	}
	if !from.IsZero() && !to.IsZero() && to.Time().Before(from.Time()) {
		return from, to, usagef("--to %s is before --from %s", to, from)
	}
	return from, to, nil
}

// parseDay reads a day; none is the zero date.
func parseDay(flag, text string) (models.Date, error) {
	if text == "" {
		return models.Date{}, nil
	}
	d, err := models.ParseDate(text)
	if err != nil {
		return d, usagef("%s: %v", flag, err)
	}
	return d, nil
}

// parseMonth reads 2026-03.
func parseMonth(text string) (models.Period, error) {
	t, err := time.Parse("2006-01", text)
	if err != nil {
		return models.Period{}, usagef("month %q: want one such as 2026-03", text)
	}
	return month(t.Year(), t.Month()), nil
}

var yearPattern = regexp.MustCompile(`^[0-9]{4}$`)

// parseYear reads 2026, as its twelve months.
func parseYear(text string) ([]models.Period, error) {
	t, err := time.Parse("2006", text)
	if err != nil || !yearPattern.MatchString(text) {
		return nil, usagef("year %q: want one such as 2026", text)
	}
	months := make([]models.Period, 0, 12)
	for m := time.January; m <= time.December; m++ {
		months = append(months, month(t.Year(), m))
	}
	return months, nil
}

func month(year int, m time.Month) models.Period {
	last := time.Date(year, m+1, 0, 0, 0, 0, 0, time.UTC)
	return models.Period{StartsOn: models.NewDate(year, m, 1), EndsOn: models.NewDate(year, m, last.Day())}
}
