package main

import (
	"github.com/spf13/pflag"

	"github.com/daybook-dev/daybook/internal/text/days"
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
		if from, to, err = days.Span(s.period); err != nil {
			return from, to, usagef("--period %v", err)
		}
		return from, to, nil
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
	p, err := days.Month(text)
	if err != nil {
		err = usagef("%v", err)
	}
	return p, err
}

// parseYear reads 2026, as its twelve months.
func parseYear(text string) ([]models.Period, error) {
	months, err := days.Year(text)
	if err != nil {
		err = usagef("%v", err)
	}
	return months, err
}
