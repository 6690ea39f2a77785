package queue_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

type readiness struct {
	Version   int64
	ReadyAt   *time.Time
	DeletedAt *time.Time
}

func (b *bundle) readiness() readiness {
	b.t.Helper()
	var r readiness
	require.NoError(b.t, b.Pool.QueryRow(b.t.Context(),
		`SELECT accounting_ready_version, accounting_ready_at, deleted_at FROM daybook.documents WHERE org_id = $1 AND id = $2`, org, doc).
		Scan(&r.Version, &r.ReadyAt, &r.DeletedAt))
	return r
}

type mark func(context.Context, queue.Querier, queue.Document) (queue.Marked, error)

func (b *bundle) mark(f mark, d queue.Document) queue.Marked {
	b.t.Helper()
	var m queue.Marked
	fixture.Tx(b.t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
		var err error
		m, err = f(ctx, tx, d)
		require.NoError(b.t, err)
	})
	return m
}

func TestMarkingADocument(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.putDocument()
	d := queue.Document{OrgID: org, ID: doc}

	before := b.clock()
	m := b.mark(queue.MarkDocumentReady, queue.Document{OrgID: org, ID: doc, Priority: queue.High})
	r := b.readiness()
	assert.Equal(t, queue.Enqueued, m.Result)
	assert.EqualValues(t, 1, m.Version)
	assert.EqualValues(t, 1, r.Version)
	if assert.NotNil(t, r.ReadyAt, "accounting_ready_at") {
		assert.False(t, r.ReadyAt.Before(before))
	}
	job := b.job()
	assert.EqualValues(t, 1, job.VersionHint)
	assert.Equal(t, queue.High, job.Priority)

	// Marked again, it has a new version.
	m = b.mark(queue.MarkDocumentReady, d)
	assert.Equal(t, queue.Coalesced, m.Result)
	assert.EqualValues(t, 2, m.Version)
	assert.Equal(t, queue.High, b.job().Priority, "the priority does not fall")

	m = b.mark(queue.MarkDocumentNotReady, d)
	assert.Equal(t, queue.Coalesced, m.Result)
	assert.EqualValues(t, 3, m.Version)
	r = b.readiness()
	assert.Nil(t, r.ReadyAt, "accounting_ready_at")
	assert.Nil(t, r.DeletedAt, "deleted_at")

	m = b.mark(queue.MarkDocumentDeleted, d)
	assert.Equal(t, queue.Coalesced, m.Result)
	assert.EqualValues(t, 4, m.Version)
	deletedAt := b.readiness().DeletedAt
	assert.NotNil(t, deletedAt, "deleted_at")

	// Deleting twice is one deletion.
	m = b.mark(queue.MarkDocumentDeleted, d)
	assert.Equal(t, queue.Unchanged, m.Result)
	assert.EqualValues(t, 4, m.Version)
	assert.Equal(t, deletedAt, b.readiness().DeletedAt)
	assert.EqualValues(t, 4, b.job().VersionHint)
}

func TestMarkingADocumentThatIsNotThere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, c := range map[string]struct {
		mark mark
		todo string
	}{
		"ready":     {queue.MarkDocumentReady, "write the document in the same transaction"},
		"not ready": {queue.MarkDocumentNotReady, "write the document in the same transaction"},
		"deleted":   {queue.MarkDocumentDeleted, "it was never enqueued either, so that nothing has to be done"},
	} {
		tx, err := b.Pool.Begin(t.Context())
		require.NoError(t, err)
		_, err = c.mark(t.Context(), tx, queue.Document{OrgID: org, ID: doc})
		require.ErrorIs(t, err, queue.ErrDocumentNotFound, name)
		assert.ErrorContains(t, err, c.todo, name)
		require.NoError(t, tx.Rollback(t.Context()))
	}
	assert.Zero(t, b.jobs())
}

// TestTheHighestVersionLeavesRoom asks for the highest version that a request may name, before its
// document is written: the document can still be written, marked and deleted, and the next version
// is above it.
func TestTheHighestVersionLeavesRoom(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const highest = 1<<62 - 1
	j := queue.AccountingJob{OrgID: org, DocumentID: doc, Version: highest + 1}
	_, err := queue.EnqueueAccountingJob(t.Context(), b.Pool, j)
	require.ErrorIs(t, err, queue.ErrInvalid)
	_, err = queue.EnqueueAccountingJobs(t.Context(), b.Pool, []queue.AccountingJob{j})
	require.ErrorIs(t, err, queue.ErrInvalid)
	j.Version = highest
	_, err = queue.EnqueueAccountingJob(t.Context(), b.Pool, j)
	require.NoError(t, err)
	b.putDocument()
	d := queue.Document{OrgID: org, ID: doc}
	assert.Greater(t, b.mark(queue.MarkDocumentReady, d).Version, int64(highest))
	assert.Greater(t, b.mark(queue.MarkDocumentDeleted, d).Version, int64(highest))
}

func TestADeletedDocumentIsNotMarkedReady(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.putDocument()
	b.mark(queue.MarkDocumentDeleted, queue.Document{OrgID: org, ID: doc})
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = queue.MarkDocumentReady(t.Context(), tx, queue.Document{OrgID: org, ID: doc})
	require.ErrorIs(t, err, queue.ErrDocumentDeleted)
	require.NoError(t, tx.Rollback(t.Context()))
	assert.EqualValues(t, 1, b.readiness().Version, "the version is as it was")
}

// A job that slows down because its document is not ready is due at once when the document becomes
// ready.
func TestMarkingReadyPullsForward(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.putDocument()
	b.bring(models.JobPending)
	b.exec(`UPDATE daybook.documents SET accounting_ready_version = 5`)

	m := b.mark(queue.MarkDocumentReady, queue.Document{OrgID: org, ID: doc})

	assert.Equal(t, queue.Coalesced, m.Result)
	job := b.job()
	assert.False(t, job.ReadyAt.After(b.clock()), "due at once")
	assert.Zero(t, job.NotReadyCount, "not_ready_count")
}

// The caller's transaction holds the document; the version that it was given is the one it commits.
func TestMarkingSerialises(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.putDocument()
	const markers = 20
	versions := make(chan int64, markers)
	failures := make(chan error, markers)
	for range markers {
		go func() {
			failures <- pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
				m, err := queue.MarkDocumentReady(t.Context(), tx, queue.Document{OrgID: org, ID: doc})
				versions <- m.Version
				return err
			})
		}()
	}
	seen := map[int64]bool{}
	for range markers {
		require.NoError(t, <-failures)
		seen[<-versions] = true
	}
	assert.Len(t, seen, markers, "each has a version of its own")
	assert.EqualValues(t, markers, b.job().VersionHint)
}

func TestEnqueueManyAnswersInOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	for _, id := range []string{"completed", "failed", "leased"} {
		_, err := queue.EnqueueAccountingJob(ctx, b.Pool, queue.AccountingJob{OrgID: org, DocumentID: id, Version: 5})
		require.NoError(t, err)
		turn, job := b.lease()
		switch id {
		case "completed":
			b.endAttempt(turn, job.ID, models.OutcomeCompleted, "", 0)
		case "failed":
			b.endAttempt(turn, job.ID, models.OutcomeFailed, models.CodeUnbalanced, 0)
		}
	}
	_, err := queue.EnqueueAccountingJob(ctx, b.Pool, queue.AccountingJob{OrgID: org, DocumentID: "pending", Version: 5})
	require.NoError(t, err)
	cases := []struct {
		document string
		version  int64
		want     queue.Result
	}{
		{"zzz", 1, queue.Enqueued},
		{"pending", 6, queue.Coalesced},
		{"completed", 5, queue.Unchanged},
		{"leased", 6, queue.Coalesced},
		{"aaa", 1, queue.Enqueued},
		{"failed", 6, queue.Requeued},
		{"aaa", 1, queue.Unchanged},
		{"aaa", 2, queue.Coalesced},
		{"aaa", 1, queue.Unchanged},
	}
	jobs := make([]queue.AccountingJob, len(cases))
	for i, c := range cases {
		jobs[i] = queue.AccountingJob{OrgID: org, DocumentID: c.document, Version: c.version}
	}

	rs, err := queue.EnqueueAccountingJobs(ctx, b.Pool, jobs)

	require.NoError(t, err)
	require.Len(t, rs, len(cases))
	for i, c := range cases {
		assert.Equal(t, c.want, rs[i].Result, "job %d, %s", i, c.document)
		assert.Equal(t, fixture.Job(t, b.Pool, org, c.document).ID, rs[i].JobID, "job %d, %s", i, c.document)
	}
	assert.EqualValues(t, 2, fixture.Job(t, b.Pool, org, "aaa").VersionHint)
}

// A row is inserted at the place that its key has in the order of all keys, also when the jobs need
// several statements.
func TestEnqueueManyLocksInOneOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	// The first statement of two would hold all but "a", and the second would wait for the
	// transaction that holds it.
	jobs := make([]queue.AccountingJob, queue.MaxMany+1)
	for i := range jobs {
		jobs[i] = queue.AccountingJob{OrgID: org, DocumentID: numbered(queue.MaxMany - i), Version: int64(i)}
	}
	rs, err := queue.EnqueueAccountingJobs(t.Context(), b.Pool, jobs)
	require.NoError(t, err)
	require.Len(t, rs, len(jobs))
	last := fixture.Job(t, b.Pool, org, numbered(0))
	first := fixture.Job(t, b.Pool, org, numbered(queue.MaxMany))
	assert.Equal(t, first.ID, rs[0].JobID, "answers are in the order of the jobs")
	assert.Equal(t, last.ID, rs[queue.MaxMany].JobID, "answers are in the order of the jobs")
	assert.EqualValues(t, queue.MaxMany, last.VersionHint)
	assert.True(t, last.FirstReadyAt.Before(first.FirstReadyAt), "the smallest key is locked first")
}

// Daybook's own SQL names its schema: the caller's search path and a table of the same name do not
// matter.
func TestRequestsDoNotDependOnTheSearchPath(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.putDocument()
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = tx.Exec(t.Context(),
		`CREATE TEMP TABLE accounting_work_queue (id text); CREATE TEMP TABLE documents (id text); SET LOCAL search_path = pg_temp`)
	require.NoError(t, err)
	require.NoError(t, everything(t.Context(), tx))
}

func numbered(i int) string { return fmt.Sprintf("doc-%06d", i) }
