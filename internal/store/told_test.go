package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
)

// TestWhatIsNotCommittedIsNotTold: the rows of a statement arrive before its commit fails.
func TestWhatIsNotCommittedIsNotTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.insert(`VALUES ('d1', 2, 0)`)
	var told []store.Change
	b.store.Observe(func(changes []store.Change) { told = append(told, changes...) })
	turn := b.turn("run/0/1")
	require.Len(t, b.lease(turn, 1), 1)
	b.exec(`CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused at the commit'; END $$`)
	b.exec(`CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON daybook.accounting_work_queue DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.refuse()`)
	_, err := b.store.GiveBack(t.Context(), turn, nil, time.Second)
	require.ErrorContains(t, err, "refused at the commit")
	assert.Empty(t, told)
	b.exec(`DROP TRIGGER refuse ON daybook.accounting_work_queue`)
	n, err := b.store.GiveBack(t.Context(), turn, nil, time.Second)
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.Len(t, told, 1)
}
