// Package days reads spans of posting dates as people write them: 2026-03 for a month, 2026 for a
// year.
package days

import (
	"fmt"
	"regexp"
	"time"

	"github.com/daybook-dev/daybook/models"
)

// Month reads 2026-03.
func Month(text string) (models.Period, error) {
	t, err := time.Parse("2006-01", text)
	if err != nil {
		return models.Period{}, fmt.Errorf("month %q: want one such as 2026-03", text)
	}
	p := OfMonth(t.Year(), t.Month())
	if err := p.StartsOn.Check(); err != nil {
		return models.Period{}, fmt.Errorf("month %q: %w", text, err)
	}
	return p, nil
}

var (
	yearPattern  = regexp.MustCompile(`^[0-9]{4}$`)
	monthPattern = regexp.MustCompile(`^[0-9]{4}-(0[1-9]|1[0-2])$`)
)

// Year reads 2026, as its twelve months.
func Year(text string) ([]models.Period, error) {
	t, err := time.Parse("2006", text)
	if err != nil || !yearPattern.MatchString(text) {
		return nil, fmt.Errorf("year %q: want one such as 2026", text)
	}
	if err := models.NewDate(t.Year(), time.January, 1).Check(); err != nil {
		return nil, fmt.Errorf("year %q: %w", text, err)
	}
	months := make([]models.Period, 0, 12)
	for m := time.January; m <= time.December; m++ {
		months = append(months, OfMonth(t.Year(), m))
	}
	return months, nil
}

// Months reads a month, or a year as its twelve months.
func Months(text string) ([]models.Period, error) {
	switch {
	case yearPattern.MatchString(text):
		return Year(text)
	case monthPattern.MatchString(text):
		p, err := Month(text)
		return []models.Period{p}, err
	}
	return nil, fmt.Errorf("%q: want a month such as 2026-03, or a year such as 2026", text)
}

// Span reads a month or a year, and returns its first and its last day.
func Span(text string) (from, to models.Date, err error) {
	months, err := Months(text)
	if err != nil {
		return from, to, err
	}
	return months[0].StartsOn, months[len(months)-1].EndsOn, nil
}

// OfMonth is the period of a month.
func OfMonth(year int, m time.Month) models.Period {
	last := time.Date(year, m+1, 0, 0, 0, 0, 0, time.UTC)
	return models.Period{StartsOn: models.NewDate(year, m, 1), EndsOn: models.NewDate(year, m, last.Day())}
}

// Name is a span as Span reads it, or its first and its last day.
func Name(from, to models.Date) string {
	for _, layout := range []string{"2006", "2006-01"} {
		text := from.Time().Format(layout)
		if first, last, err := Span(text); err == nil && first == from && last == to {
			return text
		}
	}
	return from.String() + " to " + to.String()
}
