package store_test

import (
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
)

// TestLostAnswerToACommit cuts the line while COMMIT runs. The error says that the transaction may have been committed, which it was; one that a statement's failure has undone
// says nothing of the kind.
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
	committing := func() bool {
		return fixture.Count(t, b.Pool, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7 AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`) == 1
	}
	require.Eventually(t, committing, time.Minute, 5*time.Millisecond)
	line.Cut()
	err = <-ended
	require.ErrorContains(t, err, "the commit was cut off, and may have succeeded")
	assert.True(t, store.IsTransient(err))
	require.NoError(t, holder.Rollback(t.Context()))
	require.Eventually(t, func() bool { return fixture.Count(t, b.Pool, `SELECT count(*) FROM public.effects`) == 2 }, time.Minute, 5*time.Millisecond)
}
