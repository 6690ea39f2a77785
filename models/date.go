package models

import (
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"
)

// The dates of documents, postings and periods lie in these years. Every program that reads an
// export can read them, and can count to the end of the year after. The function
// daybook.is_bookable has the same years.
const (
	FirstYear = 1900
	LastYear  = 2999
)

// Date is a calendar day without time or zone, as PostgreSQL's date. The zero value is no date; it
// is no day of any year.
type Date struct {
	t   time.Time
	set bool
}

// NewDate returns the given day, of any year; Check says whether it is one that documents, postings
// and periods can have.
func NewDate(year int, month time.Month, day int) Date {
	return Date{time.Date(year, month, day, 0, 0, 0, 0, time.UTC), true}
}

// ParseDate reads YYYY-MM-DD, and refuses a day that Check refuses.
func ParseDate(s string) (Date, error) {
	d, err := parseDay(s)
	if err == nil {
		err = d.Check()
	}
	if err != nil {
		return Date{}, err
	}
	return d, nil
}

// dayPattern is the form of a day, which may not exist.
var dayPattern = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)

func parseDay(s string) (Date, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		if dayPattern.MatchString(s) {
			return Date{}, fmt.Errorf("date %s: there is no such day", s)
		}
		return Date{}, fmt.Errorf("date %.40q: want YYYY-MM-DD", s)
	}
	return Date{t, true}, nil
}

// Check refuses a day that is not of the years from FirstYear to LastYear. No date is not refused.
func (d Date) Check() error {
	if year := d.t.Year(); d.set && (year < FirstYear || year > LastYear) {
		return fmt.Errorf("date %s: want one from %d-01-01 to %d-12-31", d, FirstYear, LastYear)
	}
	return nil
}

// IsZero reports whether d is no date.
func (d Date) IsZero() bool { return !d.set }

// Time returns midnight UTC of the day; of no date, the zero time.
func (d Date) Time() time.Time { return d.t }

// Before reports whether d is a day before the other.
func (d Date) Before(other Date) bool { return d.t.Before(other.t) }

// Nearest returns d, or where Check refuses it the first or the last day that Check does not
// refuse.
func (d Date) Nearest() Date {
	switch year := d.t.Year(); {
	case d.set && year < FirstYear:
		return NewDate(FirstYear, time.January, 1)
	case year > LastYear:
		return NewDate(LastYear, time.December, 31)
	}
	return d
}

// AddDays returns the day that is n days later, or earlier where n is negative.
func (d Date) AddDays(n int) Date { return Date{d.t.AddDate(0, 0, n), true} }

// String returns YYYY-MM-DD, or the empty string for no date.
func (d Date) String() string {
	if d.IsZero() {
		return ""
	}
	return d.t.Format(time.DateOnly)
}

// MarshalJSON writes YYYY-MM-DD, or null for no date.
func (d Date) MarshalJSON() ([]byte, error) {
	if d.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(d.String())
}

// UnmarshalJSON reads what MarshalJSON writes: any day.
func (d *Date) UnmarshalJSON(b []byte) error {
	var s *string
	if err := json.Unmarshal(b, &s); err != nil {
		return errors.New("date: want a text, YYYY-MM-DD")
	}
	if s == nil || *s == "" {
		*d = Date{}
		return nil
	}
	p, err := parseDay(*s)
	if err != nil {
		return err
	}
	*d = p
	return nil
}

// Scan implements sql.Scanner for a date column. It takes any day: what is in a database can be
// read.
func (d *Date) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*d = Date{}
	case time.Time:
		*d = NewDate(v.Year(), v.Month(), v.Day())
	case string:
		p, err := parseDay(v)
		if err != nil {
			return err
		}
		*d = p
	default:
		return fmt.Errorf("date: cannot scan %T", src)
	}
	return nil
}

// Value implements driver.Valuer.
func (d Date) Value() (driver.Value, error) {
	if d.IsZero() {
		return nil, nil
	}
	return d.t, nil
}
