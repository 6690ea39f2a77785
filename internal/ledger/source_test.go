package ledger_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/audit"
	"github.com/daybook-dev/daybook/models"
)

// answers is a source that answers as it is told, by document; what it is not told of is an invoice
// that is here.
type answers map[string]ledger.Found

func (a answers) LockAndRead(_ context.Context, _ pgx.Tx, keys []ledger.Key) ([]ledger.Found, error) {
	found := make([]ledger.Found, len(keys))
	for i, k := range keys {
		f, told := a[k.ID]
		if !told {
			f = ledger.Found{State: ledger.DocumentHere, Document: ready(k.OrgID, k.ID, 1000)}
		}
		found[i] = f
	}
	return found, nil
}

func (answers) SetPosted(context.Context, pgx.Tx, []ledger.Key, []bool) error { return nil }

func ready(org, id string, net int64) *models.Document {
	d := fixture.Invoice(org, id, net)
	now := time.Now()
	d.AccountingReadyAt, d.AccountingReadyVersion = &now, 1
	return d
}

// withSources has the bundle's engine read these sources, and names shop as the organization's.
func (b *bundle) withSources(sources ledger.Sources) {
	b.t.Helper()
	l := ledger.New(sources)
	kind, err := store.AccountingFor(l.Abilities())
	require.NoError(b.t, err)
	b.engine = engine.New(store.NewQueue(b.Pool, kind), l, engine.Options{Log: slog.New(slog.DiscardHandler)})
	b.t.Cleanup(b.engine.Close)
	b.tx(func(ctx context.Context, tx pgx.Tx) {
		_, err := store.SetSource(ctx, tx, org, "shop")
		require.NoError(b.t, err)
	})
}

func (b *bundle) enqueue(documents ...string) {
	b.t.Helper()
	for _, d := range documents {
		_, err := store.EnqueueAccountingJob(b.t.Context(), b.Pool, org, d, 1, nil, 0)
		require.NoError(b.t, err)
	}
}

// TestAnswers has a source answer in each way that there is, and in some that there are not, for
// documents that are posted and for such that are not.
func TestAnswers(t *testing.T) {
	t.Parallel()
	deleted := ready(org, "deleted-row", 1000)
	deleted.DeletedAt = new(time.Now())
	for name, c := range map[string]struct {
		found   ledger.Found
		state   models.JobState
		code    models.ErrorCode
		says    string
		reverse bool
	}{
		"deleted": {
			ledger.Found{State: ledger.DocumentDeleted},
			models.JobCancelled, models.CodeDocumentDeleted,
			"deleted", true,
		},
		"deleted-row": {
			ledger.Found{State: ledger.DocumentHere, Document: deleted},
			models.JobCancelled,
			models.CodeDocumentDeleted, "deleted at", true,
		},
		"unknown": {
			ledger.Found{State: ledger.DocumentUnknown},
			models.JobFailed, models.CodeDocumentUnknown,
			"the source shop knows no such document", false,
		},
		"locked": {
			ledger.Found{State: ledger.DocumentLocked},
			models.JobPending, models.CodeDocumentLocked,
			"another transaction", false,
		},
		"silent": {
			ledger.Found{},
			models.JobFailed, models.CodeSourceInvalid,
			"the document source shop did not answer for document silent", false,
		},
		"no-document": {
			ledger.Found{State: ledger.DocumentHere},
			models.JobFailed, models.CodeSourceInvalid,
			"gave no document", false,
		},
		"another-document": {
			ledger.Found{State: ledger.DocumentHere, Document: ready(org, "x", 1)},
			models.JobFailed,
			models.CodeSourceInvalid, "in the keys' order", false,
		},
		"another-org": {
			ledger.Found{State: ledger.DocumentHere, Document: ready("other", "another-org", 1)},
			models.JobFailed, models.CodeSourceInvalid, "in the keys' order", false,
		},
		"unreadable": {
			ledger.Found{State: ledger.DocumentHere, Err: errors.New("bad JSON")},
			models.JobFailed,
			models.CodeDocumentInvalid, "bad JSON", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			source := answers{}
			b.withSources(ledger.Sources{"shop": source})
			b.enqueue(name)
			require.Equal(t, 1, b.work().Completed)

			source[name] = c.found
			_, err := store.MarkAccountingJobPending(t.Context(), b.Pool, org, name, nil, 0)
			require.NoError(t, err)
			b.enqueue("neighbour")
			b.work()

			job := fixture.Job(t, b.Pool, org, name)
			assert.Equal(t, c.state, job.State)
			require.NotNil(t, job.LastErrorCode)
			assert.Equal(t, c.code, *job.LastErrorCode)
			assert.Contains(t, *job.LastError, c.says)
			want := 1
			if c.reverse {
				want = 2
			}
			assert.Len(t, b.impacts(name), want)
			assert.Len(t, b.impacts("neighbour"), 1)
		})
	}
}

// TestSourcesSideBySide posts documents of two sources in one transaction, each source asked for
// its own alone.
func TestSourcesSideBySide(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withSources(ledger.Sources{"shop": answers{}})
	fixture.Organization(t, b.Pool, "own")
	fixture.Ready(t, b.Pool, fixture.Invoice("own", "inv", 2000))
	b.enqueue("a", "b")

	assert.Equal(t, 3, b.work().Completed)

	assert.EqualValues(t, 2380, fixture.Balance(t, b.Pool, org, "1200", "EUR"))
	assert.EqualValues(t, 2380, fixture.Balance(t, b.Pool, "own", "1200", "EUR"))
	assert.Equal(t, 1, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.documents WHERE accounting_impact_created_at IS NOT NULL`))
}

// TestSourceChangesAfterTheLease posts nothing by what was on record before.
func TestSourceChangesAfterTheLease(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"its source":        `SELECT daybook.set_source('` + org + `', 'elsewhere')`,
		"the default":       `SELECT daybook.set_default_source('elsewhere')`,
		"its hooks":         `SELECT daybook.set_hooks('` + org + `', '{mail}')`,
		"the default hooks": `SELECT daybook.set_default_hooks('{mail}')`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			l := ledger.New(nil)
			fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv", 1000))
			b.tx(func(ctx context.Context, tx pgx.Tx) {
				_, err := tx.Exec(ctx, change)
				require.NoError(t, err)
				// As a worker that leased the job before.
				commit, err := l.Prepare(ctx, nil)
				require.NoError(t, err)
				b.tx(func(ctx context.Context, other pgx.Tx) {
					errs, err := commit(ctx, other,
						[]engine.Job{{ID: "j", OrgID: org, DocumentID: "inv", Version: 1, Attempt: 1}})
					require.NoError(t, err)
					assert.ErrorContains(t, errs[0], string(models.CodeConfigurationLocked), "while the change is open")
				})
			})
			b.tx(func(ctx context.Context, tx pgx.Tx) {
				commit, err := l.Prepare(ctx, nil)
				require.NoError(t, err)
				errs, err := commit(ctx, tx, []engine.Job{{ID: "j", OrgID: org, DocumentID: "inv", Version: 1, Attempt: 1}})
				require.NoError(t, err)
				assert.ErrorContains(t, errs[0], "other workers have them")
			})
			assert.Empty(t, b.impacts("inv"))
			assert.Zero(t, b.work().Leased, "and nothing of it is leased again")
		})
	}
}

// TestUnknownDocumentsComeBack when the organization's source is set right.
func TestUnknownDocumentsComeBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.enqueue("a", "b")
	assert.Equal(t, 2, b.work().Failed)
	b.withSources(ledger.Sources{"shop": answers{}})
	assert.Equal(t, 2, b.work().Completed)
	var set store.NeedsSet
	b.tx(func(ctx context.Context, tx pgx.Tx) {
		var err error
		set, err = store.SetSource(ctx, tx, org, "shop")
		require.NoError(t, err)
	})
	assert.Equal(t, store.NeedsSet{}, set, "it is so already")
}

// TestAuditComparesSources finds what is wrong with documents of a source, and says of a source
// without a reader that it was not compared.
func TestAuditComparesSources(t *testing.T) {
	t.Parallel()
	b := setup(t)
	source := answers{}
	b.withSources(ledger.Sources{"shop": source})
	b.enqueue("sound", "gone", "shredded", "retracted", "older", "newer", "held")
	require.Equal(t, 7, b.work().Completed)

	blind, err := audit.Run(t.Context(), b.Pool, audit.Options{})
	require.NoError(t, err)
	require.Len(t, blind.Figures.Sources, 1)
	assert.Equal(t, audit.SourceFigures{Name: "shop", Organizations: 1, Impacts: 7, Live: 7}, blind.Figures.Sources[0])

	version := func(id string, v int64) *models.Document {
		d := ready(org, id, 1000)
		d.AccountingReadyVersion = v
		return d
	}
	retracted := ready(org, "retracted", 1000)
	retracted.AccountingReadyAt = nil
	source["gone"] = ledger.Found{State: ledger.DocumentUnknown}
	source["shredded"] = ledger.Found{State: ledger.DocumentDeleted}
	source["retracted"] = ledger.Found{State: ledger.DocumentHere, Document: retracted}
	source["older"] = ledger.Found{State: ledger.DocumentHere, Document: version("older", 0)}
	source["newer"] = ledger.Found{State: ledger.DocumentHere, Document: version("newer", 2)}
	source["held"] = ledger.Found{State: ledger.DocumentLocked}

	r, err := ledger.Audit(t.Context(), b.Pool, ledger.Sources{"shop": source}, audit.Options{OrgID: org, Limit: 1})
	require.NoError(t, err)
	wrong := map[string]int64{}
	for _, c := range r.Checks {
		if c.Count > 0 {
			wrong[c.Kind] = c.Count
			assert.Len(t, c.Findings, 1, c.Kind)
		}
	}
	assert.Equal(t, map[string]int64{
		"impact_of_unknown_document": 1, "retracted_document_posted": 2, "document_behind_its_posting": 1,
		"document_not_posted": 1,
	}, wrong)
	assert.Equal(t, audit.SourceFigures{
		Name: "shop", Checked: true, Organizations: 1, Documents: 4, Locked: 1,
		Impacts: 7, Live: 7,
	}, r.Figures.Sources[0])

	source["sound"] = ledger.Found{}
	_, err = ledger.Audit(t.Context(), b.Pool, ledger.Sources{"shop": source}, audit.Options{})
	assert.ErrorContains(t, err, "audit the source shop: it did not answer for document sound")
}
