package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
)

// A lock on a whole table, for longer than a chunk may take, is charged to no document.
func TestTableLockIsNoAttempt(t *testing.T) {
	t.Parallel()
	for name, direct := range map[string]bool{"leased": false, "without a lease": true} {
		for _, table := range []string{"documents", "impacts"} {
			t.Run(name+", "+table, func(t *testing.T) {
				t.Parallel()
				b := setupWith(t, ledger.New(nil), engine.Options{Direct: direct, ChunkTimeout: 1500 * time.Millisecond})
				fixture.ManyReady(t, b.Pool, org, "doc-", 8)
				tx, err := b.Pool.Begin(t.Context())
				require.NoError(t, err)
				defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
				_, err = tx.Exec(t.Context(), `LOCK TABLE daybook.`+table+` IN ACCESS EXCLUSIVE MODE`)
				require.NoError(t, err)

				_, err = b.engine.Process(t.Context(),
					engine.TurnRequest{Turn: turn(1), Batch: 50, Length: 4 * time.Second, Linger: true})
				require.NoError(t, err)
				assert.Equal(t, 8, fixture.Count(t, b.Pool, `
SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'pending' AND run_count = 0 AND last_error IS NULL`),
					"nothing was charged")
				assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.attempts`))

				require.NoError(t, tx.Rollback(t.Context()))
				b.due()
				r, err := b.engine.Process(t.Context(), engine.TurnRequest{Turn: turn(2), Batch: 50, Length: 10 * time.Second})
				require.NoError(t, err)
				assert.Equal(t, 8, r.Completed)
				assert.Equal(t, 8, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.attempts WHERE attempt = 1`))
			})
		}
	}
}
