package listing

import (
	"context"

	"github.com/daybook-dev/daybook/internal/store"
)

// NotificationStats counts the background jobs that notify people: those of the types email, sms
// and notification.
type NotificationStats struct {
	// Pending ones wait, also to be tried again; Processing ones are being worked; Failed ones are
	// dead letters.
	Pending, Processing, Completed, Failed int64
	// TodaysSent are those that were completed since midnight in the time zone that was asked for.
	TodaysSent int64
}

// NotificationStats counts the notifications of an organization, or of all when org is empty, by
// what daybook.notification_stats counts. A time zone that there is not is ErrInvalid.
func (l *Listing) NotificationStats(ctx context.Context, org, timeZone string) (NotificationStats, error) {
	const stmt = `
SELECT s.pending, s.processing, s.completed, s.failed, s.todays_sent
  FROM daybook.notification_stats(nullif(?, ''), ?) s`
	var s NotificationStats
	err := l.db.WithContext(ctx).Raw(stmt, org, timeZone).Scan(&s).Error
	return s, store.Wrap("count notifications", err)
}
