package ledgerdb_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
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
