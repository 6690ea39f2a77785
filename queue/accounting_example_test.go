package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// invoices is a database with the invoice inv-1 of organization acme, which is not ready.
func invoices() *pgtest.Example {
	e := pgtest.NewExample()
	fixture.Organization(e, e.Pool, "acme")
	commit(e, func(ctx context.Context, tx pgx.Tx) error {
		_, err := ledgerdb.PutDocument(ctx, tx, fixture.Invoice("acme", "inv-1", 10000))
		return err
	})
	return e
}

// commit calls f in a transaction that is committed.
func commit(e *pgtest.Example, f func(ctx context.Context, tx pgx.Tx) error) {
	if err := pgx.BeginFunc(e.Context(), e.Pool, func(tx pgx.Tx) error { return f(e.Context(), tx) }); err != nil {
		panic(err)
	}
}

// The document and the job that posts it are committed together.
func ExampleMarkDocumentReady() {
	e := invoices()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool

	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		// … write the document …
		m, err := queue.MarkDocumentReady(ctx, tx, queue.Document{OrgID: "acme", ID: "inv-1"})
		fmt.Println(m.Result, m.Version)
		return err
	})
	fmt.Println(err)
	// Output:
	// enqueued 1
	// <nil>
}

// A document that is taken back is not posted; what is posted of it is reversed.
func ExampleMarkDocumentNotReady() {
	e := invoices()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool

	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		m, err := queue.MarkDocumentNotReady(ctx, tx, queue.Document{OrgID: "acme", ID: "inv-1"})
		fmt.Println(m.Version)
		return err
	})
	fmt.Println(err)
	// Output:
	// 1
	// <nil>
}

// A deletion is said; only then is what is posted of the document reversed for good.
func ExampleMarkDocumentDeleted() {
	e := invoices()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool

	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := queue.MarkDocumentDeleted(ctx, tx, queue.Document{OrgID: "acme", ID: "inv-1"}); err != nil {
			return err
		}
		_, err := queue.MarkDocumentReady(ctx, tx, queue.Document{OrgID: "acme", ID: "inv-1"})
		return err
	})
	fmt.Println(errors.Is(err, queue.ErrDocumentDeleted))
	// Output: true
}

// Domain code that keeps its documents in GORM passes the transaction that it writes them in.
func ExampleGORM() {
	e := invoices()
	defer e.Close()
	ctx := e.Context()
	conn := stdlib.OpenDBFromPool(e.Pool)
	defer func() { _ = conn.Close() }()
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: conn}), &gorm.Config{})
	if err != nil {
		panic(err)
	}

	err = db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		var document models.Document
		if err := tx.Where("org_id = ? AND id = ?", "acme", "inv-1").Take(&document).Error; err != nil {
			return err
		}
		// … change and save it …
		m, err := queue.MarkDocumentReady(ctx, queue.GORM(tx), queue.Document{OrgID: document.OrgID, ID: document.ID})
		fmt.Println(m.Result)
		return err
	})
	fmt.Println(err)
	// Output:
	// enqueued
	// <nil>
}

// A GORM handle that is in no transaction is refused: the job would be committed without the
// document.
func ExampleGORM_withoutTransaction() {
	db := &gorm.DB{Config: &gorm.Config{}, Statement: &gorm.Statement{}}
	_, err := queue.EnqueueAccountingJob(context.Background(), queue.GORM(db),
		queue.AccountingJob{OrgID: "org_123", DocumentID: "doc_456", Version: 1})
	fmt.Println(errors.Is(err, queue.ErrNoTransaction))
	// Output: true
}

// Code that uses database/sql passes its transaction.
func ExampleSQL() {
	e := invoices()
	defer e.Close()
	ctx := e.Context()
	db := stdlib.OpenDBFromPool(e.Pool)
	defer func() { _ = db.Close() }()

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		panic(err)
	}
	defer func() { _ = tx.Rollback() }()
	m, err := queue.MarkDocumentReady(ctx, queue.SQL(tx), queue.Document{OrgID: "acme", ID: "inv-1"})
	fmt.Println(m.Result, err, tx.Commit())
	// Output: enqueued <nil> <nil>
}

// An application that keeps documents in tables of its own counts their versions itself. There is
// one job a document: a later version takes the place of an earlier one, and never the other way
// round.
func ExampleEnqueueAccountingJob() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool

	for _, version := range []int64{1, 3, 2} {
		r, err := queue.EnqueueAccountingJob(ctx, pool, queue.AccountingJob{
			OrgID: "acme", DocumentID: "order-7", Version: version,
			ReadyAt:  time.Now().Add(time.Hour),
			Priority: queue.Low,
		})
		fmt.Println(version, r.Result, err)
	}
	// Output:
	// 1 enqueued <nil>
	// 3 coalesced <nil>
	// 2 unchanged <nil>
}

// Many documents are enqueued by one statement.
func ExampleEnqueueAccountingJobs() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool

	jobs := make([]queue.AccountingJob, 1000)
	for i := range jobs {
		jobs[i] = queue.AccountingJob{OrgID: "acme", DocumentID: fmt.Sprintf("order-%d", i), Version: 1}
	}
	done, err := queue.EnqueueAccountingJobs(ctx, pool, jobs)
	fmt.Println(len(done), done[0].Result, err)
	// Output: 1000 enqueued <nil>
}

// A request that is wrong is refused before the database is asked.
func ExampleEnqueueAccountingJobs_invalid() {
	_, err := queue.EnqueueAccountingJobs(context.Background(), nil, []queue.AccountingJob{
		{OrgID: "org_123", DocumentID: "doc_1", Version: 1},
		{OrgID: "org_123", DocumentID: strings.Repeat("x", queue.MaxIDBytes+1), Version: 1},
	})
	fmt.Println(err)
	// Output: job 1: organization id and document id must not be longer than 255 bytes
}

func ExampleCancelAccountingJob() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool
	document := queue.Document{OrgID: "acme", ID: "order-7"}

	_, err := queue.CancelAccountingJob(ctx, pool, document)
	fmt.Println(errors.Is(err, queue.ErrJobNotFound))
	if _, err := queue.EnqueueAccountingJob(ctx, pool,
		queue.AccountingJob{OrgID: "acme", DocumentID: "order-7", Version: 1}); err != nil {
		panic(err)
	}
	r, err := queue.CancelAccountingJob(ctx, pool, document)
	fmt.Println(r.Result, err)
	// Output:
	// true
	// cancelled <nil>
}

// One more attempt, for instance when what failed is mended.
func ExampleMarkAccountingJobPending() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool
	if _, err := queue.EnqueueAccountingJob(ctx, pool,
		queue.AccountingJob{OrgID: "acme", DocumentID: "order-7", Version: 1}); err != nil {
		panic(err)
	}

	r, err := queue.MarkAccountingJobPending(ctx, pool,
		queue.PendingAccountingJob{OrgID: "acme", DocumentID: "order-7", Version: 1, Delay: time.Minute})
	fmt.Println(r.JobID != "", err)
	// Output: true <nil>
}

// What became of a document is read from the database, in the same transaction or any other.
func ExampleReadAccountingJobStatus() {
	e := invoices()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool
	document := queue.Document{OrgID: "acme", ID: "inv-1"}
	commit(e, func(ctx context.Context, tx pgx.Tx) error {
		_, err := queue.MarkDocumentReady(ctx, tx, document)
		return err
	})

	before, err := queue.ReadAccountingJobStatus(ctx, pool, document)
	if err != nil {
		panic(err)
	}
	queuetest.DrainAccounting(e, pool, queuetest.AccountingOptions{}) // a worker does the same
	after, err := queue.ReadAccountingJobStatus(ctx, pool, document)
	fmt.Println(before.State, before.Posted())
	fmt.Println(after.State, after.Posted(), err)
	// Output:
	// pending false
	// completed true <nil>
}

// A request that must answer with the outcome waits for it, after its commit and for a bounded
// time.
func ExampleWaitAccountingJob() {
	e := invoices()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool
	document := queue.Document{OrgID: "acme", ID: "inv-1"}
	var marked queue.Marked
	commit(e, func(ctx context.Context, tx pgx.Tx) (err error) {
		marked, err = queue.MarkDocumentReady(ctx, tx, document)
		return err
	})
	queuetest.DrainAccounting(e, pool, queuetest.AccountingOptions{}) // a worker does the same

	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	status, err := queue.WaitAccountingJob(ctx, pool, document, queue.WaitAccountingJobOptions{Version: marked.Version})
	fmt.Println(status.State, status.Posted(), err)
	// Output: completed true <nil>
}

// A deliberate repost posts anew what is posted, under unchanged versions, for instance after a
// change of the rules.
func ExampleRepostAccountingJob() {
	e := invoices()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool
	document := queue.Document{OrgID: "acme", ID: "inv-1"}
	commit(e, func(ctx context.Context, tx pgx.Tx) error {
		_, err := queue.MarkDocumentReady(ctx, tx, document)
		return err
	})
	queuetest.DrainAccounting(e, pool, queuetest.AccountingOptions{}) // a worker does the same

	r, err := queue.RepostAccountingJob(ctx, pool, document)
	fmt.Println(r.Result, err)
	// Output: requeued <nil>
}

// An organization whose documents are in tables of the application's own is put on record with
// their source.
func ExampleSetSource() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool

	changed, err := queue.SetSource(ctx, pool, "acme", "orders")
	fmt.Println(changed, err)
	changed, err = queue.SetSource(ctx, pool, "acme", "orders")
	fmt.Println(changed, err)
	// Output:
	// true <nil>
	// false <nil>
}

// An organization whose postings a hook is to be told of is put on record with the hook's name.
func ExampleSetHooks() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool

	changed, err := queue.SetHooks(ctx, pool, "acme", []string{"notify"})
	fmt.Println(changed, err)
	// Output: true <nil>
}
