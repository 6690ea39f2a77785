package adopt

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// Verify implements Adopter. A document is the same on both sides when Daybook asks for at least
// the version that the legacy row names.
func (a *Accounting) Verify(ctx context.Context) (Verification, error) {
	v := Verification{Table: a.table.Name, Problems: Problems{}}
	if blocking := a.problems.Blocking(); len(blocking) > 0 {
		return v, Refusal(blocking)
	}
	err := store.ReadSnapshot(ctx, a.pool, func(tx pgx.Tx) error {
		legacy, held, err := a.sides(ctx, tx)
		if err != nil {
			return err
		}
		v.Compared = Compare(legacy, held)
		var p Plan
		if err := a.count(ctx, tx, &p); err != nil {
			return err
		}
		v.Left = p.Found
		if err := a.findHeldTwice(ctx, tx, &v.Problems); err != nil {
			return err
		}
		return a.findPostedTwice(ctx, tx, &v.Problems)
	})
	return v, store.Wrap("verify the adoption of "+a.table.Name, err)
}

// sides counts the adopted rows as the legacy table has them, and as Daybook's queue does.
func (a *Accounting) sides(ctx context.Context, q store.Querier) (legacy, held Groups, err error) {
	stmt := `
SELECT h.org_id, h.taken_state, count(l.id), (coalesce(sum(` + hash("l.org_id", "l.document_id", "l.version_hint") +
		`::numeric), 0) % 18446744073709551616)::text,
       count(q.id), (coalesce(sum(` + hash("q.org_id", "q.document_id",
		"least(q.version_hint, l.version_hint::text::bigint)") + `::numeric), 0) % 18446744073709551616)::text
  FROM daybook.adopted_rows h
  LEFT JOIN ` + a.table.Name + ` l ON l.id = h.legacy_id::` + a.id + `
  LEFT JOIN daybook.accounting_work_queue q ON q.org_id = h.org_id AND q.document_id = h.document_id
 WHERE h.legacy_table = $1 AND (cardinality($2::text[]) = 0 OR h.org_id = ANY ($2))
 GROUP BY 1, 2
 ORDER BY 1, 2`
	var g Group
	var rows [2]int64
	var sums [2]string
	err = store.Each(ctx, q, []any{&g.OrgID, &g.State, &rows[0], &sums[0], &rows[1], &sums[1]}, func() error {
		for i, side := range []*Groups{&legacy, &held} {
			sum, err := parseChecksum(sums[i])
			if err != nil {
				return err
			}
			side.Merge(Groups{{OrgID: g.OrgID, State: g.State, Rows: rows[i], Checksum: sum}})
		}
		return nil
	}, stmt, a.table.Name, a.orgs())
	return legacy, held, store.Wrap("compare counts", err)
}

// findHeldTwice finds adopted rows that the legacy worker could work.
func (a *Accounting) findHeldTwice(ctx context.Context, q store.Querier, problems *Problems) error {
	stmt := `
SELECT h.org_id || '/' || h.legacy_id,
       CASE WHEN l.id IS NULL THEN 'ROW_GONE' WHEN h.problem IS NOT NULL THEN h.problem ELSE 'HELD_TWICE' END
  FROM daybook.adopted_rows h
  LEFT JOIN ` + a.table.Name + ` l ON l.id = h.legacy_id::` + a.id + `
 WHERE h.legacy_table = $1 AND (cardinality($2::text[]) = 0 OR h.org_id = ANY ($2))
   AND (l.id IS NULL OR h.problem IS NOT NULL OR l.state::text IN ('pending', 'leased'))
 ORDER BY h.org_id, h.legacy_id`
	details := map[string]string{
		"ROW_GONE": "the legacy row was removed: it can be given back no more",
		"COMPLETED_LATE": "the legacy worker completed the row after its lease had counted as abandoned: what is posted " +
			"of the document waits for a person",
		"HELD_TWICE": "the legacy row is open although Daybook holds it: the trigger is off, or was; repeat --apply, " +
			"then compare both ledgers for the document",
	}
	var row, code string
	return store.Each(ctx, q, []any{&row, &code}, func() error {
		problems.Add(code, details[code], row)
		return nil
	}, stmt, a.table.Name, a.orgs())
}

// findPostedTwice finds completed rows whose document Daybook has posted in full, and documents of
// which the legacy ledger has changed since.
func (a *Accounting) findPostedTwice(ctx context.Context, q store.Querier, problems *Problems) error {
	const twice = `
SELECT h.org_id || '/' || h.legacy_id
  FROM daybook.adopted_rows h
  LEFT JOIN daybook.posted_elsewhere p ON p.org_id = h.org_id AND p.document_id = h.document_id
 WHERE h.legacy_table = $1 AND (cardinality($2::text[]) = 0 OR h.org_id = ANY ($2)) AND h.taken_state = 'completed'
   AND (p.next = 'wait') IS NOT FALSE
   AND EXISTS (SELECT FROM daybook.impacts i WHERE i.org_id = h.org_id AND i.document_id = h.document_id AND i.kind = 'post'
                  AND NOT EXISTS (SELECT FROM daybook.impacts x WHERE x.org_id = i.org_id AND x.document_id = i.document_id AND x.previous_seq = i.seq))
 ORDER BY 1`
	var row string
	if err := store.Each(ctx, q, []any{&row}, func() error {
		problems.Add("POSTED_TWICE", "both systems have posted the document: decide by `daybook accounting elsewhere`", row)
		return nil
	}, twice, a.table.Name, a.orgs()); err != nil || a.entries == nil {
		return err
	}
	return a.findChangedEntries(ctx, q, problems)
}

// findChangedEntries compares what is on record of the legacy ledger with what it holds now.
func (a *Accounting) findChangedEntries(ctx context.Context, q store.Querier, problems *Problems) error {
	const stmt = `
SELECT h.legacy_id, h.org_id, h.document_id, p.entries::text
  FROM daybook.adopted_rows h
  LEFT JOIN daybook.posted_elsewhere p ON p.org_id = h.org_id AND p.document_id = h.document_id
 WHERE h.legacy_table = $1 AND (cardinality($2::text[]) = 0 OR h.org_id = ANY ($2)) AND h.legacy_id > $3
   AND (p.org_id IS NULL OR p.next = 'difference')
 ORDER BY h.legacy_id
 LIMIT $4`
	for after := ""; ; {
		var jobs []legacyJob
		var recorded []*string
		var j legacyJob
		var entries *string
		err := store.Each(ctx, q, []any{&j.id, &j.org, &j.document, &entries}, func() error {
			jobs, recorded = append(jobs, j), append(recorded, entries)
			return nil
		}, stmt, a.table.Name, a.orgs(), after, 10*BatchRows)
		if err != nil || len(jobs) == 0 {
			return err
		}
		found, err := a.readEntries(ctx, q, jobs)
		if err != nil {
			return err
		}
		for i := range jobs {
			same, err := sameEntries(recorded[i], found[jobs[i].document+"\x00"+jobs[i].org])
			if err != nil {
				return err
			}
			if !same {
				problems.Add("ENTRIES_CHANGED", "the legacy ledger's entries of the document are not those on record: the "+
					"legacy system posted or took back after the row was adopted",
					jobs[i].org+"/"+jobs[i].id)
			}
		}
		after = jobs[len(jobs)-1].id
	}
}

// sameEntries reports whether what is on record is what the legacy ledger holds. Both are in the
// order of accounts and currencies.
func sameEntries(recorded *string, found *legacyEntries) (bool, error) {
	var known, now []models.EntryElsewhere
	if recorded != nil {
		if err := json.Unmarshal([]byte(*recorded), &known); err != nil {
			return false, err
		}
	}
	if found != nil {
		now = found.entries()
	}
	if len(known) != len(now) {
		return false, nil
	}
	for i := range known {
		if known[i] != now[i] {
			return false, nil
		}
	}
	return true, nil
}
