package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// imported is an import of invoices.
func (s *site) imported(ids ...string) int64 {
	s.t.Helper()
	id, err := ledgerdb.BeginImport(s.t.Context(), s.Pool,
		models.Import{OrgID: "acme", Format: "csv", Files: "march.csv", Actor: "clerk"})
	require.NoError(s.t, err)
	fixture.Tx(s.t, s.Pool, func(ctx context.Context, tx pgx.Tx) {
		var docs []ledgerdb.NewDocument
		for _, one := range ids {
			d := fixture.Invoice("acme", one, 1000)
			d.ImportID = &id
			text, err := json.Marshal(d.Content)
			require.NoError(s.t, err)
			docs = append(docs, ledgerdb.NewDocument{Document: d, Text: string(text)})
		}
		puts, err := ledgerdb.PutImported(ctx, tx, docs)
		require.NoError(s.t, err)
		for i, p := range puts {
			_, err := queue.EnqueueAccountingJob(ctx, tx, queue.AccountingJob{OrgID: "acme", DocumentID: ids[i], Version: p.Version})
			require.NoError(s.t, err)
		}
	})
	require.NoError(s.t, ledgerdb.EndImport(s.t.Context(), s.Pool, models.Import{ID: id, Inserted: int64(len(ids))}))
	return id
}

// TestAnImportIsUndone: its page says what an undo would do before it does it.
func TestAnImportIsUndone(t *testing.T) {
	t.Parallel()
	s := books(t, tokens.ScopeOperate)
	sees(t, s.see("/console/imports?org=acme"), "Nothing was imported")
	id := s.imported("a", "b")
	s.work()
	s.write(fixture.Invoice("acme", "b", 2000))
	sees(t, s.see("/console/imports?org=acme"), "march.csv", "clerk", "csv")
	page := fmt.Sprintf("/console/imports/%d", id)
	sees(t, s.see(page+"?org=acme"), "0 removed, 1 reversed, 0 restored, 1 kept", "CHANGED_SINCE", "it was changed since", "Undo the import")
	assert.EqualValues(t, 1190, fixture.Balance(t, s.Pool, "acme", "1200", "EUR")/2, "a dry run changes nothing")
	sees(t, s.done(page+"/undo", url.Values{}), "Undone: 0 removed, 1 to be reversed, 0 restored, 1 kept", "Nothing is left to undo")
	sees(t, s.done(page+"/undo", url.Values{}), "Nothing was changed")
	sees(t, s.see("/console/imports?org=acme"), "all but 1")
	sees(t, s.see("/console/actions?org=acme"), "imports.undo")
	status, _ := s.get("/console/imports/999?org=acme")
	assert.Equal(t, http.StatusNotFound, status)

	require.NoError(t, store.Begin(t.Context(), s.Pool, func(tx pgx.Tx) error {
		return store.PutOrganization(t.Context(), tx, "other", "other")
	}))
	status, _ = s.get(page + "?org=other")
	assert.Equal(t, http.StatusNotFound, status, "another organization's")
}
