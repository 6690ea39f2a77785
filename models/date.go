package models

import (
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Date is a calendar day without time or zone, as PostgreSQL's date. The zero value is no date.
type Date struct{ t time.Time }

// NewDate returns the given day.
func NewDate(year int, month time.Month, day int) Date {
	return Date{time.Date(year, month, day, 0, 0, 0, 0, time.UTC)}
}

// ParseDate reads YYYY-MM-DD.
func ParseDate(s string) (Date, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return Date{}, fmt.Errorf("date %q: want YYYY-MM-DD", s)
	}
	return Date{t}, nil
}

// IsZero reports whether d is no date.
func (d Date) IsZero() bool { return d.t.IsZero() }

// Time returns midnight UTC of the day.
func (d Date) Time() time.Time { return d.t }

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

// UnmarshalJSON reads what MarshalJSON writes.
func (d *Date) UnmarshalJSON(b []byte) error {
	var s *string
	if err := json.Unmarshal(b, &s); err != nil {
		return errors.New("date: want a text, YYYY-MM-DD")
	}
	if s == nil || *s == "" {
		*d = Date{}
		return nil
	}
	p, err := ParseDate(*s)
	if err != nil {
		return err
	}
	*d = p
	return nil
}

// Scan implements sql.Scanner for a date column.
func (d *Date) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*d = Date{}
	case time.Time:
		*d = NewDate(v.Year(), v.Month(), v.Day())
	case string:
		p, err := ParseDate(v)
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
