package main

import (
	"net"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/watching/health"
)

// TestFirstServerStandsStill: the first server of an address takes connections and answers none;
// doctor reaches the second one, in the time that it has.
func TestFirstServerStandsStill(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var config net.ListenConfig
	frozen, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = frozen.Close() }()
	address, err := url.Parse(b.URL)
	require.NoError(t, err)
	address.Host = frozen.Addr().String() + "," + address.Host
	b.URL = address.String()
	assert.Empty(t, b.findings(health.DatabaseUnavailable))
	b.ok("status")
}
