package httpapi_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// An import is listed with its documents, and taken back by a token that may operate its
// organization, in requests that go on where the one before ended.
func TestImportsOverHTTP(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, org := range []string{"acme", "other"} {
		fixture.Organization(t, b.Pool, org)
	}
	const many = 2001
	fixture.ManyReady(t, b.Pool, "acme", "doc-", many)
	var id int64
	require.NoError(t, b.Pool.QueryRow(t.Context(),
		`INSERT INTO daybook.imports (org_id, format, actor) VALUES ('acme', 'csv', 'someone') RETURNING id`).Scan(&id))
	_, err := b.Pool.Exec(t.Context(), `
WITH marked AS (UPDATE daybook.documents SET import_id = $1 RETURNING id, accounting_ready_version, updated_at)
INSERT INTO daybook.import_documents (import_id, document_id, created, version, written_at) SELECT $1, id, true, accounting_ready_version, updated_at FROM marked`, id)
	require.NoError(t, err)

	acme, other := b.token("acme", tokens.ScopeRead, tokens.ScopeOperate), b.token("other", tokens.ScopeRead, tokens.ScopeOperate)
	var list answers.ImportList
	b.send(acme, http.MethodGet, "/api/imports", nil).into(t, &list)
	require.Len(t, list.Imports, 1)
	assert.Equal(t, "csv", list.Imports[0].Format)
	assert.Nil(t, list.Imports[0].Undo)
	b.send(other, http.MethodGet, "/api/imports", nil).into(t, &list)
	assert.Empty(t, list.Imports)
	var documents struct {
		Documents  []answers.Document
		NextCursor string
	}
	b.send(acme, http.MethodGet, fmt.Sprintf("/api/documents?importId=%d&limit=2", id), nil).into(t, &documents)
	require.Len(t, documents.Documents, 2)
	assert.Equal(t, id, documents.Documents[0].ImportID)
	assert.NotEmpty(t, documents.NextCursor)

	path := fmt.Sprintf("/api/imports/%d/undo", id)
	assert.Equal(t, "IMPORT_NOT_FOUND", b.send(other, http.MethodPost, path, nil).code())
	assert.Equal(t, http.StatusForbidden, b.send(b.token("acme", tokens.ScopeRead), http.MethodPost, path, nil).status)
	var undone answers.Undone
	b.send(acme, http.MethodPost, path, object{"dryRun": true}).into(t, &undone)
	assert.EqualValues(t, 2000, undone.Removed)
	assert.Nil(t, undone.Import.Undo)
	undone = answers.Undone{}
	b.send(acme, http.MethodPost, path, nil).into(t, &undone)
	assert.EqualValues(t, 2000, undone.Removed)
	require.NotEmpty(t, undone.NextCursor)
	assert.Nil(t, undone.Import.Undo.EndedAt)
	a := b.send(acme, http.MethodPost, path, object{"cursor": undone.NextCursor})
	undone = answers.Undone{}
	a.into(t, &undone)
	assert.EqualValues(t, 1, undone.Removed)
	assert.Empty(t, undone.NextCursor)
	require.NotNil(t, undone.Import.Undo)
	assert.NotNil(t, undone.Import.Undo.EndedAt)
	assert.EqualValues(t, many, undone.Import.Undo.Removed)
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.documents`))
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.accounting_work_queue`))
}
