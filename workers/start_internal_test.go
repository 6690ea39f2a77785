package workers

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// TestStartBesideAnOutage: a worker that starts puts itself on record before its first turn. An
// outage just then is waited for, as any other.
func TestStartBesideAnOutage(t *testing.T) {
	t.Parallel()
	errAnswers := errors.New("the database answered again")
	calls := 0
	w := &Worker{
		log: slog.New(slog.DiscardHandler), verify: func(context.Context) error { return nil },
		tend: func(context.Context) error {
			if calls++; calls == 1 {
				return &pgconn.PgError{
					Severity: "FATAL", Code: "57P01",
					Message: "terminating connection due to administrator command",
				}
			}
			return errAnswers
		},
	}
	require.ErrorIs(t, w.awaitDatabase(t.Context()), errAnswers)
}
