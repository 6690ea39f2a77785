package audit

import (
	"context"
	"crypto/ed25519"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	public "github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
)

// Options says what to audit.
type Options struct {
	// OrgID is the organization; empty: all.
	OrgID string
	// Limit is how many findings of each check are listed; all are counted. Default 20.
	Limit int
	// Guards are the constraints, unique indexes and triggers that there must be: GuardsOf the
	// schema. Nil: they are not looked for.
	Guards []Guard
	// Newest is the number of the migration that Guards are of (migrations.Newest). Those that a newer
	// program took away from the schema, or made otherwise, are no findings but a warning. 0: they are
	// findings as well.
	Newest int64
	// ClosingKey is the public key that closings must be signed by. Nil: signatures are not looked at.
	ClosingKey ed25519.PublicKey
}

// DefaultFindings is how many findings of a check are listed.
const DefaultFindings = 20

// What an audit answers; package accounting says what each field means.
type (
	Finding       = public.Finding
	CheckResult   = public.CheckResult
	SourceFigures = public.SourceFigures
	QueueFigures  = public.QueueFigures
	CurrencyTotal = public.CurrencyTotal
	Report        = public.AuditReport
)

// auditSettings hold for the audit's transaction: its sums are large and its statements few.
// Compiling them to machine code takes longer than it saves. By statistics that are missing, or
// older than an organization, the planner expects few rows and reads an organization's impacts anew
// for each of its documents: each check reads its rows once, so hashes and merges do as well, and
// in proportion to the rows. What it finds names days and times, in one form everywhere.
const auditSettings = `SET LOCAL work_mem = '128MB'; SET LOCAL jit = off; SET LOCAL enable_nestloop = off; SET LOCAL statement_timeout = 0;
SET LOCAL "DateStyle" = 'ISO, YMD'; SET LOCAL "TimeZone" = 'UTC'`

// Run checks what must hold for the documents, the ledger and the jobs of every queue,
// independently of the program that wrote them. It reads one snapshot, waits for no other
// transaction and delays none. Of documents in other sources than daybook.documents only the
// impacts and entries are looked at, and the report's Sources say so; ledger.Audit compares those
// as well.
func Run(ctx context.Context, pool *pgxpool.Pool, o Options) (Report, error) {
	if o.Limit <= 0 {
		o.Limit = DefaultFindings
	}
	r := Report{OrgID: o.OrgID}
	err := store.ReadSnapshot(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, auditSettings); err != nil {
			return err
		}
		if err := auditFigures(ctx, tx, o.OrgID, &r); err != nil {
			return err
		}
		var err error
		if r.Figures.Sources, err = auditSources(ctx, tx, o.OrgID); err != nil {
			return err
		}
		if r.Figures.Queues, err = store.QueueFigures(ctx, tx, o.OrgID); err != nil {
			return err
		}
		for _, check := range slices.Concat(auditChecks, store.QueueChecks()) {
			result, err := run(ctx, tx, check, o)
			if err != nil {
				return store.Wrap(check.Kind, err)
			}
			r.Checks = append(r.Checks, result)
		}
		if o.ClosingKey != nil {
			result, err := checkSignatures(ctx, tx, o)
			if err != nil {
				return err
			}
			r.Checks = append(r.Checks, result)
		}
		for _, check := range auditWarnings {
			result, err := run(ctx, tx, check, o)
			if err != nil {
				return store.Wrap(check.Kind, err)
			}
			r.Warnings = append(r.Warnings, result)
		}
		if o.Guards == nil {
			return nil
		}
		return checkGuards(ctx, tx, o, &r)
	})
	return r, store.Wrap("audit", err)
}

// run runs a check.
func run(ctx context.Context, tx pgx.Tx, c store.Check, o Options) (CheckResult, error) {
	result := CheckResult{Kind: c.Kind, Rule: c.Rule, Findings: []Finding{}}
	var org, document *string
	var impact *int64
	var f Finding
	err := store.Each(ctx, tx, []any{&result.Count, &org, &document, &impact, &f.Detail}, func() error {
		found := f
		found.OrgID, found.DocumentID, found.ImpactID = store.Value(org), store.Value(document), store.Value(impact)
		result.Findings = append(result.Findings, found)
		return nil
	}, c.Stmt, o.OrgID, o.Limit)
	return result, err
}

func auditFigures(ctx context.Context, tx pgx.Tx, org string, r *Report) error {
	const counts = `
SELECT transaction_timestamp(),
       (SELECT count(*) FROM daybook.organizations WHERE $1 = '' OR id = $1),
       d.all, d.ready, i.all, i.posts - i.reversals, i.reversals,
       (SELECT count(*) FROM daybook.confirmations c JOIN daybook.impacts i ON i.id = c.impact_id WHERE $1 = '' OR i.org_id = $1)
  FROM (SELECT count(*) AS all, count(*) FILTER (WHERE accounting_ready_at IS NOT NULL AND deleted_at IS NULL) AS ready
          FROM daybook.documents WHERE $1 = '' OR org_id = $1) d,
       (SELECT count(*) AS all, count(*) FILTER (WHERE kind = 'post') AS posts, count(*) FILTER (WHERE kind = 'reverse') AS reversals
          FROM daybook.impacts WHERE $1 = '' OR org_id = $1) i`
	const totals = `
SELECT currency, count(*),
       coalesce(sum(amount_minor) FILTER (WHERE side = 'debit'), 0)::text,
       coalesce(sum(amount_minor) FILTER (WHERE side = 'credit'), 0)::text
  FROM daybook.entries
 WHERE $1 = '' OR org_id = $1
 GROUP BY currency
 ORDER BY currency`
	f := &r.Figures
	if err := tx.QueryRow(ctx, counts, org).Scan(&r.At, &f.Organizations, &f.Documents, &f.Ready,
		&f.Impacts, &f.Live, &f.Reversals, &f.Confirmations); err != nil {
		return err
	}
	f.Totals = []CurrencyTotal{}
	var currency, debit, credit string
	var n int64
	return store.Each(ctx, tx, []any{&currency, &n, &debit, &credit}, func() error {
		t := CurrencyTotal{Currency: currency}
		var badDebit, badCredit error
		t.Debit, badDebit = ledgerdb.WholeNumber(debit)
		t.Credit, badCredit = ledgerdb.WholeNumber(credit)
		f.Entries += n
		f.Totals = append(f.Totals, t)
		return errors.Join(badDebit, badCredit)
	}, totals, org)
}
