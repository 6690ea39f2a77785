package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"

	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// The document and the job that posts it are committed together.
func ExampleMarkDocumentReady() {
	finish := func(ctx context.Context, pool *pgxpool.Pool) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			// … write the document …
			_, err := queue.MarkDocumentReady(ctx, tx, queue.Document{OrgID: "org_123", ID: "doc_456"})
			return err
		})
	}
	_ = finish
}

// Domain code that keeps its documents in GORM passes the transaction that it writes them in.
func ExampleGORM() {
	finish := func(ctx context.Context, db *gorm.DB, document *models.Document) error {
		return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			if err := tx.Save(document).Error; err != nil {
				return err
			}
			_, err := queue.MarkDocumentReady(ctx, queue.GORM(tx), queue.Document{OrgID: document.OrgID, ID: document.ID})
			return err
		})
	}
	_ = finish
}

// An application that keeps documents in tables of its own counts their versions itself.
func ExampleEnqueueAccountingJob() {
	enqueue := func(ctx context.Context, tx pgx.Tx, version int64) error {
		r, err := queue.EnqueueAccountingJob(ctx, tx, queue.AccountingJob{
			OrgID: "org_123", DocumentID: "doc_456", Version: version,
			ReadyAt:  time.Now().Add(time.Hour),
			Priority: queue.Low,
		})
		if err != nil {
			return err
		}
		if r.Result == queue.Unchanged {
			fmt.Println("the same version or a newer one was asked for already")
		}
		return nil
	}
	_ = enqueue
}

// A GORM handle that is in no transaction is refused: the job would be committed without the document.
func ExampleGORM_withoutTransaction() {
	db := &gorm.DB{Config: &gorm.Config{}, Statement: &gorm.Statement{}}
	_, err := queue.EnqueueAccountingJob(context.Background(), queue.GORM(db), queue.AccountingJob{OrgID: "org_123", DocumentID: "doc_456", Version: 1})
	fmt.Println(errors.Is(err, queue.ErrNoTransaction))
	// Output: true
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
