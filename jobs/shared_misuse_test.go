package jobs_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
)

// TestSharedHandleIsReleased: a goroutine that goes on after its function cannot write into a neighbour.
func TestSharedHandleIsReleased(t *testing.T) {
	t.Parallel()
	b := setupSharing(t)
	var kept, nested pgx.Tx
	var refused []error
	seen := make(chan struct{})
	b.share(10, jobs.Policy{MaxAttempts: 1}, func(ctx context.Context, s sharer) (err error) {
		switch {
		case kept == nil:
			kept = s.tx
			nested, err = s.tx.Begin(ctx)
			return err
		case refused == nil:
			defer close(seen)
			for _, tx := range []pgx.Tx{kept, nested} {
				_, err := tx.Begin(ctx)
				refused = append(refused, err, sql(ctx, tx, `INSERT INTO greeted VALUES ('leaked')`))
				rows, err := tx.Query(ctx, `INSERT INTO greeted VALUES ('leaked') RETURNING 1`)
				rows.Close()
				refused = append(refused, err, tx.QueryRow(ctx, `SELECT 1`).Scan(new(int)))
				_, err = tx.Prepare(ctx, "leaked", `SELECT 1`)
				refused = append(refused, err)
				_, err = tx.CopyFrom(ctx, pgx.Identifier{"greeted"}, []string{"name"}, pgx.CopyFromRows([][]any{{"leaked"}}))
				batch := &pgx.Batch{}
				batch.Queue(`INSERT INTO greeted VALUES ('leaked')`)
				refused = append(refused, err, tx.SendBatch(ctx, batch).Close())
				large := tx.LargeObjects()
				_, err = large.Create(ctx, 0)
				assert.Error(t, err)
				assert.Nil(t, tx.Conn())
			}
			refused = append(refused, nested.Commit(ctx), nested.Rollback(ctx))
		}
		return nil
	})
	b.neighbours(10)
	assert.Equal(t, 10, b.work().Completed)
	receive(t, seen)
	for _, err := range refused {
		assert.ErrorContains(t, err, "the transaction is over for this job")
	}
	b.assertNeighbours(10)
	assert.Zero(t, b.count(`SELECT count(*) FROM greeted WHERE name = 'leaked'`))
	assert.Less(t, b.transactions(), 10)
}

// commits is an argument that writes the text of its statement.
type commits struct{}

func (commits) RewriteQuery(context.Context, *pgx.Conn, string, []any) (string, []any, error) {
	return "COMMIT", nil, nil
}

// TestSharedFunctionTakesItsTypeOut: what would reach its neighbours is not done in a shared
// transaction. The function runs again alone, and so do its type's from then on.
func TestSharedFunctionTakesItsTypeOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   func(ctx context.Context, b *bundle, s sharer) error
		does string
	}{
		"Conn": {func(ctx context.Context, _ *bundle, s sharer) error {
			_, err := s.tx.Conn().Exec(ctx, `SELECT 1`)
			return err
		}, "Conn()"},
		"Conn that ends the transaction": {func(ctx context.Context, _ *bundle, s sharer) error {
			if s.try > 1 {
				return nil
			}
			_, err := s.tx.Conn().Exec(ctx, `COMMIT`)
			return err
		}, "Conn()"},
		"large objects": {func(ctx context.Context, _ *bundle, s sharer) error {
			large := s.tx.LargeObjects()
			_, err := large.Create(ctx, 0)
			return err
		}, "LargeObjects()"},
		"SET LOCAL": {func(ctx context.Context, _ *bundle, s sharer) error {
			return sql(ctx, s.tx, `SET LOCAL work_mem = '5MB'`)
		}, "SET"},
		"LISTEN": {func(ctx context.Context, _ *bundle, s sharer) error { return sql(ctx, s.tx, `LISTEN greetings`) }, "LISTEN"},
		"a setting": {func(ctx context.Context, _ *bundle, s sharer) error {
			return sql(ctx, s.tx, `SELECT set_config('app.tenant', $1, true)`, s.Payload.Name)
		}, "set_config"},
		"a setting, in capital letters": {func(ctx context.Context, _ *bundle, s sharer) error {
			return sql(ctx, s.tx, `SELECT SET_CONFIG('app.tenant', $1, true)`, s.Payload.Name)
		}, "set_config"},
		"a savepoint of Daybook's name": {func(ctx context.Context, _ *bundle, s sharer) error {
			return sql(ctx, s.tx, `SAVEPOINT daybook_job`)
		}, "SAVEPOINT"},
		"a text that an argument writes": {func(ctx context.Context, _ *bundle, s sharer) error {
			if s.try > 1 {
				return nil
			}
			return sql(ctx, s.tx, `SELECT 1`, commits{})
		}, "QUERYREWRITER"},
		"a setting by a function": {func(ctx context.Context, _ *bundle, s sharer) error {
			return sql(ctx, s.tx, `SELECT be($1)`, "UTC")
		}, "setting"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupSharing(t)
			b.exec(`CREATE FUNCTION be(zone text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('TimeZone', zone, true); END $$`)
			b.share(10, jobs.Policy{MaxAttempts: 1}, func(ctx context.Context, s sharer) error {
				if !s.special() {
					return nil
				}
				return c.do(ctx, b, s)
			})
			id := b.neighbours(10)
			b.work()
			b.assertDoneAlone(id)
			b.assertUnshared(c.does)
			before := b.transactions()
			b.enqueueMany(10, "more ")
			b.work()
			assert.Equal(t, before+10, b.transactions())
		})
	}
}

// TestSharedFunctionThatEndsTheTransaction: as in a transaction of its own, the job is a dead letter
// or tried again. The neighbours are done once.
func TestSharedFunctionThatEndsTheTransaction(t *testing.T) {
	t.Parallel()
	for _, stmt := range []string{
		"COMMIT", "/* now /* really */ */ -- or not\n commit", "END", "ABORT", "ROLLBACK", "SELECT 1; COMMIT",
		"PREPARE TRANSACTION 'x'", "ROLLBACK WORK", "COMMIT; BEGIN",
		"SELECT '; --'; COMMIT", "SELECT ';/*'; COMMIT", "SELECT 1; -- it ends here\rCOMMIT",
		"RELEASE SAVEPOINT daybook_job", "ROLLBACK TO SAVEPOINT daybook_shared",
	} {
		t.Run(stmt, func(t *testing.T) {
			t.Parallel()
			b := setupSharing(t)
			b.share(10, jobs.Policy{MaxAttempts: 1}, func(ctx context.Context, s sharer) error {
				if !s.special() {
					return nil
				}
				return sql(ctx, s.tx, stmt)
			})
			id := b.neighbours(10)
			b.work()
			b.assertNeighbours(10)
			b.assertUnshared("does")
			if stmt != "COMMIT; BEGIN" { // which is not noticed in a transaction of its own
				assert.Equal(t, models.JobFailed, b.row(id).State)
			}
		})
	}
}

// TestSharedFunctionsInEachOthersWay: what can be done once in a transaction, or not behind what a
// neighbour has done, is done in a transaction of its own, uncharged.
func TestSharedFunctionsInEachOthersWay(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(ctx context.Context, s sharer) error{
		"a cursor of one name": func(ctx context.Context, s sharer) error {
			return sql(ctx, s.tx, `DECLARE each CURSOR FOR SELECT 1`)
		},
		"a table with deferred checks": func(ctx context.Context, s sharer) error {
			if s.special() {
				return sql(ctx, s.tx, `ALTER TABLE fond ADD COLUMN since date`)
			}
			return sql(ctx, s.tx, `INSERT INTO fond VALUES ('friend')`)
		},
		"a snapshot": func(ctx context.Context, s sharer) error { return sql(ctx, s.tx, `SELECT pg_export_snapshot()`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupSharing(t)
			b.exec(`CREATE TABLE people (name text PRIMARY KEY)`)
			b.exec(`INSERT INTO people VALUES ('friend')`)
			b.exec(`CREATE TABLE fond (name text REFERENCES people DEFERRABLE INITIALLY DEFERRED)`)
			b.share(10, jobs.Policy{MaxAttempts: 1}, do)
			id := b.neighbours(10)
			assert.Equal(t, 10, b.work().Completed)
			b.assertNeighbours(10)
			assert.Equal(t, "completed", b.outcomes(id))
		})
	}
}

// TestSharedFaultThatIsDropped: a function that goes on without a statement which alone may succeed
// runs again alone.
func TestSharedFaultThatIsDropped(t *testing.T) {
	t.Parallel()
	b := setupSharing(t)
	var tries atomic.Int32
	b.share(10, jobs.Policy{MaxAttempts: 1}, func(ctx context.Context, s sharer) error {
		if s.special() && tries.Add(1) == 1 {
			_ = pgx.BeginFunc(ctx, s.tx, func(tx pgx.Tx) error { return raise(ctx, tx, "55P03") })
		}
		return nil
	})
	id := b.neighbours(10)
	assert.Equal(t, 10, b.work().Completed)
	b.assertNeighbours(10)
	assert.Equal(t, "completed", b.outcomes(id))
	assert.EqualValues(t, 2, tries.Load())
}
