package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
)

// pending inserts n jobs of an organization, due for some seconds, oldest first.
func (b *bundle) pending(org string, priority, n int) {
	b.t.Helper()
	b.exec(`
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, priority, ready_at, first_ready_at)
SELECT $1, $1 || '_' || $2::int || '_' || lpad(i::text, 8, '0'), 1, $2::int, at, at
  FROM generate_series(1, $3::int) i, LATERAL (SELECT clock_timestamp() - interval '10 s' + i * interval '1 us' AS at) t`, org, priority, n)
}

// byOrg counts jobs by organization and priority.
func byOrg(jobs []store.Job) map[string]int {
	counts := map[string]int{}
	for _, j := range jobs {
		counts[strings.TrimSuffix(j.DocumentID, j.DocumentID[strings.LastIndex(j.DocumentID, "_"):])]++
	}
	return counts
}

func (b *bundle) change(f func(tx pgx.Tx) error) {
	b.t.Helper()
	require.NoError(b.t, pgx.BeginFunc(b.t.Context(), b.Pool, f))
}

// TestCursorsSpareTheDead holds an old snapshot, so that no dead row can be removed, and counts
// what a lease reads late in a long queue. Without cursors it would read all that was leased
// before.
func TestCursorsSpareTheDead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	b.exec(`ALTER TABLE daybook.accounting_work_queue SET (autovacuum_enabled = false)`)
	b.pending("a", 2, 6000)
	old, err := b.Pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	defer func() { _ = old.Rollback(context.WithoutCancel(ctx)) }()
	_, err = old.Exec(ctx, `SELECT count(*) FROM daybook.organizations`)
	require.NoError(t, err)

	turn := b.turn("run/0/1")
	for range 50 {
		require.Len(t, b.lease(turn, 100), 100)
	}
	next := b.store.Partitions().Divide(100, pgtest.Unbounded())
	require.Len(t, next, 1)
	read := func(from string, args ...any) int64 {
		stmt := `EXPLAIN (ANALYZE, BUFFERS, FORMAT TEXT) SELECT id FROM daybook.accounting_work_queue
 WHERE state = 'pending' AND priority = 2 AND org_id = 'a' AND (ready_at, id) >= ` + from +
			` ORDER BY ready_at, id LIMIT 100`
		rows, err := b.Pool.Query(ctx, stmt, args...)
		require.NoError(t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		text := strings.Join(lines, "\n")
		var hit int64
		_, figure, _ := strings.Cut(text, "shared hit=")
		_, err = fmt.Sscanf(figure, "%d", &hit)
		require.NoError(t, err, text)
		return hit
	}
	from := read(`($1::timestamptz, $2::text)`, next[0].At, next[0].ID)
	all := read(`('-infinity'::timestamptz, '')`)
	assert.Less(t, from*5, all, "pages read from the cursor on, and from the beginning")
}

// passing is room for one job at a time, which is free again at once.
type passing struct{ leases int }

// Handles implements store.Room.
func (*passing) Handles(string, int) bool { return true }

// Free implements store.Room.
func (*passing) Free(string) bool { return true }

// Reserve implements store.Room.
func (p *passing) Reserve(string, int) int {
	p.leases++
	return 1
}

// Return implements store.Room.
func (*passing) Return(string, int) {}

// Everywhere implements store.Room.
func (*passing) Everywhere(string) int { return 0 }

// Full implements store.Room.
func (*passing) Full(string) {}

// Open implements store.Room.
func (*passing) Open(string) bool { return true }

// QueueFull implements store.Room.
func (*passing) QueueFull(string, time.Duration) {}

// TestLeaseTakesWhatThereIsRoomFor: room that becomes free while a lease is under way is left to
// the next one. Otherwise a lease is a statement for each handler that returns meanwhile.
func TestLeaseTakesWhatThereIsRoomFor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.pending("a", 2, 20)
	room := &passing{}
	leased, err := b.store.LeaseFor(t.Context(), b.turn("run/0/1"), 10, room)
	require.NoError(t, err)
	assert.Len(t, leased.Jobs, 1)
	assert.True(t, leased.Passed, "there is more than there was room for")
	assert.Equal(t, 1, room.leases)
}
