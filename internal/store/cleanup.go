package store

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// Retention says what a batch of cleaning up may remove.
type Retention struct {
	// OrgID is the organization whose rows are removed; empty: all.
	OrgID string
	// Before is the moment before which something must have ended.
	Before time.Time
	// Keep is a job that is not removed: the one that cleans up.
	Keep string
	// Batch is how many rows are read at most.
	Batch int
}

// args adds what may be removed to the arguments of a statement.
func (r Retention) args(a Args) Args {
	a["org"], a["before"], a["keep"], a["batch"] = r.OrgID, r.Before, r.Keep, r.Batch
	return a
}

// CleanupCursor is how far cleaning up has come. The zero value is the beginning.
type CleanupCursor struct {
	time time.Time
	id   string
	n    int64
}

// Cleaned is what a batch removed.
type Cleaned struct {
	Jobs, Attempts, Receipts int64
	// Done says that all rows have been read.
	Done bool
}

// OldRows are rows of a queue that cleaning up removes when they are old.
type OldRows struct {
	// Name is what they are called in the payload of a job of the type cleanup: "jobs".
	Name string
	// Days is the age from which they go, unless the payload says otherwise.
	Days int
	// Archived: they go to an archive first, by RemoveTasks, and not by Clean. They have no
	// organization.
	Archived bool
	// stmt removes the next batch. It returns how many rows it has looked at, how many jobs, attempts
	// and receipts it has removed, and the cursor behind what it has looked at.
	stmt string
}

// Clean looks at the next batch, and removes what may be removed of it.
func (o OldRows) Clean(ctx context.Context, q Querier, r Retention,
	from CleanupCursor,
) (Cleaned, CleanupCursor, error) {
	var looked int
	var c Cleaned
	to := from
	err := queryRow(ctx, q, o.stmt, r.args(Args{"time": from.time, "id": from.id, "n": from.n})).
		Scan(&looked, &c.Jobs, &c.Attempts, &c.Receipts, &to.time, &to.id, &to.n)
	c.Done = looked < r.Batch
	return c, to, Wrap("clean up "+o.Name, err)
}

// Old lists the rows of every queue that cleaning up removes, those with the lowest age first.
func Old() []OldRows {
	var all []OldRows
	for _, q := range Queues() {
		all = append(all, q.old()...)
	}
	slices.SortStableFunc(all, func(a, b OldRows) int { return cmp.Compare(a.Days, b.Days) })
	return all
}

// old implements operations.
func (k *Kind) old() []OldRows { return k.oldRows }
