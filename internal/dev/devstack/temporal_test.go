package devstack

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"
)

func dial(t *testing.T, address string) client.Client {
	t.Helper()
	c, err := client.DialContext(t.Context(), client.Options{HostPort: address, Logger: silent{}})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func registerNamespace(t *testing.T, address, name string) {
	t.Helper()
	_, err := dial(t, address).WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	require.NoError(t, err)
}

func namespaces(t *testing.T, address string) []string {
	t.Helper()
	list, err := dial(t, address).WorkflowService().ListNamespaces(t.Context(),
		&workflowservice.ListNamespacesRequest{PageSize: 100})
	require.NoError(t, err)
	var names []string
	for _, n := range list.Namespaces {
		names = append(names, n.NamespaceInfo.Name)
	}
	return names
}

func TestToolsPinTheSameTemporalCLI(t *testing.T) {
	t.Parallel()
	goMod, err := os.ReadFile("../../../tools/go.mod")
	require.NoError(t, err)
	pin := regexp.MustCompile(regexp.QuoteMeta(temporalModule) + ` (v\S+)`).FindSubmatch(goMod)
	require.NotNil(t, pin, "tools/go.mod requires the Temporal CLI")
	require.Equal(t, temporalVersion, string(pin[1]))
}

func TestTemporalCLIIsNotAnyProgramOfThatName(t *testing.T) {
	t.Parallel()
	require.False(t, isTemporalCLI(t.Context(), "/bin/echo"))
	require.False(t, isTemporalCLI(t.Context(), "/does/not/exist"))
}

// TestTemporalCLIThatIsNotOnThePath is used where an installer has put it, and that is said.
func TestTemporalCLIThatIsNotOnThePath(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("PATH", filepath.Join(home, "nothing"))
	path := filepath.Join(home, ".temporalio", "bin", "temporal")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\necho 'temporal version 1.5.1 (Server 1.29.1, UI 2.44.0)'\n"),
		0o755))
	var said []string
	found, err := TemporalCLI(t.Context(), func(line string) { said = append(said, line) })
	require.NoError(t, err)
	require.Equal(t, path, found)
	require.Equal(t, []string{"Using the Temporal CLI " + path + ", which is not on the PATH."}, said)
}

// TestTemporalCLIOfACallerThatHasEnded: a program that did not run, because the caller's context
// has ended, is not one that is missing.
func TestTemporalCLIOfACallerThatHasEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := TemporalCLI(ctx, func(m string) { t.Error(m) })
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, ErrNoTemporal)
}
