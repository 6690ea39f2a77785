package store

import (
	"context"
	"fmt"
	"math/big"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/models"
)

// QueueStatus is how a queue stands at one moment.
type QueueStatus struct {
	// Kind is the queue's: "accounting".
	Kind string `json:"kind"`
	// At is the database's clock.
	At time.Time `json:"at"`
	// Counts holds every state, also those without a job.
	Counts map[models.JobState]int64 `json:"counts"`
	// Due counts the pending jobs whose time has come.
	Due int64 `json:"due"`
	// StaleLeases counts leases that were neither settled nor renewed for models.StaleAfter.
	StaleLeases int64 `json:"stale_leases"`
	// OldestPending is the pending job that was asked for first; nil: none is pending.
	OldestPending *PendingJob `json:"oldest_pending,omitempty"`
	// FailedByCode counts the failed jobs by their last error code.
	FailedByCode map[models.ErrorCode]int64 `json:"failed_by_code"`
}

// Open counts the jobs that are not finished.
func (s QueueStatus) Open() int64 { return s.Counts[models.JobPending] + s.Counts[models.JobLeased] }

// PendingJob names a job that waits.
type PendingJob struct {
	OrgID      string `json:"org_id"`
	DocumentID string `json:"document_id"`
	// FirstReadyAt is when the request was first due.
	FirstReadyAt time.Time `json:"first_ready_at"`
	// ReadyAt is when the job is due next.
	ReadyAt time.Time `json:"ready_at"`
	// AgeSeconds is how long ago FirstReadyAt is; 0 when it lies ahead.
	AgeSeconds float64 `json:"age_seconds"`
}

// AccountingStatus reads how the accounting queue stands, for one organization or, with the empty id, for all. All
// figures are of one moment.
func AccountingStatus(ctx context.Context, pool *pgxpool.Pool, org string) (QueueStatus, error) {
	s := QueueStatus{Kind: "accounting", Counts: map[models.JobState]int64{}, FailedByCode: map[models.ErrorCode]int64{}}
	for _, state := range models.JobStates() {
		s.Counts[state] = 0
	}
	err := readSnapshot(ctx, pool, func(tx pgx.Tx) error {
		if err := countStates(ctx, tx, org, &s); err != nil {
			return err
		}
		if err := countFailed(ctx, tx, org, &s); err != nil {
			return err
		}
		return oldestPending(ctx, tx, org, &s)
	})
	return s, wrap("read the queue's status", err)
}

func countStates(ctx context.Context, tx pgx.Tx, org string, s *QueueStatus) error {
	const stmt = `
SELECT state, count(*),
       count(*) FILTER (WHERE state = 'pending' AND ready_at <= transaction_timestamp()),
       count(*) FILTER (WHERE state = 'leased' AND last_attempted_at < transaction_timestamp() - make_interval(secs => $2))
  FROM daybook.accounting_work_queue
 WHERE $1 = '' OR org_id = $1
 GROUP BY state`
	rows, err := tx.Query(ctx, stmt, org, models.StaleAfter.Seconds())
	if err != nil {
		return err
	}
	var state models.JobState
	var n, due, stale int64
	_, err = pgx.ForEachRow(rows, []any{&state, &n, &due, &stale}, func() error {
		s.Counts[state] = n
		s.Due += due
		s.StaleLeases += stale
		return nil
	})
	return err
}

func countFailed(ctx context.Context, tx pgx.Tx, org string, s *QueueStatus) error {
	const stmt = `
SELECT last_error_code, count(*)
  FROM daybook.accounting_work_queue
 WHERE state = 'failed' AND ($1 = '' OR org_id = $1)
 GROUP BY last_error_code`
	rows, err := tx.Query(ctx, stmt, org)
	if err != nil {
		return err
	}
	var code models.ErrorCode
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&code, &n}, func() error {
		s.FailedByCode[code] = n
		return nil
	})
	return err
}

func oldestPending(ctx context.Context, tx pgx.Tx, org string, s *QueueStatus) error {
	const stmt = `
SELECT transaction_timestamp(), o.org_id, o.document_id, o.first_ready_at, o.ready_at,
       greatest(0, extract(epoch FROM transaction_timestamp() - o.first_ready_at))::float8
  FROM (VALUES (1)) AS one (row)
  LEFT JOIN LATERAL (
        SELECT * FROM daybook.accounting_work_queue
         WHERE state = 'pending' AND ($1 = '' OR org_id = $1)
         ORDER BY first_ready_at, id
         LIMIT 1) o ON true`
	var oldestOrg, document *string
	var first, ready *time.Time
	var age float64
	if err := tx.QueryRow(ctx, stmt, org).Scan(&s.At, &oldestOrg, &document, &first, &ready, &age); err != nil {
		return err
	}
	if oldestOrg != nil {
		s.OldestPending = &PendingJob{OrgID: *oldestOrg, DocumentID: *document, FirstReadyAt: *first, ReadyAt: *ready, AgeSeconds: age}
	}
	return nil
}

// OrganizationCount is how many of an organization's jobs are in a state.
type OrganizationCount struct {
	OrgID string          `json:"org_id"`
	State models.JobState `json:"state"`
	Jobs  int64           `json:"jobs"`
}

// CountByOrganization counts the jobs by organization and state, in the order of the organizations.
func CountByOrganization(ctx context.Context, q Querier) ([]OrganizationCount, error) {
	const stmt = `SELECT org_id, state, count(*) FROM daybook.accounting_work_queue GROUP BY org_id, state ORDER BY org_id, state`
	rows, err := q.Query(ctx, stmt)
	if err != nil {
		return nil, wrap("count jobs", err)
	}
	counts, err := pgx.CollectRows(rows, pgx.RowToStructByPos[OrganizationCount])
	return counts, wrap("count jobs", err)
}

// CountImpacts counts the organizations' documents whose last impact posts.
func CountImpacts(ctx context.Context, q Querier) (map[string]int64, error) {
	const stmt = `
SELECT i.org_id, count(*)
  FROM daybook.impacts i
 WHERE i.kind = 'post'
   AND NOT EXISTS (SELECT 1 FROM daybook.impacts x WHERE x.org_id = i.org_id AND x.document_id = i.document_id AND x.seq = i.seq + 1)
 GROUP BY i.org_id`
	rows, err := q.Query(ctx, stmt)
	if err != nil {
		return nil, wrap("count impacts", err)
	}
	counts := map[string]int64{}
	var org string
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&org, &n}, func() error {
		counts[org] = n
		return nil
	})
	return counts, wrap("count impacts", err)
}

// BalanceLine is what was debited and credited to an account in a currency. The sums may be greater than 64 bits hold.
type BalanceLine struct {
	Account  string             `json:"account"`
	Name     string             `json:"name"`
	Type     models.AccountType `json:"type"`
	Currency string             `json:"currency"`
	// Debit and Credit are in minor units of the currency.
	Debit  *big.Int `json:"debit_minor"`
	Credit *big.Int `json:"credit_minor"`
}

// TrialBalance sums the entries by currency and account, in that order: of one organization or, with the empty id, of
// all together; in one currency or, with the empty code, in each. A name or type that differs between organizations is
// the first in order.
func TrialBalance(ctx context.Context, q Querier, org, currency string) ([]BalanceLine, error) {
	const stmt = `
WITH sums AS (
    SELECT org_id, account_code, currency,
           coalesce(sum(amount_minor) FILTER (WHERE side = 'debit'), 0) AS debit,
           coalesce(sum(amount_minor) FILTER (WHERE side = 'credit'), 0) AS credit
      FROM daybook.entries
     WHERE ($1 = '' OR org_id = $1) AND ($2 = '' OR currency = $2)
     GROUP BY org_id, account_code, currency
)
SELECT s.account_code, coalesce(min(a.name), ''), coalesce(min(a.type)::text, ''), s.currency, sum(s.debit)::text, sum(s.credit)::text
  FROM sums s
  LEFT JOIN daybook.accounts a ON a.org_id = s.org_id AND a.code = s.account_code
 GROUP BY s.currency, s.account_code
 ORDER BY s.currency, s.account_code`
	rows, err := q.Query(ctx, stmt, org, currency)
	if err != nil {
		return nil, wrap("read the trial balance", err)
	}
	lines := []BalanceLine{}
	var l BalanceLine
	var debit, credit string
	_, err = pgx.ForEachRow(rows, []any{&l.Account, &l.Name, &l.Type, &l.Currency, &debit, &credit}, func() error {
		line := l
		var okDebit, okCredit bool
		line.Debit, okDebit = new(big.Int).SetString(debit, 10)
		line.Credit, okCredit = new(big.Int).SetString(credit, 10)
		if !okDebit || !okCredit {
			return fmt.Errorf("account %s: %q and %q are not whole numbers of minor units", l.Account, debit, credit)
		}
		lines = append(lines, line)
		return nil
	})
	return lines, wrap("read the trial balance", err)
}

// IsEmpty reports whether nobody has used the database yet: there is no schema, or no organization, document and job in it.
func IsEmpty(ctx context.Context, q Querier) (bool, error) {
	const exists = `SELECT to_regclass('daybook.accounting_work_queue') IS NOT NULL`
	const stmt = `
SELECT NOT EXISTS (SELECT 1 FROM daybook.organizations) AND NOT EXISTS (SELECT 1 FROM daybook.documents)
   AND NOT EXISTS (SELECT 1 FROM daybook.accounting_work_queue)`
	var there, empty bool
	if err := q.QueryRow(ctx, exists).Scan(&there); err != nil || !there {
		return err == nil, wrap("look for the schema", err)
	}
	err := q.QueryRow(ctx, stmt).Scan(&empty)
	return empty, wrap("look for data", err)
}

// ServerPrograms returns the directory of the server's own programs, such as pg_dump. Only a superuser may ask.
func ServerPrograms(ctx context.Context, q Querier) (string, error) {
	var dir string
	err := q.QueryRow(ctx, `SELECT setting FROM pg_catalog.pg_config WHERE name = 'BINDIR'`).Scan(&dir)
	return dir, wrap("ask for the server's programs", err)
}
