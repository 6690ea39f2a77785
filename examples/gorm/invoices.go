// Package gorm is an example: invoices in a table of the application's own, written by GORM, with
// whole numbers as keys. README.md says what it shows.
package gorm

import (
	"context"
	"errors"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/daybook-dev/daybook/queue"
)

// Invoice is a row of invoices. Its document is invoice:ID.
type Invoice struct {
	ID       int64  `gorm:"primaryKey"`
	OrgID    string `gorm:"not null"`
	Number   string
	Customer string
	IssuedOn time.Time `gorm:"type:date;not null"`
	// Version grows with each change that the ledger must know.
	Version int64 `gorm:"not null"`
	// ReadyAt is nil for a draft, also for an invoice that became one again.
	ReadyAt *time.Time
	// PostedAt is the worker's mark.
	PostedAt  *time.Time
	DeletedAt gorm.DeletedAt
	Lines     []Line `gorm:"constraint:OnDelete:CASCADE"`
}

// Line is a row of lines.
type Line struct {
	ID        int64 `gorm:"primaryKey"`
	InvoiceID int64 `gorm:"index;not null"`
	Text      string
	NetCents  int64 `gorm:"not null"`
}

// documentID is the one place that knows how an invoice's document is called.
func documentID(invoice int64) string { return queue.DocumentID("invoice", invoice) }

// Create writes an invoice, and has it posted unless it is a draft. All of it is committed, or
// nothing.
func Create(ctx context.Context, db *gorm.DB, i *Invoice) error {
	return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		i.Version = 1
		if err := tx.Create(i).Error; err != nil || i.ReadyAt == nil {
			return err
		}
		return enqueue(ctx, tx, i)
	})
}

// Change changes an invoice and its lines, and has it posted anew, or reversed if ReadyAt is nil
// now. The row is locked first: the worker reads the document before the change or after it.
func Change(ctx context.Context, db *gorm.DB, id int64, change func(*Invoice)) error {
	return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		var i Invoice
		if err := tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).First(&i, id).Error; err != nil {
			return err
		}
		if err := tx.Order("id").Find(&i.Lines, "invoice_id = ?", id).Error; err != nil {
			return err
		}
		wasReady := i.ReadyAt != nil
		change(&i)
		i.Version++
		if err := tx.Session(&gorm.Session{FullSaveAssociations: true}).Save(&i).Error; err != nil {
			return err
		}
		if i.ReadyAt == nil && !wasReady {
			return nil // a draft that stays one
		}
		return enqueue(ctx, tx, &i)
	})
}

// Delete deletes an invoice as GORM does, by DeletedAt: what is posted of it is reversed.
func Delete(ctx context.Context, db *gorm.DB, id int64) error {
	return Change(ctx, db, id, func(i *Invoice) { i.DeletedAt = gorm.DeletedAt{Time: time.Now(), Valid: true} })
}

// Remove removes the row. What is posted of the invoice is reversed, by the deletion that is kept
// beside its job. An invoice that was never ready has no job.
func Remove(ctx context.Context, db *gorm.DB, org string, id int64) error {
	return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := tx.Unscoped().Delete(&Invoice{}, "org_id = ? AND id = ?", org, id).Error; err != nil {
			return err
		}
		document := queue.Document{OrgID: org, ID: documentID(id)}
		// MarkDocumentDeleted would refuse a document without a job, and PostgreSQL the rest of the
		// transaction.
		if _, err := queue.ReadAccountingJobStatus(ctx, queue.GORM(tx), document); errors.Is(err, queue.ErrJobNotFound) {
			return nil
		} else if err != nil {
			return err
		}
		_, err := queue.MarkDocumentDeleted(ctx, queue.GORM(tx), document)
		return err
	})
}

func enqueue(ctx context.Context, tx *gorm.DB, i *Invoice) error {
	_, err := queue.EnqueueAccountingJob(ctx, queue.GORM(tx),
		queue.AccountingJob{OrgID: i.OrgID, DocumentID: documentID(i.ID), Version: i.Version})
	return err
}
