package adopt

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models/locks"
)

// Row is a row of daybook.adopted_rows, as an adoption writes it.
type Row struct {
	LegacyID string
	// Kind is the kind of the job: accounting or jobs. DocumentID and Version are nil for jobs.
	Kind       string
	OrgID      string
	DocumentID *string
	JobID      string
	Version    *int64
	// State is the state in which the row was adopted.
	State string
	// Generation is the job's right after.
	Generation int64
	// Legacy is the row as it was, as JSON.
	Legacy string
}

// Lock keeps other adoptions of the table out until the transaction ends. Each transaction of an
// adoption begins with it.
func Lock(ctx context.Context, tx pgx.Tx, table string) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1, hashtext($2))`, locks.Adoption, table)
	return store.Wrap("lock the adoption", err)
}

// Record puts rows on record as Daybook's, in the transaction that adopts them.
func Record(ctx context.Context, tx pgx.Tx, table string, rows []Row) error {
	const stmt = `
INSERT INTO daybook.adopted_rows (legacy_table, legacy_id, kind, org_id, document_id, job_id, version, taken_state, generation, legacy_row)
SELECT @table, * FROM unnest(@ids::text[], @kinds::text[], @orgs::text[], @documents::text[], @jobs::text[], @versions::bigint[], @states::text[],
                             @generations::bigint[], @rows::jsonb[])`
	n := len(rows)
	ids, kinds, orgs, documents, jobs := make([]string, n), make([]string, n), make([]string, n), make([]*string, n),
		make([]string, n)
	versions, states, generations, legacy := make([]*int64, n), make([]string, n), make([]int64, n), make([]string, n)
	for i := range rows {
		r := &rows[i]
		ids[i], kinds[i], orgs[i], documents[i], jobs[i] = r.LegacyID, r.Kind, r.OrgID, r.DocumentID, r.JobID
		versions[i], states[i], generations[i], legacy[i] = r.Version, r.State, r.Generation, r.Legacy
	}
	_, err := tx.Exec(ctx, stmt, store.Args{
		"table": table, "ids": ids, "kinds": kinds, "orgs": orgs, "documents": documents, "jobs": jobs,
		"versions": versions, "states": states,
		"generations": generations, "rows": legacy,
	})
	return store.Wrap("record adopted rows", err)
}

// Forget takes rows off the record, in the transaction that gives them back.
func Forget(ctx context.Context, tx pgx.Tx, table string, ids []string) error {
	_, err := tx.Exec(ctx, `DELETE FROM daybook.adopted_rows WHERE legacy_table = $1 AND legacy_id = ANY ($2)`, table,
		ids)
	return store.Wrap("forget adopted rows", err)
}

// lockJobs locks, of the jobs that the statement names, those that can be had without waiting, and
// returns their ids. What has become of them is for the next statement to read: this one sees what
// was committed before it began, and a worker may have ended its transaction before the lock was
// had.
func lockJobs(ctx context.Context, tx pgx.Tx, stmt string, args ...any) ([]string, error) {
	ids, err := store.Collect(ctx, tx, pgx.RowTo[string], stmt+` FOR NO KEY UPDATE OF q SKIP LOCKED`, args...)
	return ids, store.Wrap("lock the jobs of adopted rows", err)
}
