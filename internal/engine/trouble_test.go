package engine_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
)

// TestTurnTellsOfAFullDisk: that the database can be read does not end the trouble of a turn whose
// leases it refuses. The log says it once, and does not say that something was given back.
func TestTurnTellsOfAFullDisk(t *testing.T) {
	t.Parallel()
	log := &lines{}
	b := setupWith(t, failing{}, engine.Options{})
	e := engine.New(b.store, failing{}, engine.Options{Log: slog.New(slog.NewTextHandler(log, nil))})
	t.Cleanup(e.Close)
	fixture.ManyReady(t, b.Pool, org, "doc-", 1)
	_, err := b.Pool.Exec(t.Context(), `
CREATE FUNCTION public.full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'could not extend file' USING ERRCODE = '53100'; END $$;
CREATE TRIGGER full_disk BEFORE UPDATE ON daybook.accounting_work_queue FOR EACH STATEMENT EXECUTE FUNCTION public.full_disk()`)
	require.NoError(t, err)
	var mu sync.Mutex
	var told []error
	tried := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(told)
	}
	type answer struct {
		engine.Report
		err error
	}
	done := make(chan answer, 1)
	go func() {
		r, err := e.Process(context.Background(),
			engine.TurnRequest{Turn: turn(1), Batch: 50, Wait: time.Minute, Trouble: func(err error) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, err)
			}})
		done <- answer{r, err}
	}()
	// Long enough that what a failed lease may have left is looked for.
	require.Eventually(t, func() bool { return tried() > 9 }, time.Minute, 10*time.Millisecond)
	mu.Lock()
	first := slices.IndexFunc(told, func(err error) bool { return err != nil })
	assert.NotContains(t, told[first:], error(nil), "the trouble has not ended")
	assert.True(t, store.LacksDisk(told[first]))
	mu.Unlock()
	_, err = b.Pool.Exec(t.Context(), `DROP TRIGGER full_disk ON daybook.accounting_work_queue`)
	require.NoError(t, err)
	select {
	case a := <-done:
		require.NoError(t, a.err)
		assert.Equal(t, 1, a.Leased)
	case <-time.After(time.Minute):
		require.FailNow(t, "the turn does not end")
	}
	assert.NoError(t, told[len(told)-1], "and then it has")
	assert.NotZero(t, log.count(store.DiskAdvice))
	assert.Zero(t, log.count("gave back what an ended turn had left"))
}
