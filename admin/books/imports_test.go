package books_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/audit"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// newImport puts an import on record.
func (b *bundle) newImport(of string) int64 {
	b.t.Helper()
	id, err := ledgerdb.BeginImport(b.t.Context(), b.Pool, models.Import{OrgID: of, Format: "test", Files: "a.csv", Actor: "test"})
	require.NoError(b.t, err)
	return id
}

// put writes documents as an import does.
func (b *bundle) put(ctx context.Context, id int64, docs ...*models.Document) (puts []ledgerdb.Put, err error) {
	err = store.Begin(ctx, b.Pool, func(tx pgx.Tx) error {
		all := make([]ledgerdb.NewDocument, len(docs))
		for n, d := range docs {
			text, err := json.Marshal(d.Content)
			if err != nil {
				return err
			}
			d.ImportID = &id
			all[n] = ledgerdb.NewDocument{Document: d, Text: string(text)}
		}
		if puts, err = ledgerdb.PutImported(ctx, tx, all); err != nil {
			return err
		}
		var jobs []queue.AccountingJob
		for n, p := range puts {
			if p.Result != ledgerdb.PutUnchanged {
				jobs = append(jobs, queue.AccountingJob{OrgID: docs[n].OrgID, DocumentID: docs[n].ID, Version: p.Version})
			}
		}
		_, err = queue.EnqueueAccountingJobs(ctx, tx, jobs)
		return err
	})
	return puts, err
}

// imported is an import of documents.
func (b *bundle) imported(of string, docs ...*models.Document) int64 {
	b.t.Helper()
	id := b.newImport(of)
	require.NoError(b.t, second(b.put(b.t.Context(), id, docs...)))
	return id
}

func (b *bundle) undo(id int64, o books.UndoOptions) books.Undone {
	b.t.Helper()
	u, err := books.UndoImport(b.t.Context(), b.Pool, id, o)
	require.NoError(b.t, err)
	return u
}

// book is what there is of a document: its row, and what is posted of it by account.
type book struct {
	row      string
	balances []string
}

// books are the documents of an organization that are there, or of which something is posted.
func (b *bundle) books(of string) map[string]book {
	b.t.Helper()
	const query = `
SELECT d.id, concat_ws(' ', type, direction, currency, issue_date, value_date, content, accounting_ready_at IS NOT NULL, coalesce(import_id, 0)), '{}'::text[]
  FROM daybook.documents d WHERE org_id = $1 AND deleted_at IS NULL
 UNION ALL
SELECT s.document_id, '', array_agg(concat_ws(' ', s.account_code, s.currency, s.sum) ORDER BY s.account_code)
  FROM (SELECT i.document_id, e.account_code, e.currency, sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END)
          FROM daybook.impacts i JOIN daybook.entries e ON e.impact_id = i.id
         WHERE i.org_id = $1
         GROUP BY i.document_id, e.account_code, e.currency) s
 WHERE s.sum <> 0
 GROUP BY s.document_id`
	rows, err := b.Pool.Query(b.t.Context(), query, of)
	require.NoError(b.t, err)
	all := map[string]book{}
	var id, row string
	var balances []string
	_, err = pgx.ForEachRow(rows, []any{&id, &row, &balances}, func() error {
		known := all[id]
		if row != "" {
			known.row = row
		} else {
			known.balances = slices.Clone(balances)
		}
		all[id] = known
		return nil
	})
	require.NoError(b.t, err)
	return all
}

// open are the jobs, but those of some documents, that are not as they should be when all is worked.
func (b *bundle) open(of string, but []string) []string {
	b.t.Helper()
	rows, err := b.Pool.Query(b.t.Context(), `
SELECT concat_ws(' ', q.document_id, q.state, q.last_error_code, d.deleted_at)
  FROM daybook.accounting_work_queue q LEFT JOIN daybook.documents d ON d.org_id = q.org_id AND d.id = q.document_id
 WHERE q.org_id = $1 AND q.document_id <> ALL ($2)
   AND q.state::text <> CASE WHEN d.id IS NULL THEN 'no job' WHEN d.deleted_at IS NULL THEN 'completed' ELSE 'cancelled' END
   AND (d.accounting_ready_at IS NOT NULL OR q.last_error_code IS DISTINCT FROM 'DOCUMENT_NOT_READY')
 ORDER BY 1`, of, but)
	require.NoError(b.t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(b.t, err)
	return lines
}

// await has everything worked, but some documents that may fail.
func (b *bundle) await(of string, but ...string) {
	b.t.Helper()
	var open []string
	if !assert.Eventually(b.t, func() bool {
		_, err := b.Pool.Exec(b.t.Context(), `
UPDATE daybook.accounting_work_queue SET ready_at = clock_timestamp()
 WHERE org_id = $1 AND state = 'pending' AND ready_at > now()`, of)
		if err != nil {
			return false
		}
		b.work()
		open = b.open(of, append([]string{}, but...))
		return len(open) == 0
	}, time.Minute, 5*time.Millisecond) {
		b.t.Fatal(open)
	}
}

// TestUndoLeavesTheBooksAsTheyWere imports over documents of a posted ledger, once or twice, posts
// a part of it, may change a document by hand and close the period, and undoes the imports, the
// last one first, beside a worker. Then each document but those that are kept is what it was, and so
// is what is posted of it; nothing is posted of what was removed; and a second undo changes nothing.
func TestUndoLeavesTheBooksAsTheyWere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		of := fmt.Sprint("undo-", run)
		fixture.Organization(t, b.Pool, of)
		require.NoError(t, addPeriods(t.Context(), b.Pool, of, books.Month(2026, time.March), books.Month(2026, time.April)))
		policy := rapid.SampledFrom([]models.ClosedPeriodPolicy{models.PolicyFail, models.PolicyFirstOpenDay}).Draw(rt, "policy")
		require.NoError(t, second(books.SetClosedPeriodPolicy(t.Context(), b.Pool, of, policy)))
		document := func(n int) *models.Document {
			d := fixture.Invoice(of, fmt.Sprintf("doc-%02d", n), rapid.SampledFrom([]int64{0, 100, 1000, -250}).Draw(rt, "net"))
			d.IssueDate = models.NewDate(2026, 3+time.Month(rapid.IntRange(0, 1).Draw(rt, "month")), 14)
			return d
		}
		for n := range 6 {
			d := document(n)
			fixture.Ready(t, b.Pool, d)
			if rapid.IntRange(0, 5).Draw(rt, "not ready") == 0 {
				b.tx(func(ctx context.Context, tx pgx.Tx) {
					require.NoError(t, second(store.MarkDocumentNotReady(ctx, tx, of, d.ID)))
				})
			}
		}
		b.await(of)
		before := b.books(of)

		var imports []int64
		for range rapid.IntRange(1, 2).Draw(rt, "imports") {
			var docs []*models.Document
			for n := range 12 {
				if rapid.Bool().Draw(rt, "imported") {
					docs = append(docs, document(n))
				}
			}
			if len(docs) == 0 {
				continue
			}
			imports = append(imports, b.imported(of, docs...))
			// Some of it is not posted yet when the rest is.
			_, err := b.Pool.Exec(t.Context(), `
UPDATE daybook.accounting_work_queue SET ready_at = clock_timestamp() + interval '1 hour'
 WHERE org_id = $1 AND state = 'pending' AND hashtext(document_id || $2) % 3 = 0`, of, fmt.Sprint(run))
			require.NoError(t, err)
			b.work()
		}
		var touched []string
		if rapid.Bool().Draw(rt, "by hand") && len(imports) > 0 {
			d := document(rapid.IntRange(6, 11).Draw(rt, "touched"))
			fixture.Ready(t, b.Pool, d)
			touched = append(touched, d.ID)
		}
		closed := rapid.Bool().Draw(rt, "closed")
		if closed {
			require.NoError(t, second(books.ClosePeriod(t.Context(), b.Pool, of, books.Month(2026, time.March), books.CloseOptions{Force: true})))
		}

		beside := rapid.Bool().Draw(rt, "beside")
		stop, wg := b.workBeside(beside)
		kept := slices.Clone(touched)
		var attempted int64 // at most, of those that are kept: their attempt ends later
		limit := rapid.SampledFrom([]int{0, 1, 3}).Draw(rt, "limit")
		for _, id := range slices.Backward(imports) {
			dry := b.undo(id, books.UndoOptions{DryRun: true})
			require.Nil(t, dry.Import.UndoStartedAt)
			for o := (books.UndoOptions{Limit: limit}); ; {
				u := b.undo(id, o)
				for _, d := range u.Kept {
					switch d.Code {
					case models.KeptChanged:
						require.True(t, slices.Contains(kept, d.ID), "%s was changed by nothing but the imports", d.ID)
					case models.KeptClosed:
						require.True(t, closed && policy == models.PolicyFail, d.ID)
						if beside {
							attempted++
						}
					default:
						t.Fatalf("%s: %s", d.ID, d.Code)
					}
					kept = append(kept, d.ID)
				}
				if o.After = u.Next; o.After == "" {
					break
				}
			}
		}
		close(stop)
		wg.Wait()
		b.await(of, kept...)

		after := b.books(of)
		for _, all := range []map[string]book{before, after} {
			for _, id := range kept {
				delete(all, id)
			}
		}
		require.Equal(t, before, after)
		require.Zero(t, fixture.Count(t, b.Pool, `
SELECT count(*) FROM daybook.accounting_work_queue q
 WHERE q.org_id = $1 AND NOT EXISTS (SELECT FROM daybook.documents d WHERE d.org_id = $1 AND d.id = q.document_id)`, of), "a job without a document")
		report, err := audit.Run(t.Context(), b.Pool, audit.Options{OrgID: of})
		require.NoError(t, err)
		for _, c := range report.Checks {
			require.Empty(t, c.Findings, c.Kind)
		}
		for _, id := range imports {
			u := b.undo(id, books.UndoOptions{})
			require.LessOrEqual(t, u.Removed+u.Reversed+u.Restored, attempted, "a second undo changes nothing else")
			require.NotNil(t, u.Import.UndoEndedAt)
			require.EqualValues(t, len(u.Kept), u.Import.Kept)
		}
	})
}

// workBeside has another worker post, until stop is closed; false: there is none.
func (b *bundle) workBeside(beside bool) (stop chan struct{}, wg *sync.WaitGroup) {
	stop, wg = make(chan struct{}), &sync.WaitGroup{}
	if !beside {
		return stop, wg
	}
	e := engine.New(store.New(b.Pool), ledger.New(nil), engine.Options{ChunkSize: 2, Log: slog.New(slog.DiscardHandler)})
	b.turns++
	run := b.turns
	wg.Go(func() {
		defer e.Close()
		var left []string
		for turn := 1; ; turn++ {
			select {
			case <-stop:
				return
			default:
			}
			id := store.Turn{ID: fmt.Sprintf("beside%d/0/%d", run, turn), Worker: "beside", WorkflowRunID: "run"}
			_, err := e.Lease(b.t.Context(), id, 3, nil)
			if err == nil {
				var report engine.Report
				report, err = e.Process(b.t.Context(), engine.TurnRequest{Turn: id, Batch: 3, LeftBehind: left})
				left = report.LeftBehind
			}
			if err != nil {
				b.t.Errorf("the worker beside: %v", err)
				return
			}
		}
	})
	return stop, wg
}

// What an attempt is working is deleted in a new version, so that nothing stays posted however the
// attempt ends.
func TestUndoOfWhatIsBeingWorked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.imported(org, fixture.Invoice(org, "a", 1000), fixture.Invoice(org, "b", 1000))
	turn := store.Turn{ID: "run/0/1", Worker: "test", WorkflowRunID: "run"}
	leased, err := b.engine.Lease(t.Context(), turn, 1, nil)
	require.NoError(t, err)
	require.Equal(t, 1, leased)
	u := b.undo(id, books.UndoOptions{})
	assert.Equal(t, [2]int64{1, 1}, [2]int64{u.Removed, u.Reversed})
	_, err = b.engine.Process(t.Context(), engine.TurnRequest{Turn: turn, Batch: 50, Length: time.Minute})
	require.NoError(t, err)
	b.await(org)
	assert.Zero(t, fixture.Balance(t, b.Pool, org, "1200", "EUR"))
	assert.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.documents WHERE deleted_at IS NOT NULL`))
	assert.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'cancelled'`))
}

// What was undone is new when it is imported again; what a person has deleted stays deleted.
func TestImportAgainAfterAnUndo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	docs := func() []*models.Document {
		return []*models.Document{fixture.Invoice(org, "by hand", 500), fixture.Invoice(org, "posted", 1000)}
	}
	id := b.imported(org, docs()...)
	b.work()
	b.tx(func(ctx context.Context, tx pgx.Tx) {
		require.NoError(t, second(store.MarkDocumentDeleted(ctx, tx, org, "by hand")))
	})
	b.work()
	u := b.undo(id, books.UndoOptions{})
	assert.Equal(t, []models.UndoneDocument{{ID: "by hand", Result: models.UndoKept, Code: models.KeptDeleted}}, u.Kept)

	again := b.newImport(org)
	puts, err := b.put(t.Context(), again, docs()...)
	require.NoError(t, err)
	assert.Equal(t, ledgerdb.PutUnchanged, puts[0].Result)
	assert.Equal(t, ledgerdb.PutInserted, puts[1].Result)
	b.await(org)
	assert.EqualValues(t, 1190, fixture.Balance(t, b.Pool, org, "1200", "EUR"))

	u = b.undo(again, books.UndoOptions{})
	assert.EqualValues(t, 1, u.Reversed)
	assert.Empty(t, u.Kept)
	b.await(org)
	assert.Zero(t, fixture.Balance(t, b.Pool, org, "1200", "EUR"))
}

// What is changed by hand between two parts of an import is there again when the import is undone.
func TestUndoKeepsWhatWasCorrectedBetweenTwoParts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "before", 100))
	part := func(amount int64) []*models.Document {
		return []*models.Document{
			fixture.Invoice(org, "before", amount), fixture.Invoice(org, "new", amount), fixture.Invoice(org, "untouched", amount),
		}
	}
	id := b.imported(org, part(200)...)
	_, err := b.Pool.Exec(t.Context(), `
UPDATE daybook.documents SET value_date = '2030-01-01' WHERE id <> 'untouched';
SELECT daybook.mark_document_ready(org_id, id) FROM daybook.documents WHERE id <> 'untouched'`)
	require.NoError(t, err)
	corrected := b.books(org)
	require.NoError(t, second(b.put(t.Context(), id, part(300)...)))
	require.NoError(t, second(b.put(t.Context(), id, part(400)...)))
	u := b.undo(id, books.UndoOptions{})
	assert.Equal(t, [2]int64{1, 2}, [2]int64{u.Removed, u.Restored})
	assert.Empty(t, u.Kept)
	delete(corrected, "untouched")
	assert.Equal(t, corrected, b.books(org))
}

// An import that is undone while it runs writes nothing more.
func TestUndoEndsTheImport(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.imported(org, fixture.Invoice(org, "a", 1000))
	b.undo(id, books.UndoOptions{})
	_, err := b.put(t.Context(), id, fixture.Invoice(org, "b", 1000))
	require.ErrorIs(t, err, ledgerdb.ErrImportUndone)
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.documents`))
}

func TestImportsOfAnOrganization(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, other := b.newImport(org), b.newImport("other")
	list, err := books.Imports(t.Context(), b.Pool, books.ImportsOptions{})
	require.NoError(t, err)
	require.Len(t, list, 2)
	assert.Equal(t, other, list[0].ID)
	list, err = books.Imports(t.Context(), b.Pool, books.ImportsOptions{OrgID: org, Before: other})
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, first, list[0].ID)

	for _, o := range []books.UndoOptions{{OrgID: "other"}, {OrgID: "none"}} {
		_, err = books.UndoImport(t.Context(), b.Pool, first, o)
		require.ErrorIs(t, err, books.ErrImportNotFound)
	}
	_, err = books.UndoImport(t.Context(), b.Pool, first, books.UndoOptions{Limit: -1})
	require.ErrorIs(t, err, books.ErrInvalid)
	// Ids have 64 bits, in each statement that has one.
	_, err = books.UndoImport(t.Context(), b.Pool, math.MaxInt64, books.UndoOptions{})
	require.ErrorIs(t, err, books.ErrImportNotFound)
	list, err = books.Imports(t.Context(), b.Pool, books.ImportsOptions{Before: math.MaxInt64})
	require.NoError(t, err)
	assert.Len(t, list, 2)
	page, err := ledgerdb.FindDocuments(t.Context(), b.Pool, ledgerdb.DocumentQuery{OrgID: org, ImportID: math.MaxInt64})
	require.NoError(t, err)
	assert.Empty(t, page.Documents)
	_, err = b.Pool.Exec(t.Context(), `SELECT * FROM daybook.undo_import(999)`)
	require.Equal(t, "DB015", store.SQLState(err))
}
