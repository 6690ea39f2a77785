package workers_test

import (
	"net/url"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workers"
)

// proxied puts a proxy between the database and the pool that it returns.
func (b *bundle) proxied() (*toxiproxy.Proxy, *pgxpool.Pool) {
	b.t.Helper()
	address, err := url.Parse(b.URL)
	require.NoError(b.t, err)
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	proxy := toxiproxy.NewProxy(server, "postgres", "127.0.0.1:0", address.Host)
	require.NoError(b.t, proxy.Start())
	b.t.Cleanup(proxy.Stop)
	address.Host = proxy.Listen
	pool, err := pgxpool.New(b.t.Context(), address.String())
	require.NoError(b.t, err)
	b.t.Cleanup(pool.Close)
	return proxy, pool
}

// TestDatabaseOutage makes the database unavailable to a worker in mid-turn, and then available
// again.
func TestDatabaseOutage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	proxy, pool := b.proxied()
	direct := b.Pool
	b.Pool = pool
	b.start(workers.AccountingOptions{Name: "cut-off"})
	b.Pool = direct
	b.ready(backlog)
	id := b.run(`{}`)
	b.inMidTurn("cut-off")

	proxy.Stop()

	cut, history := time.Now(), b.historyLength(id)
	b.eventually("the outage lasts", 30*time.Second, func() bool { return time.Since(cut) > 5*time.Second })
	assert.NotZero(t, b.states()[models.JobPending])
	assert.InDelta(t, history, b.historyLength(id), 12, "an outage fills no history")
	assert.LessOrEqual(t, b.attempts(id), 1, "the turns wait for the database")

	require.NoError(t, proxy.Start())
	b.eventually("everything is posted", 60*time.Second,
		func() bool { return b.states()[models.JobCompleted] == backlog })
	b.assertExactlyOnce(backlog)
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.attempts WHERE outcome <> 'completed'`),
		"no job was charged")
}

// attempts is the highest attempt of any pending activity.
func (b *bundle) attempts(id string) int {
	b.t.Helper()
	d, err := b.client.DescribeWorkflow(b.t.Context(), id, "")
	require.NoError(b.t, err)
	most := 0
	for _, a := range d.RawResponse.GetPendingActivities() {
		most = max(most, int(a.GetAttempt()))
	}
	return most
}

func (b *bundle) historyLength(id string) int64 {
	b.t.Helper()
	d, err := b.client.DescribeWorkflow(b.t.Context(), id, "")
	require.NoError(b.t, err)
	return d.RawResponse.GetWorkflowExecutionInfo().GetHistoryLength()
}
