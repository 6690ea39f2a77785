package ledgerdb_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
)

// TestLargeDocumentIsReadAlone: a document that is larger than what is read at a time comes later
// than those before it, and alone it is read.
func TestLargeDocumentIsReadAlone(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	const org = "org_1"
	fixture.Organization(t, db.Pool, org)
	fixture.ManyReady(t, db.Pool, org, "doc-", 3)
	_, err := db.Pool.Exec(t.Context(), `
UPDATE daybook.documents SET content = content || jsonb_build_object('pad', (SELECT string_agg(md5(n::text), '') FROM generate_series(1, 30000) n)) WHERE id = 'doc-2'`)
	require.NoError(t, err)
	small, large, other := ledgerdb.DocumentKey{OrgID: org, ID: "doc-1"}, ledgerdb.DocumentKey{OrgID: org, ID: "doc-2"},
		ledgerdb.DocumentKey{OrgID: org, ID: "doc-3"}
	here, later := ledgerdb.DocumentHere, ledgerdb.DocumentLater
	for _, c := range []struct {
		keys []ledgerdb.DocumentKey
		want []ledgerdb.FoundState
	}{
		{[]ledgerdb.DocumentKey{large}, []ledgerdb.FoundState{here}},
		{[]ledgerdb.DocumentKey{large, small}, []ledgerdb.FoundState{here, later}},
		{[]ledgerdb.DocumentKey{small, large, other}, []ledgerdb.FoundState{here, later, later}},
		{[]ledgerdb.DocumentKey{small, other}, []ledgerdb.FoundState{here, here}},
	} {
		fixture.Tx(t, db.Pool, func(ctx context.Context, tx pgx.Tx) {
			found, _, err := ledgerdb.LockDocuments(ctx, tx, c.keys)
			require.NoError(t, err)
			var states []ledgerdb.FoundState
			for _, f := range found {
				states = append(states, f.State)
			}
			assert.Equal(t, c.want, states)
		})
	}
}

// TestPutDocuments writes documents in one statement: those that are new or changed become ready in
// their next version, one that is unchanged is neither written nor waited for, and one that is
// deleted stays so.
func TestPutDocuments(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	const org = "org_1"
	fixture.Organization(t, db.Pool, org)
	put := func(payable map[string]int64, ids ...string) (puts []ledgerdb.Put, err error) {
		var docs []ledgerdb.NewDocument
		for _, id := range ids {
			text := fmt.Sprintf(`{"payable": %d}`, payable[id])
			docs = append(docs, ledgerdb.NewDocument{Document: fixture.Invoice(org, id, 100), Text: text})
		}
		err = store.Begin(t.Context(), db.Pool, func(tx pgx.Tx) (err error) {
			if _, err = tx.Exec(t.Context(), `SET LOCAL lock_timeout = '2s'`); err != nil {
				return err
			}
			puts, err = ledgerdb.PutDocuments(t.Context(), tx, docs, true)
			return err
		})
		return puts, err
	}
	puts, err := put(map[string]int64{"a": 1, "b": 1, "c": 1}, "a", "c", "b")
	require.NoError(t, err)
	inserted := ledgerdb.Put{Result: ledgerdb.PutInserted, Version: 1}
	assert.Equal(t, []ledgerdb.Put{inserted, inserted, inserted}, puts)

	holder, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = holder.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = holder.Exec(t.Context(), `SELECT FROM daybook.documents WHERE id = 'a' FOR UPDATE`)
	require.NoError(t, err)
	_, err = db.Pool.Exec(t.Context(), `SELECT daybook.mark_document_deleted($1, 'c')`, org)
	require.NoError(t, err)
	puts, err = put(map[string]int64{"a": 1, "b": 2, "c": 2, "d": 1}, "c", "d", "a", "b")
	require.NoError(t, err)
	unchanged := ledgerdb.Put{Result: ledgerdb.PutUnchanged}
	assert.Equal(t, []ledgerdb.Put{unchanged, inserted, unchanged, {Result: ledgerdb.PutChanged, Version: 2}}, puts)

	_, err = put(map[string]int64{}, "e", "e")
	require.ErrorContains(t, err, "21000", "one is named twice")
	// A row that was removed comes back in a version of its own.
	_, err = db.Pool.Exec(t.Context(), `
DELETE FROM daybook.documents WHERE id = 'b';
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint) VALUES ('org_1', 'b', 7)`)
	require.NoError(t, err)
	puts, err = put(map[string]int64{"b": 2}, "b")
	require.NoError(t, err)
	assert.Equal(t, []ledgerdb.Put{{Result: ledgerdb.PutInserted, Version: 8}}, puts)
}
