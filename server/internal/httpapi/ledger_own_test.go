package httpapi_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/answers"
)

// TestDocumentsOfTheApplicationsOwnTables: they are listed and shown by what their jobs and impacts
// say, and under the name of their source.
func TestDocumentsOfTheApplicationsOwnTables(t *testing.T) {
	t.Parallel()
	b := posted(t)
	// As they are once the rows, and one of the jobs, are gone.
	for _, statement := range []string{
		`DELETE FROM daybook.documents WHERE org_id = 'acme' AND id <> 'a/2'`,
		`DELETE FROM daybook.accounting_work_queue WHERE org_id = 'acme' AND document_id = 'a/1'`,
		`UPDATE daybook.organizations SET source = 'shop' WHERE id = 'acme'`,
		`SELECT daybook.enqueue_accounting_job('acme', 'new', 7)`,
	} {
		_, err := b.Pool.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	type posting struct {
		JobID, State  string
		PostedVersion *int64
		ImpactID      *int64
	}
	type got struct {
		answers.Document
		Content map[string]any
		Posting *posting
	}
	var list struct {
		Documents  []answers.Document
		NextCursor string
	}
	b.get(&list, "/api/documents?orgId=acme&limit=3")
	require.Len(t, list.Documents, 3)
	assert.Equal(t, "shop", list.Documents[0].Source)
	assert.Equal(t, "2026-03-14", list.Documents[0].IssueDate)
	assert.Equal(t, "daybook", list.Documents[2].Source)
	assert.Equal(t, "invoice", list.Documents[2].Type)
	b.get(&list, "/api/documents?orgId=acme&limit=3&cursor="+list.NextCursor)
	require.Len(t, list.Documents, 1)
	assert.Equal(t, "new", list.Documents[0].ID)
	assert.Equal(t, int64(7), list.Documents[0].Version)

	var withJob, withoutJob, fresh got
	b.get(&withJob, "/api/documents/a%2F0?orgId=acme")
	assert.Equal(t, "shop", withJob.Source)
	assert.Empty(t, withJob.Content)
	assert.Equal(t, "completed", withJob.Posting.State)
	assert.Equal(t, int64(1), *withJob.Posting.PostedVersion)
	b.get(&withoutJob, "/api/documents/a%2F1?orgId=acme")
	assert.Empty(t, withoutJob.Posting.JobID)
	assert.Equal(t, int64(1), *withoutJob.Posting.PostedVersion)
	assert.NotNil(t, withoutJob.Posting.ImpactID)
	b.get(&fresh, "/api/documents/new?orgId=acme")
	assert.Equal(t, "pending", fresh.Posting.State)
	assert.Nil(t, fresh.Posting.PostedVersion)
}
