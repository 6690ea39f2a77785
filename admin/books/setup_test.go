package books_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const org = "org_1"

// bundle is a database with one organization, and an engine that posts.
type bundle struct {
	*pgtest.DB
	t      *testing.T
	engine *engine.Engine
	turns  int
}

func setup(t *testing.T) *bundle {
	t.Helper()
	db := pgtest.New(t)
	fixture.Organization(t, db.Pool, org)
	e := engine.New(store.New(db.Pool), ledger.New(nil), engine.Options{Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(e.Close)
	return &bundle{DB: db, t: t, engine: e}
}

// work processes everything that is due.
func (b *bundle) work() engine.Report {
	b.t.Helper()
	b.turns++
	turn := store.Turn{ID: fmt.Sprintf("run/0/%d", b.turns), Worker: "test", WorkflowRunID: "run"}
	r, err := b.engine.Process(b.t.Context(), engine.TurnRequest{Turn: turn, Batch: 50, Length: time.Minute})
	require.NoError(b.t, err)
	return r
}

func (b *bundle) tx(f func(context.Context, pgx.Tx)) {
	b.t.Helper()
	fixture.Tx(b.t, b.Pool, f)
}

// addPeriods adds periods without a key.
func addPeriods(ctx context.Context, db books.DB, org string, periods ...models.Period) error {
	return second(books.AddPeriods(ctx, db, org, periods, books.AddPeriodsOptions{}))
}
