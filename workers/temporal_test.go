package workers_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workers"
)

// later is a client of the bundle's server through a proxy that is not started yet.
func (b *bundle) later() (*toxiproxy.Proxy, client.Client) {
	b.t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	proxy := toxiproxy.NewProxy(server, "temporal", "127.0.0.1:0", b.server.Address)
	// Starting it once gives it a port, which it keeps.
	require.NoError(b.t, proxy.Start())
	proxy.Stop()
	b.t.Cleanup(proxy.Stop)
	c, err := client.NewLazyClient(client.Options{HostPort: proxy.Listen, Namespace: b.namespace})
	require.NoError(b.t, err)
	b.t.Cleanup(c.Close)
	return proxy, c
}

// written is what was logged.
type written struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// A worker that starts before Temporal says so, and works when Temporal comes.
func TestRunWaitsForTemporal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	proxy, lazy := b.later()
	direct := b.client
	b.client = lazy
	log := &written{}
	b.start(workers.AccountingOptions{Log: slog.New(slog.NewTextHandler(log, nil))})
	b.client = direct
	b.ready(1)
	b.eventually("the worker tells that it waits", 30*time.Second, func() bool {
		return strings.Contains(log.String(), "Temporal is unavailable; trying again")
	})
	assert.Equal(t, 1, b.states()[models.JobPending])

	require.NoError(t, proxy.Start())

	assert.EqualValues(t, 1, b.drainOnce().Completed)
}

// A worker that waits for Temporal ends when it is told to.
func TestRunEndsWhileItWaitsForTemporal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, lazy := b.later()
	w, err := workers.NewAccounting(workers.AccountingOptions{
		Client: lazy, Pool: b.Pool,
		Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	defer w.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	assert.NoError(t, w.Run(ctx))
}

// A namespace that does not exist is an error, and nothing to wait for.
func TestRunRefusesAWrongNamespace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c, err := client.NewLazyClient(client.Options{HostPort: b.server.Address, Namespace: "no-such-namespace"})
	require.NoError(t, err)
	defer c.Close()
	w, err := workers.NewAccounting(workers.AccountingOptions{
		Client: c, Pool: b.Pool,
		Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	defer w.Close()
	err = w.Run(t.Context())
	require.ErrorIs(t, err, workers.ErrTemporalRefuses)
	assert.ErrorContains(t, err, "no-such-namespace")
}
