package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// readShop reads a table of the application as it is.
func readShop(ctx context.Context, q store.Querier) error {
	rows, err := q.Query(ctx, `SELECT * FROM shop WHERE $1::integer = 1`, 1)
	if err != nil {
		return err
	}
	_, err = pgx.CollectRows(rows, pgx.RowToMap)
	return err
}

// reading is a source of which one method reads the table.
type reading struct {
	answers
	whenPosted bool
}

func (r reading) LockAndRead(ctx context.Context, tx pgx.Tx, keys []ledger.Key) ([]ledger.Found, error) {
	if !r.whenPosted {
		if err := readShop(ctx, tx); err != nil {
			return nil, fmt.Errorf("shop: %w", err)
		}
	}
	return r.answers.LockAndRead(ctx, tx, keys)
}

func (r reading) SetPosted(ctx context.Context, tx pgx.Tx, _ []ledger.Key, _ []bool) error {
	if !r.whenPosted {
		return nil
	}
	return readShop(ctx, tx)
}

// processing is a processor of the application, which reads the table in one of its phases.
type processing struct {
	b     *bundle
	phase string
}

func (p processing) Prepare(ctx context.Context, _ []engine.Job) (engine.Commit, error) {
	if p.phase == "prepare" {
		if err := readShop(ctx, p.b.Pool); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context, tx pgx.Tx, jobs []engine.Job) ([]error, error) {
		errs := make([]error, len(jobs))
		switch p.phase {
		case "commit":
			return errs, readShop(ctx, tx)
		case "each":
			for i := range errs {
				errs[i] = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return readShop(ctx, tx) })
			}
		}
		return errs, errors.Join(errs...)
	}, nil
}

// TestSchemaChangeChargesNoDocument: the application changes a table that its source, its hook or
// its processor reads as it is, while sessions of the worker have plans of it.
func TestSchemaChangeChargesNoDocument(t *testing.T) {
	t.Parallel()
	process := func(phase string) func(b *bundle) {
		return func(b *bundle) {
			b.engine = engine.New(store.New(b.Pool), processing{b, phase}, engine.Options{Slow: true})
			b.t.Cleanup(b.engine.Close)
		}
	}
	for name, register := range map[string]func(b *bundle){
		"a source that reads":     func(b *bundle) { b.withSources(ledger.Sources{"shop": reading{}}) },
		"a source that is told":   func(b *bundle) { b.withSources(ledger.Sources{"shop": reading{whenPosted: true}}) },
		"a processor's prepare":   process("prepare"),
		"a processor's commit":    process("commit"),
		"a processor's savepoint": process("each"),
		"a hook": func(b *bundle) {
			b.withAfter(func(ctx context.Context, tx pgx.Tx, _ []ledger.Posted) error { return readShop(ctx, tx) },
				engine.Options{Direct: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.exec(`CREATE TABLE shop (id integer)`)
			register(b)
			b.document("before")
			b.work()
			b.exec(`ALTER TABLE shop ADD COLUMN city text`)
			b.document("after")
			b.work()
			for _, document := range []string{"before", "after"} {
				job := fixture.Job(t, b.Pool, org, document)
				assert.Equal(t, models.JobCompleted, job.State)
				assert.Equal(t, 1, job.RunCount)
			}
			assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.attempts WHERE outcome <> 'completed'`))
		})
	}
}

// document has a document worked, which is also in daybook.documents.
func (b *bundle) document(id string) {
	b.t.Helper()
	fixture.Ready(b.t, b.Pool, fixture.Invoice(org, id, 1000))
	b.enqueue(id)
}
