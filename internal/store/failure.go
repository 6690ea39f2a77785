package store

import "github.com/daybook-dev/daybook/internal/failure"

// Failure returns the class of an error: its own, or what the database's state, or the way to the database, makes of it; nil: the
// error has none.
func Failure(err error) *failure.Class {
	if class := failure.Of(err); class != nil {
		return class
	}
	switch {
	case IsLost(err):
		return failure.LeaseLost
	case IsTransient(err):
		return failure.DatabaseUnavailable
	case IsForbidden(err):
		return failure.RoleLacksRight
	}
	return nil
}
