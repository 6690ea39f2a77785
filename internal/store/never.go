package store

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// timeOrNever scans a timestamp that may be infinite, which leaves the time as it is: one row that can never be due must not fail
// a statement that is about all of them.
type timeOrNever struct{ time *time.Time }

// ScanTimestamptz implements pgx's interface.
func (t timeOrNever) ScanTimestamptz(v pgtype.Timestamptz) error {
	if v.Valid && v.InfinityModifier == pgtype.Finite {
		*t.time = v.Time
	}
	return nil
}
