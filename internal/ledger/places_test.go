package ledger_test

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
)

// TestDocumentsThatAreMoved has a trigger of the application change each document while it is
// posted, so that its row is no longer where the ledger has locked it.
func TestDocumentsThatAreMoved(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`
CREATE FUNCTION moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE daybook.documents d SET updated_at = clock_timestamp() WHERE d.org_id = NEW.org_id AND d.id = NEW.document_id AND NEW.document_id <> 'doc-2';
    RETURN NULL;
END
$$`)
	b.exec(`CREATE TRIGGER moves AFTER INSERT ON daybook.impacts FOR EACH ROW EXECUTE FUNCTION moves()`)
	fixture.ManyReady(t, b.Pool, org, "doc-", 3)
	assert.Equal(t, 3, b.work().Completed)
	assert.Equal(t, 3, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.documents WHERE accounting_impact_created_at IS NOT NULL`))
}

// TestChunkFinishesAtOneMoment: the index of what was completed lately is written once for each of
// its ranges, and not once for each job.
func TestChunkFinishesAtOneMoment(t *testing.T) {
	t.Parallel()
	for _, direct := range []bool{false, true} {
		t.Run(fmt.Sprint("direct ", direct), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.engine = engine.New(store.New(b.Pool), ledger.New(nil),
				engine.Options{Direct: direct, Log: slog.New(slog.DiscardHandler)})
			t.Cleanup(b.engine.Close)
			fixture.ManyReady(t, b.Pool, org, "doc-", 20)
			assert.Equal(t, 20, b.work().Completed)
			assert.Equal(t, 1, fixture.Count(t, b.Pool,
				`SELECT count(DISTINCT finished_at) FROM daybook.accounting_work_queue`))
			assert.Zero(t, fixture.Count(t, b.Pool, `
SELECT count(*) FROM daybook.accounting_work_queue q JOIN daybook.attempts a ON a.job_id = q.id WHERE q.finished_at NOT BETWEEN a.started_at AND a.ended_at`))
		})
	}
}
