package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-dev/daybook/admin/schedules"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/watching/health"
)

// TestTemporalDiesUnderACommand: what a command asks of a Temporal that has answered and does so no
// more is an outage, whatever was asked.
func TestTemporalDiesUnderACommand(t *testing.T) {
	server := temporaltest.Shared(t)
	namespace := server.Namespace(t)
	proxy := toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), "temporal",
		"127.0.0.1:0", server.Address)
	require.NoError(t, proxy.Start())
	t.Cleanup(proxy.Stop)
	inNamespace(t, &temporaltest.Server{Address: proxy.Listen}, namespace)
	a, err := cli.New(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{})
	require.NoError(t, err)
	require.NoError(t, a.SetUp())
	daily := schedules.Schedule{ID: "daily", OrgID: "acme", Payload: unscheduled{}, Every: time.Hour}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	err = a.WithTemporal(t.Context(), func(c client.Client) error {
		require.NoError(t, schedules.Create(t.Context(), c, daily))
		proxy.Stop()
		var asked errgroup.Group
		for name, ask := range map[string]func() error{
			"schedules create":    func() error { return schedules.Create(ctx, c, daily) },
			"schedules list":      func() error { _, err := schedules.List(ctx, c, ""); return err },
			"schedules trigger":   func() error { return schedules.Trigger(ctx, c, "daily") },
			"workflow show":       func() error { _, err := health.Workflows(ctx, c, health.OfFleet(""), 5*time.Second); return err },
			"workflow pause":      func() error { return c.SignalWorkflow(ctx, "w", "", "pause", nil) },
			"workflow cancel":     func() error { return c.CancelWorkflow(ctx, "w", "") },
			"whether it runs yet": func() error { _, err := cli.AccountingLoop.Runs(ctx, c); return err },
		} {
			asked.Go(func() error {
				err := ask()
				assert.Equal(t, failure.TemporalUnavailable, classify(t.Context(), err), "%s: %v", name, err)
				return nil
			})
		}
		return asked.Wait()
	})
	require.NoError(t, err)
}
