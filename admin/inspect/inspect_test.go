package inspect_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/inspect"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func setup(t *testing.T) (*pgtest.DB, *inspect.Reader) {
	t.Helper()
	db := pgtest.New(t)
	r, err := inspect.New(db.Pool)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	return db, r
}

// The pages of a list have each of its rows once, the last enqueued first.
func TestPagesOfAccountingJobs(t *testing.T) {
	t.Parallel()
	db, r := setup(t)
	var want []string
	for n := range 5 {
		document := fmt.Sprint("doc-", n)
		want = append([]string{document}, want...)
		_, err := queue.EnqueueAccountingJob(t.Context(), db.Pool,
			queue.AccountingJob{OrgID: "o", DocumentID: document, Version: 1})
		require.NoError(t, err)
	}
	var got []string
	page := inspect.Page{Limit: 2}
	for pages := 1; ; pages++ {
		list, err := r.AccountingJobs(t.Context(), inspect.AccountingFilter{State: models.JobPending}, page)
		require.NoError(t, err)
		for _, j := range list.Jobs {
			got = append(got, j.DocumentID)
		}
		if page.Cursor = list.Next; page.Cursor == "" {
			assert.Equal(t, 3, pages)
			break
		}
	}
	assert.Equal(t, want, got)
}

// A limit or a cursor that is none is refused by each list, and what is not there is told apart.
func TestWrongPages(t *testing.T) {
	t.Parallel()
	_, r := setup(t)
	for name, p := range map[string]inspect.Page{
		"negative": {Limit: -1}, "too large": {Limit: inspect.MaxLimit + 1},
		"cursor": {Cursor: "no cursor"},
	} {
		_, err := r.Jobs(t.Context(), inspect.JobFilter{}, p)
		require.ErrorIs(t, err, inspect.ErrInvalid, name)
		_, err = r.AccountingJobs(t.Context(), inspect.AccountingFilter{}, p)
		require.ErrorIs(t, err, inspect.ErrInvalid, name)
		_, err = r.Tasks(t.Context(), inspect.TaskFilter{}, p)
		require.ErrorIs(t, err, inspect.ErrInvalid, name)
	}
	_, err := r.Tasks(t.Context(), inspect.TaskFilter{State: "perhaps"}, inspect.Page{})
	require.ErrorIs(t, err, inspect.ErrInvalid)
	_, err = r.AccountingJob(t.Context(), "o", "unknown")
	require.ErrorIs(t, err, inspect.ErrJobNotFound)
	_, err = r.Task(t.Context(), 1)
	require.ErrorIs(t, err, inspect.ErrTaskNotFound)
}

// The zero value, and a Reader that is nil, say that New makes one.
func TestAReaderThatWasNotMade(t *testing.T) {
	t.Parallel()
	for _, r := range []*inspect.Reader{nil, {}} {
		said := map[string]error{"Close": r.Close()}
		_, said["Jobs"] = r.Jobs(t.Context(), inspect.JobFilter{}, inspect.Page{})
		_, said["Job"] = r.Job(t.Context(), "acme", "j")
		_, said["AccountingJobs"] = r.AccountingJobs(t.Context(), inspect.AccountingFilter{}, inspect.Page{})
		_, said["AccountingJob"] = r.AccountingJob(t.Context(), "acme", "d")
		_, said["Tasks"] = r.Tasks(t.Context(), inspect.TaskFilter{}, inspect.Page{})
		_, said["Task"] = r.Task(t.Context(), 1)
		_, said["TaskHistory"] = r.TaskHistory(t.Context(), 1, inspect.Page{})
		for method, err := range said {
			require.ErrorIs(t, err, inspect.ErrNotMade, method)
		}
	}
}

// Jobs are found by their queue and by what they wait for, and the history of a task has its facts.
func TestWhatWaits(t *testing.T) {
	t.Parallel()
	db, r := setup(t)
	_, err := queue.SetQueue(t.Context(), db.Pool, queue.NamedQueue{Name: "slow"})
	require.NoError(t, err)
	enqueue := func(o queue.JobOptions) string {
		j, err := queue.EnqueueJob(t.Context(), db.Pool, "o", queue.RawPayload{Type: "mail"}, o)
		require.NoError(t, err)
		return j.ID
	}
	first := enqueue(queue.JobOptions{Queue: "slow", Sequence: "s"})
	next := enqueue(queue.JobOptions{Sequence: "s"})
	after := enqueue(queue.JobOptions{After: []string{first}})
	called, err := queue.EnqueueJobWithCallback(t.Context(), db.Pool, "o", queue.RawPayload{Type: "mail"},
		queue.CallbackOptions{Name: "paid", Within: time.Hour}, queue.JobOptions{})
	require.NoError(t, err)
	_, err = db.Pool.Exec(t.Context(), `SELECT daybook.check_waits()`)
	require.NoError(t, err)
	for want, f := range map[string]inspect.JobFilter{
		first: {Queue: "slow"}, next: {Waits: inspect.WaitsForTurn}, after: {Waits: inspect.WaitsForJobs, Queue: "default"},
		called.ID: {Waits: inspect.WaitsForCallback},
	} {
		page, err := r.Jobs(t.Context(), f, inspect.Page{})
		require.NoError(t, err)
		require.Len(t, page.Jobs, 1, f)
		assert.Equal(t, want, page.Jobs[0].ID, f)
	}
	_, err = r.Jobs(t.Context(), inspect.JobFilter{Waits: "perhaps"}, inspect.Page{})
	require.ErrorIs(t, err, inspect.ErrInvalid)
	d, err := r.Job(t.Context(), "o", after)
	require.NoError(t, err)
	assert.Equal(t, []inspect.WaitsFor{{What: "job", ID: first, State: models.JobPending}}, d.WaitsFor)

	task, err := queue.EnqueueTask(t.Context(), db.Pool, Mail{"ann@example.com"}, queue.TaskOptions{})
	require.NoError(t, err)
	h, err := r.TaskHistory(t.Context(), task.ID, inspect.Page{})
	require.NoError(t, err)
	require.Len(t, h.Events, 1)
	assert.Equal(t, "enqueued", h.Events[0].Event)
	_, err = r.TaskHistory(t.Context(), task.ID+1, inspect.Page{})
	require.ErrorIs(t, err, inspect.ErrTaskNotFound)
	_, err = r.TaskHistory(t.Context(), task.ID, inspect.Page{Limit: -1})
	require.ErrorIs(t, err, inspect.ErrInvalid)
}

// A text that PostgreSQL cannot hold is refused by each list, in words of Daybook's.
func TestTextsThatNoRowCanHave(t *testing.T) {
	t.Parallel()
	_, r := setup(t)
	for _, wrong := range []string{"a\x00b", "a\xffb"} {
		said := map[string]error{}
		for name, f := range map[string]inspect.JobFilter{
			"organization": {OrgID: wrong}, "type": {Type: wrong},
			"dead letters of a type": {Type: wrong, State: models.JobFailed}, "code": {Code: models.ErrorCode(wrong)},
			"link": {LinkKind: wrong, LinkID: "1"}, "link's id": {LinkKind: "form", LinkID: wrong},
			"key": {IdempotencyKey: wrong}, "queue": {Queue: wrong},
			"waits": {Waits: inspect.Waits(wrong)}, "state": {State: models.JobState(wrong)},
		} {
			_, said["jobs: "+name] = r.Jobs(t.Context(), f, inspect.Page{})
		}
		for name, f := range map[string]inspect.AccountingFilter{
			"organization": {OrgID: wrong}, "state": {State: models.JobState(wrong)}, "code": {Code: models.ErrorCode(wrong)},
		} {
			_, said["accounting: "+name] = r.AccountingJobs(t.Context(), f, inspect.Page{})
		}
		_, said["tasks: type"] = r.Tasks(t.Context(), inspect.TaskFilter{Type: wrong}, inspect.Page{})
		_, said["tasks: state"] = r.Tasks(t.Context(), inspect.TaskFilter{State: models.TaskState(wrong)}, inspect.Page{})
		_, said["job"] = r.Job(t.Context(), "", wrong)
		_, said["job of an organization"] = r.Job(t.Context(), wrong, "j")
		_, said["accounting job"] = r.AccountingJob(t.Context(), "o", wrong)
		for name, err := range said {
			if assert.ErrorIs(t, err, inspect.ErrInvalid, name) {
				assert.NotContains(t, err.Error(), "SQLSTATE", name)
			}
		}
	}
}
