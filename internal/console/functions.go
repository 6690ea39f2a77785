package console

import (
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// functions are what templates may call.
func functions() template.FuncMap {
	return template.FuncMap{
		"number": number,
		"span":   span,
		"iso":    func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"exact":  func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 MST") },
		"ago":    ago,
		"count":  func(s store.QueueStatus, state models.JobState) int64 { return s.Counts[state] },
		"query":  query,
	}
}

// number writes an integer with thin spaces between groups of three digits.
func number(n any) string {
	digits := fmt.Sprint(n)
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "−", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "\u202f" + digits[i:]
	}
	return sign + digits
}

// span writes a duration in its two largest units.
func span(d time.Duration) string {
	switch d = d.Abs(); {
	case d < time.Millisecond:
		return strconv.FormatInt(d.Microseconds(), 10) + " µs"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d %d h", int(d.Hours())/24, int(d.Hours())%24)
}

// ago says when t was, or will be, as seen from now.
func ago(now, t time.Time) string {
	switch d := now.Sub(t); {
	case d.Abs() < time.Second:
		return "now"
	case d > 0:
		return span(d.Truncate(time.Second)) + " ago"
	default:
		return "in " + span((-d).Truncate(time.Second))
	}
}

// query makes the part of an address after the question mark, of names and values; pairs whose value is empty are left out.
func query(pairs ...string) template.URL {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return template.URL(q.Encode()) //nolint:gosec // url.Values escapes every name and value
}
