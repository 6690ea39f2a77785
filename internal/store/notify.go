package store

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// EventsChannel is the channel on which workers tell of events.
const EventsChannel = "daybook_events"

// MaxNotification is how many bytes a notification may have.
const MaxNotification = 7999

// NotifyEvents sends notifications to those that listen to events, in one statement.
func NotifyEvents(ctx context.Context, pool *pgxpool.Pool, payloads []string) error {
	const stmt = `SELECT pg_notify($1, p) FROM unnest($2::text[]) AS p`
	ctx, cancel := context.WithTimeout(ctx, statementLimit)
	defer cancel()
	_, err := pool.Exec(ctx, stmt, EventsChannel, payloads)
	return Wrap("tell of events", err)
}
