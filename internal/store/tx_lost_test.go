package store_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
)

// TestLostAnswerToACommit cuts the line while COMMIT runs. The error says that the transaction may
// have been committed, which it was; one that a statement's failure has undone says nothing of the
// kind.
func TestLostAnswerToACommit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE TABLE public.effects AS SELECT 'before' AS name`)
	b.exec(`CREATE FUNCTION public.hang() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(7), 1 / (NEW.name <> 'refused')::integer; RETURN NULL; END $$`)
	b.exec(`CREATE CONSTRAINT TRIGGER hang AFTER INSERT ON public.effects DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.hang()`)
	line := b.Line(t)
	insert := func(stmt string) func(tx pgx.Tx) error {
		return func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), stmt)
			return err
		}
	}
	for name, f := range map[string]func(tx pgx.Tx) error{
		"a statement fails":           insert(`INSERT INTO public.nothing VALUES (1)`),
		"a failed one is passed over": func(tx pgx.Tx) error { _ = insert(`INSERT INTO public.nothing VALUES (1)`)(tx); return nil },
		"something else fails":        func(pgx.Tx) error { return io.EOF },
		"the commit refuses":          insert(`INSERT INTO public.effects VALUES ('refused')`),
	} {
		err := store.Begin(t.Context(), line.Pool, f)
		require.Error(t, err, name)
		assert.NotContains(t, err.Error(), "may have succeeded", name)
	}

	holder, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = holder.Exec(t.Context(), `SELECT pg_advisory_xact_lock(7)`)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		ended <- store.Begin(t.Context(), line.Pool, insert(`INSERT INTO public.effects VALUES ('kept')`))
	}()
	require.Eventually(t, func() bool { return waitsForLock7(t, b) }, time.Minute, 5*time.Millisecond)
	line.Cut()
	err = <-ended
	require.ErrorContains(t, err, "the commit was cut off, and may have succeeded")
	assert.True(t, store.IsTransient(err))
	require.NoError(t, holder.Rollback(t.Context()))
	require.Eventually(t, func() bool { return fixture.Count(t, b.Pool, `SELECT count(*) FROM public.effects`) == 2 },
		time.Minute, 5*time.Millisecond)
}

// TestCommitOutlastsItsCaller: a caller whose context ends during COMMIT learns that the
// transaction was committed. One whose context ended before it finds nothing committed.
func TestCommitOutlastsItsCaller(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE TABLE public.effects (name text)`)
	b.exec(`CREATE FUNCTION public.hang() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END $$`)
	b.exec(`CREATE CONSTRAINT TRIGGER hang AFTER INSERT ON public.effects DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.hang()`)
	holder, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = holder.Exec(t.Context(), `SELECT pg_advisory_xact_lock(7)`)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- store.Begin(ctx, b.Pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO public.effects VALUES ('kept')`)
			return err
		})
	}()
	require.Eventually(t, func() bool { return waitsForLock7(t, b) }, time.Minute, 5*time.Millisecond)
	cancel()
	require.NoError(t, holder.Rollback(t.Context()))
	require.NoError(t, <-ended)
	assert.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT count(*) FROM public.effects`))

	err = store.Begin(ctx, pool{b.Pool}, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO public.effects VALUES ('too late')`)
		return err
	})
	require.ErrorIs(t, err, context.Canceled)
	assert.NotContains(t, err.Error(), "may have succeeded")
	assert.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT count(*) FROM public.effects`))
}

// pool begins transactions also for a context that has ended.
type pool struct{ *pgxpool.Pool }

func (p pool) BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error) {
	return p.Pool.BeginTx(context.WithoutCancel(ctx), o)
}

// waitsForLock7 reports whether a session waits for the advisory lock 7.
func waitsForLock7(t *testing.T, b *bundle) bool {
	return fixture.Count(t, b.Pool,
		`SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7 AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`) == 1
}
