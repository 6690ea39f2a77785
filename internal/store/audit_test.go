package store_test

import (
	"context"
	"regexp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/audit"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// work posts what is due.
func (b *bundle) work() {
	b.t.Helper()
	e := engine.New(b.store, ledger.New(nil), engine.Options{})
	defer e.Close()
	_, err := e.Process(b.t.Context(), engine.TurnRequest{
		Turn: store.Turn{ID: "test/0/1", Worker: "test", WorkflowRunID: "run"}, Batch: 100, Length: time.Minute,
	})
	require.NoError(b.t, err)
}

// bookkeeping is a database in which everything has happened once: documents that are posted,
// changed, confirmed, deleted, retracted, failed and waiting, and a period that is closed.
func bookkeeping(t *testing.T) *bundle {
	t.Helper()
	b := setup(t)
	fixture.Organization(t, b.Pool, org)
	fixture.Organization(t, b.Pool, "org_2")
	fixture.Ready(t, b.Pool,
		fixture.Invoice(org, "posted", 1000), fixture.Invoice(org, "changed", 1000),
		fixture.Invoice(org, "confirmed", 1000),
		fixture.Invoice(org, "deleted", 1000), fixture.Invoice(org, "retracted", 1000), fixture.Unbalanced(org, "failed"),
		fixture.Invoice("org_2", "posted", 500))
	b.work()
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "changed", 2000), fixture.Invoice(org, "confirmed", 1000))
	fixture.Tx(t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
		_, err := store.MarkDocumentDeleted(ctx, tx, org, "deleted")
		require.NoError(t, err)
		_, err = store.MarkDocumentNotReady(ctx, tx, org, "retracted")
		require.NoError(t, err)
	})
	b.work()
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "waiting", 1000))
	fixture.Tx(t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
		march := models.Period{StartsOn: models.NewDate(2026, 3, 1), EndsOn: models.NewDate(2026, 3, 31)}
		_, err := ledgerdb.AddPeriods(ctx, tx, org, []models.Period{march})
		require.NoError(t, err)
		require.NoError(t, ledgerdb.ClosePeriod(ctx, tx, org, march.StartsOn))
	})
	return b
}

func (b *bundle) audit(o audit.Options) audit.Report {
	b.t.Helper()
	r, err := audit.Run(b.t.Context(), b.Pool, o)
	require.NoError(b.t, err)
	return r
}

// wrong returns the checks that found something.
func wrong(r audit.Report) map[string]int64 {
	found := map[string]int64{}
	for _, c := range r.Checks {
		if c.Count > 0 {
			found[c.Kind] = c.Count
		}
	}
	return found
}

func TestAuditOfASoundLedger(t *testing.T) {
	t.Parallel()
	b := bookkeeping(t)
	r := b.audit(audit.Options{})
	assert.Empty(t, wrong(r), "%+v", r.Checks)
	assert.Zero(t, r.Wrong())
	f := r.Figures
	assert.Equal(t, int64(2), f.Organizations)
	assert.Equal(t, int64(8), f.Documents)
	assert.Equal(t, int64(6), f.Ready)
	assert.Equal(t, []audit.QueueFigures{{Kind: "accounting", Open: 2, Failed: 1}, {Kind: "jobs"}, {Kind: "tasks"}},
		f.Queues, "open are the waiting document's, and the one that is not ready")
	assert.Equal(t, int64(10), f.Impacts)
	assert.Equal(t, int64(3), f.Reversals)
	assert.Equal(t, int64(4), f.Live)
	assert.Equal(t, int64(1), f.Confirmations)
	assert.Equal(t, int64(30), f.Entries)
	require.Len(t, f.Totals, 1)
	assert.Zero(t, f.Totals[0].Debit.Cmp(f.Totals[0].Credit))

	one := b.audit(audit.Options{OrgID: "org_2"})
	assert.Zero(t, one.Wrong())
	assert.Equal(t, int64(1), one.Figures.Impacts)
	assert.Equal(t, int64(3), one.Figures.Entries)
}

func TestAuditOfAnEmptyDatabase(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.audit(audit.Options{})
	assert.Zero(t, r.Wrong())
	assert.Zero(t, r.Figures.Documents)
	assert.Empty(t, r.Figures.Totals)
}

// unguarded takes off what keeps even the owner from damaging a ledger.
const unguarded = `
ALTER TABLE daybook.impacts DISABLE TRIGGER USER;
ALTER TABLE daybook.entries DISABLE TRIGGER USER;
ALTER TABLE daybook.confirmations DISABLE TRIGGER USER;
ALTER TABLE daybook.confirmations DROP CONSTRAINT confirmations_impact_id_fkey;
ALTER TABLE daybook.impacts DROP CONSTRAINT chain_alternates`

// postings are changes of what is posted.
var postings = regexp.MustCompile(`(UPDATE|DELETE FROM) daybook\.(impacts|entries)`)

func TestAuditFindsDamage(t *testing.T) {
	t.Parallel()
	const (
		posted  = `(SELECT id FROM daybook.impacts WHERE org_id = 'org_1' AND document_id = 'posted')`
		reverse = `(SELECT id FROM daybook.impacts WHERE org_id = 'org_1' AND document_id = 'changed' AND kind = 'reverse')`
	)
	for name, test := range map[string]struct {
		damage string
		found  map[string]int64
	}{
		"a version that was not asked for": {
			`UPDATE daybook.documents SET accounting_ready_version = 2 WHERE org_id = 'org_1' AND id = 'posted'`,
			map[string]int64{"document_not_posted": 1},
		},
		"a failure of an older version": {
			`UPDATE daybook.documents SET accounting_ready_version = 2 WHERE id = 'failed'`,
			map[string]int64{"document_not_posted": 1},
		},
		"a job that is gone": {
			`DELETE FROM daybook.accounting_work_queue WHERE document_id IN ('failed', 'waiting')`,
			map[string]int64{"document_not_posted": 2},
		},
		"a job that was cancelled": {
			`SELECT daybook.cancel_accounting_job('org_1', 'waiting')`,
			map[string]int64{"document_not_posted": 1},
		},
		"a confirmation that is gone": {
			`DELETE FROM daybook.confirmations`,
			map[string]int64{"document_not_posted": 1},
		},
		"a posting that is gone": {
			`DELETE FROM daybook.entries WHERE impact_id = ` + posted + `; DELETE FROM daybook.impacts WHERE id = ` + posted,
			map[string]int64{"document_not_posted": 1},
		},
		"a deletion that reversed nothing": {
			`UPDATE daybook.documents SET deleted_at = now() WHERE org_id = 'org_1' AND id = 'posted'`,
			map[string]int64{"retracted_document_posted": 1},
		},
		"a retraction that reversed nothing": {
			`UPDATE daybook.documents SET accounting_ready_at = NULL WHERE org_id = 'org_2'`,
			map[string]int64{"retracted_document_posted": 1},
		},
		"a document written anew under its version": {
			`ALTER TABLE daybook.documents DISABLE TRIGGER USER;
			 CREATE TEMP TABLE kept AS SELECT * FROM daybook.documents WHERE org_id = 'org_1' AND id IN ('posted', 'confirmed');
			 DELETE FROM daybook.documents d USING kept k WHERE d.org_id = k.org_id AND d.id = k.id;
			 UPDATE kept SET created_at = clock_timestamp(), updated_at = clock_timestamp();
			 INSERT INTO daybook.documents SELECT * FROM kept`,
			map[string]int64{"document_behind_its_posting": 2},
		},
		"a document written anew under an older version": {
			`UPDATE daybook.documents SET accounting_ready_version = 1 WHERE id = 'changed'`,
			map[string]int64{"document_behind_its_posting": 1, "document_not_posted": 1},
		},
		"a document changed without being marked": {
			`UPDATE daybook.documents SET content = jsonb_set(content, '{total}', '9'), updated_at = clock_timestamp() WHERE id = 'confirmed'`,
			map[string]int64{"document_behind_its_posting": 1},
		},
		"an amount that was changed": {
			`UPDATE daybook.entries SET amount_minor = amount_minor + 1 WHERE line_no = 1 AND impact_id = ` + posted,
			map[string]int64{"unbalanced_organization": 1, "unbalanced_impact": 1},
		},
		"amounts that were changed in two impacts": {
			`UPDATE daybook.entries SET amount_minor = amount_minor + 1 WHERE line_no = 1 AND impact_id = ` + posted + `;
			 UPDATE daybook.entries SET amount_minor = amount_minor - 1 WHERE line_no = 1
			    AND impact_id = (SELECT id FROM daybook.impacts WHERE document_id = 'confirmed')`,
			map[string]int64{"unbalanced_impact": 2},
		},
		"a currency that was changed": {
			`UPDATE daybook.entries SET currency = 'USD' WHERE line_no = 1 AND impact_id = ` + posted,
			map[string]int64{"unbalanced_organization": 2, "unbalanced_impact": 2},
		},
		"entries that are gone": {
			`DELETE FROM daybook.entries WHERE impact_id = ` + posted,
			map[string]int64{"entry_count": 1},
		},
		"entries of no impact": {
			`INSERT INTO daybook.entries (impact_id, line_no, org_id, account_code, side, amount_minor, currency)
			 SELECT 999, line_no, org_id, account_code, side, amount_minor, currency FROM daybook.entries WHERE impact_id = ` + posted,
			map[string]int64{"entry_count": 1},
		},
		"entries of another organization": {
			`UPDATE daybook.entries SET org_id = 'org_2' WHERE impact_id = ` + posted,
			map[string]int64{"entry_count": 1},
		},
		"entries with other numbers": {
			`UPDATE daybook.entries SET line_no = line_no + 1 WHERE line_no = 3 AND impact_id = ` + posted,
			map[string]int64{"entry_count": 1},
		},
		"a reversal of other amounts": {
			`UPDATE daybook.entries SET amount_minor = 2 * amount_minor WHERE impact_id = ` + reverse,
			map[string]int64{"reversal_not_mirror": 1},
		},
		"a reversal on the same sides": {
			`UPDATE daybook.entries SET side = CASE side WHEN 'debit' THEN 'credit' ELSE 'debit' END::daybook.entry_side WHERE impact_id = ` + reverse,
			map[string]int64{"reversal_not_mirror": 1},
		},
		"a reversal of another account": {
			`UPDATE daybook.entries SET account_code = (SELECT max(code) FROM daybook.accounts WHERE org_id = 'org_1') WHERE line_no = 1 AND impact_id = ` + reverse,
			map[string]int64{"reversal_not_mirror": 1},
		},
		"a gap": {
			`DELETE FROM daybook.entries WHERE impact_id = ` + reverse + `; DELETE FROM daybook.impacts WHERE id = ` +
				reverse,
			map[string]int64{"broken_chain": 1, "document_not_posted": 1}, // version 1 is live beside version 2
		},
		"a reversal that posts": {
			`UPDATE daybook.impacts SET kind = 'post', document_version = 77 WHERE id = ` + reverse,
			map[string]int64{"broken_chain": 1},
		},
		"a posting that was moved out of the closed days": {
			`UPDATE daybook.impacts SET posting_date = '2026-04-01' WHERE id = ` + posted,
			map[string]int64{},
		},
		"a posting that was moved before all periods": {
			`UPDATE daybook.impacts SET posting_date = '2025-12-31' WHERE id = ` + posted,
			map[string]int64{},
		},
		"a kept sum that was changed": {
			`UPDATE daybook.closed_sums SET debit = debit + 1 WHERE debit > 0`,
			map[string]int64{"closed_sums_differ": 3},
		},
		"a kept sum of taxes that was changed": {
			`UPDATE daybook.closed_tax_sums SET tax = tax + 1 WHERE org_id = 'org_1'`,
			map[string]int64{"closed_sums_differ": 1},
		},
		"a kept sum of taxes that is gone": {
			`DELETE FROM daybook.closed_tax_sums WHERE org_id = 'org_1'`,
			map[string]int64{"closed_sums_differ": 1},
		},
		"a kept tax of a document that was changed": { // of the sum, of the document, and beside what is posted
			`UPDATE daybook.closed_taxes SET tax = tax + 1 WHERE impact_id = ` + posted,
			map[string]int64{"closed_sums_differ": 3},
		},
		"a kept tax of a document that was changed with its sum": {
			`UPDATE daybook.closed_taxes SET base = base + 1 WHERE impact_id = ` + posted + `;
			 UPDATE daybook.closed_tax_sums SET base = base + 1 WHERE org_id = 'org_1'`,
			map[string]int64{"closed_sums_differ": 1},
		},
		"a kept difference of taxes that is none": {
			`INSERT INTO daybook.closed_tax_differences SELECT 'org_1', max(starts_on), 'posted', 'EUR', 1, 2 FROM daybook.closed_sum_spans WHERE org_id = 'org_1'`,
			map[string]int64{"closed_sums_differ": 1},
		},
		"kept sums of days that are open": {
			`ALTER TABLE daybook.periods DISABLE TRIGGER USER; UPDATE daybook.periods SET state = 'open', closed_at = NULL`,
			map[string]int64{"closed_sums_differ": 2, "closing_hash_differs": 1},
		},
		"a kept open item that was changed": {
			`UPDATE daybook.closed_items SET amount = amount + 1 WHERE org_id = 'org_1'`,
			map[string]int64{"closed_items_differ": 3},
		},
		"a kept open item that is gone": {
			`DELETE FROM daybook.closed_items WHERE org_id = 'org_1'`,
			map[string]int64{"closed_items_differ": 3},
		},
		"a confirmation of a reversal": {
			`INSERT INTO daybook.confirmations (impact_id, document_version, rule_set_version, job_id, attempt) VALUES (` +
				reverse + `, 9, 1, 'j', 1)`,
			map[string]int64{"confirmation_of_no_posting": 1},
		},
		"a confirmation of an older version": {
			`INSERT INTO daybook.confirmations (impact_id, document_version, rule_set_version, job_id, attempt) VALUES (` +
				posted + `, 0, 1, 'j', 1)`,
			map[string]int64{"confirmation_of_no_posting": 1},
		},
		"an account that is gone": {
			`DELETE FROM daybook.accounts WHERE org_id = 'org_2' AND code = (SELECT min(account_code) FROM daybook.entries)`,
			map[string]int64{"unknown_account": 1},
		},
		"a rule set that is not kept": {
			`UPDATE daybook.impacts SET rule_set_version = 7 WHERE id = ` + posted,
			map[string]int64{"unknown_rule_set": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bookkeeping(t)
			b.exec(unguarded)
			b.exec(test.damage)
			r := b.audit(audit.Options{})
			found := wrong(r)
			if postings.MatchString(test.damage) { // all are in a period that is closed
				test.found["closing_hash_differs"] = 1
			}
			for _, kept := range []string{"closed_sums_differ", "closed_items_differ"} {
				if test.found[kept] == 0 {
					delete(found, kept) // what is kept of a closed month shows most damages as well
				}
			}
			assert.Equal(t, test.found, found)
			for _, c := range r.Checks {
				assert.Len(t, c.Findings, int(c.Count), c.Kind)
				for _, f := range c.Findings {
					assert.NotEmpty(t, f.OrgID, "%s: %+v", c.Kind, f)
					assert.NotEmpty(t, f.Detail, c.Kind)
				}
			}
		})
	}
}

func TestAuditListsTheFirstAndCountsAll(t *testing.T) {
	t.Parallel()
	b := bookkeeping(t)
	b.exec(unguarded)
	b.exec(`DELETE FROM daybook.entries`)
	r := b.audit(audit.Options{Limit: 2})
	assert.Equal(t, map[string]int64{"entry_count": 10, "closing_hash_differs": 1, "closed_sums_differ": 6, "closed_items_differ": 3}, wrong(r))
	for _, c := range r.Checks {
		if c.Kind == "entry_count" {
			assert.Len(t, c.Findings, 2)
		}
	}
	assert.Equal(t, int64(1), b.audit(audit.Options{OrgID: "org_2"}).Wrong())
}

// A version is posted once under a rule set and epoch, and not even the owner changes a
// confirmation.
func TestPostingsAndConfirmationsStand(t *testing.T) {
	t.Parallel()
	b := bookkeeping(t)
	for name, test := range map[string]struct{ stmt, state string }{
		"the same version again": {`
INSERT INTO daybook.impacts (id, org_id, document_id, document_version, seq, kind, rule_set_version, document_date, posting_date, entry_count, job_id, attempt)
SELECT 1000, org_id, document_id, 1, 3, 'post', rule_set_version, document_date, '2026-04-01', 0, job_id, attempt
  FROM daybook.impacts WHERE document_id = 'deleted' AND seq = 1`, "23505"},
		"a changed confirmation":   {`UPDATE daybook.confirmations SET document_version = 9`, "DB004"},
		"a confirmation that goes": {`DELETE FROM daybook.confirmations`, "DB004"},
		"all confirmations":        {`TRUNCATE daybook.confirmations`, "DB004"},
		"a posting that is late": {`
INSERT INTO daybook.impacts (id, org_id, document_id, document_version, seq, kind, document_date, posting_date, entry_count, job_id, attempt)
VALUES (1000, 'org_1', 'late', 1, 1, 'post', '2026-03-14', '2026-03-14', 0, 'j', 1)`, "DB005"},
	} {
		_, err := b.Pool.Exec(t.Context(), test.stmt)
		assert.Equal(t, test.state, store.SQLState(err), "%s: %v", name, err)
	}
}
