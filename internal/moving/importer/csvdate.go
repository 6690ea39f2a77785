package importer

import (
	"regexp"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/models"
)

// isoLayout is the layout of dates if a mapping names none. A time and a time zone may follow the
// day.
const isoLayout = "YYYY-MM-DD"

// isoTime is what may follow the day of an ISO 8601 date: a time, and the time zone in which day
// and time are stated.
var isoTime = regexp.MustCompile(
	`^(?:[T ]([01]\d|2[0-4]):?([0-5]\d)(:?[0-6]\d([.,]\d+)?)?( ?(Z|UTC|([+-])([01]\d|2[0-3])(?::?([0-5]\d))?))?)?$`)

// dateField is a column with dates; layouts are Go's, of which one must fit.
type dateField struct {
	column  int
	layouts []string
	wanted  string
	// zone is the time zone of the days; nil: that of the text.
	zone *time.Location
}

// parse reads the day that the text states or, if there is a zone and the text has a time, the day
// that this is there. A time without a zone is one of UTC.
func (f dateField) parse(text string) (time.Time, bool) {
	var after time.Duration // midnight of UTC
	timed := strings.ContainsAny(f.wanted, "h")
	if f.wanted == isoLayout && len(text) > len(isoLayout) {
		if parts := isoTime.FindStringSubmatch(text[len(isoLayout):]); parts != nil {
			after, timed = sinceMidnight(parts), true
			text = text[:len(isoLayout)]
		}
	}
	for _, layout := range f.layouts {
		t, err := time.Parse(layout, text)
		if err == nil && f.zone != nil && timed {
			t = t.Add(after).In(f.zone)
		}
		if err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// sinceMidnight is how long after midnight of UTC a time is whose parts isoTime found. Seconds do
// not change the day.
func sinceMidnight(parts []string) time.Duration {
	minutes := digitsOf(parts[1])*60 + digitsOf(parts[2])
	east := digitsOf(parts[8])*60 + digitsOf(parts[9])
	if parts[7] == "-" {
		east = -east
	}
	return time.Duration(minutes-east) * time.Minute
}

func (d *draft) date(f dateField, cells []string) (models.Date, error) {
	t, ok := f.parse(cells[f.column])
	if !ok || t.Year() < 1 {
		return models.Date{}, invalid("%s: %.40q is not a date of the form %s, or no day that there is", d.mapping.columns[f.column],
			cells[f.column], f.wanted)
	}
	return models.NewDate(t.Year(), t.Month(), t.Day()), nil
}

// dateLayouts translates a layout of YYYY or YY, MM, M, DD, D, hh, mm, ss, Z and signs to Go's. ok
// is false if it has other letters or digits, or if it does not name a day. Years of two digits are
// 1969 to 2068.
func dateLayouts(layout string) (translated []string, ok bool) {
	named := map[string]bool{}
	ok = true
	one := layoutWords.ReplaceAllStringFunc(layout, func(word string) string {
		known, found := layoutParts[word]
		ok = ok && found && !named[known.part]
		named[known.part] = true
		return known.text
	})
	ok = ok && named["year"] && named["month"] && named["day"] && !strings.ContainsAny(layout, "_,")
	if named["zone"] { // a zone is written with a colon or without one
		return []string{one, strings.Replace(one, "Z07:00", "Z0700", 1), strings.Replace(one, "Z07:00", "Z07", 1)}, ok
	}
	return []string{one}, ok
}

var (
	// A T that stands between date and time is a sign.
	layoutWords = regexp.MustCompile(`Y+|M+|D+|h+|m+|s+|Z+|[A-SU-Xa-z0-9]`)
	layoutParts = map[string]struct{ text, part string }{
		"YYYY": {"2006", "year"}, "YY": {"06", "year"}, "MM": {"01", "month"}, "M": {"1", "month"}, "DD": {"02", "day"},
		"D":  {"2", "day"},
		"hh": {"15", "hour"}, "mm": {"04", "minute"}, "ss": {"05", "second"}, "Z": {"Z07:00", "zone"},
	}
)
