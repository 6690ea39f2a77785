package health_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/watching/health"
)

// TestTransactionUnshared: what workers say of types that share no transactions is found until they
// have stopped, or say something else.
func TestTransactionUnshared(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := store.NewQueue(b.Pool, store.Jobs)
	tend := func(name string, unshared map[string]string) {
		t.Helper()
		_, err := s.Tend(t.Context(), store.JobWorker{ID: name, Name: name, Types: []string{"mail"}, Unshared: unshared})
		require.NoError(t, err)
	}
	tend("host/1", nil)
	assert.Empty(t, of(b.check(), health.TransactionUnshared))
	tend("host/1", map[string]string{"mail": "SET"})
	b.exec(`INSERT INTO daybook.job_types (kind, type, owner, worker) VALUES ('jobs', 'mail', 'growth', 'host/1')`)
	f := one(t, b.check(), health.TransactionUnshared)
	assert.Equal(t, "growth", f.Owner)
	assert.Equal(t, health.Warning, f.Severity)
	assert.Contains(t, f.Says, "Jobs of type mail have SharedTransaction in their policy and share no transactions on "+
		"worker host/1, because a function that was given to InTx did what its neighbours would notice: SET.")
	tend("host/2", map[string]string{"mail": "SET"})
	assert.Contains(t, one(t, b.check(), health.TransactionUnshared).Says, "on 2 workers, host/1 among them,")
	tend("host/2", nil)
	assert.Contains(t, one(t, b.check(), health.TransactionUnshared).Says, "on worker host/1,")
	require.NoError(t, s.NoteJobWorkerStopped(t.Context(), "host/1"))
	assert.Empty(t, of(b.check(), health.TransactionUnshared))
}
