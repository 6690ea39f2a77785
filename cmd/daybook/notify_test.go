package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
)

// TestServiceManagerIsTold: systemd learns from worker and serve when they are ready, that they are
// alive, and that they stop.
func TestServiceManagerIsTold(t *testing.T) {
	server := temporaltest.Shared(t)
	inNamespace(t, server, server.Namespace(t))
	b := setup(t)
	folder, err := os.MkdirTemp("", "notify") //nolint:usetesting // a socket's name is short, the test's folder's is not
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	for _, args := range [][]string{{"worker"}, {"serve", "--listen", "127.0.0.1:0"}} {
		socket := filepath.Join(folder, args[0])
		told, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
		require.NoError(t, err)
		t.Setenv("NOTIFY_SOCKET", socket)
		t.Setenv("WATCHDOG_USEC", "300000")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan result, 1)
		go func() { ended <- call(ctx, "", append([]string{"--database-url", b.URL}, args...)...) }()

		next := func(want string) {
			t.Helper()
			line := make([]byte, 1000)
			require.NoError(t, told.SetReadDeadline(time.Now().Add(time.Minute)))
			for {
				n, _, err := told.ReadFromUnix(line)
				require.NoError(t, err, "%s: waiting for %s", args[0], want)
				if strings.HasPrefix(string(line[:n]), want) {
					return
				}
				require.NotContains(t, string(line[:n]), "STOPPING", "%s: waiting for %s", args[0], want)
			}
		}
		next("STATUS=")
		next("READY=1\nSTATUS=")
		next("WATCHDOG=1")
		next("WATCHDOG=1")
		stop()
		next("STOPPING=1")
		assert.Equal(t, failure.ExitOK, (<-ended).exit, args[0])
		require.NoError(t, told.Close())
	}
}
