package main

import (
	"context"
	"encoding/json"
	"time"

	"gorm.io/gorm"

	"github.com/daybook-dev/daybook/handlers"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// order is a row of shop.orders. Its invoice in Daybook has the same id.
type order struct {
	ID       string `gorm:"primaryKey"`
	Customer string
	NetCents int64
	TaxCents int64
	PlacedAt time.Time
	BookedAt *time.Time
}

// TableName implements GORM's Tabler.
func (order) TableName() string { return "shop.orders" }

// place writes an order, its invoice, and what is to follow: the booking, a webhook and a receipt.
// All of it is committed, or nothing.
func (s *shop) place(ctx context.Context, o order) error {
	return s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error { return s.placeIn(ctx, tx, o) })
}

// placeIn is place in a transaction of the caller's.
func (s *shop) placeIn(ctx context.Context, tx *gorm.DB, o order) error {
	if err := tx.Create(&o).Error; err != nil {
		return err
	}
	if err := tx.Create(o.invoice()).Error; err != nil {
		return err
	}
	q := queue.GORM(tx)
	if _, err := queue.MarkDocumentReady(ctx, q, queue.Document{OrgID: org, ID: o.ID}); err != nil {
		return err
	}
	told, err := s.told("order.placed", o.ID)
	if err != nil {
		return err
	}
	links := []queue.Link{{Kind: "order", ID: o.ID}}
	_, err = queue.EnqueueJobs(ctx, q, []queue.NewJob{
		{
			OrgID: org, Payload: told,
			Options: queue.JobOptions{Queue: jobQueue, IdempotencyKey: "placed/" + o.ID, Links: links},
		},
		{
			OrgID: org, Payload: receipt{OrderID: o.ID},
			Options: queue.JobOptions{Queue: jobQueue, IdempotencyKey: "receipt/" + o.ID, Links: links},
		},
	})
	return err
}

// told is a webhook about an order.
func (s *shop) told(event, orderID string) (handlers.Webhook, error) {
	data, err := json.Marshal(map[string]string{"event": event, "order_id": orderID})
	return handlers.Webhook{URL: s.webhookURL, Data: data}, err
}

// invoice is what the ledger is to post of an order.
func (o order) invoice() *models.Document {
	return &models.Document{
		OrgID: org, ID: o.ID, Type: models.DocumentInvoice, Direction: models.DirectionOut, Currency: "EUR",
		IssueDate: models.NewDate(o.PlacedAt.Date()),
		Content: models.Content{
			Number: o.ID, Counterparty: o.Customer,
			Lines:   []models.Line{{Kind: "item", Net: o.NetCents, Rate: models.MustRate("19"), Category: "VAT"}},
			Taxes:   []models.Tax{{Category: "VAT", Rate: models.MustRate("19"), Base: o.NetCents, Amount: o.TaxCents}},
			Total:   o.NetCents + o.TaxCents,
			Payable: o.NetCents + o.TaxCents,
		},
	}
}
