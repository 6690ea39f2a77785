package adopt

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// readLater puts the entries on record of documents that wait because their entries were not known
// when they were adopted, and has the jobs that failed for it tried again. It returns how many
// documents that were.
func (a *Accounting) readLater(ctx context.Context) (int, error) {
	if a.entries == nil || a.options.Next != models.NextDifference {
		return 0, nil
	}
	total := 0
	for after := ""; ; {
		var next string
		n, err := again(ctx, func() (n int, err error) {
			err = store.Begin(ctx, a.pool, func(tx pgx.Tx) error {
				n, next, err = a.readLaterBatch(ctx, tx, after)
				return err
			})
			return n, err
		})
		total += n
		if err != nil || next == "" {
			return total, store.Wrap("record entries", err)
		}
		after = next
	}
}

// readLaterBatch is readLater for the next rows, in one transaction. A document whose entries are
// still not sound is left as it is.
func (a *Accounting) readLaterBatch(ctx context.Context, tx pgx.Tx, after string) (n int, next string, err error) {
	const list = `
SELECT h.legacy_id, h.org_id, h.document_id, p.document_version, p.posted_on
  FROM daybook.adopted_rows h
  JOIN daybook.posted_elsewhere p ON p.org_id = h.org_id AND p.document_id = h.document_id
 WHERE h.legacy_table = $1 AND (cardinality($2::text[]) = 0 OR h.org_id = ANY ($2)) AND h.legacy_id > $3
   AND p.next = 'wait' AND p.entries IS NULL AND p.left_version IS NULL
 ORDER BY h.legacy_id
 LIMIT $4`
	const lock = `
SELECT q.state = 'failed' AND q.last_error_code = 'POSTED_ELSEWHERE'
  FROM daybook.accounting_work_queue q WHERE q.org_id = $1 AND q.document_id = $2 FOR NO KEY UPDATE`
	if err := Lock(ctx, tx, a.table.Name); err != nil {
		return 0, "", err
	}
	var jobs []legacyJob
	var j legacyJob
	var postedOn time.Time
	if err := store.Each(ctx, tx, []any{&j.id, &j.org, &j.document, &j.version, &postedOn}, func() error {
		one := j
		one.elsewhere = &elsewhere{version: j.version, next: models.NextDifference, postedOn: postedOn}
		jobs = append(jobs, one)
		return nil
	}, list, a.table.Name, a.orgs(), after, BatchRows); err != nil || len(jobs) == 0 {
		return 0, "", err
	}
	next = jobs[len(jobs)-1].id
	found, err := a.readEntries(ctx, tx, jobs)
	if err != nil {
		return 0, "", err
	}
	var known []legacyJob
	for _, i := range byKey(jobs) {
		j := jobs[i]
		l := found[j.document+"\x00"+j.org]
		if l == nil {
			continue
		}
		if code, _ := l.problem(); code != "" {
			continue
		}
		j.elsewhere.entries = l.entries()
		if !l.postedOn.IsZero() {
			j.elsewhere.postedOn = l.postedOn
		}
		// What posts the document holds its job's row until its commit.
		var waits bool
		if err := tx.QueryRow(ctx, lock, j.org, j.document).Scan(&waits); err != nil {
			return 0, "", err
		}
		if waits {
			if _, err := store.MarkAccountingJobPending(ctx, tx, j.org, j.document, nil, 0); err != nil {
				return 0, "", err
			}
		}
		known = append(known, j)
	}
	if err := recordElsewhere(ctx, tx, a.table.Name, known); err != nil {
		return 0, "", err
	}
	ids := make([]string, len(known))
	for i := range known {
		ids[i] = known[i].id
	}
	_, err = tx.Exec(ctx, `UPDATE daybook.adopted_rows SET problem = NULL WHERE legacy_table = $1 AND legacy_id = ANY ($2)`, a.table.Name, ids)
	return len(known), next, err
}
