package queuetest

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// AccountingOptions say how DrainAccounting posts, as workers.AccountingOptions do. The zero value
// of each field is its default.
type AccountingOptions struct {
	// Advance is how much time passes, as in JobsOptions; default none. Documents that fall due
	// within it are posted as well.
	Advance time.Duration
	// Timeout is how long draining may take, in real time, until the test fails; default 1 minute.
	Timeout time.Duration
	// Sources are where the ledger reads documents, besides daybook.documents. Each is checked first,
	// as a worker does when it starts.
	Sources accounting.Sources
	// Hooks are called with what is posted for the organizations that have their names on record.
	Hooks accounting.Hooks
}

// DrainedAccounting is what became of accounting jobs.
type DrainedAccounting struct {
	Counts
	// Jobs are those that were attempted, as they are now, by organization and document. Of each
	// there are ID, OrgID, DocumentID, VersionHint, State, RunCount, ReadyAt, LastErrorCode and
	// LastError.
	Jobs []models.AccountingJob
}

// DrainAccounting posts every document that is due with Daybook's ledger, until only jobs are due
// that a worker with these sources and hooks leaves to others. Documents that fail do not fail the
// test; see RequireCompleted.
func DrainAccounting(tb testing.TB, pool *pgxpool.Pool, o AccountingOptions) DrainedAccounting {
	tb.Helper()
	requirePool(tb, pool)
	if _, err := ledger.BeginSources(tb.Context(), pool, o.Sources); err != nil {
		tb.Fatalf("queuetest: %v", err)
	}
	l := ledger.New(o.Sources).WithHooks(o.Hooks)
	kind, err := store.AccountingFor(l.Abilities())
	if err != nil {
		tb.Fatalf("queuetest: %v", err)
	}
	s := store.NewQueue(pool, kind)
	e := engine.New(s, l, engine.Options{Direct: true, Log: logTo(tb)})
	defer e.Close()
	d := newDrainer(tb, s, e, o.Advance, o.Timeout)
	d.run()
	attempted, err := store.AttemptedDocuments(tb.Context(), pool, d.turn.ID)
	if err != nil {
		tb.Fatalf("queuetest: %v", err)
	}
	return DrainedAccounting{Counts: d.counts, Jobs: attempted}
}

// RequireCompleted fails the test, and lists the others with their errors, unless every job that
// was attempted is completed.
func (d DrainedAccounting) RequireCompleted(tb testing.TB) {
	tb.Helper()
	var others []string
	for _, j := range d.Jobs {
		if j.State != models.JobCompleted {
			var code models.ErrorCode
			var message string
			if j.LastErrorCode != nil {
				code = *j.LastErrorCode
			}
			if j.LastError != nil {
				message = *j.LastError
			}
			others = append(others, "\n  document "+j.DocumentID+"  org "+j.OrgID+"  "+describe(string(j.State), j.ReadyAt)+
				"  "+
				failure(cmp.Or(string(code), "no error"), message))
		}
	}
	if len(others) > 0 {
		tb.Fatalf("queuetest: %d of %d documents are not posted:%s", len(others), len(d.Jobs), strings.Join(others, ""))
	}
}
